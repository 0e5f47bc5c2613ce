"""The list of planted faults: each still has its place in the code, and the tests that are to notice it exist."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.mutation import Place, code_of, mutated, package_of, sampled
from benchmarks.mutation import faults as random_faults
from benchmarks.planted_faults import Fault, faults

ROOT = Path(__file__).parents[2]
FAULTS = list(faults())


def test_every_fault_has_its_place() -> None:
    rotten = []
    for fault in FAULTS:
        text = (ROOT / "iomodel" / fault.file).read_text(encoding="utf-8")
        if text.count(fault.old) != 1 or fault.planted(text) == text:
            rotten.append((fault.file, fault.old))
    assert rotten == []


def test_the_tests_of_every_fault_exist() -> None:
    files = {test.split("::")[0] for fault in FAULTS for test in fault.tests}
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []


def test_the_faults_are_spread_over_the_areas() -> None:
    areas = Counter(fault.area for fault in FAULTS)
    assert len(areas) >= 13
    assert min(areas.values()) >= 10
    assert len({fault.key for fault in FAULTS}) == len(FAULTS)


def test_a_fault_without_its_place_is_refused() -> None:
    fault = Fault("counting", "x.py", "a", "b", "nothing", ())
    assert fault.planted("1 a 2") == "1 b 2"
    for text in ("", "a a"):
        with pytest.raises(ValueError, match=r"^x\.py: \d occurrences of 'a'"):
            fault.planted(text)


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("a < b", ["a <= b"]),
        ("a * 1024", ["a // 1024", "a * 1025", "a * 1023", "a * 1000"]),
        ("rows[0]", ["rows[1]", "rows[-1]"]),
        ("x = f(a, b, size=c)", ["x = f(b, a, size=c)", "x = f(a, b)"]),
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("if a:\n    b", ["if True:\n    b", "if False:\n    b"]),
        ("not a", ["a"]),
    ],
)
def test_random_faults_are_of_every_kind(source: str, made: list[str]) -> None:
    nodes = enumerate(code_of(ast.parse(source)))
    every = [Place("m", number, fault, 1) for number, node in nodes for fault, _ in enumerate(random_faults(node))]
    assert [mutated(source, place)[0] for place in every] == made


def test_a_sample_by_room_has_as_many_of_each() -> None:
    modules = ["iomodel/a/m.py"] * 100 + ["iomodel/b/m.py"] * 30 + ["iomodel/m.py"] * 20
    every = [Place(module, number, 0, 1) for number, module in enumerate(modules)]
    counts = Counter(package_of(place.module) for place in sampled(every, 60, 0, by_room=True))
    assert counts.keys() == {package_of(place.module) for place in every}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(sampled(every, 60, 0, by_room=False)) == 60
