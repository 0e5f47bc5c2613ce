"""Search problems: two tile sizes with their cost, footprint and budget; and their solution by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np

from iomodel.errors import InputError

Tile = tuple[int, int]
LIMIT = 2_000_000
"""The most tiles that a search examines; this takes some seconds."""
SLAB = 1 << 16
"""Number of tiles costed in one batch."""


def align_up(size: int, step: int) -> int:
    """Round a size up to a multiple of `step`."""
    return -(-size // step) * step


class TileRange(NamedTuple):
    """The allowed sizes of a tile: multiples of `step` from `least` until one covers `rows`, or up to `most`.

    `shorter` holds the other lengths that the same tile cuts in a call of several sequences.
    """

    rows: int
    step: int = 1
    least: int = 1
    most: int | None = None
    shorter: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The smallest size; a size that covers the axis is always allowed."""
        return align_up(min(self.least, self.rows), self.step)

    @property
    def last(self) -> int:
        """The largest useful size."""
        if self.most is not None:
            return self.most // self.step * self.step
        return align_up(self.rows, self.step)

    def has(self, size: int) -> bool:
        """Check that a size is allowed."""
        return self.first <= size <= self.last and not (size - self.first) % self.step

    def trips(self, size: int) -> int:
        """Count the tiles of this size along the longest axis [-]."""
        return -(-self.rows // size)

    def largest(self, occupied: Callable[[int], int], budget: int) -> int | None:
        """Return the largest size within the budget, for a footprint that grows with the size; None if nothing fits."""
        step, low, high = self.step, self.first, self.last
        room = budget - occupied(low)
        if room < 0:
            return None
        if high <= low:
            return low
        # A footprint is affine in one tile but for the first rows: the first guess is nearly always right.
        slope = occupied(low + step) - occupied(low)
        guess = min(high, low + room // slope * step) if slope else high
        if occupied(guess) <= budget:
            low = guess
            if guess < high and occupied(guess + step) > budget:
                return guess
        if occupied(high) <= budget:
            return high
        while high - low > step:
            middle = (low + high) // (2 * step) * step
            low, high = (middle, high) if occupied(middle) <= budget else (low, middle)
        return low

    def smallest_of_class(self, size: int) -> int:
        """Return the smallest allowed size with no more trips along any length."""
        least = max(-(-rows // -(-rows // size)) for rows in (self.rows, *self.shorter))
        return max(self.first, align_up(least, self.step))

    def next_class(self, size: int) -> int | None:
        """Return the largest allowed size with more trips along some length; None if there is none."""
        below = max((rows - 1) // -(-rows // size) for rows in (self.rows, *self.shorter)) // self.step * self.step
        return below if below >= self.first else None


@dataclass
class Problem:
    """A search over two tile sizes, with their cost [B], footprint and budget.

    `base` is the part of the cost that no tile reduces; None marks a separable cost. `strict` is the part of the cost
    to which the bounds of a staircase apply; None if they apply to the whole cost. `least_stream` is the traffic
    streamed past one tile that covers the outer axis. No bound holds for an `irregular` cost; few tiles compete if it
    is `serpentine` (:mod:`iomodel.solving.serpentine`).
    """

    outer: TileRange
    inner: TileRange
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
    serpentine: bool = False

    def compute(self, outers: range, v: int) -> None:
        """Evaluate the costs at many outer sizes in one batch, if `costs` is given."""
        if self.costs is not None:
            sizes = list(outers)
            values = self.costs(np.array(sizes), v).tolist()
            self.known.update(((u, v), value) for u, value in zip(sizes, values, strict=True))

    def bytes_at(self, u: int, v: int) -> int:
        """Return the cost of a tile, computed once per tile."""
        known = self.known.get((u, v))
        if known is None:
            if len(self.known) > LIMIT:
                raise self.too_many()
            known = self.known[u, v] = self.cost(u, v)
        return known

    def too_many(self) -> InputError:
        """Build the error for more tiles than a search examines."""
        step = self.inner.step
        return InputError(
            f"alignment: {step} given; more than {LIMIT:,} tile sizes compete for the proof; allowed: any, "
            f"try {64 * step}"
        )

    @property
    def least_footprint(self) -> int:
        """The smallest feasible budget."""
        return self.footprint(self.outer.first, self.inner.first)


class SearchResult(NamedTuple):
    """The chosen tile with its cost, a tile of least cost, and the cheapest tile above the least cost."""

    tile: Tile
    bytes: int
    least: int
    least_tile: Tile
    runner_up: Tile | None
    runner_up_bytes: int | None
    examined: int


def search_all(problem: Problem, epsilon: Fraction, at_most: int | None) -> SearchResult | None:
    """Solve the problem of :func:`iomodel.solving.search.search` by enumeration, without bounds."""
    outers, inners, costs = every(problem)
    if not len(costs):
        return None

    def first(where: Any) -> Tile:
        """Break a tie by the largest outer tile, then by the smallest inner tile."""
        best = np.lexsort((inners[where], -outers[where]))[0]
        return int(outers[where][best]), int(inners[where][best])

    least = int(costs.min())
    above = costs > least
    next_cost = int(costs[above].min()) if above.any() else None
    limit = floor(least * (1 + epsilon)) if at_most is None else at_most
    preferred, other = (inners, outers) if problem.prefer_inner else (outers, inners)
    near = np.flatnonzero(costs <= limit)
    near = near[preferred[near] == preferred[near].max()]
    near = near[costs[near] == costs[near].min()]
    chosen = min(near.tolist(), key=lambda i: (problem.footprint(int(outers[i]), int(inners[i])), int(other[i])))
    return SearchResult(
        (int(outers[chosen]), int(inners[chosen])),
        int(costs[chosen]),
        least,
        first(np.flatnonzero(costs == least)),
        None if next_cost is None else first(np.flatnonzero(costs == next_cost)),
        next_cost,
        examined=len(costs),
    )


def every(problem: Problem) -> tuple[Any, Any, Any]:
    """Return the outer sizes, inner sizes and costs [B] of all tiles that fit."""
    slabs = [(outers, inners, costs_of(problem, outers, inners)) for outers, inners in _slabs(problem)]
    none = np.zeros(0, dtype=np.int64)
    outers, inners, costs = zip(*slabs, strict=True) if slabs else ([none], [none], [none])
    return np.concatenate(outers), np.concatenate(inners), np.concatenate(costs)


def _slabs(problem: Problem) -> Iterator[tuple[Any, Any]]:
    inner, outer = problem.inner, problem.outer
    rows: list[Any] = []
    columns: list[Any] = []
    many = waiting = 0
    for v in range(inner.first, inner.last + 1, inner.step):
        top = outer.largest(lambda u, v=v: problem.footprint(u, v), problem.budget)  # type: ignore[misc]
        if top is None:
            break  # a larger inner tile occupies more
        sizes = range(outer.first, top + 1, outer.step)
        waiting += len(sizes)
        many += len(sizes)
        if many > LIMIT:
            raise problem.too_many()
        rows.append(np.arange(outer.first, top + 1, outer.step))
        columns.append(np.full(len(sizes), v))
        if waiting >= SLAB:
            yield np.concatenate(rows), np.concatenate(columns)
            rows, columns, waiting = [], [], 0
    if rows:
        yield np.concatenate(rows), np.concatenate(columns)


def costs_of(problem: Problem, outers: Any, inners: Any) -> Any:
    """Return the costs of pairs of tiles [B]."""
    if problem.costs is not None:
        return np.asarray(problem.costs(outers, inners))
    pairs = zip(outers.tolist(), inners.tolist(), strict=True)
    return np.array([problem.cost(u, v) for u, v in pairs], dtype=object)
