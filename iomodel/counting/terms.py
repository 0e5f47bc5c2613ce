"""Terms of formulas: parts, coefficients and signs, and extrema without the arguments that these show to be needless.

Coefficients are in dictionaries, an order of magnitude faster than sympy's expansion. sympy compares every pair of
arguments of an extremum by factoring their difference, which takes most of the time of deriving the formulas of a mask,
and settles no more pairs of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sympy import Dummy, Expr, Integer, Max, Min, Symbol, ceiling, expand, floor

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


@lru_cache(maxsize=65_536)
def parts_of(expr: Expr, kind: type = Symbol) -> frozenset[Expr]:
    """Collect the parts of a formula that are of a kind; sympy visits each occurrence of a part that repeats.

    >>> from iomodel.nests.symbols import B_r, N_q
    >>> sorted(map(str, parts_of(N_q * B_r + N_q)))
    ['B_r', 'N_q']
    """
    inside: frozenset[Expr] = frozenset().union(*(parts_of(arg, kind) for arg in expr.args))
    return inside | {expr} if isinstance(expr, kind) else inside


@lru_cache(maxsize=4096)
def rounded(kind: type[floor | ceiling], expr: Expr) -> Expr:
    """Return a floor or ceiling as sympy has it; a quotient of a sum with floors in it has nothing to take out.

    sympy looks for an integer by factoring the quotient.
    """
    settled = expr.is_Mul and any(factor.is_Add and factor.has(floor, ceiling) for factor in expr.args)
    return kind(expr, evaluate=False) if settled else kind(expr)


def expanded(expr: Expr) -> Expr:
    """Multiply out the products and powers of a formula, but for those inside of functions, which sympy would rebuild.

    >>> from iomodel.nests.symbols import N_k, N_q, d
    >>> expanded(d * (N_q + Max(0, N_k - N_q)))
    N_q*d + d*Max(0, N_k - N_q)
    """
    names: dict[Expr, Expr] = {}

    def named(part: Expr) -> Expr:
        if part.is_Atom:
            return part
        if part.is_Add or part.is_Mul or part.is_Pow:
            return part.func(*map(named, part.args))
        return names.setdefault(part, Dummy(integer=True))

    return expand(named(expr)).xreplace({name: part for part, name in names.items()})


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
