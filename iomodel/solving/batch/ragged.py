"""Ragged arrays: rows of unequal length laid end to end, without padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iomodel.solving.batch.problem import SLAB


def ragged(counts: Any) -> tuple[Any, Any, Any]:
    """Return the row and the place of every element, and the start of each row, for non-empty rows of these lengths."""
    starts = np.cumsum(counts) - counts
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - starts[row], starts


def slabs(counts: Any, size: int = SLAB) -> Iterator[slice]:
    """Yield runs of rows with up to `size` elements together, or of a single row."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + size, side="right")))
        yield slice(start, stop)
        start = stop


def firsts(ordered: Any) -> Any:
    """Mark the first occurrence of each value in an ordered array."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered


def ranked(who: Any, *keys: Any) -> Any:
    """Return the place of the best element of each problem, least key first, in the order of the problems."""
    if len(who) < 2 or (who[1:] > who[:-1]).all():
        return np.arange(len(who))
    order = np.lexsort((*reversed(keys), who))
    return order[firsts(who[order])]
