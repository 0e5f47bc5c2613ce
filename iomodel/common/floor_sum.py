"""Sums of floors along a line, for integers of any size and for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


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
