"""Formulas as MathML, by sympy's presentation printer; long ones in lines, each with names for what others share."""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Expr, Max, Min, Symbol, ceiling, factor_terms, floor
from sympy.printing.mathml import MathMLPresentationPrinter

from iomodel.floorsum import FloorSum

SHORT = 40
"""Formulas of fewer operations stand in one line, whatever they hold."""
PLAIN = 5
"""Floors and ceilings of fewer operations have no line of their own."""


class _Printer(MathMLPresentationPrinter):  # type: ignore[misc]
    """sympy's, with a sum of floors as a sum, and a hole where a line of its own is named."""

    def _print_FloorSum(self, expr: Expr) -> Any:
        n, m, a, b = expr.args
        i = Symbol("i", integer=True)
        row = self.dom.createElement("mrow")
        sign = self.dom.createElement("munderover")
        sum_sign = self.dom.createElement("mo")
        sum_sign.appendChild(self.dom.createTextNode("&#x2211;"))
        below = self.dom.createElement("mrow")
        for tag, text in (("mi", "i"), ("mo", "="), ("mn", "0")):
            one = self.dom.createElement(tag)
            one.appendChild(self.dom.createTextNode(text))
            below.appendChild(one)
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
    """All typeset lines of a page, each once; a line names others as ``@number@``.

    >>> from iomodel.symbols import N_q, B_r
    >>> typeset = Typeset()
    >>> typeset.line(ceiling(N_q / B_r)), len(typeset.lines)
    (0, 1)
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._places: dict[Expr, int] = {}
        self._holes: dict[Expr, Dummy] = {}
        self._emptied: dict[Expr, Expr] = {}
        self._printer = _Printer({"disable_split_super_sub": False})

    def line(self, formula: Expr) -> int:
        """The number of the line that says a formula."""
        if formula not in self._places:
            shown = formula if formula.count_ops() < SHORT else self._with_holes(formula)
            text = self._printer.doprint(factor_terms(shown))
            self.lines.append(text.replace("&InvisibleTimes;", "&#8290;"))
            self._places[formula] = len(self.lines) - 1
        return self._places[formula]

    def _with_holes(self, formula: Expr) -> Expr:
        """The formula with a hole for every part that has a line of its own."""
        if not formula.args:
            return formula
        if formula not in self._emptied:
            parts = [self._hole(part) for part in formula.args]
            self._emptied[formula] = formula.func(*parts, **_as_it_is(formula))
        return self._emptied[formula]

    def _hole(self, part: Expr) -> Expr:
        own = isinstance(part, FloorSum | Max | Min) or (
            isinstance(part, floor | ceiling) and part.count_ops() >= PLAIN
        )
        if not own:
            return self._with_holes(part)
        if part not in self._holes:
            place = self._own_line(part)
            self._holes[part] = Dummy(str(place), integer=True)
        return self._holes[part]

    def _own_line(self, part: Expr) -> int:
        text = self._printer.doprint(self._with_holes(part))
        self.lines.append(text.replace("&InvisibleTimes;", "&#8290;"))
        return len(self.lines) - 1


def _as_it_is(formula: Expr) -> dict[str, bool]:
    """Let nothing that is rebuilt simplify itself."""
    return {} if isinstance(formula, FloorSum) else {"evaluate": False}
