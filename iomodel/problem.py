"""The question that the search answers: two tile sizes, what they cost, what they occupy, how much there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iomodel.errors import InputError

Tile = tuple[int, int]
LIMIT = 2_000_000
"""Tiles that may be examined before the search gives up; some seconds' worth."""


def align_up(size: int, step: int) -> int:
    """The least multiple of `step` that is at least `size`."""
    return -(-size // step) * step


@dataclass(frozen=True)
class Range:
    """The sizes a tile may have: multiples of `step` from `least` to where it covers `rows`, or up to `most`.

    `shorter` are the other lengths that the same tile cuts, in a call of many sequences.
    """

    rows: int
    step: int = 1
    least: int = 1
    most: int | None = None
    shorter: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The smallest size; one that covers the axis is always allowed."""
        return align_up(min(self.least, self.rows), self.step)

    @property
    def last(self) -> int:
        """The largest size that is worth a look."""
        if self.most is not None:
            return self.most // self.step * self.step
        return align_up(self.rows, self.step)

    def trips(self, size: int) -> int:
        """Tiles of this size along the axis, the longest [-]."""
        return -(-self.rows // size)

    def largest(self, occupied: Callable[[int], int], budget: int) -> int | None:
        """The largest size within the budget, given that a larger size occupies more; None if there is none."""
        step, low, high = self.step, self.first, self.last
        room = budget - occupied(low)
        if room < 0:
            return None
        if high <= low:
            return low
        # A footprint is affine in one tile, or a maximum of such: the first guess is nearly always right.
        slope = occupied(low + step) - occupied(low)
        guess = min(high, low + room // slope * step) if slope else high
        if occupied(guess) <= budget:
            low = guess
            high = min(high, guess + step)
        if occupied(high) <= budget:
            return high
        while high - low > step:
            middle = (low + high) // (2 * step) * step
            low, high = (middle, high) if occupied(middle) <= budget else (low, middle)
        return low

    def smallest_of_class(self, size: int) -> int:
        """The smallest allowed size with as few trips along every length."""
        least = max(-(-rows // -(-rows // size)) for rows in (self.rows, *self.shorter))
        return max(self.first, align_up(least, self.step))

    def next_class(self, size: int) -> int | None:
        """The largest allowed size with more trips along some length; None if there is none."""
        below = max((rows - 1) // -(-rows // size) for rows in (self.rows, *self.shorter)) // self.step * self.step
        return below if below >= self.first else None


@dataclass
class Problem:
    """Two tile sizes, what they cost [B], what they occupy, and the budget.

    `base` is the part of the cost that no tile lessens; None says that the cost is separable. `strict` is the part of
    the cost to which the bounds of a staircase apply, None where they apply to all of it; `least_stream` is what
    streams past one tile that covers the outer axis. Of an `irregular` cost nothing is known.
    """

    outer: Range
    inner: Range
    cost: Callable[[int, int], int]
    footprint: Callable[[int, int], int]
    budget: int
    prefer_inner: bool = True
    base: int | None = None
    strict: Callable[[int, int], int] | None = None
    least_stream: int = 0
    costs: Callable[[Any, Any], Any] | None = None
    known: dict[Tile, int] = field(default_factory=dict)
    irregular: bool = False

    def compute(self, outers: range, v: int) -> None:
        """Cost many tiles in one go, where `costs` does that on an array of outer sizes."""
        if self.costs is not None:
            sizes = list(outers)
            values = self.costs(np.array(sizes), v).tolist()
            self.known.update(((u, v), value) for u, value in zip(sizes, values, strict=True))

    def bytes_at(self, u: int, v: int) -> int:
        """The cost, computed once a tile."""
        known = self.known.get((u, v))
        if known is None:
            if len(self.known) > LIMIT:
                raise self.too_many()
            known = self.known[u, v] = self.cost(u, v)
        return known

    def too_many(self) -> InputError:
        """The error where more tiles compete than can be looked at."""
        step = self.inner.step
        return InputError(
            f"alignment: {step} given; more than {LIMIT:,} tile sizes compete for the proof; allowed: any, "
            f"try {64 * step}"
        )

    @property
    def least_footprint(self) -> int:
        """The least budget in which anything fits."""
        return self.footprint(self.outer.first, self.inner.first)


@dataclass(frozen=True)
class Found:
    """The tile chosen, its cost, and the cheapest tile among those that cost more than the least."""

    tile: Tile
    bytes: int
    least: int
    least_tile: Tile
    runner_up: Tile | None
    runner_up_bytes: int | None
    examined: int
