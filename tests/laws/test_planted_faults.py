"""The list of planted faults: each still has its place in the code, and the tests that are to notice it exist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

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
