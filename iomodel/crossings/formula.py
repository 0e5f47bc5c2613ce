"""Where two curves cross as a formula: the root of the equality of both counts, relaxed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, log
from typing import Any, NamedTuple

from sympy import Expr, Poly, PolynomialError, Symbol, expand, factor_terms, fraction, latex, simplify, sqrt, together

from iomodel.budget import budget_of
from iomodel.crossings.curves import Asked, Curve, Fixed, Solved
from iomodel.crossings.relaxed import letters, relaxed
from iomodel.errors import IOModelError
from iomodel.nest import DeclarationError
from iomodel.optimum import optimum
from iomodel.symbols import M, N, N_k, N_q, b, d, d_v

_t = Symbol("t", positive=True)


@dataclass(frozen=True)
class CrossingFormula:
    """Where two relaxed counts are equal.

    Attributes
    ----------
    symbol : Symbol
        The letter of what is varied.
    expression : expression
        Its value at the crossing.
    value : float
        That value at the numbers of the question, in the unit of what is varied.
    relaxed : str
        What was left out to have a formula.
    """

    symbol: Symbol
    expression: Expr
    value: float
    relaxed: str

    def latex(self) -> str:
        """The formula as LaTeX, without dollars."""
        return f"{latex(self.symbol)}^* = {latex(self.expression)} \\approx {self.value:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """The formula as text, ready for JSON."""
        return {
            "symbol": str(self.symbol),
            "expression": str(self.expression),
            "value": self.value,
            "relaxed": self.relaxed,
            "latex": self.latex(),
        }


class Sought(NamedTuple):
    """A formula, or why there is none."""

    formula: CrossingFormula | None
    reason: str


def crossing_formula(first: Curve, second: Curve, near: int | None) -> Sought:
    """The formula of the crossing of two curves; of several roots the one that is nearest to `near`."""
    if isinstance(first, Fixed) and isinstance(second, Fixed):
        return _counted(first.asked, second.asked, near)
    if isinstance(first, Solved) and isinstance(second, Solved):
        if first.asked.metric in ("flops", "exps"):
            return Sought(None, "the count at the best tiles has no formula")
        return _optimal(first, second, near)
    return Sought(None, "the time model is no polynomial, and tiles of both kinds have no common formula")


def _counted(first: Asked, second: Asked, near: int | None) -> Sought:
    """At tiles that are given: the equality of both counts without ceilings."""
    values: dict[str, set[int]] = {}
    for asked in (first, second):
        own = {**asked.contender.found.takes(asked.workload.direction), **asked.contender.options}
        for name, value in {**own, **asked.contender.tiles}.items():
            if type(value) is int:
                values.setdefault(name, set()).add(value)
    told = "ceilings dropped: tiles are taken to divide what they cut"
    counts: list[Expr] = []
    kept: dict[Symbol, Any] = {}
    least = 0
    names = [asked.contender.algorithm for asked in (first, second)]
    if names[0] == names[1]:
        names = ["1", "2"]  # the same one at other tiles or options: the first and the second that were named
    for asked, name in zip((first, second), names, strict=True):
        point, mine = letters(asked, values, name)
        smooth, long = relaxed(asked, point, mine)
        if smooth is None:
            return Sought(None, "the counts do not become polynomials when ceilings are dropped")
        counts.append(smooth)
        kept |= mine
        if long:
            least = max(least, long)
            told = "all but what is varied as numbers, at multiples of the tiles that are long against tiles and window"
    if least:
        counts = [count.subs(kept) for count in counts]
    return _root(counts[0], counts[1], first.axis.symbol, kept, near, told, least=least)


def _optimal(first: Solved, second: Solved, near: int | None) -> Sought:
    """At the best tiles of each: the equality of the leading terms, or else of the continuous optima."""
    w, axis = first.asked.workload, first.asked.axis
    if axis.name in ("batch", "q_len", "kv_len") or w.features or (w.group > 1 and w.direction != "forward"):
        return Sought(None, "the continuous optimum speaks of one plain head, with as many keys as queries")
    if axis.name != "length" and w.q_len != w.kv_len:
        return Sought(None, "the continuous optimum speaks of as many keys as queries")
    found = []
    for contender in (first.asked.contender, second.asked.contender):
        if contender.options.get("packed"):
            return Sought(None, "the continuous optimum speaks of rows that are not packed")
        try:
            found.append(optimum(contender.algorithm, w.mask, w.direction, **contender.options))
        except (IOModelError, NotImplementedError, DeclarationError):
            return Sought(None, f"no continuous optimum of {contender.algorithm} is known here")
    same = {N_q: N, N_k: N, b: 1} | ({d_v: d} if w.value_dim == w.head_dim else {})
    kept = {d: w.head_dim, d_v: w.value_dim, N: w.q_len}
    if not axis.memory:
        given = first.budget
        budget = budget_of(given.get("hardware"), given.get("sram_bytes"), given.get("sram_elements"), None)
        kept[M] = budget.elements(w.element_size)
    kept.pop(axis.symbol, None)
    width = w.element_size if axis.name == "sram_bytes" else 1
    words = f", every element {w.element_size} B wide" if first.asked.metric == "bytes" else ""
    leading, whole = ([one.subs(same) for one in pair] for pair in
                      ([one.leading for one in found], [one.hbm_elements for one in found]))  # fmt: skip
    ratio = simplify(leading[0] / leading[1])
    if N not in ratio.free_symbols:  # else lower terms of the one are as large as the leading one of the other
        told = f"leading terms of the continuous optima, d^2 << M << N d{words}"
        sought = _root(leading[0], leading[1], axis.symbol, kept, near, told, width)
        if sought.formula is not None:
            return sought
    told = f"the continuous optima, one row streamed at a time{words}"
    return _root(whole[0], whole[1], axis.symbol, kept, near, told, width)


def _root(
    first: Expr,
    second: Expr,
    x: Symbol,
    kept: Mapping[Symbol, Any],
    near: int | None,
    told: str,
    width: int = 1,
    least: int = 0,
) -> Sought:
    """The positive root of first - second in x, up to degree two."""
    power = 2 if x == M else 1  # optima hold roots of M
    gap = fraction(together(expand((first - second).subs(x, _t**power))))[0]
    try:
        poly = Poly(expand(gap), _t)
    except PolynomialError:
        return Sought(None, "the equality is no polynomial")
    if poly.is_zero:
        return Sought(None, "both are equal everywhere, relaxed")
    power_of_all = min(monomial[0] for monomial in poly.monoms())
    coefficients = [poly.coeff_monomial(_t ** (power_of_all + i)) for i in range(poly.degree() - power_of_all + 1)]
    roots = _solved(coefficients)
    if roots is None:
        return Sought(None, f"the equality is a polynomial of degree {len(coefficients) - 1}")
    valued = []
    for root in roots:
        expression = root**power
        if free := expression.subs(kept).free_symbols:
            return Sought(None, f"the equality depends on {', '.join(sorted(map(str, free)))} too")
        value = complex(expression.subs(kept).evalf())
        real = abs(value.imag) < 1e-9 * max(1.0, abs(value.real)) and isfinite(value.real)
        if real and value.real > 0 and complex(root.subs(kept).evalf()).real > 0:
            valued.append((expression, value.real * width))
    if not valued:
        return Sought(None, "relaxed, they do not cross at any positive number")
    if not (valued := [one for one in valued if one[1] >= least]):
        return Sought(
            None, f"relaxed, they cross only below {least:,}, where tiles and window are not short against it"
        )
    wanted = log(near) if near else 0.0
    expression, value = min(valued, key=lambda one: abs(log(one[1]) - wanted))
    return Sought(CrossingFormula(x, _tidy(expression), value, told), "")


def _solved(coefficients: list[Expr]) -> list[Expr] | None:
    """The roots of c0 + c1 x + c2 x^2, None beyond."""
    if len(coefficients) == 1:
        return []
    if len(coefficients) == 2:
        return [-coefficients[0] / coefficients[1]]
    if len(coefficients) == 3:
        c, linear, square = coefficients
        if linear == 0:
            return [sqrt(simplify(-c / square))]
        half = sqrt(simplify(linear**2 - 4 * square * c))
        return [(-linear + half) / (2 * square), (-linear - half) / (2 * square)]
    return None


def _tidy(expression: Expr) -> Expr:
    """A shorter form where it is soon found."""
    if expression.count_ops() > 60:
        return factor_terms(expression)
    short = simplify(expression)
    return factor_terms(short if short.count_ops() <= expression.count_ops() else expression)
