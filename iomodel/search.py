"""Least traffic over two tile sizes under a memory budget: exact, with few evaluations.

Two shapes of cost are told apart, and each comes with the bound that proves the search complete.

*Separable* (no mask in force): the cost is a non-decreasing function of the two trip counts. For every outer tile the
largest inner tile that fits is then the cheapest, only the smallest outer tile of each trip count matters, and
cost(u, whole axis) bounds from below whatever u can reach; it falls as u grows. Where the outer trip count costs
nothing, the smallest outer tile leaves the most room and no other needs a look.

*Staircase* (a mask, one stationary and one streamed axis): the cost is base + stream, where the streamed rows visited
at (u, v) are

- at least those at (u, a) for every v that is a multiple of a, since each visited tile of a rows lies in a visited
  tile of v rows;
- at least those at (1, 1) divided by u, since one streamed row serves at most u rows of the stationary tile;
- at least those of one tile that covers the stationary axis, which sees what any tile sees.

So cost(u, v) >= base + max((cost(1, 1) - base) / u, least stream), which falls as u grows: walk u downwards and stop
where that bound passes the best cost found.

Order of preference, in both: traffic at most (1 + epsilon) of the least; then the larger `preferred` tile; then less
traffic; then the smaller footprint; then the smaller other tile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf
from typing import Any

import numpy as np

from iomodel.errors import InputError

Tile = tuple[int, int]
BATCH = 512
"""Outer tiles that are walked one by one before, and in one go after the first so many."""
LIMIT = 2_000_000
"""Tiles that may be examined before the search gives up; some seconds' worth."""


