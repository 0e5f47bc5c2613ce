"""The value of a formula at a point, in Python integers and fractions.

sympy simplifies at every substitution, which takes a hundred times as long and is no part of what tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor, prod
from typing import Any

import sympy
from sympy import Add, Expr, Max, Min, Mul, Pow

from iomodel.common.arithmetic import floor_sum
from iomodel.counting.expressions_text import EXTREMA
from iomodel.nests.floor_sum_node import FloorSum

Number = int | Fraction
FUNCTIONS: dict[type, Callable[..., Number]] = {
    Add: lambda *terms: sum(terms),
    Mul: lambda *factors: prod(factors),
    Pow: lambda base, exponent: Fraction(base) ** exponent,
    Max: max,
    Min: min,
    sympy.floor: floor,
    sympy.ceiling: ceil,
    EXTREMA[Max]: max,
    EXTREMA[Min]: min,
    FloorSum: floor_sum,
}


def integer(formula: Expr, values: Mapping[Expr, Any], known: dict[Expr, Number] | None = None) -> int:
    """Evaluate a formula whose value is an integer; `values` are those of its symbols and of any other nodes.

    `known` holds the values of parts of formulas at the same point, and learns those of this one.
    """
    value = number(formula, values, {} if known is None else known)
    if value != int(value):
        raise ArithmeticError(f"not an integer: {value}")
    return int(value)


def number(node: Expr, values: Mapping[Expr, Any], known: dict[Expr, Number]) -> Number:
    """Evaluate a formula whose value may be a fraction."""
    if node.is_Rational:
        return node.p if node.q == 1 else Fraction(node.p, node.q)
    value = known.get(node)
    if value is None:
        told = values.get(node)
        arguments = (number(part, values, known) for part in node.args) if told is None else ()
        value = known[node] = FUNCTIONS[node.func](*arguments) if told is None else told
    return value
