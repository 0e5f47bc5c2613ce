"""Element widths of a counting memory; counts are in elements and converted to bytes at the end."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from iomodel.errors import InputError, UnknownNameError, shown

FloatArray = NDArray[np.float64]
"""Arrays of a counting memory: values are float64 at any counted width."""

Width = Literal["io", "kv", "fp32", "int32", "int64", "bool"]
"""The workload's dtype, that of its K/V cache, 4 bytes, 4 bytes, 8 bytes, 1 byte."""

WIDTHS: tuple[Width, ...] = get_args(Width)

Elements = tuple[int, ...]
"""Number of elements of each width, in the order of WIDTHS."""


def in_bytes(elements: Elements, io_size: int, kv_size: int | Fraction | None = None) -> int:
    """Convert numbers of elements of each width to bytes.

    Parameters
    ----------
    elements : tuple of int
        Number of elements for each of WIDTHS [elements].
    io_size, kv_size : int
        Element size of the workload's dtype, and of its K/V cache if different, which may be a fraction [B].

    Examples
    --------
    >>> in_bytes((10, 0, 3, 0, 0, 0), io_size=2)  # ten in bf16, three in fp32
    32
    """
    sizes = (io_size, io_size if kv_size is None else kv_size, 4, 4, 8, 1)
    return ceil(sum(count * size for count, size in zip(elements, sizes, strict=True)))


def known_width(width: Any) -> Width:
    """Validate a width, or raise UnknownNameError."""
    if not isinstance(width, str) or width not in WIDTHS:
        raise UnknownNameError("width", width, WIDTHS)
    return width


def known_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Convert a shape to a tuple, or raise InputError with the name of the tensor."""
    if not isinstance(shape, tuple | list) or not all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in shape
    ):
        raise InputError(
            f"{name}: shape {shown(shape)} given; allowed: a tuple of integers from 0 up, such as (128, 64)"
        )
    return tuple(map(int, shape))
