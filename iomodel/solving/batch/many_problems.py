"""Arrays of search problems, each as :class:`iomodel.solving.problem.Problem` holds one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from iomodel.counting.evaluation.arithmetic import NeedsExactError
from iomodel.solving.batch.formulas import Evaluate, Values, take

HUGE = 2**62
"""An upper bound on every cost computed in int64."""
SLAB = 2**17
"""The approximate number of pairs of a problem and a tile in one evaluation."""


def align_up(size: Any, step: Values) -> Any:
    """Round sizes up to multiples of `step`."""
    return -(-size // step) * step


@dataclass(frozen=True)
class TileRanges:
    """The allowed sizes of a tile in each problem: multiples of `step` from `first` to `last`."""

    rows: Values
    step: Values
    first: Values
    last: Values

    def least_of_class(self, who: Any, size: Any) -> Any:
        """Return the smallest allowed sizes with no more trips."""
        rows = take(self.rows, who)
        return self._least(who, -(-rows // -(-rows // size)))

    def below(self, who: Any, size: Any) -> Any:
        """Return the smallest sizes of the next class with more trips; 0 or under `first` if there is none."""
        step, rows = take(self.step, who), take(self.rows, who)
        largest = (rows - 1) // -(-rows // size) // step * step
        return np.where(largest < take(self.first, who), 0, self.least_of_class(who, np.maximum(largest, 1)))

    def above(self, who: Any, size: Any) -> Any:
        """Return the smallest sizes with fewer trips, for sizes that make more than one."""
        rows = take(self.rows, who)
        return self._least(who, -(-rows // np.maximum(-(-rows // size) - 1, 1)))

    def _least(self, who: Any, size: Any) -> Any:
        return np.maximum(take(self.first, who), align_up(size, take(self.step, who)))


Line = tuple[Evaluate, Evaluate] | None


@dataclass(frozen=True)
class Many:
    """Problems of one part of an algorithm, with their costs [B], footprints and budgets.

    `first_is_least` is true if no inner tile costs less than the smallest inner tile.
    """

    count: int
    outer: TileRanges
    inner: TileRanges
    cost: Evaluate
    strict: Evaluate
    base: Evaluate
    footprint: Evaluate
    outer_line: Line
    inner_line: Line
    budget: Values
    share: Fraction
    prefer_inner: bool
    first_is_least: bool

    def limit(self, least: Any) -> Any:
        """Compute the highest allowed cost of the chosen tile from the least known cost."""
        if not self.share:
            return least
        known = np.where(least < HUGE, least, 0)
        up, down = self.share.numerator, self.share.denominator
        if float(known.max(initial=0)) * (up + down) >= HUGE:
            raise NeedsExactError
        return np.where(least < HUGE, known + known * up // down, HUGE)

    def outer_top(self) -> Any:
        """Compute the largest outer tiles that fit."""
        beside = self.inner.first
        return self._largest(None, self.outer, self.outer_line, beside, lambda u: self.footprint(None, u, beside))

    def inner_top(self, who: Any, u: Any) -> Any:
        """Compute the largest inner tiles that fit beside u."""
        return self._largest(who, self.inner, self.inner_line, u, lambda v: self.footprint(who, u, v))

    def _largest(self, who: Any, sizes: TileRanges, line: Line, beside: Any, occupied: Callable[[Any], Any]) -> Any:
        step, last, budget = (take(values, who) for values in (sizes.step, sizes.last, self.budget))
        if line is not None:  # each line ignores the tile in which it is linear
            start, slope = (part(who, beside, beside) for part in line)
            return np.minimum((budget - start) // slope // step * step, last)
        low = take(sizes.first, who) + np.zeros(self.count if who is None else len(who), dtype=np.int64)
        high = last + np.zeros_like(low)
        used = occupied(low)
        slope = occupied(low + step) - used
        guess = np.minimum(high, low + (budget - used) // slope * step)
        fits = occupied(guess) <= budget
        low, high = np.where(fits, guess, low), np.where(fits, np.minimum(high, guess + step), guess)
        low = np.where(occupied(high) <= budget, high, low)
        while (high - low > step).any():
            middle = np.maximum((low + high) // 2 // step * step, low)
            fits = occupied(middle) <= budget
            low, high = np.where(fits, middle, low), np.where(fits, high, np.minimum(high, middle))
        return low


@dataclass(frozen=True)
class Answers:
    """The tile of every problem, its cost and the least cost [B]; `hard` marks problems for a search of their own."""

    outer: Any
    inner: Any
    bytes: Any
    least: Any
    hard: Any


def ragged(counts: Any) -> tuple[Any, Any, Any]:
    """Return the row and the place of every element, and the start of each row, for non-empty rows of these lengths."""
    starts = np.cumsum(counts) - counts
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - starts[row], starts


def slabs(counts: Any, size: int = SLAB) -> Iterator[slice]:
    """Yield runs of rows with up to `size` elements together, or of a single row."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + size, side="right")))
        yield slice(start, stop)
        start = stop


def firsts(ordered: Any) -> Any:
    """Mark the first occurrence of each value in an ordered array."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered


def ranked(who: Any, *keys: Any) -> Any:
    """Return the place of the best element of each problem, least key first, in the order of the problems."""
    if len(who) < 2 or (who[1:] > who[:-1]).all():
        return np.arange(len(who))
    order = np.lexsort((*reversed(keys), who))
    return order[firsts(who[order])]
