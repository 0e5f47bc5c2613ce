"""Arithmetic on numbers, by Python itself, as a single call must be quick, or on arrays by NumPy; sums of floors."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
from numpy import ndarray


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    r"""Sum floor((a i + b) / m) over i = 0 .. n-1, in O(log m) steps, on integers of any size.

    .. math:: \sum_{i=0}^{n-1} \left\lfloor \frac{a i + b}{m} \right\rfloor

    Numba compiles this function as it stands.

    Parameters
    ----------
    n : int
        Number of terms [-]; none or fewer give 0.
    m : int
        Positive divisor [-].
    a, b : int
        Slope and offset [-], of any sign.

    Examples
    --------
    >>> floor_sum(4, 3, 2, 1)  # 0 + 1 + 1 + 2
    4

    References
    ----------
    Graham, Knuth and Patashnik, Concrete Mathematics, 2nd ed., section 3.5: the sum is reduced as
    Euclid's algorithm reduces (a, m).
    """
    total = 0
    while n > 0:
        quotient = a // m
        offset = b // m
        a -= quotient * m
        b -= offset * m
        total += quotient * (n * (n - 1) // 2) + offset * n
        top = a * n + b
        if top < m:
            break
        # Count the lattice points under the line by columns instead of rows: swap the roles of a and m.
        n = top // m
        b = top - n * m
        m, a = a, m
    return total


def floor_sums(n: Any, m: Any, a: Any, b: Any) -> Any:
    """Apply `floor_sum` elementwise, in int64 unless an argument is an array of Python integers.

    >>> floor_sums([4, 1], 3, 2, 1)
    array([4, 0])
    """
    wide = any(isinstance(x, np.ndarray) and x.dtype == object for x in (n, m, a, b))
    kind: Any = object if wide else np.int64
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=kind) for x in (n, m, a, b)))
    shape = arrays[0].shape
    n, m, a, b = (array.ravel() for array in arrays)
    total = np.zeros(n.size, dtype=kind)
    going = np.flatnonzero(n > 0)  # an element that is done is left out of the next step
    if going.size < n.size:
        n, m, a, b = n[going], m[going], a[going], b[going]
    while going.size:
        quotient, offset = a // m, b // m
        a, b = a - quotient * m, b - offset * m
        terms = quotient * (n * (n - 1) // 2) + offset * n
        if going.size == total.size:
            total += terms
        else:
            total[going] += terms
        top = a * n + b
        more = np.flatnonzero(top >= m)
        if more.size < going.size:
            going, top, m, a = going[more], top[more], m[more], a[more]
        n = top // m
        b = top - n * m
        m, a = a, m
    return total.reshape(shape)


HELD = 2**62
"""Numbers from here on are summed in Python's integers, not in those of 64 bits."""


def larger(*values: Any) -> Any:
    """Return the largest of some values, element by element.

    >>> larger(1, 2.0), larger(1, np.array([0, 3])).tolist()
    (2.0, [1, 3])
    """
    for value in values:
        if type(value) is ndarray:
            return reduce(np.maximum, values)
    return max(values)


def smaller(*values: Any) -> Any:
    """Return the smallest of some values, element by element."""
    for value in values:
        if type(value) is ndarray:
            return reduce(np.minimum, values)
    return min(values)


def pick(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return one of two values by a condition, element by element."""
    if isinstance(condition, ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def at_places(value: Any, where: Any) -> Any:
    """Return the elements of an array at some places; a single number stays one.

    >>> at_places(np.array([1, 2, 3]), slice(0, 2)).tolist(), at_places(7, slice(0, 2))
    ([1, 2], 7)
    """
    return value[where] if isinstance(value, ndarray) else value


def ceil_div(value: Any, by: Any) -> Any:
    """Divide and round up; exact for floats below 2**53.

    >>> ceil_div(7, 2), ceil_div(np.array([6.0, 7.0]), 2).tolist()
    (4, [3.0, 4.0])
    """
    if type(value) is ndarray or type(by) is ndarray:
        return np.ceil(value / by)
    return -(-value // by)


def floor_div(value: Any, by: Any) -> Any:
    """Divide and round down; exact for floats below 2**53."""
    if type(value) is ndarray or type(by) is ndarray:
        return np.floor(value / by)
    return value // by


def floor(value: Any) -> Any:
    """Round down."""
    return np.floor(value) if isinstance(value, ndarray) else math.floor(value)


def ceil(value: Any) -> Any:
    """Round up."""
    return np.ceil(value) if isinstance(value, ndarray) else math.ceil(value)


def floor_sum_of(n: Any, m: Any, a: Any, b: Any) -> Any:
    """Sum floor((a i + b) / m) over i = 0 .. n-1; exact for sums below 2**53.

    >>> floor_sum_of(4.0, 3, 2, 1), floor_sum_of(np.array([4.0, 1.0]), 3, 2, 1).tolist()
    (4.0, [4.0, 0.0])
    >>> floor_sum_of(np.array([2.0, 1.0]), 3, 3e20, 0).tolist()
    [1e+20, 0.0]
    """
    if ndarray not in map(type, (n, m, a, b)):
        return floor_sum(n, m, a, b)
    values = [np.asarray(value) for value in (n, m, a, b)]
    if any(np.any(np.abs(value) >= HELD) for value in values):
        return _floor_sums_of_big(*values)
    return floor_sums(*(value.astype(np.int64) for value in values)).astype(np.float64)


_floor_sums_of_big = np.vectorize(
    lambda *values: float(floor_sum(*(int(value) for value in values))), otypes=[np.float64]
)
"""The same, in Python's integers."""


def ratio(value: Any, by: Any) -> Any:
    """Divide, with 0 where the divisor is 0.

    >>> ratio(1, 0), ratio(np.array([1.0, 1.0]), np.array([0.0, 4.0])).tolist()
    (0.0, [0.0, 0.25])
    """
    if type(value) is ndarray or type(by) is ndarray:
        return value / np.where(by == 0, np.inf, by)
    return value / by if by else 0.0


def anywhere(condition: Any) -> bool:
    """Check that a condition holds for a number, or for some element.

    >>> anywhere(0), anywhere(np.array([0, 1]))
    (False, True)
    """
    return bool(condition.any()) if isinstance(condition, ndarray) else bool(condition)
