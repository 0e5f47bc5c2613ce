"""The explorer: its JavaScript says what Python says, its file is small and whole, its errors are one line."""

from __future__ import annotations

import ast
import json
import lzma
import re
import subprocess
from base64 import b85decode
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sympy import Integer, Mod, Symbol, ceiling, floor

import iomodel
from iomodel.algorithms import algorithm, list_algorithms
from iomodel.explorer import clock_data, transpile
from iomodel.explorer.call_kinds import kinds
from iomodel.explorer.javascript import Nodes, NoJavaScriptError, template
from iomodel.explorer.page import COMPUTES, LZMA, packed, script, static
from iomodel.explorer.typeset import Typeset
from iomodel.explorer.used_definitions import used_definitions
from iomodel.nests import B_r, N_q, d
from tests.support.explorer_calls import COUNTS, SOLVED, Drawn, counted, drawn
from tests.support.inside import main
from tests.support.programs import program


@cache
def points() -> list[Drawn]:
    """Calls to count, drawn when a test asks: drawing compiles their formulas."""
    return [*drawn(170, seed=1), *drawn(20, seed=2, largest=10**9), *drawn(20, seed=3, largest=10**17)]


@cache
def solves() -> list[Drawn]:
    """Calls to solve."""
    return list(drawn(70, seed=4))


@pytest.fixture(scope="module")
def html(whole: Path) -> str:
    """The page of all algorithms."""
    return whole.read_text(encoding="utf-8")


def test_the_page_has_the_defaults_of_python(html: str) -> None:
    told = data_of(html)["algorithms"]
    assert set(told) == set(list_algorithms())
    for name in told:
        found, directions = algorithm(name), told[name]["directions"]
        assert set(directions) == set(found.directions)
        for way, fields in directions.items():
            numbers = {key: int(entry.get("declared", entry["default"])) for key, entry in fields["numbers"].items()}
            switches = {key: entry["default"] == "on" for key, entry in fields["switches"].items()}
            assert {**numbers, **switches} == {**found.takes(way), **(found.saved if way == "both" else {})}, (
                name,
                way,
            )


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'id="data">([^<]*)<', html)
    assert found is not None
    compressed = b85decode(found[1].replace(",", "<"))[4:]
    return json.loads(lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[LZMA]).decompress(compressed))


def job_of(call: Drawn) -> dict[str, Any]:
    return {"fields": call.fields, "tiles": {name: str(size) for name, size in call.tiles.items()}}


