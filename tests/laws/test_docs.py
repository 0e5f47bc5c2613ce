"""The documentation says what the code says."""

import importlib
import re
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

import iomodel
import iomodel.plots
from iomodel.explorer.built import shipped_algorithms
from iomodel.models.families import FAMILIES
from iomodel.nests import tensors
from iomodel.nests.language import Tensor
from tests.support.docs_search import QUERIES
from tests.support.public_names import MOVED, PUBLIC, ROOT

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if "_build" not in page.parts)
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
READERS = ("for-kernels", "for-serving", "for-research", "for-tests", "for-developers", "reference")
"""Pages that have the others of a kind of reader folded below them."""
FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)\d[\d,]*(?:\.\d+)?(?![\w])")


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def sections(text: str) -> list[tuple[str, str]]:
    """Each heading of a page with the text below it, up to the next heading; headings inside fences are text."""
    fences = [match.span() for match in FENCE.finditer(text)]
    headings = [
        match
        for match in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
        if not any(start <= match.start() < stop for start, stop in fences)
    ]
    stops = [match.start() for match in headings[1:]] + [len(text)]
    return [(match[1], text[match.end() : stop]) for match, stop in zip(headings, stops, strict=True)]


def section(name: str, heading: str) -> str:
    return dict(sections(read(name)))[heading]


