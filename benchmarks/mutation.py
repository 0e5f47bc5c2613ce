"""What share of small faults in the package its tests notice: a random sample of them, one after the other.

    python -m benchmarks.mutation [N] [--seed S] [--coverage .coverage] [--times times.xml] [--work FOLDER]

A fault is one change at one place: a comparison, an arithmetic operator, a constant, an index, a unit, `and` for `or`,
a `not`, `min` for `max`, two arguments exchanged, one left out, a branch that is always or never taken, an answer of
None, a statement left out. The sample is uniform over all places of all modules, or has as many of each room
(--by-room); --minutes ends it early. With --own, only tests of the module's room and laws count. Each fault is made in
a copy of the tree, and tests are run until one fails: those that run its line, those that name its module, those that
run anything of it, the quickest first, until they have used so many seconds (--budget). Which these are a coverage file
with a context for each test says, made by either of

    python -m pytest -p benchmarks.line_contexts --junitxml=times.xml     (Python 3.12 or later, and quick)
    pytest --cov --cov-context=test --junitxml=times.xml                  (pytest-cov)

Results are kept in FOLDER as JSON lines, so that a run may be stopped at any time and goes on where it was;
--table shows what there is. Survivors are shown as differences; with --probe N, each is asked N random questions, and
those that change no answer are listed apart, as equal as far as that shows. Several processes share the work:
--share 1/2 and --share 2/2 at the same time, then once with --table.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import accumulate, zip_longest
from pathlib import Path
from random import Random
from tempfile import gettempdir
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parent.parent
KEPT = ("iomodel", "specs", "tests", "docs", "benchmarks", "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md")
FEW, FIRST, MOST, SPENT = 2, 8, 30, 20.0
"""Files of the last step; tests of the first step, which see most faults; tests of any other step at the most, and how
long they took together, as far as that is known [s]."""
THOROUGH = 1000, 120.0
"""The last two for those that survived and are judged again."""
SHARED = ("typer.main", "sympy", "pydantic", "numpy", "jsonschema", "matplotlib.pyplot", "xarray", "zarr", "dask.array",
          "pytest", "hypothesis.strategies", "sybil", "yaml", "rich.table")  # fmt: skip
"""What the children find imported already."""
EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Zarr, imported already, is a plugin of pytest too, whose asserts stay as they are."""
LIMIT = 40.0
"""Processor time of the tests of one step; a fault that makes them hang is noticed so [s]."""
BUDGET = 60.0
"""Processor time for one fault, after which no further step is begun [s]."""
IDLE = 15
"""Elapsed time over processor time, beyond which a child counts as hanging: other programs may use the machine."""
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
UNITS = {1000: 1024, 1024: 1000, 1e6: 1e3, 1e9: 2.0**30, 1e12: 1e9, 8: 1, 32: 8, 100: 1}
"""Numbers of units, and those of a likely mistake."""
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceiling", "ceiling": "floor"}


class Place(NamedTuple):
    """Where a fault is made: the number of the node in its module, and of the fault among those it can have."""

    module: str
    node: int
    fault: int
    line: int


