"""Opaque nodes that act on integers alone, so that compiled code never rounds.

The floors, extrema and sums of floors of sympy simplify at every rebuild, slowly and not always correctly; the nodes
here do not simplify.
"""

from __future__ import annotations

from functools import lru_cache

from sympy import Expr, Function, Max, Min, ceiling, floor, fraction, together

from iomodel.nests.floor_sum_node import FloorSum


class FloorDiv(Function):  # type: ignore[misc]
    """floor(a / b) as one node, so that no fraction is left for the printer."""


class CeilDiv(Function):  # type: ignore[misc]
    """ceiling(a / b) as one node."""


class Ratio(Function):  # type: ignore[misc]
    """a / b in a formula whose total is an integer, while the quotient may be a fraction."""


class Maximum(Function):  # type: ignore[misc]
    """Max as an opaque node: the node of sympy compares its arguments at every rebuild, which is slow."""


class Minimum(Function):  # type: ignore[misc]
    """Min as an opaque node."""


class SumOfFloors(Function):  # type: ignore[misc]
    """FloorSum as an opaque node: FloorSum would simplify at a rebuild to floors that no rule here rewrites."""


OPAQUE: dict[type, type] = {floor: FloorDiv, ceiling: CeilDiv, Max: Maximum, Min: Minimum, FloorSum: SumOfFloors}


@lru_cache(maxsize=65_536)
def integral(expr: Expr) -> Expr:
    """Rewrite floors, ceilings, extrema and fractions to opaque nodes that act on integers."""
    if not expr.args and not expr.is_Rational:
        return expr
    if expr.func in (floor, ceiling):
        numerator, denominator = fraction(together(expr.args[0]))
        return OPAQUE[expr.func](integral(numerator), integral(denominator))
    if expr.is_Rational or expr.is_Mul or expr.is_Pow:
        numerator, denominator = fraction(expr)
        if denominator != 1:
            return Ratio(integral(numerator), integral(denominator))
    if not expr.args:
        return expr
    args = tuple(map(integral, expr.args))
    return expr if args == expr.args and expr.func not in OPAQUE else OPAQUE.get(expr.func, expr.func)(*args)
