"""Crossings as formulas: roots of the equality of two counts with ceilings dropped, or of two continuous optima."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, log
from typing import Any

from sympy import (
    Expr,
    Integer,
    Max,
    Min,
    Poly,
    PolynomialError,
    Symbol,
    ceiling,
    expand,
    factor_terms,
    floor,
    fraction,
    latex,
    roots,
    simplify,
    together,
)

from iomodel.common.results import Record
from iomodel.counting.bands import Count
from iomodel.counting.optimum import optimum
from iomodel.errors import IOModelError
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.rules import DeclarationError
from iomodel.nests.symbols import BY_NAME, M, N, N_k, N_q, b, d, d_v
from iomodel.placement.budget import budget_of
from iomodel.studies.crossovers.contenders import METRICS
from iomodel.studies.crossovers.curves import Curve

_t = Symbol("t", positive=True)
Numbers = dict[Symbol, Any]


@dataclass(frozen=True)
class CrossingFormula(Record):
    """A point at which two relaxed counts are equal.

    Attributes
    ----------
    symbol : Symbol
        The letter of the axis.
    expression : expression
        Its value at the crossing.
    value : float
        That value at the numbers of the study, in the unit of the axis.
    relaxed : str
        The simplification that the formula rests on.
    """

    symbol: Symbol
    expression: Expr
    value: float
    relaxed: str

    def latex(self) -> str:
        """Return the formula as LaTeX, without dollar signs."""
        return f"{latex(self.symbol)}^* = {latex(self.expression)} \\approx {self.value:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the formula as text and as plain data, ready for JSON."""
        data = super().to_dict()
        texts = {"symbol": str(self.symbol), "expression": str(self.expression), "latex": self.latex()}
        return {**data, **texts, "symbol_data": data["symbol"], "expression_data": data["expression"]}


class NoFormulaError(Exception):
    """The reason why two curves have no formula for their crossing."""


def crossing_formula(first: Curve, second: Curve, near: int | None) -> tuple[CrossingFormula | None, str]:
    """Return the formula of a crossing, of several roots the one nearest to `near`; else None and the reason."""
    try:
        if first.fixed and second.fixed:
            return _at_given_tiles(first, second, near), ""
        if first.metric == "time" or first.fixed or second.fixed:
            raise NoFormulaError("the time model is no polynomial, and tiles of both kinds have no common formula")
        return _at_best_tiles(first, second, near), ""
    except NoFormulaError as error:
        return None, str(error)


def _at_given_tiles(first: Curve, second: Curve, near: int | None) -> CrossingFormula:
    relaxed = "ceilings dropped: tiles are taken to divide what they cut"
    names = [curve.contender.algorithm for curve in (first, second)]
    if names[0] == names[1]:
        names = ["1", "2"]
    own = [_sizes(curve) for curve in (first, second)]
    letters = [
        {
            name: Symbol(f"{BY_NAME[name]}^{label}", positive=True)
            if own[0].get(name, size) != own[1].get(name, size)
            else BY_NAME[name]
            for name, size in mine.items()
        }
        for mine, label in zip(own, names, strict=True)
    ]
    numbers: Numbers = _numbers(first)
    counts = []
    for curve, mine, symbols in zip((first, second), own, letters, strict=True):
        counts.append(_relaxed(curve, {BY_NAME[name]: symbol for name, symbol in symbols.items()}))
        numbers |= {symbols[name]: size for name, size in mine.items()}
    return _root(counts[0], counts[1], first, numbers, near, relaxed)


def _sizes(curve: Curve) -> dict[str, int]:
    """Return the tiles and the integer options by name."""
    options = {**curve.contender.declaration.takes(curve.workload.direction), **curve.contender.options}
    return {name: size for name, size in {**options, **curve.contender.tiles}.items() if type(size) is int}


def _numbers(curve: Curve) -> Numbers:
    """Return the values of the letters of a formula other than tiles and options."""
    w = curve.workload
    numbers: Numbers = {d: w.head_dim, d_v: w.value_dim, N: w.q_len, N_q: w.q_len, N_k: w.kv_len}
    numbers.pop(BY_NAME.get(curve.axis.name, Symbol(curve.axis.letter)), None)
    return numbers


def _number(value: Any) -> Any:
    """Return a number of a call as sympy's; symbols and formulas as they are."""
    return Integer(value) if isinstance(value, int) else value


def _letter(curve: Curve) -> Symbol:
    return {"length": N, "sram_elements": M, "sram_bytes": M}.get(curve.axis.name) or BY_NAME[curve.axis.fields[0]]


