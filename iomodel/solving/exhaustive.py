"""Exhaustive search over all tiles that fit, for costs without a bound."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from iomodel.solving.problem import LIMIT, Problem, SearchResult, Tile

SLAB = 1 << 16
"""Number of tiles costed in one batch."""


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
        rows.append(np.arange(outer.first, top + 1, outer.step))
        columns.append(np.full(len(rows[-1]), v))
        waiting += len(rows[-1])
        many += len(rows[-1])
        if many > LIMIT:
            raise problem.too_many()
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
