"""Tables of bits: 64 booleans a word, so that a large block mask is counted in milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BATCH = 4096
"""Rows that are unpacked at a time; whole words of them."""


def packed(table: NDArray[Any]) -> NDArray[np.uint64]:
    """Each row as bits, filled up with zeros to whole words."""
    octets = np.packbits(table, axis=1)
    padded = np.zeros((len(octets), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def transposed(bits: NDArray[np.uint64], columns: int) -> NDArray[np.uint64]:
    """The transposed table of bits, by batches: it is never unpacked whole."""
    parts = (bits[i : i + _BATCH].view(np.uint8) for i in range(0, len(bits), _BATCH))
    return np.concatenate([packed(np.unpackbits(part, axis=1, count=columns).T) for part in parts], axis=1)


def union(bits: NDArray[np.uint64], low: NDArray[np.intp], high: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The union of the rows low .. high, for each pair: of two unions of 2^k rows, which may overlap.

    >>> union(packed(np.eye(3, dtype=bool)), np.array([0]), np.array([2]))[0] == packed(np.ones((1, 3)) > 0)[0]
    array([ True])
    """
    found = np.empty((len(low), bits.shape[1]), dtype=np.uint64)
    levels = np.frexp(high - low + 1)[1] - 1
    for level in range(int(levels.max()) + 1):
        if level:
            bits = bits[: -(2 ** (level - 1))] | bits[2 ** (level - 1) :]
        chosen = levels == level
        found[chosen] = bits[low[chosen]] | bits[high[chosen] - 2**level + 1]
    return found
