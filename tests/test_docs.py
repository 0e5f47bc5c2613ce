"""The documentation says what the code says."""

import re
from pathlib import Path

import pytest

import iomodel
from iomodel import symbols, tensors
from iomodel.nest import Tensor

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if "_build" not in page.parts)
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
    documented = [
        (name.strip("`"), plain(letter), meaning, unit)
        for name, letter, meaning, unit in table(section("nomenclature.md", "Symbols"))
    ]
    assert documented == [(e.name, str(e.symbol), e.meaning, e.unit) for e in symbols.ALPHABET]


def test_nomenclature_lists_the_tensors() -> None:
    documented = [
        (name.strip("`"), plain(shape).split(r" \times "), dtype, EACH[each])
        for name, shape, dtype, each, _ in table(section("nomenclature.md", "Tensors"))
    ]
    found = [value for value in vars(tensors).values() if isinstance(value, Tensor)]
    assert documented == [(t.name, [str(a.length) for a in t.axes] or ["1"], t.dtype, t.per) for t in found]


EACH = {
    "query head": "head",
    "key/value head": "kv_head",
    "query head, whatever the batch": "heads",
    "sequence": "batch",
    "call": "call",
}


def plain(formula: str) -> str:
    """A letter, or the ceiling of a quotient, as sympy prints it."""
    text = re.sub(r"\\lceil (.*) / (.*) \\rceil", r"ceiling(\1/\2)", formula)
    return re.sub(r"[${}]", "", text).replace(",", "_")


def test_nomenclature_lists_the_quantities() -> None:
    documented = {name for row in table(section("nomenclature.md", "Quantities")) for name in codes(row[0])}
    workload = iomodel.Attention(q_len=4, head_dim=2)
    counted = set(iomodel.cost("standard", workload).to_dict()) - {"algorithm", "workload", "tiles", "options"}
    assert documented == counted | set(iomodel.expressions("standard").quantities)


@pytest.mark.parametrize("name", iomodel.list_algorithms())
def test_every_algorithm_has_a_page(name: str) -> None:
    assert name in toctree("algorithms/index.md")
    text = read(f"algorithms/{name}.md")
    identifiers = set(re.findall(r"arXiv:\d{4}\.\d{4,5}", iomodel.algorithms.algorithm(name).cite))
    assert identifiers <= set(re.findall(r"arXiv:\d{4}\.\d{4,5}", text)), "the page cites the source"


def test_every_page_of_the_algorithms_is_of_an_algorithm() -> None:
    pages = {page.stem for page in (DOCS / "algorithms").glob("*.md")} - {"index"}
    assert pages == set(toctree("algorithms/index.md")) == set(iomodel.list_algorithms())


def test_every_page_is_in_the_contents() -> None:
    assert sorted(f"{entry}.md" for entry in toctree("index.md")) == sorted(
        {page.name for page in DOCS.glob("*.md")} - {"index.md"} | {"algorithms/index.md"}
    )


def test_api_page_covers_the_public_names() -> None:
    documented = re.findall(r"^\.\. auto\w+:: iomodel\.(\w+)(?:\(\))?$", read("api.md"), re.MULTILINE)
    assert sorted(documented) == sorted(iomodel.__all__)


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
