"""Coefficients and signs of formulas, in dictionaries: an order of magnitude faster than sympy's expansion."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sympy import Expr, ceiling, floor

Powers: TypeAlias = frozenset[tuple[Expr, int]]
Polynomial: TypeAlias = Mapping[Powers, int | Fraction]
ONE: Polynomial = {frozenset(): 1}


def never_below(term: Expr, other: Expr, of_symbols: bool = False) -> bool:
    """Return True if the coefficients show that a term is at least another at all values of the symbols.

    With `of_symbols`, only for terms whose difference is a polynomial of symbols.

    >>> from iomodel.nests.symbols import N_k, N_q
    >>> never_below(N_q, N_q - 1), never_below(N_q, N_k), never_below(N_q * N_k, N_q)
    (True, False, True)
    """
    if term == other:
        return True
    difference = dict(polynomial(term))
    for powers, coefficient in polynomial(other).items():
        difference[powers] = difference.get(powers, 0) - coefficient
    if of_symbols and not all(
        generator.is_Symbol for powers, coefficient in difference.items() if coefficient for generator, _ in powers
    ):
        return False
    return _not_negative(difference)


@lru_cache(maxsize=16_384)
def polynomial(expr: Expr) -> Polynomial:
    """Expand a formula to the coefficients of its monomials, with each positive symbol, and each
    ceiling of a positive formula, written as 1 plus the rest.

    Any other expression than a sum, product or power is one generator.
    """
    if expr.is_Rational:
        return {frozenset(): expr.p if expr.q == 1 else Fraction(expr.p, expr.q)}
    if expr.is_Add:
        total: dict[Powers, int | Fraction] = {}
        for term in expr.args:
            for powers, coefficient in polynomial(term).items():
                total[powers] = total.get(powers, 0) + coefficient
        return total
    if expr.is_Mul:
        product = ONE
        for factor in expr.args:
            product = _times(product, polynomial(factor))
        return product
    if expr.is_Pow and expr.exp.is_Integer and expr.exp.is_positive:
        product, base = ONE, polynomial(expr.base)
        for _ in range(int(expr.exp)):
            product = _times(product, base)
        return product
    whole: Polynomial = {frozenset({(expr, 1)}): 1}
    rounded_up = isinstance(expr, ceiling) and expr.args[0].is_positive
    return {**whole, **ONE} if rounded_up or (expr.is_Symbol and expr.is_positive) else whole


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    product: dict[Powers, int | Fraction] = {}
    for left_powers, first in left.items():
        for right_powers, second in right.items():
            exponents = dict(left_powers)
            for generator, exponent in right_powers:
                exponents[generator] = exponents.get(generator, 0) + exponent
            powers = frozenset(exponents.items())
            product[powers] = product.get(powers, 0) + first * second
    return product


def _not_negative(terms: Polynomial) -> bool:
    for powers, coefficient in terms.items():
        sign = 1 if coefficient >= 0 else -1
        for generator, exponent in powers if coefficient else ():
            sign *= _sign(generator) ** exponent
        if sign != 1:
            return False
    return True


@lru_cache(maxsize=4096)
def _sign(generator: Expr) -> int:
    """Return 1 for a generator that is never negative, -1 for one that is never positive, 0 for any other."""
    if generator.is_Symbol:
        return int(bool(generator.is_nonnegative))
    if generator.is_Pow:
        return int(bool(generator.base.is_Symbol and generator.base.is_positive))
    if isinstance(generator, ceiling | floor):
        inside = polynomial(generator.args[0])
        opposite = {powers: -coefficient for powers, coefficient in inside.items()}
        return 1 if _not_negative(inside) else -1 if _not_negative(opposite) else 0
    return 0