def faults(node: ast.AST) -> Iterator[Callable[[Any], ast.AST | None]]:
    """The faults that a node can have, each as what makes it of a copy of the node; None leaves the node out."""

    def put(name: str, value: Any) -> Callable[[Any], ast.AST]:
        def change(copy: Any) -> ast.AST:
            setattr(copy, name, value)
            return copy

        return change

    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            operators = [*node.ops[:place], SWAPS[type(operator)](), *node.ops[place + 1 :]]
            yield put("ops", operators)
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield put("op", SWAPS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield lambda copy: copy.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield put("value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield put("value", node.value + 1)
        yield put("value", node.value - 1)
        if node.value in UNITS:
            yield put("value", UNITS[node.value])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield put("func", ast.Name(NAMES[node.func.id], ast.Load()))
    elif isinstance(node, ast.Call):
        if len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
            yield put("args", [node.args[1], node.args[0], *node.args[2:]])
        if node.keywords and node.keywords[-1].arg is not None:
            yield put("keywords", node.keywords[:-1])
    elif isinstance(node, ast.IfExp):
        yield put("test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.If):
        yield put("test", ast.Constant(True))
        yield put("test", ast.Constant(False))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield put("value", ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.AugAssign | ast.Break | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom)
    ):
        yield lambda _: ast.Pass()


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def code_of(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module in order, without annotations and what only a type checker reads."""
    for name, child in ast.iter_fields(tree):
        if name in ("annotation", "returns", "type_params") or (
            isinstance(tree, ast.AnnAssign) and name == "annotation"
        ):
            continue
        for one in child if isinstance(child, list) else [child]:
            if not isinstance(one, ast.AST) or (isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"):
                continue
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "lru_cache":
                continue  # how much a cache holds changes no answer
            yield one
            yield from code_of(one)


def places(root: Path) -> list[Place]:
    """Every fault of every module."""
    found = []
    for path in sorted((root / "iomodel").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for number, node in enumerate(code_of(tree)):
            line = getattr(node, "lineno", 0)
            found += [Place(str(path.relative_to(root)), number, fault, line) for fault, _ in enumerate(faults(node))]
    return found


def mutated(source: str, place: Place) -> tuple[str, str]:
    """The module with the fault, and the difference that it makes."""
    tree = ast.parse(source)
    nodes = list(code_of(tree))
    node = nodes[place.node]
    statement = max((s for s in nodes if isinstance(s, ast.stmt) and _holds(s, node)), key=lambda s: s.lineno)
    change = list(faults(node))[place.fault]
    made = change(deepcopy(node))
    whole = statement is node
    before = ast.unparse(statement)
    _replace(tree, node, made)
    after = ast.unparse(made) if whole else ast.unparse(statement)
    old, new = before.splitlines(), after.splitlines()
    left, made = [line for line in old if line not in new], [line for line in new if line not in old]
    told = [f"- {line}" for line in _apart(left, made)] + [f"+ {line}" for line in _apart(made, left)]
    return ast.unparse(ast.fix_missing_locations(tree)), f"{place.module}:{place.line}\n" + "\n".join(told)


def _apart(lines: list[str], others: list[str], around: int = 80) -> list[str]:
    """Long lines near where they differ from their fellows."""
    found = []
    for line, other in zip_longest(lines, others[: len(lines)], fillvalue=""):
        same = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), 0)
        found.append(line if len(line) <= 4 * around else f"...{line[max(0, same - around) : same + around]}...")
    return found


def _holds(statement: ast.AST, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(statement))


def _replace(tree: ast.AST, node: ast.AST, made: ast.AST | None) -> None:
    class Change(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> Any:
            return made if one is node else self.generic_visit(one)

    Change().visit(tree)


class Tests:
    """Which tests may notice a fault."""

    def __init__(
        self, tree: Path, coverage_file: str, times: dict[str, float], most: int = MOST, spent: float = SPENT
    ) -> None:
        from coverage import CoverageData

        data = CoverageData(coverage_file)
        data.read()
        self.times, self.lines = times, {}
        for name in data.measured_files():
            module = "iomodel/" + name.rsplit("/iomodel/", 1)[1]
            lines = data.contexts_by_lineno(name).items()
            self.lines[module] = {line: {_test_of(context) for context in found} - {""} for line, found in lines}
        self.known = {test for lines in self.lines.values() for tests in lines.values() for test in tests}
        self.texts = {
            str(path.relative_to(tree)): path.read_text(encoding="utf-8")
            for path in sorted((tree / "tests").rglob("test_*.py"))
        }
        self.tree, self.most, self.spent = tree, most, spent
        self.own: tuple[str, ...] = ("",)
        """Beginnings of the paths of the tests that count."""

    def running(self, place: Place) -> list[str]:
        """The tests that run the line, a few of each file first."""
        return self._spread(self.lines.get(place.module, {}).get(place.line, set()))

    def near(self, place: Place) -> list[str]:
        """The tests that run anything of the module: of a line whose answer was remembered, one test alone is noted."""
        lines = self.lines.get(place.module, {})
        every = {test for tests in lines.values() for test in tests}
        return self._spread(every - set(self.running(place)))

    def _spread(self, tests: set[str]) -> list[str]:
        tests = {test for test in tests if test.startswith(self.own)}
        files: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=self._time):
            files[test.split("::")[0]].append(test)
        rows = zip_longest(*files.values())
        found = [test for row in rows for test in row if test is not None][: self.most]
        spent = accumulate(self._time(test)[0] for test in found)
        return [test for test, seconds in zip(found, spent, strict=True) if seconds <= self.spent] or found[:1]

    def _time(self, test: str) -> tuple[float, str]:
        return self.times.get(test, 1.0), test

    def named(self, place: Place) -> list[str]:
        """The tests whose names or parameters name the module."""
        stem = Path(place.module).stem.strip("_")
        found = {test for test in self.known if stem in test}
        return self._spread(found or {test for test in self.known if stem.split("_")[0] in test})

    def speaking(self, place: Place) -> list[str]:
        """Tests of the files that speak most of the module and of what it defines."""
        tree = ast.parse((self.tree / place.module).read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        words = {Path(place.module).stem, *(name for name in names if not name.startswith("_"))} - {"__init__"}
        word = re.compile(rf"\b({'|'.join(map(re.escape, sorted(words)))})\b")
        counts = {name: len(word.findall(text)) if words else 0 for name, text in self.texts.items()}
        files = sorted((name for name, count in counts.items() if count), key=lambda name: -counts[name])[:FEW]
        return self._spread({test for test in self.known if test.split("::")[0] in files})


def _test_of(context: str) -> str:
    """The test of a context, without its phase; of a page, whose blocks build on each other, all of it."""
    test = re.sub(r"\|(setup|run|teardown)$", "", context)
    return test.split("::")[0] if ".md::" in test else test


def outcome(work: Path, tests: list[str], limit: float, profile: str = "ci") -> str:
    """Run some tests on the copy, in a child that has the libraries already: "killed", "survived" or "time"."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 1))
        os.chdir(work)
        sink = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.path.insert(0, str(work))
        os.environ |= {"HYPOTHESIS_PROFILE": profile, "PYTHONPATH": str(work), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        import pytest

        os._exit(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *EARLY, *tests]))
    end = time.monotonic() + IDLE * limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", -signal.SIGXCPU: "time", -signal.SIGKILL: "time"}.get(code, "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


UNSURE: set[str] = set()
"""Tests that fail without a fault, alone or in another order."""
SOUND: set[str] = set()
"""Tests that pass without a fault, alone or in the run that --times is of: with the same examples, they do again."""


def trial(path: Path, source: str, text: str, tests: list[str], work: Path, limit: float) -> str:
    """The outcome with a fault in place; a test that fails without it as well does not count."""
    while left := [test for test in tests if test not in UNSURE]:
        made = path.stat()
        path.write_text(text, encoding="utf-8")
        try:
            found = outcome(work, left, limit)
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, ns=(made.st_atime_ns, made.st_mtime_ns))  # its compiled file stays right
        if found == "survived":
            return found
        if found == "killed" and {*left} <= SOUND:
            return found
        if found == "time":  # a fault that never ends, or tests that take long
            return found if outcome(work, left, limit) != "time" else "survived"
        output = (work / "output.txt").read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        again = [test for test in left if any(line.startswith(test) for line in failed)][:1] or failed[:1]
        if (again and again[0] in SOUND) or outcome(work, again or left, limit) == "survived":
            SOUND.update(again)
            return found
        if not again:
            raise RuntimeError(f"tests fail without a fault: {left[0]}, ...: {output[-300:]}")
        UNSURE.update(again)
        if len(left) == 1 and again[0] != left[0]:
            return "survived"  # of a file, whose first failure was no news
    return "survived"


def sampled(every: list[Place], number: int, seed: int, by_room: bool) -> list[Place]:
    """Draw faults, from each room in turn if asked."""
    drawn = Random(seed).sample(every, len(every))
    if by_room:
        rooms: dict[str, list[Place]] = defaultdict(list)
        for place in drawn:
            rooms[package_of(place.module)].append(place)
        drawn = [place for turn in zip_longest(*rooms.values()) for place in turn if place is not None]
    return drawn[:number]


def asked(copy: Path, path: Path, source: str, text: str, number: int) -> bool:
    """Check that a fault changes the answer to one of some random questions."""
    old, new = copy.parent / f"answers-{number}.gz", copy.parent / "answers-new.gz"
    tool = [sys.executable, "-m", "tests.support.answers"]
    if not old.exists():
        subprocess.run([*tool, "record", str(old), "--calls", str(number)], cwd=copy, check=True, capture_output=True)
    path.write_text(text, encoding="utf-8")
    try:
        done = [
            subprocess.run([*tool, *step, str(old), str(new)], cwd=copy, capture_output=True, check=False).returncode
            for step in (["replay"], ["compare"])
        ]
    finally:
        path.write_text(source, encoding="utf-8")
    return any(done)


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z, share = 1.96, killed / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried) * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return middle - half, middle + half


