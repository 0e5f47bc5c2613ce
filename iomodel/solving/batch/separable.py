"""Search of many problems whose costs depend on trip counts alone.

The cost of a block of outer tiles from `low` to `high` has a lower bound: the cost at the trips of `high` and of the
largest inner tile that fits beside `low`, because no tile of the block has fewer trips in either loop. A block whose
bound exceeds the limit is dropped; any other block is evaluated in its middle and split there. The remaining tiles
include those that :class:`iomodel.solving.strategies.Separable` examines, and others that rank behind them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iomodel.solving.batch.many_problems import SLAB, Answers, Many, ranked
from iomodel.solving.problem import LIMIT


class Blocks(NamedTuple):
    """Blocks of outer tiles from low to high, both the smallest of their class; `inner` is the largest beside `low`."""

    who: Any
    low: Any
    high: Any
    inner: Any

    def only(self, where: Any) -> Blocks:
        """Select some of the blocks."""
        return Blocks(*(column[where] for column in self))


def separable(many: Many) -> Answers:
    """Find the preferred tile of every problem."""
    outer, every = many.outer, np.arange(many.count)
    whole = many.inner.last
    first, last = (outer.first + np.zeros(many.count, dtype=np.int64), outer.last + np.zeros(many.count, np.int64))
    free = many.cost(None, first, whole) == many.cost(None, last, whole)  # outer trips are free
    u = np.where(free, first, outer.least_of_class(None, many.outer_top()))
    v = many.inner_top(None, u)
    cost = many.cost(None, u, v)
    best = cost.copy()
    candidates = [(every, u, v, cost)]
    high = np.where(free, 0, outer.below(None, u))
    rest = np.flatnonzero(high)
    low = first[rest]
    stack = [Blocks(rest, low, high[rest], many.inner_top(rest, low))]
    examined = np.zeros(many.count, dtype=np.int64)
    while stack:
        blocks = stack.pop()
        if len(blocks.who) > SLAB:
            half = len(blocks.who) // 2
            stack.append(blocks.only(slice(half, None)))
            blocks = blocks.only(slice(half))
        near = many.cost(blocks.who, blocks.high, blocks.inner) <= many.limit(best)[blocks.who]
        near &= examined[blocks.who] <= LIMIT
        blocks = blocks.only(near)
        if not len(blocks.who):
            continue
        middle, beside, cost = _middles(many, blocks)
        candidates.append((blocks.who, middle, beside, cost))
        np.minimum.at(best, blocks.who, cost)
        np.add.at(examined, blocks.who, 1)
        stack.append(_halves(many, blocks, middle, beside))
    return _chosen(many, best, examined > LIMIT, *map(np.concatenate, zip(*candidates, strict=True)))


def _middles(many: Many, blocks: Blocks) -> tuple[Any, Any, Any]:
    """Return a tile inside each block, the largest inner tile beside it, and the cost of the pair."""
    outer, (who, low, high, _) = many.outer, blocks
    guess = np.sqrt(low.astype(np.float64) * high).astype(np.int64)
    middle = outer.least_of_class(who, np.minimum(np.maximum(guess, low), high))
    beside = many.inner_top(who, middle)
    return middle, beside, many.cost(who, middle, beside)


def _halves(many: Many, blocks: Blocks, middle: Any, beside: Any) -> Blocks:
    """Split the blocks into the parts below and above their middles."""
    who, low, high, inner = blocks
    under, over = np.flatnonzero(middle > low), np.flatnonzero(middle < high)
    below = Blocks(who[under], low[under], many.outer.below(who[under], middle[under]), inner[under])
    above = Blocks(who[over], many.outer.above(who[over], middle[over]), high[over], beside[over])
    return Blocks(*(np.concatenate(pair) for pair in zip(below, above, strict=True)))


def _chosen(many: Many, best: Any, hard: Any, who: Any, u: Any, v: Any, cost: Any) -> Answers:
    """Choose the candidate that ranks first within the limit."""
    near = np.flatnonzero(cost <= many.limit(best)[who])
    if len(near) > many.count:
        near = near[ranked(who[near], -v[near], cost[near], many.footprint(who[near], u[near], v[near]), u[near])]
    near = near[np.argsort(who[near], kind="stable")]
    return Answers(u[near], v[near], cost[near], best, hard)
