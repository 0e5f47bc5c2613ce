"""Fit the registers of Triton kernels to the open compiles: the constants of iomodel/placement/triton_registers.py.

    python benchmarks/triton_fit.py

Registers by least squares, without negative weights, over compiles that do not spill. Spills by a logistic fit:
registers wanted beyond the limit, over a temperature, are the log odds; a weak prior keeps the weights near those of
the first fit, so that few compiles do. The constant is then set for as many answers "spills" as there are spills.
Held-out compiles are read by neither.
"""

from __future__ import annotations

import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iomodel.placement.triton_registers import RegisterWeights, held, registers_limit
from iomodel.placement.triton_schedule import LoopSchedule
from tests.placement.test_triton_compiles import chosen_from, kernel

TEMPERATURE = 6.0
"""Registers that multiply the odds of a spill by e [-]."""
PRIOR = np.array([15.0, 0.25, 0.25, 0.75, 0.25, 5.0, 0.25, 0.75])
"""Standard deviations of the weights of spills around those of registers."""
SLACK = 8
"""Compiles closer to the limit are pressed below it, and tell nothing about the registers wanted [-]."""


def table(unit: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What threads hold, registers taken, limits, and whether they spill."""
    rows, taken, limits, spilt = [], [], [], []
    for row, check in (*chosen_from("open"), *chosen_from("another kernel")):
        if row["registers"] is None or not check.fits or check.instruction != unit:
            continue
        programs = [LoopSchedule(each, row["arch"], row["warps"], row["stages"]) for each in kernel(row).programs]
        tiles = max(map(held, programs), key=lambda each: each.carried + each.scores)
        rows.append([1.0, *astuple(tiles)])
        taken.append(row["registers"])
        limits.append(registers_limit(row["warps"]))
        spilt.append(row["stack"] > 0)
    return np.array(rows), np.array(taken), np.array(limits), np.array(spilt)


def least_squares(rows: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Fit the weights; a part whose weight would be negative is left out."""
    kept = np.ones(rows.shape[1], dtype=bool)
    while True:
        weights = np.zeros(rows.shape[1])
        weights[kept] = np.linalg.lstsq(rows[:, kept], taken, rcond=None)[0]
        if (weights >= 0).all():
            return weights
        kept &= weights >= 0


def wanted(rows: np.ndarray, limits: np.ndarray, spilt: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Maximise the posterior of the weights by Newton's method."""
    weights = start.copy()
    for _ in range(100):
        odds = np.clip((rows @ weights - limits) / TEMPERATURE, -30, 30)
        chance = 1 / (1 + np.exp(-odds))
        slope = rows.T @ (spilt - chance) / TEMPERATURE - (weights - start) / PRIOR**2
        bend = (rows * (chance * (1 - chance))[:, None]).T @ rows / TEMPERATURE**2 + np.diag(1 / PRIOR**2)
        weights = np.maximum(weights + 0.5 * np.linalg.solve(bend, slope), 0.0)
    return weights


def main() -> None:
    for unit in ("mma.sync", "wgmma", "tcgen05"):
        rows, taken, limits, spilt = table(unit)
        easy = ~spilt & (taken < limits - SLACK)
        start = least_squares(rows[easy], taken[easy])
        if unit == "mma.sync":
            further = start[-1]
        elif not rows[easy][:, -1].any():
            start[-1] = further  # no open compile with two loops has another instruction
        errors = taken[easy] - rows[easy] @ start
        print(
            f"{unit}: {len(rows)} compiles, {spilt.sum()} spill; registers within {np.std(errors):.0f} of the estimate"
        )
        end = wanted(rows, limits, spilt, start)
        near = np.sort(rows @ end - limits)[-spilt.sum() - 1 :][:2]  # between as many answers as spills and the next
        end[0] -= near.mean()
        over = rows @ end - limits
        for name, weights in (("TAKEN", start), ("WANTED", end)):
            print(f"    {name} {RegisterWeights(*(round(float(weight), 2) for weight in weights))}")
        for margin in (0, 4, 6, 8, 10, 12):
            sure = abs(over) >= margin
            hits, alarms = (spilt & sure & (over > 0)).sum(), (~spilt & sure & (over > 0)).sum()
            unsure, needless = (spilt & ~sure).sum(), (~spilt & ~sure).sum()
            precision, recall = hits / (hits + alarms + needless / 2), hits / max(1, spilt.sum())
            print(
                f"    margin {margin}: {precision:.2f} {recall:.2f} unsure {(~sure).mean():.2f} ({unsure}, {needless})"
            )


if __name__ == "__main__":
    main()
