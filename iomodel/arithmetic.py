"""The operations that compiled formulas call: on Python integers, on int64 arrays, and on bounds of magnitude."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from iomodel.floorsum import floor_sum

INT64_SAFE = 2**62
"""Bounds below it leave room for their own rounding."""
FLOAT_SAFE = 2**52
"""The floor of a quotient in double precision is exact for operands below it: no quotient rounds up to an integer."""


def _ratio(a: int, b: int) -> int | Fraction:
    quotient, rest = divmod(a, b)
    return quotient if not rest else Fraction(a, b)


def _floor_sum_array(n: Any, m: Any, a: Any, b: Any) -> Any:
    """`floor_sum` elementwise on int64 arrays; an element that is done is left out of the next step."""
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.int64) for x in (n, m, a, b)))
    shape = arrays[0].shape
    n, m, a, b = (array.ravel() for array in arrays)
    total = np.zeros(n.size, dtype=np.int64)
    going = np.flatnonzero(n > 0)
    if going.size < n.size:
        n, m, a, b = n[going], m[going], a[going], b[going]
    while going.size:
        quotient, offset = a // m, b // m
        a, b = a - quotient * m, b - offset * m
        found = quotient * (n * (n - 1) // 2) + offset * n
        if going.size == total.size:
            total += found
        else:
            total[going] += found
        top = a * n + b
        more = np.flatnonzero(top >= m)
        if more.size < going.size:
            going, top, m, a = going[more], top[more], m[more], a[more]
        n = top // m
        b = top - n * m
        m, a = a, m
    return total.reshape(shape)


def _ratio_array(a: Any, b: Any) -> Any:
    quotient, rest = np.divmod(a, b)
    if np.any(rest):
        raise NeedsExactError
    return quotient


class NeedsExactError(ArithmeticError):
    """A part of the formula does not fit int64."""


class Size:
    """Bounds on the magnitude of an integer, from `least` to `bound`: running a formula on them shows if int64 will do.

    Sums and products may wrap around, for they are exact modulo 2**64 and the bound of the final value is checked;
    only operations that compare or divide need operands that fit. Terms add up in magnitude, so that no cancellation
    hides a large value. The bounds are floats, rounded by far less than the factor of two up to int64.

    `fits` says that all on the way to the integer does; `small`, that whatever is divided is exact in floats too.
    `times` bounds the product with what it was divided by: tiles of a sequence times their size are no more than the
    sequence and a tile, whichever the tile is. Numbers or arrays, one as the other.
    """

    __slots__ = ("bound", "fits", "least", "small", "times")

    def __init__(
        self,
        bound: Any,
        least: Any = 0.0,
        fits: Any = True,
        small: Any = True,
        times: dict[Size, Any] | None = None,
    ) -> None:
        self.bound, self.least, self.fits, self.small, self.times = bound, least, fits, small, times or {}

    def by(self, divisor: Size) -> Any:
        """The bound of the product with a divisor."""
        product = self.bound * divisor.bound
        known = self.times.get(divisor)
        return product if known is None else np.minimum(product, known)

    def _merged(self, other: Size, bound: Any, least: Any, times: dict[Size, Any]) -> Size:
        return Size(bound, least, self.fits & other.fits, self.small & other.small, times)

    def __add__(self, other: Any) -> Size:
        size = as_size(other)
        times = {divisor: self.by(divisor) + size.by(divisor) for divisor in {**self.times, **size.times}}
        return self._merged(size, self.bound + size.bound, 0.0, times)

    def __mul__(self, other: Any) -> Size:
        size = as_size(other)
        times = {divisor: bound * size.bound for divisor, bound in self.times.items()}
        times |= {divisor: bound * self.bound for divisor, bound in size.times.items()}
        return self._merged(size, np.minimum(self.by(size), size.by(self)), self.least * size.least, times)

    def __pow__(self, other: int) -> Size:
        return self._merged(self, self.bound**other, self.least**other, {})

    def __neg__(self) -> Size:
        return self

    def __floordiv__(self, other: Any) -> Size:
        size = as_size(other)
        found = self.over(size)
        times = {divisor: bound / np.maximum(size.least, 1) + divisor.bound for divisor, bound in self.times.items()}
        return Size(found.bound + 1, 0.0, found.fits, found.small, {**times, size: self.bound + size.bound})

    def __rfloordiv__(self, other: int) -> Size:
        return as_size(other) // self

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Any) -> Size:
        """The quotient where it is whole; both must fit, and the divisor is no 0."""
        size = as_size(divisor)
        found = self.fitting()._merged(size.fitting(), self.bound / np.maximum(size.least, 1), 0.0, {})
        found.small = found.small & (self.bound < FLOAT_SAFE) & (size.bound < FLOAT_SAFE)
        return found

    def fitting(self) -> Size:
        """The same, where it fits int64."""
        return Size(self.bound, self.least, self.fits & (self.bound < INT64_SAFE), self.small, self.times)


def as_size(value: Any) -> Size:
    """Bounds as they are, a number as its own bound."""
    return value if isinstance(value, Size) else Size(float(abs(value)), float(abs(value)))


def _size_floor_sum(n: Any, m: Any, a: Any, b: Any) -> Size:
    terms, divisor, slope, offset = map(as_size, (n, m, a, b))
    formed = (terms * terms + slope * terms + offset + divisor).fitting()  # whatever the sum forms on its way
    summed = terms * ((slope * terms + offset) // divisor)
    summed.fits = summed.fits & formed.fits
    summed.small = formed.small  # it divides integers
    return summed


def _size_extreme(*values: Any) -> Size:
    sizes = [as_size(value).fitting() for value in values]

    def larger(a: Size, b: Size) -> Size:
        times = {divisor: np.maximum(a.by(divisor), b.by(divisor)) for divisor in {**a.times, **b.times}}
        return a._merged(b, np.maximum(a.bound, b.bound), 0.0, times)

    return reduce(larger, sizes)


SCALAR = {"Maximum": max, "Minimum": min, "SumOfFloors": floor_sum, "Ratio": _ratio}
ARRAY = {
    "Maximum": lambda *xs: reduce(np.maximum, xs),
    "Minimum": lambda *xs: reduce(np.minimum, xs),
    "SumOfFloors": _floor_sum_array,
    "Ratio": _ratio_array,
}
SIZES: dict[str, Any] = {
    "Maximum": _size_extreme,
    "Minimum": _size_extreme,
    "SumOfFloors": _size_floor_sum,
    "Ratio": lambda a, b: as_size(a).over(b),
}
