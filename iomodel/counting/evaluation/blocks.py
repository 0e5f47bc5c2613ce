"""Parts of broadcast arrays, small enough that intermediate results stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 16_384
"""Elements of a block: an array of them takes an eighth of a MiB, a handful of such fit the L2 cache of a core."""

Part = tuple[slice, ...]


def blocks(shape: Sequence[int], size: int = BLOCK) -> Iterator[Part]:
    """Cut a shape into parts of at most `size` elements each, in order.

    >>> list(blocks((3, 2), size=4))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    if prod(shape) == 0:
        return
    cut = len(shape)  # the axes from here on are whole in every part
    while cut and prod(shape[cut - 1 :]) <= size:
        cut -= 1
    whole = tuple(slice(0, length) for length in shape[cut:])
    if not cut:
        yield whole
        return
    step = max(1, size // prod(shape[cut:]))
    for outer in np.ndindex(*shape[: cut - 1]):
        single = tuple(slice(i, i + 1) for i in outer)
        for start in range(0, shape[cut - 1], step):
            yield *single, slice(start, min(start + step, shape[cut - 1])), *whole


def aligned(array: NDArray[Any], dimensions: int) -> NDArray[Any]:
    """Prepend axes of length 1 to an array, up to the dimensions of a broadcast shape."""
    return array.reshape((1,) * (dimensions - array.ndim) + array.shape)


def part_of(array: NDArray[Any], part: Part) -> NDArray[Any]:
    """Select the elements of an aligned array in a part; an axis of length 1 belongs to every part."""
    if array.ndim == 1:
        return array[part] if array.size > 1 else array
    return array[tuple(where if length > 1 else slice(None) for where, length in zip(part, array.shape, strict=True))]


def offset(start: Sequence[int], array: NDArray[Any]) -> tuple[int, ...]:
    """Return the offset in an aligned array of a part that starts there."""
    return tuple(first if length > 1 else 0 for first, length in zip(start, array.shape, strict=True))
