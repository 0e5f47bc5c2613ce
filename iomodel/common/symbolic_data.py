"""Plain data of symbolic expressions: nested lists of a head and its arguments, with no text to evaluate."""

from __future__ import annotations

from typing import Any

from iomodel.errors import InputError, shown

HEADS = ("Add", "Mul", "Pow", "Min", "Max", "ceiling", "floor", "log")
"""The functions that plain data may name."""
DEPTH = 100
"""The deepest expression that is read."""


def is_expression(hint: Any) -> bool:
    """Check whether a type is one of symbolic expressions."""
    return isinstance(hint, type) and hint.__module__.startswith("sympy.")


def expression_data(expression: Any) -> Any:
    """Return an expression as plain data: an integer, ["Rational", p, q], ["Symbol", name, assumptions], or a call."""
    from sympy import Expr, Rational, Symbol

    if isinstance(expression, Symbol):
        assumptions = sorted(name for name, value in expression._assumptions_orig.items() if value)
        return ["Symbol", expression.name, assumptions]
    if isinstance(expression, Rational):
        return int(expression) if expression.q == 1 else ["Rational", int(expression.p), int(expression.q)]
    if isinstance(expression, Expr) and type(expression).__name__ in HEADS:
        return [type(expression).__name__, *map(expression_data, expression.args)]
    raise InputError(f"expression: {shown(expression)} given; allowed: one of {', '.join(HEADS)} over symbols")


def as_expression(data: Any, path: str, depth: int = DEPTH) -> Any:
    """Rebuild an expression from its plain data, as it was: nothing is simplified, expanded or evaluated."""
    import sympy

    if isinstance(data, int) and not isinstance(data, bool):
        return sympy.Integer(data)
    head, *parts = data if isinstance(data, list | tuple) and data else (None,)
    match parts:
        case [str(name), list(assumptions)] if head == "Symbol" and _ASSUMPTIONS.issuperset(map(str, assumptions)):
            return sympy.Symbol(name, **dict.fromkeys(assumptions, True))
        case [int(top), int(bottom)] if head == "Rational" and bottom > 1:
            return sympy.Rational(top, bottom)
        case [_, *_] if head in HEADS and depth:
            return getattr(sympy, head)(*(as_expression(part, path, depth - 1) for part in parts), evaluate=False)
    raise InputError(f"{path}: {shown(data)} given; allowed: the plain data of an expression")


_ASSUMPTIONS = frozenset({"integer", "positive", "nonnegative", "real", "negative", "nonzero", "commutative"})