def table(text: str) -> list[list[str]]:
    """The rows of the tables in a text, header rows left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [i for i, row in enumerate(rows) if set("".join(row)) <= set("- :") and any(row)]
    return [row for i, row in enumerate(rows) if i not in rules and i + 1 not in rules]


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def python(text: str) -> str:
    return "\n".join(body for _, info, body in FENCE.findall(text) if info.strip() == "python")


def toctree(name: str) -> list[str]:
    bodies = [body for _, info, body in FENCE.findall(read(name)) if info.strip() == "{toctree}"]
    return [line.strip() for body in bodies for line in body.splitlines() if line.strip() and line[0] != ":"]


def literals(text: str) -> set[str]:
    """The numbers of a text, without separators of thousands."""
    text = re.sub(r"\$[^$]*\$", " ", text)  # formulas are no figures
    return {number.rstrip(",").replace(",", "") for number in NUMBER.findall(text)}


def test_nomenclature_lists_the_alphabet() -> None:
    assert "```{symbols}\n" in section("nomenclature.md", "Symbols")


def test_nomenclature_lists_the_tensors() -> None:
    rows = run_path(str(DOCS / "_ext" / "tensor_table.py"))["list_tensors"]()
    declared = [value for value in vars(tensors).values() if isinstance(value, Tensor)]
    assert "```{tensors}\n" in section("nomenclature.md", "Tensors")
    assert [row[0].strip("`") for row in rows] == [tensor.name for tensor in declared]
    assert all(all(row) for row in rows), "a tensor has its meaning in a comment beside it"
    assert ("`V`", r"$N_{k} \times d_{v}$", "io", "key/value head", "values") in rows


def test_nomenclature_lists_the_quantities() -> None:
    documented = {name for row in table(section("nomenclature.md", "Quantities")) for name in codes(row[0])}
    workload = iomodel.Attention(q_len=4, head_dim=2)
    apart = {"schema", "iomodel", "algorithm", "workload", "tiles", "options"}
    counted = set(iomodel.cost("standard", workload).to_dict()) - apart
    assert documented == counted | set(iomodel.expressions("standard").quantities)


KINDS = ("attention", "recurrence", "mlp", "cross_entropy")
WITH_PAGES = [name for kind in KINDS for name in iomodel.list_algorithms(kind)]


@pytest.mark.parametrize("name", WITH_PAGES)
def test_every_algorithm_has_a_page(name: str) -> None:
    assert name in toctree("algorithms/index.md")
    text = read(f"algorithms/{name}.md")
    identifiers = set(re.findall(r"arXiv:\d{4}\.\d{4,5}", iomodel.algorithms.algorithm(name).cite))
    assert identifiers <= set(re.findall(r"arXiv:\d{4}\.\d{4,5}", text)), "the page cites the source"


@pytest.mark.parametrize("name", WITH_PAGES)
def test_the_page_of_an_algorithm_draws_its_moves(name: str) -> None:
    drawings = run_path(str(DOCS / "_ext" / "drawings.py"))
    assert f"```{{moves}} {name}\n" in read(f"algorithms/{name}.md")
    assert 4 < drawings["trace"](name).count < 10_000
    if name in shipped_algorithms():  # the drawing links to the explorer
        assert f"algorithm={name}&" in drawings["address"](name)


def test_every_page_of_the_algorithms_is_of_an_algorithm() -> None:
    pages = {page.stem for page in (DOCS / "algorithms").glob("*.md")} - {"index"}
    assert pages == set(toctree("algorithms/index.md")) == set(WITH_PAGES)


def test_every_page_is_in_the_contents() -> None:
    own = {f"{folder}/{entry}" for folder in ("algorithms", "api") for entry in _entries(folder)}
    listed = [*toctree("index.md"), *(page for reader in READERS for page in toctree(f"{reader}.md"))]
    assert len(listed) == len(set(listed))
    assert len(toctree("index.md")) <= 10 + len(READERS)  # the rest is folded by reader
    assert {*listed, *own} == {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES} - {"index"}


def _entries(folder: str) -> list[str]:
    """What the page of a folder lists, by file name."""
    page = "algorithms/index.md" if folder == "algorithms" else "api.md"
    return [entry.removeprefix(f"{folder}/") for entry in toctree(page)]


@pytest.mark.parametrize("page", ["index", *READERS])
def test_every_page_is_in_the_list_of_its_reader(page: str) -> None:
    heading = "Ten pages to begin with" if page == "index" else "Pages"
    linked = re.findall(r"^- \[.*\]\(([\w/-]+)\.md\)", section(f"{page}.md", heading), re.MULTILINE)
    assert linked == [entry for entry in toctree(f"{page}.md") if entry not in READERS]


def test_the_front_page_states_the_errors_of_the_readme() -> None:
    (row,) = re.findall(r"^\| (\d+) held out \(`--held-out`\).*?\| ([\d.]+ %) \| ([\d.]+ %) \|$", README, re.MULTILINE)
    front = " ".join(read("index.md").split())
    assert f"**{row[1]}** on {row[0]} published" in front
    assert f"nine in ten are within {row[2]}" in front


def test_the_search_prefers_pages_that_exist() -> None:
    order = run_path(str(DOCS / "_ext" / "search_order.py"))
    assert {f"{page}.md" for page in order["PHRASES"]} <= {page.relative_to(DOCS).as_posix() for page in PAGES}
    assert set(QUERIES.values()) <= order["PHRASES"].keys()


def test_api_page_covers_the_public_names() -> None:
    text = "".join(read(f"{page}.md") for page in ("api", *toctree("api.md")))
    rooms = "|".join(sorted({*MOVED.values()}))
    documented = re.findall(rf"^\.\. auto\w+:: iomodel\.((?:(?:{rooms})\.)?\w+)(?:\(\))?$", text, re.MULTILINE)
    parts = {f"results.{name}" for name in iomodel.results.__all__ if name not in PUBLIC}
    assert len(documented) == len({*documented})
    assert {*documented} - parts == {*ROOT, *(f"{room}.{name}" for name, room in MOVED.items())}


def test_api_page_covers_the_language() -> None:
    text = read("api/language.md")
    for name in iomodel.nests.__all__:
        value = getattr(iomodel.nests, name)
        if (isinstance(value, type) or callable(value)) and name not in PUBLIC:
            assert re.search(rf":: iomodel\.nests\.{name}$", text, re.MULTILINE), name


def test_api_page_covers_the_pictures() -> None:
    documented = re.findall(r"^\.\. auto\w+:: iomodel\.plots\.(\w+)$", read("api/pictures.md"), re.MULTILINE)
    assert sorted(documented) == sorted(iomodel.plots.__all__)


CLAIMS = [(heading, text) for heading, text in sections(read("claims.md")) if table(text)]


@pytest.mark.parametrize(("heading", "text"), CLAIMS, ids=[heading for heading, _ in CLAIMS])
def test_numbers_of_the_claims_come_from_code(heading: str, text: str) -> None:
    """Each figure in the column "Our number" stands as a literal in the code of the same section, which runs."""
    computed = literals(python(text).replace("_", ""))
    for claim, verdict, ours in table(text):
        assert verdict in {"CONFIRMED", "REFUTED", "OUTSIDE"}, claim
        assert literals(ours) <= computed, f"{claim} -> {literals(ours) - computed}"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_large_numbers_come_from_code(page: Path) -> None:
    """Whoever changes a count must change the page: a figure with separators stands in code of the same page."""
    text = page.read_text(encoding="utf-8")
    code = "\n".join(body for _, info, body in FENCE.findall(text) if re.search(r"python|code-cell", info))
    figures = {figure for figure in NUMBER.findall(FENCE.sub("", text)) if re.fullmatch(r"\d{1,3}(,\d{3})+", figure)}
    assert {figure.replace(",", "") for figure in figures} <= literals(code.replace("_", ""))


def test_links_between_pages_exist() -> None:
    broken = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", FENCE.sub("", page.read_text(encoding="utf-8")))
        if not (page.parent / target).exists()
    ]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_fractions_have_braces(page: Path) -> None:
    """The site reads the digits of a fraction without braces, as in \\frac43 P, as one number."""
    assert re.findall(r"\\[td]?frac(?!\{).{,9}", page.read_text(encoding="utf-8")) == []


NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_asks_a_question_and_ends_with_an_exercise(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(rf"^# {page.stem[0]}\. ", text, re.MULTILINE)
    assert "**The question:**" in text
    exercise = text.partition("## Exercise\n")[2]
    solutions = [cell for cell in CELL.findall(exercise) if cell.startswith(":tags: [hide-cell]\n")]
    assert solutions
    assert CELL.findall(exercise) == solutions
    assert any("assert" in solution for solution in solutions)


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(DOCS / "_ext")
    return importlib.import_module("layers")


def test_the_table_of_the_rooms_has_every_room(layers: Any) -> None:
    files = {path.stem for path in (DOCS.parent / "iomodel").iterdir() if path.suffix == ".py" or path.is_dir()}
    rooms = [room for layer in layers.rooms() for room in layer]
    assert sorted(rooms) == sorted(files - {"__init__", "__pycache__", "_derived", "_parts"})
    assert all(layers.subject(room) and f">{room}<" in layers.table() for room in rooms)


def test_the_picture_of_the_imports_has_every_module_after_what_it_imports(layers: Any) -> None:
    graph = layers.imports()
    ordered = layers.order(graph)
    place = {name: i for i, name in enumerate(ordered)}
    assert sorted(ordered) == sorted(graph)
    assert {"iomodel.counting.folds", "iomodel.counting.coverage", "iomodel.nests.language"} <= graph.keys()
    assert {"iomodel.counting.coverage", "iomodel.nests.language", "iomodel.nests.symbols"} <= graph[
        "iomodel.counting.folds"
    ]
    assert not [(name, other) for name in graph for other in graph[name] if place[other] > place[name]]


def test_a_downloaded_notebook_reads_without_the_other_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    portable = importlib.import_module("notebook_downloads").portable
    solution = nbformat.v4.new_code_cell("1 + 1", metadata={"tags": ["hide-cell"]})
    text = nbformat.v4.new_markdown_cell("See [theory](../theory.md#the-solver) and [papers](https://arxiv.org).")
    made = portable(nbformat.v4.new_notebook(cells=[text, nbformat.v4.new_code_cell("x"), solution]))
    assert made.cells[0].source == "See theory and [papers](https://arxiv.org)."
    assert [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in made.cells] == [False, False, True]


def test_readme_and_changelog_count_what_is_shipped() -> None:
    """The numbers of devices, models and model types grow without a change of these files."""
    readme, changelog = ((DOCS.parent / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGELOG.md"))
    devices = sum(not iomodel.hardware(name).simulated for name in iomodel.list_hardware())
    for text in (readme, changelog):
        assert re.search(rf"\b{devices} \[?devices", text)
        assert re.search(rf"\b{len(iomodel.list_models())} \[?models", text)
    assert f" {len(FAMILIES)} model types" in readme
