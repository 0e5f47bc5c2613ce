"""Search of many problems with costs under a mask, by the bounds that :mod:`iomodel.solving.search` proves.

The bound on an outer tile u, base + max(stream / u, least stream), gives the smallest outer tile that a problem has to
visit for a given limit. Outer tiles are therefore visited in strides: one tile first, then four times as many each
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iomodel.solving.batch.formulas import take
from iomodel.solving.batch.many_problems import HUGE, SLAB, Answers, Many, align_up, firsts, ragged, ranked, slabs
from iomodel.solving.problem import LIMIT


def staircase(many: Many) -> Answers:
    """Find the preferred tile of every problem."""
    best, hard, who, u, floors = _walk(many)
    limit = many.limit(best)
    near = np.flatnonzero((floors <= limit[who]) & ~hard[who])
    near = near[np.argsort(who[near], kind="stable")]  # by problem, then the largest outer tile first
    choose = _most_inner if many.prefer_inner else _most_outer
    which, *columns = choose(many, limit, who[near], u[near], floors[near])
    answer = np.zeros((3, many.count), dtype=np.int64)
    answer[:, which] = columns
    outers, inners, costs = answer
    return Answers(outers, inners, costs, best, hard)


def _walk(many: Many) -> tuple[Any, Any, Any, Any, Any]:
    """Return the least cost of each problem, and the outer tiles not excluded, with a lower bound on their costs."""
    outer = many.outer
    base = many.base(None, 1, 1)
    stream = many.strict(None, 1, 1) - base
    least_stream = many.strict(None, outer.rows, 1) - many.base(None, outer.rows, 1)
    best = np.full(many.count, HUGE)
    hard = np.zeros(many.count, dtype=bool)
    examined = np.zeros(many.count, dtype=np.int64)
    size, alive, stride = many.outer_top(), np.arange(many.count), 1
    visited: list[tuple[Any, Any, Any]] = []
    while len(alive):
        room = many.limit(best)[alive] - base[alive]
        step, first = take(outer.step, alive), take(outer.first, alive)
        lowest = np.maximum(first, align_up(-(-stream[alive] // np.maximum(room, 1)), step))
        left = np.where(room < least_stream[alive], 0, (size[alive] - lowest) // step + 1)
        hard[alive] = (examined[alive] > LIMIT) | ((left > LIMIT) & (stride > 64))
        go = np.flatnonzero((left > 0) & ~hard[alive])
        alive, count = alive[go], np.minimum(left[go], stride)
        if not len(alive):
            break
        row, place, starts = ragged(count)
        who = alive[row]
        u = size[who] - place * take(outer.step, who)
        floors = many.strict(who, u, take(many.inner.step, who))
        costs = floors if many.first_is_least else _least_beside(many, who, u, floors, many.limit(best), examined)
        best[alive] = np.minimum(best[alive], np.minimum.reduceat(costs, starts))
        near = np.flatnonzero(floors <= many.limit(best)[who])
        visited.append((who[near], u[near], floors[near]))
        size[alive] -= count * take(outer.step, alive)
        stride = max(1, min(4 * stride, SLAB // len(alive)))
    who, u, floors = map(np.concatenate, zip(*visited, strict=True))
    return best, hard, who, u, floors


def _least_beside(many: Many, who: Any, u: Any, floors: Any, limit: Any, examined: Any) -> Any:
    """Return the least cost at each outer tile over all inner tiles; HUGE if its lower bound exceeds the limit."""
    costs = np.full(len(who), HUGE)
    near = np.flatnonzero(floors <= limit[who])
    first = take(many.inner.first, who[near]) + np.zeros_like(near)
    counts = (many.inner_top(who[near], u[near]) - first) // take(many.inner.step, who[near]) + 1
    np.add.at(examined, who[near], counts)
    for part in slabs(counts):
        row, place, starts = ragged(counts[part])
        some = near[part][row]
        v = first[part][row] + place * take(many.inner.step, who[some])
        costs[near[part]] = np.minimum.reduceat(many.cost(who[some], u[some], v), starts)
    return costs


def _most_inner(many: Many, limit: Any, who: Any, u: Any, _floors: Any) -> tuple[Any, Any, Any, Any]:
    """Choose the tile within the limit that has the largest inner tile."""
    inner, largest = many.inner, np.zeros(many.count, dtype=np.int64)
    v, stride = many.inner_top(who, u), 1
    candidates: list[tuple[Any, Any, Any, Any]] = []
    while len(who):
        least = np.maximum(take(inner.first, who), largest[who])
        count = np.minimum((v - least) // take(inner.step, who) + 1, stride)
        go = np.flatnonzero(count > 0)
        who, u, v, count = who[go], u[go], v[go], count[go]
        if not len(who):
            break
        missed = np.ones(len(who), dtype=bool)
        for part in slabs(count):
            row, place, _ = ragged(count[part])
            row += part.start
            some = who[row]
            size = v[row] - place * take(inner.step, some)
            cost = many.cost(some, u[row], size)
            hits = np.flatnonzero(cost <= limit[some])
            hits = hits[firsts(row[hits])]  # the largest of each outer tile
            candidates.append((some[hits], u[row][hits], size[hits], cost[hits]))
            np.maximum.at(largest, some[hits], size[hits])
            missed[row[hits]] = False
        go = np.flatnonzero(missed)
        who, u, v = who[go], u[go], v[go] - count[go] * take(inner.step, who[go])
        stride *= 2
    if not candidates:
        return who, u, v, v
    who, u, v, cost = map(np.concatenate, zip(*candidates, strict=True))
    best = np.flatnonzero(v == largest[who])
    who, u, v, cost = who[best], u[best], v[best], cost[best]
    best = ranked(who, cost, many.footprint(who, u, v), u)
    return who[best], u[best], v[best], cost[best]


def _most_outer(many: Many, _limit: Any, who: Any, u: Any, floors: Any) -> tuple[Any, Any, Any, Any]:
    """Choose the tile within the limit that has the largest outer tile; its smallest inner tile costs least."""
    best = firsts(who)
    return who[best], u[best], take(many.inner.first, who[best]) + np.zeros_like(best), floors[best]
