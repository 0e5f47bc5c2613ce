"""Minima and maxima of formulas, without the arguments that coefficients show to be needless.

sympy compares every pair of arguments by factoring their difference, which takes most of the time of deriving the
formulas of a mask, and settles no more pairs of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sympy import Expr, Integer, Max, Min, Symbol

from iomodel.counting.polynomials import never_below


def least(*terms: Expr | int) -> Expr:
    """Return the minimum of some formulas.

    >>> from iomodel.nests.symbols import N_k, N_q
    >>> least(N_q, N_k, N_q + 1)
    Min(N_k, N_q)
    """
    return _extremum(Min, lambda kept, term: never_below(term, kept), terms)


def greatest(*terms: Expr | int) -> Expr:
    """Return the maximum of some formulas.

    >>> from iomodel.nests.symbols import N_k, N_q
    >>> greatest(0, N_k - N_q), greatest(0, N_q - 1)
    (Max(0, N_k - N_q), N_q - 1)
    """
    return _extremum(Max, never_below, terms)


def replaced(expr: Expr, values: Mapping[Symbol, Expr | int]) -> Expr:
    """Replace symbols of a formula; its extrema are those of :func:`least` and :func:`greatest`.

    >>> from iomodel.nests.symbols import N_k, N_q
    >>> replaced(greatest(N_q, N_k), {N_k: N_q + 1})
    N_q + 1
    """
    known: dict[Expr, Expr] = {symbol: _formula(value) for symbol, value in values.items()}

    def visit(part: Expr) -> Expr:
        if part not in known:
            args = [visit(arg) for arg in part.args]
            changed = any(new is not old for new, old in zip(args, part.args, strict=True))
            build = part.func if all(arg.is_number for arg in args) else REBUILT.get(part.func, part.func)
            known[part] = build(*args) if changed else part
        return known[part]

    return visit(expr)


REBUILT: dict[type, Callable[..., Expr]] = {Min: least, Max: greatest}


def _extremum(kind: type[Max | Min], settles: Callable[[Expr, Expr], bool], terms: tuple[Expr | int, ...]) -> Expr:
    kept: list[Expr] = []
    for term in dict.fromkeys(part for value in terms for part in kind.make_args(_formula(value))):
        if not any(settles(other, term) for other in kept):
            kept = [*(other for other in kept if not settles(term, other)), term]
    return kind(*kept, evaluate=False)


def _formula(value: Expr | int) -> Expr:
    return Integer(value) if isinstance(value, int) else value
