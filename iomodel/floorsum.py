"""Sums of floors along a line: the one shape that causal and windowed counts are made of."""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Expr, Function, Integer, Max, Min, Sum, floor


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    r"""Sum of floor((a i + b) / m) over i = 0 .. n-1, in O(log m) steps, on integers of any size.

    .. math:: \sum_{i=0}^{n-1} \left\lfloor \frac{a i + b}{m} \right\rfloor

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
    if n <= 0:
        return 0
    total = 0
    while True:
        quotient, a = divmod(a, m)
        offset, b = divmod(b, m)
        total += quotient * (n * (n - 1) // 2) + offset * n
        top = a * n + b
        if top < m:
            return total
        # Count the lattice points under the line by columns instead of rows: swap the roles of a and m.
        n, b = divmod(top, m)
        m, a = a, m


def _ramp(x: Expr, k: Expr) -> Expr:
    """Sum of floor(i / k) over i < x, in closed form; differences of it hold for any integers."""
    q = floor(x / k)
    return k * q * (q - 1) / 2 + (x - k * q) * q


class FloorSum(Function):  # type: ignore[misc]
    r"""`FloorSum(n, m, a, b)`: the symbolic sum of floor((a i + b) / m) over i = 0 .. n-1.

    It becomes elementary by itself where it can: an arithmetic series when m divides a, a quadratic in
    floors when a divides m, an integer when all four are integers. `rewrite(Sum)` and `doit()` give the sum.

    Examples
    --------
    >>> from sympy import Symbol
    >>> n = Symbol("n", integer=True, positive=True)
    >>> FloorSum(n, 64, 128, 64)
    n*(n - 1) + n
    >>> FloorSum(10**12, 7, 3, 2)
    214285714285357142857143
    """

    nargs = 4

    @classmethod
    def eval(cls, n: Expr, m: Expr, a: Expr, b: Expr) -> Expr | None:
        """Simplify where an elementary form exists."""
        if n.is_zero:
            return Integer(0)
        if n.is_Integer and m.is_Integer and a.is_Integer and b.is_Integer:
            return Integer(floor_sum(int(n), int(m), int(a), int(b)))
        closed = None
        if (a / m).is_integer:
            closed = n * (n - 1) / 2 * (a / m) + n * floor(b / m)
        elif (m / a).is_integer and (m / a).is_positive:
            k, c = m / a, floor(b / a)
            closed = _ramp(n + c, k) - _ramp(c, k)
        # A floor of a minimum or maximum is better not made: see iomodel.masks on what sympy does to some.
        if closed is None or any(part.has(Max, Min) for part in closed.atoms(floor)):
            return None
        return closed

    def _eval_is_integer(self) -> bool:
        return True

    def _eval_rewrite_as_Sum(self, n: Expr, m: Expr, a: Expr, b: Expr, **_: Any) -> Expr:
        i = Dummy("i", integer=True, nonnegative=True)
        return Sum(floor((a * i + b) / m), (i, 0, n - 1))

    def doit(self, **hints: Any) -> Expr:
        """Return the explicit sum."""
        n, m, a, b = (arg.doit(**hints) for arg in self.args)
        return FloorSum(n, m, a, b).rewrite(Sum)

    def _latex(self, printer: Any) -> str:
        n, m, a, b = self.args
        i = Dummy("i", integer=True)
        inside = printer.doprint((a * i + b) / m).replace(printer.doprint(i), "i")
        return rf"\sum_{{i=0}}^{{{printer.doprint(n - 1)}}} \left\lfloor {inside} \right\rfloor"
