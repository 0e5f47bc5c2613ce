"""The operations that compiled formulas call: on Python integers, on int64 arrays, and on bounds of magnitude."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from iomodel.floorsum import floor_sum

_INT64_SAFE = 2**62


def _ratio(a: int, b: int) -> int | Fraction:
    quotient, rest = divmod(a, b)
    return quotient if not rest else Fraction(a, b)


def _floor_sum_array(n: Any, m: Any, a: Any, b: Any) -> Any:
    """`floor_sum` elementwise on int64 arrays."""
    n, m, a, b = (np.array(x, dtype=np.int64) for x in np.broadcast_arrays(n, m, a, b))
    total = np.zeros_like(n)
    live = n > 0
    while live.any():
        n, m = np.where(live, n, 0), np.where(live, m, 1)
        quotient, a = np.divmod(a, m)
        offset, b = np.divmod(b, m)
        total += np.where(live, quotient * (n * (n - 1) // 2) + offset * n, 0)
        top = a * n + b
        live &= top >= m
        n, b = np.divmod(top, m)
        m, a = a, m
    return total


def _ratio_array(a: Any, b: Any) -> Any:
    quotient, rest = np.divmod(a, b)
    if np.any(rest):
        raise NeedsExactError
    return quotient


class NeedsExactError(ArithmeticError):
    """A part of the formula does not fit int64."""


class Size:
    """Bounds on the magnitude of an integer; running a formula on them shows whether int64 will do.

    Sums and products may wrap around, for they are exact modulo 2**64 and the bound of the final value is checked;
    only operations that compare or divide need operands that fit. Terms add up in magnitude, so that no cancellation
    hides a large value. The bounds are floats, rounded by far less than the factor of two up to int64.
    """

    __slots__ = ("bound", "least")

    def __init__(self, bound: Any, least: Any = 0.0) -> None:
        self.bound, self.least = bound, least

    def __add__(self, other: Any) -> Size:
        return Size(self.bound + as_size(other).bound)

    def __mul__(self, other: Any) -> Size:
        size = as_size(other)
        return Size(self.bound * size.bound, self.least * size.least)

    def __pow__(self, other: int) -> Size:
        return Size(self.bound**other, self.least**other)

    def __neg__(self) -> Size:
        return self

    def __floordiv__(self, other: Any) -> Size:
        return Size(self.over(other) + 1)

    def __rfloordiv__(self, other: int) -> Size:
        return as_size(other) // self

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Any) -> Any:
        """The bound of a quotient; both must fit, and the divisor is no 0."""
        size = as_size(divisor)
        self.fit()
        size.fit()
        return self.bound / np.maximum(size.least, 1)

    def fit(self) -> None:
        """Raise unless the value fits int64 everywhere."""
        if not np.all(self.bound < _INT64_SAFE):
            raise NeedsExactError


def as_size(value: Any) -> Size:
    """Bounds as they are, a number as its own bound."""
    return value if isinstance(value, Size) else Size(float(abs(value)), float(abs(value)))


def _size_floor_sum(n: Any, m: Any, a: Any, b: Any) -> Size:
    terms, divisor, slope, offset = map(as_size, (n, m, a, b))
    (terms * terms + slope * terms + offset + divisor).fit()  # whatever `_floor_sum_array` forms on its way
    return terms * ((slope * terms + offset) // divisor)


def _size_extreme(*values: Any) -> Size:
    sizes = [as_size(value) for value in values]
    for size in sizes:
        size.fit()
    return Size(reduce(np.maximum, [size.bound for size in sizes]))


SCALAR = {"maximum": max, "minimum": min, "SumOfFloors": floor_sum, "Ratio": _ratio}
ARRAY = {
    "maximum": lambda *xs: reduce(np.maximum, xs),
    "minimum": lambda *xs: reduce(np.minimum, xs),
    "SumOfFloors": _floor_sum_array,
    "Ratio": _ratio_array,
}
SIZES: dict[str, Any] = {
    "maximum": _size_extreme,
    "minimum": _size_extreme,
    "SumOfFloors": _size_floor_sum,
    "Ratio": lambda a, b: Size(as_size(a).over(b)),
}
