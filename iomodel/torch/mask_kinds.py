"""Recognition of masks in tables of visible pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from iomodel.errors import InputError
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.window import Align, Window

MOST_BLOCKS = 2**24
"""Largest table of blocks."""


@dataclass(frozen=True, eq=False)
class Visible:
    """A table of the pairs of a query and a key that see each other."""

    table: NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Visible) and np.array_equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]

    @property
    def q_len(self) -> int:
        """Number of queries [rows]."""
        return int(self.table.shape[0])

    @property
    def kv_len(self) -> int:
        """Number of keys [rows]."""
        return int(self.table.shape[1])

    @cached_property
    def seeing(self) -> NDArray[np.bool_]:
        """Queries that see a key."""
        return np.asarray(self.table.any(axis=1))

    @cached_property
    def pairs(self) -> int:
        """Number of visible pairs [-]."""
        return int(np.count_nonzero(self.table))

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """First visible key of each query; 0 for a query that sees none."""
        return np.asarray(self.table.argmax(axis=1))

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """Last visible key of each query; the last key for a query that sees none."""
        return np.asarray(self.kv_len - 1 - self.table[:, ::-1].argmax(axis=1))

    def is_between(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> bool:
        """Check whether each query sees exactly the existing keys from one to another."""
        low, high = np.maximum(first, 0), np.minimum(last, self.kv_len - 1)
        empty = low > high
        if not np.array_equal(empty, ~self.seeing):
            return False
        occupied = ~empty
        same = np.array_equal(self.first[occupied], low[occupied]) and np.array_equal(
            self.last[occupied], high[occupied]
        )
        return same and int((high - low + 1)[occupied].sum()) == self.pairs


def mask_from_pairs(pairs: Visible) -> str | Window | Documents | BlockMask:
    """Return the mask that hides the same pairs, of the kind that is the fastest to count.

    >>> mask_from_pairs(Visible(np.tri(6, 6, dtype=bool)))
    'causal'
    >>> mask_from_pairs(Visible(np.eye(4, dtype=bool).repeat(3, axis=1)))
    BlockMask(blocks=<4 x 4, 4 live>, block_q=1, block_kv=3)
    """
    if pairs.table.all():
        return "full"
    band = _band(pairs)
    if band is not None:
        return band
    for documents in _documents(pairs):
        return documents
    return _blocks(pairs)


def _band(pairs: Visible) -> str | Window | None:
    """Return a window of the same pairs, if there is one: its sides do not lie beyond the diagonal."""
    if not pairs.seeing.any():
        return None
    rows = np.arange(pairs.q_len)
    below = int((pairs.first - rows)[pairs.seeing].min())
    above = int((pairs.last - rows)[pairs.seeing].max())
    diagonals: dict[Align, int] = {"bottom-right": pairs.kv_len - pairs.q_len, "top-left": 0}
    for align, off in diagonals.items():
        for left, right in product((None, off - below), (None, above - off)):
            if min(left or 0, right or 0) < 0:
                continue
            first = np.zeros_like(rows) if left is None else rows + off - left
            last = np.full_like(rows, pairs.kv_len - 1) if right is None else rows + off + right
            if pairs.is_between(first, last):
                mask = Window(left=left, right=right, align=align)
                return "causal" if mask == Window(right=0) else mask
    return None


def _documents(pairs: Visible) -> Iterator[Documents]:
    """Yield packed documents of the same pairs, if there are any."""
    if pairs.q_len != pairs.kv_len or not pairs.seeing.all() or (np.diff(pairs.first) < 0).any():
        return
    rows = np.arange(pairs.q_len)
    starts, lengths = np.unique(pairs.first, return_counts=True)
    ends = np.repeat(starts + lengths - 1, lengths)
    if not np.array_equal(starts, np.cumsum([0, *lengths[:-1]])):
        return
    for causal, last in ((True, rows), (False, ends)):
        if pairs.is_between(pairs.first, last):
            yield Documents(lengths.tolist(), causal=causal)


def _blocks(pairs: Visible) -> BlockMask:
    """Return the table of the largest blocks that are visible or hidden as a whole."""
    table = pairs.table
    rows = _step((table[1:] != table[:-1]).any(axis=1), pairs.q_len)
    columns = _step((table[:, 1:] != table[:, :-1]).any(axis=0), pairs.kv_len)
    blocks = table[::rows, ::columns]
    if blocks.size > MOST_BLOCKS:
        raise InputError(
            f"mask_mod: no window or documents, and a table of {blocks.shape[0]:,} x {blocks.shape[1]:,} blocks of "
            f"{rows} x {columns} pairs; allowed: up to {MOST_BLOCKS:,} blocks"
        )
    return BlockMask(blocks, rows, columns)


def _step(changes: NDArray[np.bool_], length: int) -> int:
    """Return the largest step of which every place of a change is a multiple."""
    return gcd(*(np.flatnonzero(changes) + 1).tolist()) or length