def _relaxed(curve: Curve, letters: Numbers) -> Expr:
    """Drop the ceilings of the count and return a polynomial in the letter of the axis."""
    w = curve.workload
    exact: Expr = getattr(curve.contender.formulas(w), METRICS[curve.metric].quantity)
    lengths = {N_q: N, N_k: N} if w.q_len == w.kv_len or curve.axis.name == "length" else {}
    widths = {d_v: d} if w.value_dim == w.head_dim else {}
    point = {BY_NAME[name]: value for name, value in w.numbers.items() if name in BY_NAME}
    point |= {symbol: symbol for symbol in (N_q, N_k, d, d_v)} | lengths | widths | letters
    point |= dict.fromkeys([BY_NAME[name] for name in curve.axis.fields], _letter(curve))
    smooth = exact.replace(ceiling, lambda part: part).replace(floor, lambda part: part)
    smooth = smooth.xreplace({symbol: _number(value) for symbol, value in point.items()})
    if smooth.has(Count, FloorSum, Min, Max):
        raise NoFormulaError("the counts do not become polynomials when ceilings are dropped")
    return expand(smooth)


def _at_best_tiles(first: Curve, second: Curve, near: int | None) -> CrossingFormula:
    """Equate the leading terms of two continuous optima, or else the optima themselves."""
    w, axis = first.workload, first.axis
    if first.metric in ("flops", "exps"):
        raise NoFormulaError("the count at the best tiles has no formula")
    plain = not w.features and (w.group == 1 or w.direction == "forward")
    if not plain or axis.name in ("batch", "q_len", "kv_len") or (axis.name != "length" and w.q_len != w.kv_len):
        raise NoFormulaError("the continuous optimum is that of one plain head with as many keys as queries")
    optima = []
    for contender in (first.contender, second.contender):
        if contender.options.get("packed"):
            raise NoFormulaError("the continuous optimum is that of rows that are not packed")
        try:
            optima.append(optimum(contender.algorithm, w.mask, w.direction, **contender.options))
        except (IOModelError, NotImplementedError, DeclarationError):
            raise NoFormulaError(f"{contender.algorithm} has no known continuous optimum") from None
    numbers = _numbers(first)
    if not axis.memory:
        hardware, amount, elements = (first.budget.get(name) for name in ("hardware", "sram_bytes", "sram_elements"))
        numbers[M] = budget_of(hardware, amount, elements, None).elements(32 * w.element_size)
    same = {N_q: N, N_k: N, b: 1} | ({d_v: d} if w.value_dim == w.head_dim else {})
    width = w.element_size if axis.name == "sram_bytes" else 1
    words = f", every element {w.element_size} B wide" if first.metric == "bytes" else ""
    leading = [solution.leading.subs(same) for solution in optima]
    if N not in _simplest(leading[0] / leading[1]).free_symbols:
        relaxed = f"leading terms of the continuous optima, d^2 << M << N d{words}"
        try:
            return _root(leading[0], leading[1], first, numbers, near, relaxed, width)
        except NoFormulaError:
            pass  # the optima may cross even if the leading terms do not
    whole = [solution.hbm_elements.subs(same) for solution in optima]
    relaxed = f"the continuous optima, one row streamed at a time{words}"
    return _root(whole[0], whole[1], first, numbers, near, relaxed, width)


def _root(
    first: Expr, second: Expr, curve: Curve, numbers: Numbers, near: int | None, relaxed: str, width: int = 1
) -> CrossingFormula:
    """Solve first = second for the letter of the axis, up to degree two, and take a positive root."""
    x = _letter(curve)
    power = 2 if x == M else 1  # optima hold roots of M
    crossings = []
    for root in _roots(first - second, x, power):
        if free := root.subs(numbers).free_symbols:
            raise NoFormulaError(f"the equality depends on {', '.join(sorted(map(str, free)))} too")
        value = complex(root.subs(numbers).evalf())
        if isfinite(value.real) and value.real > 0 and abs(value.imag) < 1e-9 * max(1.0, value.real):
            crossings.append((root**power, value.real**power * width))
    if not crossings:
        raise NoFormulaError("the relaxed counts are equal nowhere")
    expression, value = min(crossings, key=lambda crossing: abs(log(crossing[1]) - log(near or 1)))
    return CrossingFormula(x, _tidy(expression), value, relaxed)


@lru_cache(maxsize=256)
def _roots(difference: Expr, x: Symbol, power: int) -> tuple[Expr, ...]:
    """Return the roots of a difference in x^(1/power), cached for studies of the same algorithms."""
    try:
        poly = Poly(fraction(together(expand(difference.subs(x, _t**power))))[0], _t)
    except PolynomialError:
        raise NoFormulaError("the equality is no polynomial") from None
    if poly.is_zero:
        raise NoFormulaError("the relaxed counts are equal everywhere")
    poly = poly.terms_gcd()[1]
    if poly.degree() > 2:
        raise NoFormulaError(f"the equality is a polynomial of degree {poly.degree()}")
    return tuple(roots(poly))


@lru_cache(maxsize=256)
def _simplest(expression: Expr) -> Expr:
    return simplify(expression)


@lru_cache(maxsize=256)
def _tidy(expression: Expr) -> Expr:
    if expression.count_ops() > 60:
        return factor_terms(expression)
    return factor_terms(min(_simplest(expression), expression, key=lambda form: form.count_ops()))