def align_up(size: int, step: int) -> int:
    """The least multiple of `step` that is at least `size`."""
    return -(-size // step) * step


@dataclass(frozen=True)
class Range:
    """The sizes a tile may have: multiples of `step` from `least` to where it covers `rows`."""

    rows: int
    step: int = 1
    least: int = 1

    @property
    def first(self) -> int:
        """The smallest size; one that covers the axis is always allowed."""
        return align_up(min(self.least, self.rows), self.step)

    @property
    def last(self) -> int:
        """The largest size that is worth a look."""
        return align_up(self.rows, self.step)

    def trips(self, size: int) -> int:
        """Tiles of this size along the axis [-]."""
        return -(-self.rows // size)

    def largest(self, occupied: Callable[[int], int], budget: int) -> int | None:
        """The largest size within the budget, given that a larger size occupies more; None if there is none."""
        step, low, high = self.step, self.first, self.last
        room = budget - occupied(low)
        if room < 0:
            return None
        # A footprint is affine in one tile, or a maximum of such: the first guess is nearly always right.
        slope = occupied(low + step) - occupied(low)
        guess = min(high, low + room // slope * step)
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
        """The smallest allowed size with as few trips."""
        return max(self.first, align_up(-(-self.rows // self.trips(size)), self.step))

    def next_class(self, size: int) -> int | None:
        """The largest allowed size with more trips; None if there is none."""
        below = (self.rows - 1) // self.trips(size) // self.step * self.step
        return below if below >= self.first else None


@dataclass
class Problem:
    """Two tile sizes, what they cost [B], what they occupy, and the budget.

    `base` is the part of the cost that no tile lessens; None says that the cost is separable. Where the bounds of a
    staircase are not `provable`, every tile that fits is examined. `least_stream` is what streams past one tile that
    covers the outer axis.
    """

    outer: Range
    inner: Range
    cost: Callable[[int, int], int]
    footprint: Callable[[int, int], int]
    budget: int
    prefer_inner: bool = True
    base: int | None = None
    provable: bool = True
    least_stream: int = 0
    costs: Callable[[Any, int], Any] | None = None
    known: dict[Tile, int] = field(default_factory=dict)

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
                raise InputError(
                    f"alignment: {self.outer.step} given; more than {LIMIT:,} tile sizes compete for the proof; "
                    f"allowed: any, try {64 * self.outer.step}"
                )
            known = self.known[u, v] = self.cost(u, v)
        return known

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


def search(problem: Problem, epsilon: Fraction = Fraction(0)) -> Found | None:
    """The preferred tile, proven; None if nothing fits."""
    walk = _Separable(problem) if problem.base is None else _Staircase(problem)
    top = problem.outer.largest(lambda u: problem.footprint(u, problem.inner.first), problem.budget)
    if top is None:
        return None
    least, least_tile = _least(walk, top)
    runner_up = _runner_up(walk, top, least)
    limit = floor(least * (1 + epsilon))
    best: tuple[tuple[int, int, int, int], Tile] | None = None
    for u in walk.outers(top):
        if walk.bound(u) > limit:
            break
        if best is not None and not problem.prefer_inner and -u > best[0][0]:
            break
        for v in walk.preferred(u, limit, -best[0][0] if best and problem.prefer_inner else 0):
            cost, footprint = problem.bytes_at(u, v), problem.footprint(u, v)
            rank = (-v, cost, footprint, u) if problem.prefer_inner else (-u, cost, footprint, v)
            if best is None or rank < best[0]:
                best = (rank, (u, v))
    assert best is not None  # the least itself is within the limit
    tile = best[1]
    return Found(tile, problem.bytes_at(*tile), least, least_tile, *runner_up, examined=len(problem.known))


def _least(walk: _Walk, top: int) -> tuple[int, Tile]:
    best: tuple[float, Tile] = (inf, (0, 0))
    for u in walk.outers(top):
        if walk.bound(u) >= best[0]:
            break
        best = min(best, walk.least(u, best[0]), key=lambda found: found[0])
    return int(best[0]), best[1]


def _runner_up(walk: _Walk, top: int, least: int) -> tuple[Tile | None, int | None]:
    best: tuple[float, Tile | None] = (inf, None)
    for u in walk.outers(top):
        if walk.bound(u) >= best[0]:
            break
        found = walk.next_above(u, least, best[0])
        if found is not None and found[0] < best[0]:
            best = found
    return best[1], None if best[1] is None else int(best[0])


class _Walk(ABC):
    """What the search needs of a shape of cost, for one outer tile at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._tops: dict[int, int] = {}

    @abstractmethod
    def outers(self, top: int) -> Iterator[int]:
        """The outer tiles worth a look, from the largest down."""

    @abstractmethod
    def bound(self, u: int) -> int:
        """No tile with this outer size, or a smaller one, costs less."""

    @abstractmethod
    def least(self, u: int, below: float) -> tuple[float, Tile]:
        """The least cost at this outer tile, or anything at least `below`."""

    @abstractmethod
    def next_above(self, u: int, least: int, below: float) -> tuple[int, Tile] | None:
        """The least cost above `least` at this outer tile, if it is under `below`."""

    @abstractmethod
    def preferred(self, u: int, limit: int, inner_from: int) -> Iterator[int]:
        """The inner tiles that may rank first among those within the limit, none under `inner_from`."""

    def inner_top(self, u: int) -> int:
        """The largest inner tile that fits beside u."""
        top = self._tops.get(u)
        if top is None:
            top = self.problem.inner.largest(lambda v: self.problem.footprint(u, v), self.problem.budget)
            assert top is not None  # u came from below the largest outer tile that fits
            self._tops[u] = top
        return top


class _Separable(_Walk):
    def outers(self, top: int) -> Iterator[int]:
        problem, outer, u = self.problem, self.problem.outer, top
        if problem.bytes_at(outer.first, problem.inner.last) == problem.bytes_at(outer.last, problem.inner.last):
            yield outer.first  # no trip of the outer loop costs anything: give all memory to the inner tile
            return
        while True:
            yield outer.smallest_of_class(u)
            below = outer.next_class(u)
            if below is None:
                return
            u = below

    def bound(self, u: int) -> int:
        return self.problem.bytes_at(u, self.problem.inner.last)

    def least(self, u: int, below: float) -> tuple[float, Tile]:  # noqa: ARG002 - one cost is computed either way
        v = self.inner_top(u)
        return self.problem.bytes_at(u, v), (u, v)

    def next_above(self, u: int, least: int, below: float) -> tuple[int, Tile] | None:
        problem, v = self.problem, self.inner_top(u)
        if problem.bytes_at(u, v) >= below or problem.bytes_at(u, problem.inner.first) <= least:
            return None
        while (cost := problem.bytes_at(u, v)) <= least:
            smaller = problem.inner.next_class(v)
            assert smaller is not None  # the smallest inner tile costs more than the least
            v = smaller
        return cost, (u, v)

    def preferred(self, u: int, limit: int, inner_from: int) -> Iterator[int]:
        v = self.inner_top(u)
        if v >= inner_from and self.problem.bytes_at(u, v) <= limit:
            yield v


class _Staircase(_Walk):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        assert problem.base is not None
        self.base = problem.base if problem.provable else 0
        self.stream = problem.bytes_at(1, 1) - self.base if problem.provable else 0
        self.stream_of_all = problem.least_stream if problem.provable else 0
        self.provable = problem.provable
        self.first_is_least = problem.provable and problem.inner.first == problem.inner.step

    def outers(self, top: int) -> Iterator[int]:
        sizes = range(top, self.problem.outer.first - 1, -self.problem.outer.step)
        for start in range(0, len(sizes), BATCH):
            batch = sizes[start : start + BATCH]
            if self.provable and start and (batch[0], self.problem.inner.step) not in self.problem.known:
                self.problem.compute(batch, self.problem.inner.step)  # a long walk: go on in strides
            yield from batch

    def bound(self, u: int) -> int:
        return self.base + max(-(-self.stream // u), self.stream_of_all)

    def _floor(self, u: int) -> int:
        """No inner tile makes this outer tile cheaper."""
        return self.problem.bytes_at(u, self.problem.inner.step) if self.problem.provable else 0

    def _inners(self, u: int, downwards: bool = False) -> range:
        first, step, top = self.problem.inner.first, self.problem.inner.step, self.inner_top(u)
        return range(top, first - 1, -step) if downwards else range(first, top + 1, step)

    def least(self, u: int, below: float) -> tuple[float, Tile]:
        if self._floor(u) >= below:
            return inf, (u, 0)
        if self.first_is_least:
            return self.problem.bytes_at(u, self.problem.inner.first), (u, self.problem.inner.first)
        return min((self.problem.bytes_at(u, v), (u, v)) for v in self._inners(u))

    def next_above(self, u: int, least: int, below: float) -> tuple[int, Tile] | None:
        reachable = self._floor(u)
        if reachable >= below:
            return None
        if reachable > least and self.first_is_least:
            return reachable, (u, self.problem.inner.first)
        costs = ((self.problem.bytes_at(u, v), (u, v)) for v in self._inners(u))
        return min((found for found in costs if found[0] > least), default=None)

    def preferred(self, u: int, limit: int, inner_from: int) -> Iterator[int]:
        problem = self.problem
        if self._floor(u) > limit:
            return
        if problem.prefer_inner:
            for v in self._inners(u, downwards=True):
                if v < inner_from:
                    return
                if problem.bytes_at(u, v) <= limit:
                    yield v
                    return
        elif self.first_is_least:
            yield problem.inner.first
        else:
            yield from (v for v in self._inners(u) if problem.bytes_at(u, v) <= limit)
