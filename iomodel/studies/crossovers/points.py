"""Evaluation points of a crossover study: all of a range, or a coarse grid bisected where the order changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from iomodel.studies.crossovers.curves import Curve, CurveValues

CHUNK = 1 << 16
"""Points evaluated at once."""
OCTAVE = 8
"""Points of the coarse grid in an octave."""
Watch = Callable[[Sequence[Any]], Iterator[Any]]


@dataclass(frozen=True)
class PointRange:
    """The points start, start + step, ... up to limit."""

    start: int
    limit: int
    step: int

    @property
    def count(self) -> int:
        """The number of points [-]."""
        return (self.limit - self.start) // self.step + 1

    def points(self, places: Any) -> Any:
        """Return the points at places 0 .. count - 1."""
        return self.start + self.step * np.asarray(places, dtype=np.int64)

    def spread(self) -> Any:
        """Return places spread evenly over a logarithmic axis, both ends among them."""
        octaves = np.log2(self.limit / self.start) if self.limit > self.start else 0.0
        values = np.geomspace(self.start, self.limit, int(OCTAVE * max(1.0, octaves)) + 2)
        places = np.rint((values - self.start) / self.step).astype(np.int64)
        return np.unique(np.clip(np.r_[places, 0, self.count - 1], 0, self.count - 1))


def every(curves: Sequence[Curve], grid: PointRange, watch: Watch) -> CurveValues:
    """Evaluate all points."""
    return _at(curves, grid.points(np.arange(grid.count)), watch, CHUNK)


def sampled(curves: Sequence[Curve], grid: PointRange, watch: Watch) -> CurveValues:
    """Evaluate a coarse grid, and bisect down to neighbours between two points at which the order differs."""
    values = _at(curves, grid.points(grid.spread()), watch, OCTAVE)
    while True:
        signs = [values.signs(i, j) for i, j in combinations(range(len(curves)), 2)]
        gaps = np.diff(values.points) // grid.step
        open_gaps = np.any([codes[1:] != codes[:-1] for codes in signs], axis=0) & (gaps > 1)
        if not open_gaps.any():
            return values
        middles = values.points[:-1][open_gaps] + gaps[open_gaps] // 2 * grid.step
        values = values.merged(_at(curves, middles, watch, OCTAVE))


def _at(curves: Sequence[Curve], points: Any, watch: Watch, chunk: int) -> CurveValues:
    chunks = [points[begin : begin + chunk] for begin in range(0, len(points), chunk)]
    parts = [[curve.at(part) for curve in curves] for part in watch(chunks)]
    columns = [[np.concatenate(column) for column in zip(*curve, strict=True)] for curve in zip(*parts, strict=True)]
    return CurveValues(points, [values for values, _ in columns], [present for _, present in columns])
