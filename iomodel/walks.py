"""One outer tile at a time, for either shape of cost: which to visit, what bounds them, what is best there.

The bounds are proved in :mod:`iomodel.search`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import inf

from iomodel.problem import Problem, Tile

BATCH = 512
"""Outer tiles that are walked one by one before, and in one go after the first so many."""


class Walk(ABC):
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


class Separable(Walk):
    """A cost by trip counts."""

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


class Staircase(Walk):
    """A cost under a mask."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        assert problem.base is not None
        self.base = problem.base
        self.strict = problem.strict or problem.bytes_at
        self.stream = self.strict(1, 1) - self.base
        self.provable = problem.strict is None
        self.first_is_least = self.provable and problem.inner.first == problem.inner.step

    def outers(self, top: int) -> Iterator[int]:
        sizes = range(top, self.problem.outer.first - 1, -self.problem.outer.step)
        for start in range(0, len(sizes), BATCH):
            batch = sizes[start : start + BATCH]
            if self.provable and start and (batch[0], self.problem.inner.step) not in self.problem.known:
                self.problem.compute(batch, self.problem.inner.step)  # a long walk: go on in strides
            yield from batch

    def bound(self, u: int) -> int:
        return self.base + max(-(-self.stream // u), self.problem.least_stream)

    def _floor(self, u: int) -> int:
        """No inner tile makes this outer tile cheaper."""
        return self.strict(u, self.problem.inner.step)

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
