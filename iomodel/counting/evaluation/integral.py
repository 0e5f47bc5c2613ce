"""Opaque nodes that act on integers alone, so that compiled code never rounds.

The floors, extrema and sums of floors of sympy simplify at every rebuild, slowly and not always correctly; the nodes
here do not simplify.
"""

from __future__ import annotations

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


def integral(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    """Rewrite floors, ceilings, extrema and fractions to opaque nodes that act on integers."""
    rewritten = known.get(expr)
    if rewritten is None:
        rewritten = known[expr] = _rewritten(expr, known)
    return rewritten


def _rewritten(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    if expr.func in (floor, ceiling):
        numerator, denominator = fraction(together(expr.args[0]))
        return OPAQUE[expr.func](integral(numerator, known), integral(denominator, known))
    if expr.is_Rational or expr.is_Mul or expr.is_Pow:
        numerator, denominator = fraction(expr)
        if denominator != 1:
            return Ratio(integral(numerator, known), integral(denominator, known))
    node = OPAQUE.get(expr.func, expr.func)
    return node(*(integral(arg, known) for arg in expr.args)) if expr.args else expr
