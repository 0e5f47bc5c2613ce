"""Operations of compiled formulas on Python integers, int64 arrays and bounds of magnitude."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from iomodel.common.arithmetic import floor_sum, floor_sums

INT64_SAFE = 2**62
"""Limit of the bounds of an int64 value, with room for the rounding of the bounds."""
FLOAT_SAFE = 2**52
"""Limit of operands with an exact floor of the quotient in double precision: no quotient rounds up to an integer."""


def _ratio(a: int, b: int) -> int | Fraction:
    quotient, rest = divmod(a, b)
    return quotient if not rest else Fraction(a, b)


def _ratio_array(a: Any, b: Any) -> Any:
    quotient, rest = np.divmod(a, b)
    if np.any(rest):
        raise NeedsExactError
    return quotient


class NeedsExactError(ArithmeticError):
    """Raised where a part of a formula is no int64 value."""


class Size:
    """Bounds on the magnitude of an integer, from `least` to `bound`: a formula run on bounds shows if int64 suffices.

    Sums and products may wrap around, for they are exact modulo 2**64 and the bound of the final value is checked;
    only operations that compare or divide need operands that fit. Terms add up in magnitude, so that no cancellation
    hides a large value. The bounds are floats, rounded by far less than the factor of two up to int64.

    `fits` is true if every intermediate value fits int64, `small` if every operand of a division is exact in floats.
    `times` bounds the product with each divisor: the tiles of a sequence times the tile are at most the sequence plus
    one tile, for any tile. The bounds are numbers or arrays. `sign` is 1 for values from 0 up, -1 for values down from
    0, and 0 for others: the least of a sum of one sign, and of a quotient rounded up, are known.
    """

    __slots__ = ("bound", "fits", "least", "sign", "small", "times")

    def __init__(
        self,
        bound: Any,
        least: Any = 0.0,
        fits: Any = True,
        small: Any = True,
        times: dict[Size, Any] | None = None,
        sign: int = 0,
    ) -> None:
        self.bound, self.least, self.fits, self.small, self.times = bound, least, fits, small, times or {}
        self.sign = sign

    def by(self, divisor: Size) -> Any:
        """Return the bound of the product with a divisor."""
        product = self.bound * divisor.bound
        known = self.times.get(divisor)
        return product if known is None else np.minimum(product, known)

    def _merged(self, other: Size, bound: Any, least: Any, times: dict[Size, Any], sign: int = 0) -> Size:
        return Size(bound, least, self.fits & other.fits, self.small & other.small, times, sign)

    def __add__(self, other: Any) -> Size:
        size = as_size(other)
        times = {divisor: self.by(divisor) + size.by(divisor) for divisor in {**self.times, **size.times}}
        sign = self.sign if self.sign == size.sign else 0
        return self._merged(size, self.bound + size.bound, self.least + size.least if sign else 0.0, times, sign)

    def __mul__(self, other: Any) -> Size:
        size = as_size(other)
        times = {divisor: bound * size.bound for divisor, bound in self.times.items()}
        times |= {divisor: bound * self.bound for divisor, bound in size.times.items()}
        bound = np.minimum(self.by(size), size.by(self))
        return self._merged(size, bound, self.least * size.least, times, self.sign * size.sign)

    def __pow__(self, other: int) -> Size:
        return self._merged(self, self.bound**other, self.least**other, {}, max(self.sign, 0))

    def __neg__(self) -> Size:
        return Size(self.bound, self.least, self.fits, self.small, self.times, -self.sign)

    def __floordiv__(self, other: Any) -> Size:
        size = as_size(other)
        quotient = self.over(size)
        times = {divisor: bound / np.maximum(size.least, 1) + divisor.bound for divisor, bound in self.times.items()}
        least, sign = 0.0, self.sign * size.sign
        if sign:  # a quotient below 0 is rounded away from it
            least = (np.ceil if sign < 0 else np.floor)(self.least / np.maximum(size.bound, 1))
        times[size] = self.bound + size.bound
        return Size(quotient.bound + 1, least, quotient.fits, quotient.small, times, sign)

    def __rfloordiv__(self, other: int) -> Size:
        return as_size(other) // self

    def __sub__(self, other: Any) -> Size:
        return self + -as_size(other)

    def __rsub__(self, other: Any) -> Size:
        return as_size(other) + -self

    __radd__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Any) -> Size:
        """Return the bounds of a quotient that is an integer; both operands must fit, and the divisor is not 0."""
        size = as_size(divisor)
        quotient = self.fitting()._merged(size.fitting(), self.bound / np.maximum(size.least, 1), 0.0, {})
        quotient.small = quotient.small & (self.bound < FLOAT_SAFE) & (size.bound < FLOAT_SAFE)
        return quotient

    def fitting(self) -> Size:
        """Return the same bounds, with `fits` false for values beyond int64."""
        fits = self.fits & (self.bound < INT64_SAFE)
        return Size(self.bound, self.least, fits, self.small, self.times, self.sign)


def as_size(value: Any) -> Size:
    """Return bounds unchanged, and a number as the bounds of itself."""
    if isinstance(value, Size):
        return value
    size = float(abs(value))
    return Size(size, size, sign=-1 if value < 0 else 1)


def _size_floor_sum(n: Any, m: Any, a: Any, b: Any) -> Size:
    terms, divisor, slope, offset = map(as_size, (n, m, a, b))
    formed = (terms * terms + slope * terms + offset + divisor).fitting()  # every intermediate value of the sum
    summed = terms * ((slope * terms + offset) // divisor)
    summed.fits = summed.fits & formed.fits
    summed.small = formed.small  # the sum divides integers
    summed.least, summed.sign = 0.0, max(0, min(divisor.sign, slope.sign, offset.sign))  # without terms it is 0
    return summed


def _size_extreme(*values: Any) -> Size:
    sizes = [as_size(value).fitting() for value in values]

    def larger(a: Size, b: Size) -> Size:
        times = {divisor: np.maximum(a.by(divisor), b.by(divisor)) for divisor in {**a.times, **b.times}}
        sign = a.sign if a.sign == b.sign else 0
        least = np.minimum(a.least, b.least) if sign else 0.0
        return a._merged(b, np.maximum(a.bound, b.bound), least, times, sign)

    return reduce(larger, sizes)


SCALAR = {"Maximum": max, "Minimum": min, "SumOfFloors": floor_sum, "Ratio": _ratio}
ARRAY = {
    "Maximum": lambda *xs: reduce(np.maximum, xs),
    "Minimum": lambda *xs: reduce(np.minimum, xs),
    "SumOfFloors": floor_sums,
    "Ratio": _ratio_array,
}
SIZES: dict[str, Any] = {
    "Maximum": _size_extreme,
    "Minimum": _size_extreme,
    "SumOfFloors": _size_floor_sum,
    "Ratio": lambda a, b: as_size(a).over(b),
}
