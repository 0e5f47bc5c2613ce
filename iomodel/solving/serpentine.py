"""Search for a serpentine walk without a mask, among the tiles of each pair of trip counts that can be best.

With T outer and S inner tiles, a walk over N rows in tiles of v rows moves

    T N - floor(T / 2) (N - (S - 1) v) - floor((T - 1) / 2) v

of them, and N if S = 1. At given trip counts this does not depend on the outer tile, so the smallest leaves the most
room, and it is a line in v that does not fall: its slope is floor(T / 2) (S - 1) - floor((T - 1) / 2) or 0. So the
smallest v is the cheapest, the next one up is the first that can cost more, and the largest within a limit follows from
the slope. For several lengths cut by the same tiles, the lines add up. A cost may rise with fewer trips, so every pair
is looked at.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from iomodel.solving.problem import LIMIT, Problem, SearchResult, Tile, TileRange, costs_of


def search_serpentine(problem: Problem, epsilon: Fraction, at_most: int | None) -> SearchResult | None:
    """Solve the problem of :func:`iomodel.solving.search.search`; the larger inner tile is preferred."""
    step = problem.inner.step
    outers, lows, highs = _pairs(problem)
    if not len(outers):
        return None
    costs = costs_of(problem, outers, lows)
    seconds = np.minimum(lows + step, highs)
    above = costs_of(problem, outers, seconds)
    cheapest = int(np.argmin(costs))
    least = int(costs[cheapest])
    runner_up: Tile | None = None
    runner_up_bytes: int | None = None
    for inners, values in ((lows, costs), (seconds, above)):
        higher = np.flatnonzero(values > least)
        if len(higher):
            place = higher[np.argmin(values[higher])]
            if runner_up_bytes is None or int(values[place]) < runner_up_bytes:
                runner_up, runner_up_bytes = (int(outers[place]), int(inners[place])), int(values[place])
    limit = floor(least * (1 + epsilon)) if at_most is None else at_most
    within = np.flatnonzero(costs <= limit)
    slopes = np.maximum(above - costs, 0)[within]
    steps = (highs - lows)[within] // step
    steps = np.minimum(steps, np.where(slopes > 0, (limit - costs[within]) // np.maximum(slopes, 1), steps))
    best: tuple[tuple[int, int, int, int], Tile] | None = None
    inners = lows[within] + steps * step
    for place in np.flatnonzero(inners == inners.max()):
        u, v = int(outers[within[place]]), int(inners[place])
        cost = int(costs[within[place]] + steps[place] * slopes[place])
        rank = (-v, cost, problem.footprint(u, v), u)
        if best is None or rank < best[0]:
            best = rank, (u, v)
    assert best is not None  # the least cost is within the limit
    tile = best[1]
    return SearchResult(
        tile,
        problem.bytes_at(*tile),
        least,
        (int(outers[cheapest]), int(lows[cheapest])),
        runner_up,
        runner_up_bytes,
        examined=2 * len(outers),
    )


def _pairs(problem: Problem) -> tuple[Any, Any, Any]:
    """Return the smallest outer tile of each pair of trip counts that fits, and the range of its inner tiles."""
    classes = [(problem.inner.smallest_of_class(high), high) for high in _largest_of_classes(problem.inner)]
    lows, highs = (np.array(ends) for ends in zip(*classes, strict=True))
    found: list[tuple[Any, Any, Any]] = []
    many = 0
    for largest in _largest_of_classes(problem.outer):
        u = problem.outer.smallest_of_class(largest)
        top = problem.inner.largest(lambda v, u=u: problem.footprint(u, v), problem.budget)  # type: ignore[misc]
        if top is None:
            continue  # a smaller outer tile occupies less
        fits = lows <= top
        found.append((np.full(int(fits.sum()), u), lows[fits], np.minimum(highs[fits], top)))
        many += len(found[-1][0])
        if many > LIMIT:
            raise problem.too_many()
    if not found:
        return tuple(np.zeros(0, dtype=np.int64) for _ in range(3))  # type: ignore[return-value]
    outers, inner_lows, inner_highs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return outers, inner_lows, inner_highs


def _largest_of_classes(sizes: TileRange) -> list[int]:
    """List the largest allowed size of each number of trips, from the largest down."""
    found, size = [], sizes.last
    while True:
        found.append(size)
        below = sizes.next_class(size)
        if below is None:
            return found
        size = below
