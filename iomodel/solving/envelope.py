"""Least traffic of a search problem at every size of the memory: the lower envelope over its tiles.

A tile is on the envelope if no tile of at most its footprint moves as little. Three facts keep the tiles few:

- *Separable*: the cost is a sum of products of trip counts with weights of at least 0, so of all tiles with equal trip
  counts the smallest pair alone matters, and a tile that changes no cost beside the most trips of the other changes
  none at all.
- *Stationary*: a lower bound on the cost beside an outer tile u holds for all inner tiles (the first fact of
  :mod:`iomodel.solving.search`). Some tiles that fit a memory reach it; from there on no other inner tile beside u is
  on the envelope. Where the least inner tile reaches the bound itself, none but this one is. Every u is evaluated,
  for the cost may fall and rise with it.
- *Irregular*: every pair of tiles is evaluated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from iomodel.solving.problem import LIMIT, Problem, Tile, TileRange, costs_of, every
from iomodel.solving.strategies import Stationary

BATCH = 1 << 16
"""Number of tiles evaluated together."""


class Stair(NamedTuple):
    """The least footprint with which a problem costs as little, its tile, and the cost [B]."""

    footprint: int
    tile: Tile
    bytes: int


def lower_envelope(problem: Problem) -> list[Stair]:
    """Return the stairs of a problem, the smallest footprint first; the budget of the problem is not used.

    Raises
    ------
    InputError
        More tiles compete than a search examines.
    """
    if problem.irregular:
        problem.budget = problem.footprint(problem.outer.last, problem.inner.last)
        return _lowest(problem, *every(problem))
    if problem.base is None:
        return _lowest(problem, *_classes(problem))
    walk = Stationary(problem)
    if walk.first_is_least:
        return _beside(problem, problem.inner.first)
    return _bounded(problem, walk)


def _beside(problem: Problem, v: int) -> list[Stair]:
    """Return the stairs of the tiles with one inner size."""
    stairs: list[Stair] = []
    for batch in _batches(problem):
        problem.compute(batch, v)
        for u in batch:
            cost = problem.bytes_at(u, v)
            if not stairs or cost < stairs[-1].bytes:
                stairs.append(Stair(problem.footprint(u, v), (u, v), cost))
    return stairs


def _batches(problem: Problem) -> Iterator[range]:
    outer = problem.outer
    sizes = range(outer.first, outer.last + 1, outer.step)
    if len(sizes) > LIMIT:
        raise problem.too_many()
    return (sizes[start : start + BATCH] for start in range(0, len(sizes), BATCH))


def _bounded(problem: Problem, walk: Stationary) -> list[Stair]:
    """Return the stairs of a cost that has a lower bound beside every outer tile."""
    inner, sizes = problem.inner, [problem.inner.first]
    while sizes[-1] < inner.last:
        sizes.append(min(inner.last, 2 * sizes[-1]))
    known = _merged(stair for v in sizes for stair in _beside(problem, v))  # an upper bound of the envelope
    falling = [-stair.bytes for stair in known]
    us: list[int] = []
    vs: list[int] = []
    for batch in _batches(problem):
        if walk.provable:
            problem.compute(batch, inner.step)
        for u in batch:
            reached = bisect_left(falling, -walk.strict(u, inner.step))
            room = known[reached].footprint if reached < len(known) else problem.footprint(u, inner.last)
            top = inner.largest(partial(problem.footprint, u), room)
            if top is not None:
                added = range(inner.first, top + 1, inner.step)
                if len(us) + len(added) > LIMIT:
                    raise problem.too_many()
                us += [u] * len(added)
                vs += added
    outers, inners = np.array(us), np.array(vs)
    return _lowest(problem, outers, inners, costs_of(problem, outers, inners))


def _merged(stairs: Iterable[Stair]) -> list[Stair]:
    lowest: list[Stair] = []
    for stair in sorted(stairs, key=lambda stair: (stair.footprint, stair.bytes)):
        if not lowest or stair.bytes < lowest[-1].bytes:
            lowest.append(stair)
    return lowest


def _classes(problem: Problem) -> tuple[Any, Any, Any]:
    """Return the smallest tiles of every pair of trip counts, with their costs."""
    outer, inner = problem.outer, problem.inner
    most = problem.bytes_at(outer.first, inner.first)  # at the most trips of both
    us = [outer.first] if problem.bytes_at(outer.last, inner.first) == most else _smallest(problem, outer)
    vs = [inner.first] if problem.bytes_at(outer.first, inner.last) == most else _smallest(problem, inner)
    if len(us) * len(vs) > LIMIT:
        raise problem.too_many()
    outers, inners = (grid.ravel() for grid in np.meshgrid(us, vs, indexing="ij"))
    return outers, inners, costs_of(problem, outers, inners)


def _smallest(problem: Problem, sizes: TileRange) -> list[int]:
    """Return the smallest size of every class of equal trip counts, the largest first."""
    if (isqrt(sizes.last) - sizes.first) // sizes.step > LIMIT:  # up to the root each size is a class of its own
        raise problem.too_many()
    smallest: list[int] = []
    size: int | None = sizes.last
    while size is not None:
        smallest.append(sizes.smallest_of_class(size))
        size = sizes.next_class(size)
    return smallest


def _lowest(problem: Problem, outers: Any, inners: Any, costs: Any) -> list[Stair]:
    """Return the tiles that cost less than all tiles of a smaller footprint; ties as :func:`iomodel.solve` has them."""
    pairs = zip(outers.tolist(), inners.tolist(), strict=True)
    footprints = np.array([problem.footprint(u, v) for u, v in pairs], dtype=object)
    preferred, other = (inners, outers) if problem.prefer_inner else (outers, inners)
    ranks = [np.unique(values, return_inverse=True)[1] for values in (costs, footprints)]  # of integers of any size
    order = np.lexsort((other, -preferred, *ranks))
    stairs: list[Stair] = []
    for place in order.tolist():
        cost = int(costs[place])
        if not stairs or cost < stairs[-1].bytes:
            stairs.append(Stair(int(footprints[place]), (int(outers[place]), int(inners[place])), cost))
    return stairs
