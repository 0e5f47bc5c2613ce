"""Measured bytes: the file holds together, and the benchmark judges as its docstring says."""

from __future__ import annotations

import csv
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from iomodel import list_hardware

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "bytes.py"


@cache
def benchmark() -> ModuleType:
    """The benchmark as a module; it is a script and in no package."""
    spec = spec_from_file_location("bytes_benchmark", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["bytes_benchmark"] = module
    spec.loader.exec_module(module)
    return module


def rows() -> list[dict[str, str]]:
    with benchmark().MEASURED.open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_have_a_source_and_a_shipped_device() -> None:
    assert len({row["name"] for row in rows()}) == len(rows())
    for row in rows():
        assert row["device"] in list_hardware()
        assert row["level"] in {"dram", "dram reads", "dram writes", "l2"}
        assert row["source"]
        assert int(row["bytes"]) > 0


@pytest.mark.parametrize(
    ("low", "high", "error", "passes"),
    [
        (80, 120, 0.0, True),  # inside, 1.5-fold wide
        (60, 120, 0.0, False),  # inside, too wide
        (110, 115, 0.1, True),  # above, both ends within 15 %
        (110, 120, 0.1, False),
        (40, 50, 0.5, False),
    ],
)
def test_a_row_passes_near_or_inside_a_narrow_interval(low: int, high: int, error: float, passes: bool) -> None:
    judged = benchmark().Judged("", "dram", low, high, 100)
    assert judged.error == pytest.approx(error)
    assert judged.passes is passes


def test_figures_within_the_intervals_stay_within() -> None:
    """The figures outside are near, and the rows that do not pass have wide intervals."""
    rows = benchmark().judged()
    assert {row.name for row in rows if row.error > 0.01} == {"fa1-standard", "l4-softmax", "l4-4096-softmax"}
    assert {row.name for row in rows if not row.passes} == {
        "fa1-flash",
        *(f"l4-{length}{name}" for length in ("", "4096-") for name in ("scores", "output")),
        "flydsl-head-fast",
        "flydsl-head-slow",
    }


@pytest.mark.parametrize(
    ("moved", "partitions", "expected"),
    [
        (0, 1, (0, 50)),  # of unknown rates: nothing to all that fits
        (200, 1, (25, 25)),  # the latest 50 of 200 bytes, half of them written
        (200, 2, (17, 25)),  # a third of the lines are copies
        (40, 1, (100, 100)),  # everything fits
    ],
)
def test_the_cache_keeps_the_latest_lines(moved: int, partitions: int, expected: tuple[int, int]) -> None:
    assert benchmark().kept(100, moved, 50, partitions) == expected