def package_of(module: str) -> str:
    parts = module.split("/")
    return parts[1] if len(parts) > 2 else "(top)"


def report(console: Console, results: list[dict[str, Any]], every: int) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        for key in (package_of(one["module"]), "all"):
            counts[key]["equal" if one.get("equal") else one["outcome"]] += 1
    table = Table(title=f"{len(results)} of {every:,} faults", title_justify="left")
    for column in (
        "package",
        "faults",
        "noticed",
        "of which by time",
        "survived",
        "no test",
        "equal",
        "share noticed",
    ):
        table.add_column(column, justify="left" if column == "package" else "right")
    for name in sorted(counts, key=lambda key: (key == "all", key)):
        at = counts[name]
        killed = at["killed"] + at["time"]
        tried = sum(at.values()) - at["equal"]
        low, high = interval(killed, tried) if tried else (0.0, 1.0)
        share = f"{killed / max(1, tried):.1%} ({low:.0%} to {high:.0%})"
        columns = (tried, killed, at["time"], at["survived"], at["no test"], at["equal"])
        table.add_row(name, *map(str, columns), share)
    for one in results:
        if one["outcome"] in ("survived", "no test"):
            told = "changes no answer that was asked" if one.get("equal") else one["outcome"]
            console.print(f"\n{told}: {one['difference']}", markup=False, highlight=False, soft_wrap=True)
    console.print(table)


