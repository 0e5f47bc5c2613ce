"""Operations of compiled formulas on Python integers, int64 arrays and bounds of magnitude."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from iomodel.common.floor_sum import floor_sum, floor_sums

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
    one tile, for any tile. The bounds are numbers or arrays.
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
        """Return the bound of the product with a divisor."""
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
        quotient = self.over(size)
        times = {divisor: bound / np.maximum(size.least, 1) + divisor.bound for divisor, bound in self.times.items()}
        return Size(quotient.bound + 1, 0.0, quotient.fits, quotient.small, {**times, size: self.bound + size.bound})

    def __rfloordiv__(self, other: int) -> Size:
        return as_size(other) // self

    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__

    def over(self, divisor: Any) -> Size:
        """Return the bounds of a quotient that is an integer; both operands must fit, and the divisor is not 0."""
        size = as_size(divisor)
        quotient = self.fitting()._merged(size.fitting(), self.bound / np.maximum(size.least, 1), 0.0, {})
        quotient.small = quotient.small & (self.bound < FLOAT_SAFE) & (size.bound < FLOAT_SAFE)
        return quotient

    def fitting(self) -> Size:
        """Return the same bounds, with `fits` false for values beyond int64."""
        return Size(self.bound, self.least, self.fits & (self.bound < INT64_SAFE), self.small, self.times)


def as_size(value: Any) -> Size:
    """Return bounds unchanged, and a number as the bounds of itself."""
    return value if isinstance(value, Size) else Size(float(abs(value)), float(abs(value)))


def _size_floor_sum(n: Any, m: Any, a: Any, b: Any) -> Size:
    terms, divisor, slope, offset = map(as_size, (n, m, a, b))
    formed = (terms * terms + slope * terms + offset + divisor).fitting()  # every intermediate value of the sum
    summed = terms * ((slope * terms + offset) // divisor)
    summed.fits = summed.fits & formed.fits
    summed.small = formed.small  # the sum divides integers
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
    "SumOfFloors": floor_sums,
    "Ratio": _ratio_array,
}
SIZES: dict[str, Any] = {
    "Maximum": _size_extreme,
    "Minimum": _size_extreme,
    "SumOfFloors": _size_floor_sum,
    "Ratio": lambda a, b: as_size(a).over(b),
}