def run_node(tmp_path: Path, html: str, body: str, jobs: list[Any]) -> list[Any]:
    """What the page's own code answers to some jobs, in Node.js."""
    node = program("Node.js", "node", "nodejs")
    (tmp_path / "data.json").write_text(json.dumps(data_of(html)))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    source = script(COMPUTES).removesuffix("})();")
    run = f"""
const read = (name) => JSON.parse(require("fs").readFileSync(name, "utf8"));
const answer = {body.strip()};
const calls = new Calls(read("data.json"));
console.log(JSON.stringify(read("jobs.json").map((job) => {{
  try {{ return answer(calls, job); }} catch (error) {{ return {{error: error.message}}; }}
}})));
}})();"""
    (tmp_path / "run.js").write_text(source + run)
    done = subprocess.run([node, "run.js"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_javascript_unpacks_what_python_packs(tmp_path: Path) -> None:
    """Matches near and far, short and long, of the last distances, in runs, after other matches, and none at all."""
    random = Random(1)
    noise = [random.choice("0123456789 abc\u00e9\U0001f600<,") for _ in range(200_000)]
    texts = ["", "a", "ab" * 5_000, "a" * 70_000, "".join(noise), "".join(noise[:3_000] + noise + noise[:3_000])]
    for size in (2, 5, 40, 700):  # words of a vocabulary, some with one letter changed
        words = ["".join(random.choices("etaoin", k=random.randint(1, size))) for _ in range(60)]
        said = [random.choice(words) for _ in range(60_000 // size)]
        texts.append("".join(word[:-1] + "x" if random.random() < 0.1 else word for word in said))
    told = [*texts, [*range(40_000)], {"deep": [[[None]]] * 99, "float": [random.random() for _ in range(999)]}]
    (tmp_path / "packed.json").write_text(json.dumps([packed(data) for data in told]))
    (tmp_path / "told.json").write_text(json.dumps(told))
    run = """
const read = (name) => JSON.parse(require("fs").readFileSync(name, "utf8")), elements = read("packed.json");
globalThis.document = { getElementById: (place) => ({ textContent: elements[place] }) };
const found = elements.map((_, place) => unpacked(place));
const same = (data, place) => JSON.stringify(data) === JSON.stringify(found[place]);
console.log(JSON.stringify(read("told.json").map(same)));
"""
    (tmp_path / "run.js").write_text(static("unpack.js") + run)
    node = program("Node.js", "node", "nodejs")
    done = subprocess.run([node, "run.js"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True] * len(told)


def test_javascript_counts_what_python_counts(tmp_path: Path, html: str) -> None:
    found = run_node(tmp_path, html, COUNTS, [job_of(call) for call in points()])
    for call, counts in zip(points(), found, strict=True):
        assert counts == counted(call), call


def test_number_and_bigint_agree_where_the_bound_allows_number(tmp_path: Path, html: str) -> None:
    """The bound sends no count to Number that it would round: forced to BigInt, the answers stay."""
    forced = f"""(calls, job) => {{
      const plain = ({COUNTS.strip()})(calls, job);
      const at = calls.formulas.at;
      calls.formulas.at = function (places, point, moving = []) {{
        const exact = this.source(places, moving, "big")(...this.symbols.map((symbol) => point[symbol] ?? 0n));
        return (...given) => exact(...given);
      }};
      const exact = ({COUNTS.strip()})(calls, job);
      calls.formulas.at = at;
      return JSON.stringify(plain) === JSON.stringify(exact);
    }}"""
    longer = [
        {**job_of(call), "fields": {**call.fields, "q_len": str(size), "kv_len": str(size)}}
        for call in points()
        if not call.options.keys() & {"splits"} and not algorithm(call.algorithm).requires
        for size in (10**4, 10**5, 10**6, 10**7)
    ]
    jobs = [*map(job_of, points()), *longer]
    assert run_node(tmp_path, html, forced, jobs) == [True] * len(jobs)


@pytest.mark.parametrize("alignment", [1, 16])
def test_the_page_solves_as_solve_does(tmp_path: Path, html: str, alignment: int) -> None:
    jobs, wanted = [], []
    for call in solves():
        budget = 2_000 if alignment == 1 else 100_000
        options = {name: value for name, value in call.options.items() if name != "tiled"}
        fields = {**call.fields, "sram_bytes": str(budget), "alignment": str(alignment)}
        if "tiled" in call.options:
            fields["tiled"] = "on"
        try:
            found = iomodel.solve(call.algorithm, call.workload, sram_bytes=budget, alignment=alignment, **options)
        except iomodel.InfeasibleError as error:
            wanted.append({"least": str(error.least)})
        except iomodel.InputError:
            continue  # more splits than tiles of that alignment
        else:
            cost = str(found.cost.hbm_bytes)
            wanted.append({"tiles": dict(found.tiles), "binding": found.certificate.binding, "bytes": cost})
        jobs.append({"fields": fields})
    assert sum("tiles" in answer for answer in wanted) > 25
    assert run_node(tmp_path, html, SOLVED, jobs) == wanted


def test_bounds_are_those_of_lower_bounds(tmp_path: Path, html: str) -> None:
    calls = points()[:60]
    body = "(calls, job) => calls.call(calls.complete(job.fields)).lowerBounds(job.size)"
    tiles = [{name: str(size) for name, size in call.tiles.items()} for call in calls]  # a split may need small ones
    jobs = [{"fields": {**call.fields, **own}, "size": 40_000} for call, own in zip(calls, tiles, strict=True)]
    found = run_node(tmp_path, html, body, jobs)
    for call, bounds in zip(calls, found, strict=True):
        memory = 40_000 // call.workload.element_size
        known = iomodel.lower_bounds(call.workload, algorithm=call.algorithm, sram_elements=memory)
        for name, bound in known.items():
            # Python rounds down, a root before it divides
            assert bounds[name] == pytest.approx(bound.bytes, rel=3e-4, abs=4 * call.workload.element_size), (
                call,
                name,
            )
        assert bounds.keys() >= known.keys()


def test_what_is_wrong_in_a_link_is_named(tmp_path: Path, html: str) -> None:
    body = "(calls, job) => { calls.call(calls.complete(job)); return {}; }"
    wrong = {
        "hardware": ({"hardware": "h100-smx5"}, "'h100-smx5' is unknown; did you mean 'h100-sxm5'? allowed: a10, "),
        "algorithm": ({"algorithm": "flash9"}, "'flash9' is unknown; did you mean 'flash1'? allowed: dsa, eager, "),
        "q_len": ({"q_len": "0"}, "'0' given; allowed: an integer from 1 to 1000000000000000000"),
        "head_dim": ({"head_dim": "1e3"}, "'1e3' given; allowed: an integer from 1"),
        "kv_heads": ({"heads": "32", "kv_heads": "5"}, "5 does not divide heads = 32; allowed: a divisor, such as 4"),
        "direction": (
            {"algorithm": "tiled_query", "direction": "both"},
            "'both' given; allowed for tiled_query: forward",
        ),
        "option of flash2": ({"splits": "4"}, "'splits' is unknown; "),
        "field": ({"nonsense": "1"}, "'nonsense' is unknown; allowed: hardware, "),
        "splits": ({"algorithm": "split_kv", "splits": "500"}, "500 given; allowed: up to 256, the tiles of 16 keys"),
        "dtype": ({"dtype": "bf61"}, "'bf61' is unknown; did you mean 'bf16'? allowed: fp32, "),
        "pair": ({"pair": "65"}, "'65' given; allowed: an integer from 1 to 64"),
        "kv_len": ({"kv_len": "x"}, "'x' given; allowed: an integer from 1 to 1000000000000000000"),
        "lse": ({"lse": "yes"}, "'yes' is unknown; allowed: off, on"),
        "gemm1_m": ({"gemm1_m": "16"}, "16 given; allowed: only for the tiles of flash2 here: block_q, block_kv"),
        "window_left": ({"mask": "window", "window_left": "-1"}, "'-1' given; allowed: an integer from 0"),
        "align": ({"align": "top"}, "'top' is unknown; "),
    }
    found = run_node(tmp_path, html, body, [given for given, _ in wrong.values()])
    for field, (_, message), answer in zip(wrong, wrong.values(), found, strict=False):
        text = message if isinstance(message, str) else message[1]
        assert answer.get("error", "no error").startswith(f"{field}: {text}"), answer


def test_every_algorithm_is_there(html: str) -> None:
    data = data_of(html)
    assert list(data["algorithms"]) == list_algorithms()
    assert set(data["calls"]) == {kind.place for kind in kinds(list_algorithms())}
    answered = {place.split("|")[0] for place, found in data["calls"].items() if not isinstance(found, str)}
    assert answered == set(list_algorithms())
    refused = {found for found in data["calls"].values() if isinstance(found, str)}
    assert all(re.match(r"(mask: ('\w+'|a window)|packed: True) given; allowed: ", why) for why in refused), refused


def test_the_file_is_small_whole_and_fetches_nothing(html: str) -> None:
    assert len(html.encode()) <= 3_000_000
    assert not [place for place in re.findall(r"{{\w+}}", static("page.html")) if place in html]
    assert not re.search(r'(src|href)="(https?:)?//', html)
    assert "connect-src" not in html
    assert "default-src 'none'" in html


def test_holes_of_typeset_lines_name_lines_before_them(html: str) -> None:
    for place, line in enumerate(data_of(html)["lines"]):
        assert all(int(inner) < place for inner in re.findall(r"@(\d+)@", line))


def test_a_node_names_only_nodes_before_it(html: str) -> None:
    for place, text in enumerate(data_of(html)["nodes"]):
        assert all(int(inner) < place for inner in re.findall(r"\bx(\d+)\b", text))


def test_the_printer_refuses_what_it_cannot_print() -> None:
    nodes = Nodes()
    nodes.add(floor(N_q / 3) - 2 * d**2)
    assert nodes.texts() in (["(fls(N_q,3n) + -2n*(d*d))"], ["(-2n*(d*d) + fls(N_q,3n))"])
    with pytest.raises(NoJavaScriptError, match="no JavaScript for Mod"):
        template(Mod(N_q, Symbol("j", integer=True, positive=True)))
    with pytest.raises(NoJavaScriptError, match="no JavaScript"):
        template(N_q**d)


def test_shared_parts_are_printed_once() -> None:
    nodes = Nodes()
    part = ceiling(N_q / B_r)
    nodes.add(part * d)
    nodes.add(part * d + Integer(7))
    assert sum("ce" in text for text in nodes.texts()) == 1


def test_typeset_says_a_formula_once() -> None:
    typeset = Typeset()
    assert typeset.line(ceiling(N_q / B_r)) == typeset.line(ceiling(N_q / B_r))
    assert "⌈" in typeset.lines[0] or "&#8968;" in typeset.lines[0]


def test_static_files_are_package_data() -> None:
    for name in ("page.html", "page.css", *(f"{one}.js" for one in COMPUTES)):
        assert static(name)


def few(**more: Any) -> Any:
    return {"algorithms": ["tiled_query"], "hardware": ["h100-sxm5"], **more}


def test_a_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert iomodel.explorer.explore(target, **few()) == target
    first = target.read_text()
    assert first == iomodel.explorer.explore(**few())
    with pytest.raises(iomodel.InputError, match=r"out: .* already exists; allowed: another name, or --force"):
        iomodel.explorer.explore(target, **few())
    assert iomodel.explorer.explore(target, overwrite=True, **few()) == target


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "page.txt"}, r"out: 'page.txt' given; allowed: a file that ends in .html or .htm"),
        ({"path": "none/page.html"}, r"out: .* \(none is not a directory\)"),
        ({"path": 3}, r"out: 3 given; allowed: the path of a .html or .htm file"),
        ({"path": "a\0.html"}, r"out: .* given"),
        ({"algorithms": "flash2"}, r"algorithms: 'flash2' given; allowed: a list of names"),
        ({"algorithms": []}, r"algorithms: \[\] given"),
        ({"algorithms": ["flash9"]}, r"algorithm: 'flash9' is unknown"),
        ({"hardware": ["h9"]}, r"hardware: 'h9' is unknown"),
    ],
)
def test_bad_input_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        iomodel.explorer.explore(**given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["explore", "--output", "x.txt"], "out: 'x.txt' given"),
        (["explore", "--port", "80"], "port: given without --serve; allowed: only with it"),
        (["explore", "--no-browser"], "no_browser: given without --serve"),
        (["explore", "--serve", "--output", "x.html"], "out: given with --serve"),
        (["explore", "--serve", "--port", "http"], "port: 'http' given"),
        (["explore", "--algorithms", "flash2,,"], "algorithms: 'flash2,,' given"),
        (["explore", "--serve", "--port", "99999", "--algorithms", "tiled_query", "--hardware", "t4"], "port: 99999"),
    ],
)
def test_the_command_complains_in_one_line(
    line: list[str], message: str, capsys: pytest.CaptureFixture[str], plain_terminal: None
) -> None:
    assert main(line) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"iomodel: {message}")
    assert said.count("\n") == 1


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], plain_terminal: None) -> None:
    target = tmp_path / "page.html"
    assert main(["explore", "--algorithms", "tiled_query", "--hardware", "t4", "--output", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: {target.stat().st_size:,} B; open it in a browser\n"


def test_the_page_has_every_function_that_its_time_model_calls() -> None:
    roots = {f"iomodel.{name}": names for name, names in clock_data.ROOTS.items()}
    used = used_definitions(roots, clock_data.OUTSIDE)
    for module, wanted in used.items():
        tree = ast.parse(transpile.source(module))
        own = {*wanted, *(name.removeprefix("_") for name in wanted)}
        known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in own:
                called = {part.func.id for part in ast.walk(node)
                          if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}  # fmt: skip
                assert called & known <= own | clock_data.OUTSIDE, f"{module}: {node.name}"
