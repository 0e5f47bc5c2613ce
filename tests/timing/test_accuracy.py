"""Errors of the time model against published measurements, as README.md and docs/accuracy.md state them."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from iomodel.timing.error_interval import HALF_WIDTHS

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy.py"
OPEN, HELD_OUT = "published.csv", "published_held_out.csv"
FUSED = {"flash-attn-1", "flash-attn-2", "flash-attn-3"}


@cache
def accuracy() -> ModuleType:
    """The benchmark as a module; it is a script and in no package."""
    spec = spec_from_file_location("accuracy", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["accuracy"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@cache
def judged(name: str) -> tuple[Any, ...]:
    return tuple(accuracy().judged(name))


def errors(name: str, implementations: set[str] | None = None) -> np.ndarray:
    """Shares by which predictions are off, either way [-]."""
    chosen = [one for one in judged(name) if implementations is None or one.row["implementation"] in implementations]
    return np.abs([one.predicted / float(one.row["seconds"]) - 1 for one in chosen])


def test_published_times_are_met() -> None:
    """The median within 15 %, nine in ten within 35 %."""
    found = errors(OPEN)
    assert len(found) >= 270
    assert np.median(found) <= 0.15
    assert np.quantile(found, 0.9) <= 0.35


def test_predictions_lean_neither_way() -> None:
    """A model that is always too fast or too slow may have small errors."""
    ratios = [one.predicted / float(one.row["seconds"]) for one in judged(OPEN)]
    assert abs(np.median(ratios) - 1) <= 0.1


def test_kernels_are_ranked_as_measured() -> None:
    right, every = accuracy().order(list(judged(OPEN)))
    assert every >= 80
    assert right >= 0.9 * every


def test_a_ranking_is_judged_by_hand() -> None:
    """Of three kernels two differ by less than a tenth: of the two pairs that count, one is the wrong way round."""
    module = accuracy()
    row = {**judged(OPEN)[0].row}
    group = [
        module.Judged({**row, "implementation": name, "seconds": str(measured)}, predicted)
        for name, measured, predicted in (("a", 1.0, 1.0), ("b", 1.05, 0.7), ("c", 2.0, 0.8))
    ]
    assert module.order(group) == (1, 2)
    other = [module.Judged({**one.row, "device": "another"}, one.predicted) for one in group[:1]]
    assert module.order([*group[1:], *other]) == (1, 1)


@pytest.mark.parametrize("name", [OPEN, HELD_OUT])
def test_every_row_is_judged_or_left_out_for_a_reason(name: str) -> None:
    module, rows = accuracy(), accuracy().rows(name)
    reasons = [module.left_out(row) for row in rows]
    kept = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
    assert [one.row for one in judged(name)] == kept
    assert not any(row["excluded"] for row in kept)
    assert all(reason is None or reason.strip() for reason in reasons)
    assert all(np.isfinite(one.predicted) and one.predicted > 0 for one in judged(name))


@pytest.mark.parametrize("name", [OPEN, HELD_OUT])
def test_no_published_time_is_below_the_floor(name: str) -> None:
    """Compulsory traffic at full bandwidth and visible pairs at the peak, on devices at their stock clocks."""
    assert [one.row["curve"] for one in judged(name) if not 0 < one.floor <= one.measured] == []


def test_a_curve_is_judged_as_a_whole_or_excluded_by_the_file() -> None:
    """No point is dropped from a curve because it fits badly: what is left out beside the file's is left out whole."""
    module = accuracy()
    for name in (OPEN, HELD_OUT):
        reasons: dict[str, set[str | None]] = {}
        for row in module.rows(name):
            if not row["excluded"]:
                reasons.setdefault(row["curve"], set()).add(module.left_out(row))
        assert [curve for curve, found in reasons.items() if len(found) > 1] == []


def test_held_out_times_are_met() -> None:
    """Fused kernels: the median within 20 %. Eager frameworks included: nine in ten within 45 %."""
    fused = errors(HELD_OUT, FUSED)
    assert len(fused) >= 150
    assert np.median(fused) <= 0.2
    assert np.quantile(errors(HELD_OUT), 0.9) <= 0.45


@pytest.mark.parametrize(("name", "kernels"), [(OPEN, None), (HELD_OUT, None), (HELD_OUT, FUSED)])
def test_readme_states_the_errors(name: str, kernels: set[str] | None) -> None:
    page = (BENCHMARK.parents[1] / "README.md").read_text(encoding="utf-8")
    shares = errors(name, kernels)
    row = rf"\| [^|]*\b{len(shares)} [^|]*\| as shipped \|"
    stated = f"{np.median(shares):.1%} | {np.quantile(shares, 0.9):.1%} |".replace("%", " %")
    assert [line for line in page.splitlines() if re.match(row, line) and line.endswith(stated)]


def test_readme_states_the_errors_of_the_guesses() -> None:
    page = (BENCHMARK.parents[1] / "README.md").read_text(encoding="utf-8")
    for guess in accuracy().guesses(list(judged(HELD_OUT))).values():
        shares = np.abs([row.error for row in guess])
        stated = f"{np.median(shares):.1%} | {np.quantile(shares, 0.9):.1%} |".replace("%", " %")
        assert [line for line in page.splitlines() if f"{len(shares)} held out | naive: " in line and stated in line]


def test_the_files_share_no_curve() -> None:
    curves = [{row["curve"] for row in accuracy().rows(name)} for name in (OPEN, HELD_OUT)]
    assert not curves[0] & curves[1]


REWRITE = "run `python benchmarks/accuracy.py --intervals --write` and read what changed"


def test_half_widths_hold_eight_in_ten_of_the_rows_of_a_place() -> None:
    working = accuracy().machines("working")
    assert accuracy().half_widths(working) == HALF_WIDTHS, REWRITE
    listed = accuracy().OUTSIDE.read_text(encoding="utf-8").splitlines()
    left = sorted(set(accuracy().outside(working)) - set(listed))
    assert left == [], f"left their intervals; {REWRITE}"
    assert len(listed) <= 0.3 * len(working)


def test_every_working_row_is_answered_and_told_rows_are_closer() -> None:
    """What a source states of its kernel makes a prediction better in the median."""
    working = accuracy().machines("working")
    errors_of = [
        np.median([abs(estimate.seconds / one.measured - 1) for one, estimate in pairs])
        for pairs in (
            [(one, one.newcomer) for one in working],
            [(one, one.told) for one in working if one.told is not None],
        )
    ]
    assert errors_of[1] <= errors_of[0] + 0.01 <= 0.15
