"""Formulas as MathML by sympy's presentation printer, with long ones split into named lines."""

from __future__ import annotations

from typing import Any

from sympy import Add, Dummy, Expr, Integer, Max, Min, Mul, Symbol, ceiling, floor, igcd
from sympy.printing.mathml import MathMLPresentationPrinter

from iomodel.counting.expressions_text import quick
from iomodel.nests.floor_sum_node import FloorSum

SHORT = 40
"""Formulas with fewer operations stay on one line."""
PLAIN = 5
"""Floors and ceilings with fewer operations get no separate line."""


class _Element:
    """An element, a text without a tag, and the maker of both: those of minidom take five times as long to write."""

    def __init__(self, tag: str = "", text: str = "") -> None:
        self.tag, self.text = tag, text

    def createElement(self, tag: str) -> _Element:
        """Make an element."""
        return _Element(tag)

    def createTextNode(self, text: str) -> _Element:
        """Make a text."""
        return _Element("", text)

    def appendChild(self, child: _Element) -> None:
        """Add a child, which is complete."""
        self.text += child.toxml()

    def toxml(self) -> str:
        """Return the element as a text."""
        return f"<{self.tag}>{self.text}</{self.tag}>" if self.tag else self.text


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """sympy's printer, with sums of floors as sums, a hole for every named line, and every part printed once."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.dom = _Element()
        self._printed: dict[Any, _Element] = {}

    def _print(self, expr: Any, **options: Any) -> Any:
        if options or not isinstance(expr, Expr):
            return super()._print(expr, **options)
        if expr not in self._printed:
            self._printed[expr] = super()._print(expr)
        return self._printed[expr]

    def _print_FloorSum(self, expr: Expr) -> Any:
        n, m, a, b = expr.args
        i = Symbol("i", integer=True)
        row = self.dom.createElement("mrow")
        sign = self.dom.createElement("munderover")
        sum_sign = self.dom.createElement("mo")
        sum_sign.appendChild(self.dom.createTextNode("&#x2211;"))
        below = self.dom.createElement("mrow")
        for tag, text in (("mi", "i"), ("mo", "="), ("mn", "0")):
            element = self.dom.createElement(tag)
            element.appendChild(self.dom.createTextNode(text))
            below.appendChild(element)
        for child in (sum_sign, below, self._print(n - 1)):
            sign.appendChild(child)
        row.appendChild(sign)
        row.appendChild(self._print(floor((a * i + b) / m, evaluate=False)))
        return row

    def _print_Dummy(self, expr: Symbol) -> Any:
        hole = self.dom.createElement("mi")
        hole.appendChild(self.dom.createTextNode(f"@{expr.name}@"))
        return hole


class Typeset:
    """All typeset lines of a page without duplicates; a line names others as ``@number@``.

    >>> from iomodel.nests.symbols import N_q, B_r
    >>> typeset = Typeset()
    >>> typeset.line(ceiling(N_q / B_r)), len(typeset.lines)
    (0, 1)
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._places: dict[Expr, int] = {}
        self._holes: dict[Expr, Dummy] = {}
        self._emptied: dict[Expr, Expr] = {}
        self._factored: dict[Expr, Expr] = {}
        self._counted: dict[Expr, int] = {}
        self._printer = _Printer({"disable_split_super_sub": False})

    def line(self, formula: Expr) -> int:
        """Return the number of the line of a formula."""
        if formula not in self._places:
            shown = formula if self._operations(formula) < SHORT else self._with_holes(formula)
            text = self._printer.doprint(self.factored(quick(shown)))
            self.lines.append(text.replace("&InvisibleTimes;", "&#8290;"))
            self._places[formula] = len(self.lines) - 1
        return self._places[formula]

    def _operations(self, formula: Expr) -> int:
        """Count the operations of a formula, each part once counted; sympy's `count_ops` counts it anew each time."""
        if not formula.args:
            return 0
        if formula not in self._counted:
            own = max(1, len(formula.args) - 1)
            self._counted[formula] = own + sum(map(self._operations, formula.args))
        return self._counted[formula]

    def factored(self, formula: Expr) -> Expr:
        """Take factors that all terms of a sum have in front of it; sympy's `factor_terms` takes ten times as long.

        >>> from iomodel.nests.symbols import N_k, N_q, d
        >>> Typeset().factored(2 * d * N_q + 4 * d * N_k)
        2*d*(2*N_k + N_q)
        """
        if formula not in self._factored:
            parts = [self.factored(part) for part in formula.args]
            same = all(part is own for part, own in zip(parts, formula.args, strict=True))
            made = _common(parts) if formula.is_Add else formula if same else formula.func(*parts)
            self._factored[formula] = made
        return self._factored[formula]

    def _with_holes(self, formula: Expr) -> Expr:
        """Replace every part with a separate line by a hole."""
        if not formula.args:
            return formula
        if formula not in self._emptied:
            parts = [self._hole(part) for part in formula.args]
            self._emptied[formula] = formula.func(*parts, **_as_it_is(formula))
        return self._emptied[formula]

    def _hole(self, part: Expr) -> Expr:
        separate = isinstance(part, FloorSum | Max | Min) or (
            isinstance(part, floor | ceiling) and self._operations(part) >= PLAIN
        )
        if not separate:
            return self._with_holes(part)
        if part not in self._holes:
            place = self._own_line(part)
            self._holes[part] = Dummy(str(place), integer=True)
        return self._holes[part]

    def _own_line(self, part: Expr) -> int:
        text = self._printer.doprint(self._with_holes(part))
        self.lines.append(text.replace("&InvisibleTimes;", "&#8290;"))
        return len(self.lines) - 1


def _common(terms: list[Expr]) -> Expr:
    """Add terms, with their common factors in front of the sum."""
    parts = [term.as_coeff_Mul() for term in terms]
    whole = all(number.is_Integer for number, _ in parts)
    number = igcd(*(int(number) for number, _ in parts)) if whole else 1
    powers = [dict(factor.as_base_exp() for factor in Mul.make_args(rest)) for _, rest in parts]
    shared = {
        base: min(own[base] for own in powers)
        for base in powers[0]
        if all(base in own and own[base].is_Integer and own[base] > 0 for own in powers)
    }
    if number == 1 and not shared:
        return Add(*terms)
    if all(number.is_negative for number, _ in parts):
        number = -number
    rests = [
        Mul(own / number, *(base ** (power - shared.get(base, 0)) for base, power in each.items()))
        for (own, _), each in zip(parts, powers, strict=True)
    ]
    product = Mul(*(base**power for base, power in shared.items()), Add(*rests))
    if abs(number) == 1:
        return number * product
    return Mul(Integer(number), *Mul.make_args(product), evaluate=False)  # sympy would multiply the sum out


def _as_it_is(formula: Expr) -> dict[str, bool]:
    """Return the arguments that keep sympy from simplifying a rebuilt expression."""
    return {} if isinstance(formula, FloorSum) else {"evaluate": False}
