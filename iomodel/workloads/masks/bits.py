"""Bit tables with 64 booleans per word, for fast counts on large block masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BATCH = 4096
"""Rows unpacked at a time, a multiple of the word size."""


def packed(table: NDArray[Any]) -> NDArray[np.uint64]:
    """Pack each row into bits, padded with zeros to full words."""
    octets = np.packbits(table, axis=1)
    padded = np.zeros((len(octets), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def transposed(bits: NDArray[np.uint64], columns: int) -> NDArray[np.uint64]:
    """Transpose a bit table in batches, without unpacking all of it."""
    parts = (bits[i : i + _BATCH].view(np.uint8) for i in range(0, len(bits), _BATCH))
    return np.concatenate([packed(np.unpackbits(part, axis=1, count=columns).T) for part in parts], axis=1)


def union(bits: NDArray[np.uint64], low: NDArray[np.intp], high: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Compute the union of the rows low .. high for each pair, from two overlapping unions of 2^k rows.

    >>> union(packed(np.eye(3, dtype=bool)), np.array([0]), np.array([2]))[0] == packed(np.ones((1, 3)) > 0)[0]
    array([ True])
    """
    unions = np.empty((len(low), bits.shape[1]), dtype=np.uint64)
    levels = np.frexp(high - low + 1)[1] - 1
    for level in range(int(levels.max()) + 1):
        if level:
            bits = bits[: -(2 ** (level - 1))] | bits[2 ** (level - 1) :]
        chosen = levels == level
        unions[chosen] = bits[low[chosen]] | bits[high[chosen] - 2**level + 1]
    return unions
