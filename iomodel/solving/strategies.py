"""Search strategies per outer tile, for separable and staircase costs.

The bounds are proved in :mod:`iomodel.solving.search`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import inf

from iomodel.solving.problem import Problem, Tile

BATCH = 512
"""Outer tiles in a batch; the first batch is evaluated tile by tile, later batches together."""


class SearchStrategy(ABC):
    """A search by outer tile, for one shape of cost."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._tops: dict[int, int] = {}

    @abstractmethod
    def outers(self, top: int) -> Iterator[int]:
        """Yield the outer tiles to examine, from the largest down."""

    @abstractmethod
    def bound(self, u: int) -> int:
        """Return a lower bound on the cost of all tiles with this or a smaller outer size."""

    @abstractmethod
    def least(self, u: int, below: float) -> tuple[float, Tile]:
        """Return the least cost at this outer tile, or any value of at least `below`."""

    @abstractmethod
    def next_above(self, u: int, least: int, below: float) -> tuple[int, Tile] | None:
        """Return the least cost above `least` at this outer tile, if it is under `below`."""

    @abstractmethod
    def preferred(self, u: int, limit: int, inner_from: int) -> Iterator[int]:
        """Yield the inner tiles that may rank first within the limit, none under `inner_from`."""

    def inner_top(self, u: int) -> int:
        """Return the largest inner tile that fits beside u."""
        top = self._tops.get(u)
        if top is None:
            top = self.problem.inner.largest(lambda v: self.problem.footprint(u, v), self.problem.budget)
            assert top is not None  # u is at most the largest outer tile that fits
            self._tops[u] = top
        return top


class Separable(SearchStrategy):
    """A search over a cost that depends on trip counts alone."""

    def outers(self, top: int) -> Iterator[int]:
        problem, outer, u = self.problem, self.problem.outer, top
        if problem.bytes_at(outer.first, problem.inner.last) == problem.bytes_at(outer.last, problem.inner.last):
            yield outer.first  # outer trips are free: all memory goes to the inner tile
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


class Stationary(SearchStrategy):
    """A search over a cost under a mask."""

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
                self.problem.compute(batch, self.problem.inner.step)  # a long walk: evaluate in batches
            yield from batch

    def bound(self, u: int) -> int:
        return self.base + max(-(-self.stream // u), self.problem.least_stream)

    def _floor(self, u: int) -> int:
        """Return a lower bound on the cost at this outer tile over all inner tiles."""
        return self.strict(u, self.problem.inner.step)

    def _first_is_least_beside(self, u: int) -> bool:
        """Check that no inner tile costs less than the smallest beside this outer tile."""
        first, step = self.problem.inner.first, self.problem.inner.step
        return self.first_is_least or (first == step and self.problem.bytes_at(u, first) == self._floor(u))

    def _inners(self, u: int, downwards: bool = False) -> range:
        first, step, top = self.problem.inner.first, self.problem.inner.step, self.inner_top(u)
        return range(top, first - 1, -step) if downwards else range(first, top + 1, step)

    def least(self, u: int, below: float) -> tuple[float, Tile]:
        if self._floor(u) >= below:
            return inf, (u, 0)
        if self._first_is_least_beside(u):
            return self.problem.bytes_at(u, self.problem.inner.first), (u, self.problem.inner.first)
        return min((self.problem.bytes_at(u, v), (u, v)) for v in self._inners(u))

    def next_above(self, u: int, least: int, below: float) -> tuple[int, Tile] | None:
        reachable = self._floor(u)
        if reachable >= below:
            return None
        if reachable > least and self._first_is_least_beside(u):
            return reachable, (u, self.problem.inner.first)
        costs = ((self.problem.bytes_at(u, v), (u, v)) for v in self._inners(u))
        return min((candidate for candidate in costs if candidate[0] > least), default=None)

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
        elif self._first_is_least_beside(u):
            yield problem.inner.first
        else:
            yield from (v for v in self._inners(u) if problem.bytes_at(u, v) <= limit)
