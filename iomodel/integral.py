"""Formulas made of nodes that act on integers alone, so that compiled code never rounds.

sympy's floors, extrema and sums of floors simplify whenever they are rebuilt, at length and not always rightly; the
nodes here are opaque.
"""

from __future__ import annotations

from sympy import Expr, Function, Max, Min, ceiling, floor, fraction, together

from iomodel.floorsum import FloorSum


class FloorDiv(Function):  # type: ignore[misc]
    """floor(a / b) as one node, so that no fraction is left for the printer."""


class CeilDiv(Function):  # type: ignore[misc]
    """ceiling(a / b) as one node."""


class Ratio(Function):  # type: ignore[misc]
    """a / b where the whole formula is an integer, though a part of it may not be."""


class Maximum(Function):  # type: ignore[misc]
    """Max as an opaque node: sympy's own compares its arguments anew whenever it is rebuilt, at great length."""


class Minimum(Function):  # type: ignore[misc]
    """Min as an opaque node."""


class SumOfFloors(Function):  # type: ignore[misc]
    """FloorSum as an opaque node: rebuilt around other nodes it would simplify, to floors that no rule here sees."""


OPAQUE: dict[type, type] = {floor: FloorDiv, ceiling: CeilDiv, Max: Maximum, Min: Minimum, FloorSum: SumOfFloors}


def integral(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    """Rewrite floors, ceilings, extrema and fractions to opaque nodes that act on integers."""
    found = known.get(expr)
    if found is None:
        found = known[expr] = _rewritten(expr, known)
    return found


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
