"""Who is least where: codes at points, joined into runs of the same code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from iomodel.crossings.curves import Values

NEITHER = 2
"""The code of a pair where neither has a value; else -1, 0 or 1: the first is less, as much, or more."""


class Runs:
    """Runs of equal codes along the points, in the order in which they are handed over."""

    def __init__(self) -> None:
        self._first: list[Any] = []
        self._last: list[Any] = []
        self._codes: list[Any] = []

    def add(self, points: Any, codes: Any) -> None:
        """Points in ascending order, above all that went before."""
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        ends = np.r_[starts[1:] - 1, len(codes) - 1]
        first, last, code = points[starts], points[ends], codes[starts]
        if self._codes and self._codes[-1][-1] == code[0]:
            self._last[-1] = self._last[-1].copy()
            self._last[-1][-1] = last[0]
            first, last, code = first[1:], last[1:], code[1:]
        if len(code):
            self._first.append(first)
            self._last.append(last)
            self._codes.append(code)

    @property
    def table(self) -> tuple[Any, Any, Any]:
        """The first and the last point of every run, and its code."""
        return np.concatenate(self._first), np.concatenate(self._last), np.concatenate(self._codes)


class Seen:
    """What is known of all contenders: who is least, each pair, and at how many points each has a value."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pairs = list(combinations(range(count), 2))
        self.winners = Runs()
        self.signs = {pair: Runs() for pair in self.pairs}
        self.looked = 0
        self.present = [0] * count

    def add(self, points: Any, values: Sequence[Values]) -> None:
        """The values of all contenders at further points."""
        self.looked += len(points)
        for i, one in enumerate(values):
            self.present[i] += int(np.count_nonzero(one.there))
        self.winners.add(points, least(values))
        for i, j in self.pairs:
            self.signs[i, j].add(points, signs(values[i], values[j]))


def least(values: Sequence[Values]) -> Any:
    """Who has the least value, as the sum of 2^i over them; 0 where nobody has one."""
    least_value, anyone = None, np.zeros(len(values[0].there), dtype=bool)
    for one in values:
        if least_value is None:
            least_value = one.values.copy()
        else:
            least_value = np.where(~anyone | (one.there & (one.values < least_value)), one.values, least_value)
        anyone |= one.there
    codes = np.zeros(len(anyone), dtype=np.int64)
    for i, one in enumerate(values):
        codes |= np.where(one.there & (one.values == least_value), 1 << i, 0)
    return codes


def signs(first: Values, second: Values) -> Any:
    """-1 where the first is less or alone has a value, 0 where they are equal, 1 where it is more, or NEITHER."""
    less, more = first.values < second.values, first.values > second.values
    both = np.asarray(more, dtype=np.int64) - np.asarray(less, dtype=np.int64)
    alone = np.asarray(second.there, dtype=np.int64) - np.asarray(first.there, dtype=np.int64)
    codes = np.where(first.there & second.there, both, alone)
    return np.where(first.there | second.there, codes, NEITHER)
