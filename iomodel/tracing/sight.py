"""What a tile sees under a mask: spans of rows of the other axis, found without looking at single pairs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from iomodel.block_mask import BlockMask
from iomodel.documents import Documents
from iomodel.workload import Attention, Window

Spans = list[tuple[int, int]]
"""Half-open intervals, in order, none of them empty."""


class Positions(Protocol):
    """A mask between positions; `first` and `last` are both inside."""

    def keys(self, first: int, last: int) -> Spans:
        """The keys that these queries see."""

    def queries(self, first: int, last: int) -> Spans:
        """The queries that see these keys."""


class Band:
    """Query i sees the keys i + low .. i + high; None is unbounded."""

    def __init__(self, window: Window, q_len: int, kv_len: int) -> None:
        offset = kv_len - q_len if window.align == "bottom-right" else 0
        self.q_len, self.kv_len = q_len, kv_len
        self.low = None if window.left is None else offset - window.left
        self.high = None if window.right is None else offset + window.right

    def keys(self, first: int, last: int) -> Spans:
        return _span(first, self.low, last, self.high, self.kv_len)

    def queries(self, first: int, last: int) -> Spans:
        low = None if self.high is None else -self.high
        return _span(first, low, last, None if self.low is None else -self.low, self.q_len)


def _span(first: int, low: int | None, last: int, high: int | None, length: int) -> Spans:
    """What the positions first .. last see of an axis: each sees an interval that moves with it, so no hole is left."""
    start = 0 if low is None else max(0, first + low)
    stop = length if high is None else min(length, last + high + 1)
    return [(start, stop)] if start < stop else []


class Packed:
    """Documents in a row: what a range of positions sees has no hole either."""

    def __init__(self, mask: Documents) -> None:
        self.starts = [0, *accumulate(mask.lengths)]
        self.causal = mask.causal

    def _around(self, position: int) -> tuple[int, int]:
        document = bisect_right(self.starts, position) - 1
        return self.starts[document], self.starts[document + 1]

    def keys(self, first: int, last: int) -> Spans:
        return [(self._around(first)[0], last + 1 if self.causal else self._around(last)[1])]

    def queries(self, first: int, last: int) -> Spans:
        return [(first if self.causal else self._around(first)[0], self._around(last)[1])]


class Table:
    """Blocks of queries that see blocks of keys."""

    def __init__(self, table: Any, block_q: int, block_kv: int, q_len: int, kv_len: int) -> None:
        self.by_query = table, block_q, block_kv, kv_len
        self.by_key = table.T, block_kv, block_q, q_len

    def keys(self, first: int, last: int) -> Spans:
        return self._spans(first, last, *self.by_query)

    def queries(self, first: int, last: int) -> Spans:
        return self._spans(first, last, *self.by_key)

    @staticmethod
    def _spans(first: int, last: int, table: Any, own: int, other: int, length: int) -> Spans:
        seen = table[first // own : last // own + 1].any(axis=0)
        edges = np.flatnonzero(np.diff(seen, prepend=False, append=False)).tolist()
        return [(a * other, min(b * other, length)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Sight:
    """Who sees whom, in rows: `group` rows of a packed query share its position. Without a mask, all see all."""

    positions: Positions | None
    group: int = 1

    def spans(self, axis: str, start: int, stop: int) -> Spans | None:
        """The rows of `axis` ("query" or "key") that a tile start .. stop of the other sees; None is all of them."""
        if self.positions is None:
            return None
        if axis == "key":
            return self.positions.keys(start // self.group, (stop - 1) // self.group)
        found = self.positions.queries(start, stop - 1)
        return [(a * self.group, b * self.group) for a, b in found]


def sight_of(workload: Attention, group: int) -> Sight:
    """The mask of a call, with so many rows for each query."""
    mask, q_len, kv_len = workload.mask, workload.q_len, workload.kv_len
    if mask == "full":
        return Sight(None, group)
    if isinstance(mask, Documents):
        return Sight(Packed(mask), group)
    if isinstance(mask, BlockMask):
        return Sight(Table(mask.blocks, mask.block_q, mask.block_kv, q_len, kv_len), group)
    return Sight(Band(mask if isinstance(mask, Window) else Window(right=0), q_len, kv_len), group)
