"""Rows of unequal length laid end to end, so that arrays need no padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iomodel.many.problem import SLAB


def ragged(counts: Any) -> tuple[Any, Any, Any]:
    """For rows of these lengths, none empty: the row and the place of every element, and where each row starts."""
    starts = np.cumsum(counts) - counts
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - starts[row], starts


def slabs(counts: Any, size: int = SLAB) -> Iterator[slice]:
    """Runs of rows that hold up to `size` elements together, at least one row each."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + size, side="right")))
        yield slice(start, stop)
        start = stop


def firsts(ordered: Any) -> Any:
    """Where a new value begins in an ordered array."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered


def ranked(who: Any, *keys: Any) -> Any:
    """The place of the best element of each problem, by the keys in turn, least first; ordered by problem."""
    if len(who) < 2 or (who[1:] > who[:-1]).all():
        return np.arange(len(who))
    order = np.lexsort((*reversed(keys), who))
    return order[firsts(who[order])]
