"""At which points one looks: at every one, or at some and between those where something changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.crossings.curves import Curve, Values
from iomodel.crossings.runs import Seen, least, signs

CHUNK = 1 << 16
"""Points at once where all are looked at."""
OCTAVE = 8
"""Points an octave where some are."""
Watch = Callable[[Iterable[Any], int], Iterator[Any]]


@dataclass(frozen=True)
class Range:
    """start, start + step, ... up to limit."""

    start: int
    limit: int
    step: int

    @property
    def count(self) -> int:
        """How many points there are."""
        return (self.limit - self.start) // self.step + 1

    def points(self, places: Any) -> Any:
        """The points at places 0 .. count - 1."""
        return self.start + self.step * np.asarray(places, dtype=np.int64)

    def spread(self) -> Any:
        """Some places, as many an octave, both ends among them."""
        octaves = max(1.0, np.log2(self.limit / self.start)) if self.limit > self.start else 0.0
        values = np.geomspace(self.start, self.limit, int(OCTAVE * octaves) + 2)
        places = np.rint((values - self.start) / self.step).astype(np.int64)
        return np.unique(np.clip(np.r_[places, 0, self.count - 1], 0, self.count - 1))


def every(curves: Sequence[Curve], where: Range, watch: Watch) -> Seen:
    """All points, in order."""
    seen = Seen(len(curves))
    for begin in watch(range(0, where.count, CHUNK), -(-where.count // CHUNK)):
        points = where.points(np.arange(begin, min(where.count, begin + CHUNK)))
        seen.add(points, [curve.at(points) for curve in curves])
    return seen


def some(curves: Sequence[Curve], where: Range, watch: Watch) -> Seen:
    """Points spread over the range, and between two where something differs by halves down to neighbours."""
    places = where.spread()
    columns: list[list[Values]] = [[] for _ in curves]
    for part in watch(np.array_split(places, -(-len(places) // 8)), -(-len(places) // 8)):
        for column, curve in zip(columns, curves, strict=True):
            column.append(curve.at(where.points(part)))
    values = [_joined(column) for column in columns]
    while True:
        codes = [least(values), *(signs(values[i], values[j]) for i, j in Seen(len(curves)).pairs)]
        differ = np.any([code[1:] != code[:-1] for code in codes], axis=0)
        gaps = np.flatnonzero(differ & (np.diff(places) > 1))
        if not len(gaps):
            break
        middles = (places[gaps] + places[gaps + 1]) // 2
        fresh = [curve.at(where.points(middles)) for curve in watch(curves, len(curves))]
        order = np.argsort(np.r_[places, middles], kind="stable")
        places = np.r_[places, middles][order]
        values = [_sorted(_joined([old, new]), order) for old, new in zip(values, fresh, strict=True)]
    seen = Seen(len(curves))
    seen.add(where.points(places), values)
    return seen


def _joined(parts: Sequence[Values]) -> Values:
    return Values(np.concatenate([part.values for part in parts]), np.concatenate([part.there for part in parts]))


def _sorted(one: Values, order: Any) -> Values:
    return Values(one.values[order], one.there[order])
