"""Search of one part of an algorithm over many problems whose costs fit 64 bits, by shape of cost."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.counting.evaluation.arithmetic import Size
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.solving.batch.formulas import PartArrays, Values, fits, take
from iomodel.solving.batch.many_problems import Answers, Many, TileRanges
from iomodel.solving.batch.ranges import some as some_sizes
from iomodel.solving.batch.separable import separable
from iomodel.solving.batch.staircase_search import staircase


def answers_of(
    part: PartArrays, point: Sequence[Values], pair: Sequence[TileRanges], budget: Values, share: Fraction, count: int
) -> Answers:
    """Search one part; problems whose least inner tile is not one step are searched separately."""
    formulas, inner = part.formulas, pair[1]
    able = _able(part, point, _many(part, point, pair, budget, share, count, False))
    smallest = np.broadcast_to(np.asarray(inner.first == inner.step), (count,))
    if not formulas.masked or not formulas.provable:
        smallest = np.zeros(count, dtype=bool)
    outers, inners, costs, least = np.zeros((4, count), dtype=np.int64)
    merged = Answers(outers, inners, costs, least, ~able)
    for flag in (True, False):
        some = np.flatnonzero(able & (smallest == flag))
        if not len(some):
            continue
        chosen = None if len(some) == count else some
        at, tiles = [take(values, chosen) for values in point], [some_sizes(tile, chosen) for tile in pair]
        many = _many(part, at, tiles, take(budget, chosen), share, len(some), flag)
        answers = staircase(many) if formulas.masked else separable(many)
        if chosen is None:
            return answers
        for name in ("outer", "inner", "bytes", "least", "hard"):
            getattr(merged, name)[some] = getattr(answers, name)
    return merged


class Magnitudes:
    """The bounds on the magnitude of each number, over all problems or per problem."""

    def __init__(self, point: Sequence[Values], count: int) -> None:
        self.point, self.count = point, count

    @cached_property
    def _together(self) -> list[Size]:
        return [_together(values, values) for values in self.point]

    @cached_property
    def _apart(self) -> list[Size]:
        return [_apart(values, values) for values in self.point]

    def fit(self, formulas: Compiled, u: tuple[Values, Values], v: tuple[Values, Values]) -> Any:
        """Mark the problems that fit int64 at outer and inner tiles within ranges of sizes."""
        able = fits(formulas, [*self._together, _together(*u), _together(*v)])
        if not np.all(able):
            able = fits(formulas, [*self._apart, _apart(*u), _apart(*v)])
        return np.array(np.broadcast_to(able, (self.count,)))


def _together(low: Values, high: Values) -> Size:
    return Size(float(np.max(high)), float(np.min(low)))


def _apart(low: Values, high: Values) -> Size:
    return Size(np.asarray(high, dtype=np.float64), np.asarray(low, dtype=np.float64))


def _able(part: PartArrays, point: Sequence[Values], many: Many) -> Any:
    """Mark the problems that fit int64 wherever the search evaluates them."""
    outer, inner, bounds = many.outer, many.inner, Magnitudes(point, many.count)
    if not part.formulas.masked:
        return bounds.fit(part.moved, (outer.first, outer.last), (inner.first, inner.last))
    able = bounds.fit(part.moved, (1, 1), (1, 1))
    able &= bounds.fit(part.moved, (outer.rows, outer.rows), (1, 1))
    low, top = outer.first, many.outer_top()
    most = many.inner_top(None, low + np.zeros(many.count, dtype=np.int64))
    while np.any(low <= top):  # bounds on a sum of floors are tight over a narrow range of outer tiles
        high = np.minimum(2 * low, top)
        able &= bounds.fit(part.moved, (np.minimum(low, high), high), (inner.step, most))
        low = 2 * low
    return able


def _many(
    part: PartArrays,
    point: Sequence[Values],
    pair: Sequence[TileRanges],
    budget: Values,
    share: Fraction,
    count: int,
    first_is_least: bool,
) -> Many:
    formulas = part.formulas
    cost = part.traffic.at(point, count)
    outer_line, inner_line = (
        line and (line[0].at(point, count), line[1].at(point, count))
        for line in (part.footprint.outer, part.footprint.inner)
    )
    outer, inner = pair
    return Many(
        count=count,
        outer=outer,
        inner=inner,
        cost=cost,
        strict=part.strict.at(point, count) if formulas.masked and not formulas.provable else cost,
        base=part.base.at(point, count) if formulas.masked else cost,
        footprint=part.footprint.value.at(point, count),
        outer_line=outer_line,
        inner_line=inner_line,
        budget=budget,
        share=share,
        prefer_inner=formulas.prefers_inner,
        first_is_least=first_is_least,
    )
