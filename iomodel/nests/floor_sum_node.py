"""Symbolic sums of floors along a line."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Dummy, Expr, Function, Integer, Max, Min, Sum, floor

from iomodel.common.arithmetic import floor_sum


def _ramp(x: Expr, k: Expr) -> Expr:
    """Compute the sum of floor(i / k) over i < x in closed form; its differences hold for any integers."""
    q = floor(x / k)
    return k * q * (q - 1) / 2 + (x - k * q) * q


@lru_cache(maxsize=65_536)
def is_whole(expr: Expr) -> bool:
    """Check that a formula is a sum and product of integers alone; sympy also factors it, in a hundred times as long.

    >>> from sympy import ceiling
    >>> from iomodel.nests.symbols import B_r, N_q, b_kv
    >>> is_whole(N_q * ceiling(N_q / B_r)), is_whole(N_q * b_kv / 32)
    (True, False)
    """
    if expr.is_Atom or not (expr.is_Add or expr.is_Mul or expr.is_Pow or isinstance(expr, Max | Min)):
        return bool(expr.is_integer)
    return all(map(is_whole, expr.args)) and not (expr.is_Pow and not expr.exp.is_nonnegative)


class FloorSum(Function):  # type: ignore[misc]
    r"""The symbolic sum of floor((a i + b) / m) over i = 0 .. n-1, `FloorSum(n, m, a, b)`.

    It is evaluated to an elementary form where possible: an arithmetic series if m divides a, a quadratic in
    floors if a divides m, an integer if all four are integers. `rewrite(Sum)` and `doit()` give the sum.

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
        """Simplify to an elementary form if one exists."""
        if n == 0:  # sympy takes longer to tell that another length is zero than for all the rest
            return Integer(0)
        if n.is_Integer and m.is_Integer and a.is_Integer and b.is_Integer:
            return Integer(floor_sum(int(n), int(m), int(a), int(b)))
        closed = None
        # No floor of a minimum or maximum is made: see iomodel.counting.bands on what sympy does to some.
        if is_whole(a / m):
            if m != 1 and b.has(Max, Min):
                return None
            closed = n * (n - 1) / 2 * (a / m) + n * floor(b / m)
        elif is_whole(m / a) and (m / a).is_positive:
            k, c = m / a, floor(b / a)
            if k != 1 and (n + c).has(Max, Min):
                return None
            closed = _ramp(n + c, k) - _ramp(c, k)
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
