"""Least traffic over two tile sizes under a memory budget: exact, with few evaluations.

There are four shapes of cost, and the search of three of them has a proof that it is complete.

*Separable* (no mask in force): the cost is a non-decreasing function of the two trip counts; of those along every
length, where sequences of different lengths are summed. For every outer tile the largest inner tile that fits is then
the cheapest, only the smallest outer tile of the same trip counts matters, and
cost(u, whole axis) is a lower bound on every cost at u; it falls as u grows. If the outer trip count does not affect
the cost, the smallest outer tile leaves the most room and no other tile is examined.

*Stationary* (a mask, one stationary and one streamed axis): the cost is base + stream, where the streamed rows visited
at (u, v) are

- at least those at (u, a) for every v that is a multiple of a, since each visited tile of a rows lies in a visited
  tile of v rows;
- at least those at (1, 1) divided by u, since one streamed row serves at most u rows of the stationary tile;
- at least those of one tile that covers the stationary axis, which visits every row that any tile visits.

Rows loaded at every visit but the first are rows streamed less at most one load of each, and rows that move at the
first visit alone are the fewest at (u, a).

So cost(u, v) >= base + max((cost(1, 1) - base) / u, least stream), which falls as u grows: the search walks u
downwards and stops where this bound exceeds the best cost so far.

*Serpentine* (every second walk backwards, no mask in force): the tiles of one pair of trip counts compete by a line
(:mod:`iomodel.solving.serpentine`).

*Irregular* (pieces of several lengths, a serpentine walk under a mask): no bound holds, so every tile that fits is
examined (`search_all`).

The order of preference in all of them: traffic at most (1 + epsilon) of the least; then the larger preferred tile; then
less traffic; then the smaller footprint; then the smaller other tile.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

from iomodel.solving.problem import Problem, SearchResult, Tile, search_all
from iomodel.solving.serpentine import search_serpentine
from iomodel.solving.strategies import SearchStrategy, Separable, Stationary


def search(problem: Problem, epsilon: Fraction = Fraction(0), at_most: int | None = None) -> SearchResult | None:
    """Find the preferred tile, with proof; None if nothing fits.

    `at_most` replaces the limit on the cost that follows from epsilon; it is not below the least cost.
    """
    if problem.serpentine:
        return search_serpentine(problem, epsilon, at_most)
    if problem.irregular:
        return search_all(problem, epsilon, at_most)
    walk: SearchStrategy = Stationary(problem) if problem.base is not None else Separable(problem)
    top = problem.outer.largest(lambda u: problem.footprint(u, problem.inner.first), problem.budget)
    if top is None:
        return None
    least, least_tile = _least(walk, top)
    runner_up = _runner_up(walk, top, least)
    limit = floor(least * (1 + epsilon)) if at_most is None else at_most
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
    assert best is not None  # the least cost is within the limit
    tile = best[1]
    return SearchResult(tile, problem.bytes_at(*tile), least, least_tile, *runner_up, examined=len(problem.known))


def _least(walk: SearchStrategy, top: int) -> tuple[int, Tile]:
    best: tuple[float, Tile] = (inf, (0, 0))
    for u in walk.outers(top):
        if walk.bound(u) >= best[0]:
            break
        best = min(best, walk.least(u, best[0]), key=lambda candidate: candidate[0])
    return int(best[0]), best[1]


def _runner_up(walk: SearchStrategy, top: int, least: int) -> tuple[Tile | None, int | None]:
    best: tuple[float, Tile | None] = (inf, None)
    for u in walk.outers(top):
        if walk.bound(u) >= best[0]:
            break
        candidate = walk.next_above(u, least, best[0])
        if candidate is not None and candidate[0] < best[0]:
            best = candidate
    return best[1], None if best[1] is None else int(best[0])