def spent() -> float:
    """Return the processor time of the children that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compile_tests(copy: Path) -> None:
    """Compile the package and the tests of a copy, whose asserts pytest rewrites, once for all faults."""
    child = os.fork()
    if child == 0:
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        sink = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        sys.dont_write_bytecode = False
        import pytest

        os._exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *EARLY, "tests"]))
    os.waitpid(child, 0)


def copy_tree(source: Path, copy: Path) -> None:
    """Copy a tree anew, and let children import from the copy."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in KEPT:
        found = source / name
        if found.is_dir():
            shutil.copytree(found, copy / name, ignore=shutil.ignore_patterns("__pycache__", "_build", "*.ipynb"))
        elif found.exists():
            shutil.copy(found, copy / name)
    os.environ["PYTHONPATH"] = str(copy)
    importlib.invalidate_caches()  # the copy was not there before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=300, help="how many (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--coverage", default=".coverage", help="a coverage file with a context for each test")
    parser.add_argument("--times", help="a JUnit file of the same run: the quickest tests come first")
    parser.add_argument(
        "--work", default=str(Path(gettempdir()) / "iomodel-mutation"), help="where the copy and the results lie"
    )
    parser.add_argument("--again", action="store_true", help="judge those that survived again, with many more tests")
    parser.add_argument("--only", action="append", metavar="PATH", help="sample these files or folders: iomodel/triton")
    parser.add_argument("--by-room", action="store_true", help="as many of each room")
    parser.add_argument("--own", action="store_true", help="count tests of the module's room and laws alone")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fault after so many minutes")
    parser.add_argument("--probe", type=int, default=0, metavar="N", help="ask N questions of each survivor")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="this process takes every N-th, from the I-th on")
    parser.add_argument("--source", default=str(ROOT), help="the tree that is copied (this one)")
    parser.add_argument("--table", action="store_true", help="judge nothing, and show what there is")
    parser.add_argument("--budget", type=float, default=BUDGET, help=f"for one fault [s] (default {BUDGET:g})")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help=f"processor time of one step [s] (default {LIMIT:g})"
    )
    given = parser.parse_args()
    work = Path(given.work).absolute()
    first, processes = map(int, given.share.split("/"))
    copy = work / f"tree-{first}"
    if not given.table:
        copy_tree(Path(given.source), copy)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what is changed is put back
    every = [place for place in places(Path(given.source)) if place.module.startswith(tuple(given.only or [""]))]
    chosen = sampled(every, given.faults, given.seed, given.by_room)
    log = work / f"seed-{given.seed}.jsonl"  # of one sample: another --only has another folder
    judged = _kept(log)
    if given.table:
        report(Console(), [judged[place[:3]] for place in chosen if place[:3] in judged], len(every))
        return 0
    mine = [place for place in chosen if place[:3] not in judged]
    if given.again:
        before = [(place, judged[place[:3]]) for place in chosen if place[:3] in judged]
        mine = [place for place, one in before if one["outcome"] == "survived" and one["most"] < THOROUGH[0]]
    settings = THOROUGH if given.again else (MOST, SPENT)
    times = _times(given.times)
    SOUND.update(times)
    tests = Tests(copy, given.coverage, times, *settings)
    for library in SHARED:
        importlib.import_module(library)
    compile_tests(copy)

    end = time.monotonic() + 60 * given.minutes
    for place in track(mine[first - 1 :: processes], "faults"):
        if time.monotonic() > end:
            break
        tests.own = (f"tests/{package_of(place.module)}/", "tests/laws/") if given.own else ("",)
        path = copy / place.module
        source = path.read_text(encoding="utf-8")
        text, difference = mutated(source, place)
        running = tests.running(place)
        runs = running[:FIRST], tests.named(place), running[FIRST:], tests.near(place), tests.speaking(place)
        found, tried, before = "no test", set[str](), spent()
        for step in runs:
            wanted = [test for test in step if test not in tried]
            tried.update(wanted)
            found = trial(path, source, text, wanted, copy, given.limit) if wanted else found
            if found not in ("survived", "no test") or spent() - before > given.budget:
                break
        told = {"outcome": found, "tests": len(running), "most": tests.most, "difference": difference}
        told["seconds"] = round(spent() - before, 1)
        if given.probe and found in ("survived", "no test"):
            told["equal"] = not asked(copy, path, source, text, given.probe)
        result = {**place._asdict(), **told}
        with log.open("a") as file:
            file.write(json.dumps(result) + "\n")
    judged = _kept(log)
    report(Console(), [judged[place[:3]] for place in chosen if place[:3] in judged], len(every))
    return 0


def _kept(log: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The last judgement of each fault, by the first three fields of its place."""
    found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return {(one["module"], one["node"], one["fault"]): one for one in found}


def _times(path: str | None) -> dict[str, float]:
    """Read the times of the tests that passed [s]."""
    if path is None:
        return {}
    from xml.etree import ElementTree

    found: dict[str, float] = defaultdict(float)
    failed = set()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        module, name = case.get("classname", "").replace(".", "/"), case.get("name", "")
        test = f"{module.removesuffix('/md')}.md" if module.endswith("/md") else f"{module}.py::{name}"
        found[test] += float(case.get("time", 1))
        failed |= {test} if list(case) else set()  # it failed or was skipped
    return {test: seconds for test, seconds in found.items() if test not in failed}


if __name__ == "__main__":
    sys.exit(main())
