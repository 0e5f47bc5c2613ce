"""Formulas as JavaScript, with common subexpressions printed once for all formulas together.

A text consists of letters of the alphabet, numbered nodes (``x12``) and calls of functions that the page defines three
times: on BigInt, on Number, and on bounds of magnitude. The same text serves all three because its only operators are
``+``, ``*`` and the minus in front of a factor; without its minus signs it bounds its own magnitude.
"""

from __future__ import annotations

from collections import Counter

from sympy import Add, Expr, Integer, Mul, Symbol, ilcm
from sympy.printing.printer import Printer

from iomodel.counting.evaluation.integral import CeilDiv, FloorDiv, Maximum, Minimum, Ratio, SumOfFloors, integral

CALLS: dict[type, str] = {FloorDiv: "fl", CeilDiv: "ce", Ratio: "qu", Maximum: "mx", Minimum: "mn", SumOfFloors: "sf"}
"""JavaScript name of every node that is a call."""
ONE = Integer(1)
SURE = "s"
"""Suffix of a division whose divisor equals its bound of magnitude: a product of letters and positive numbers."""


class NoJavaScriptError(TypeError):
    """A formula contains a node that the page cannot evaluate."""


class JavaScriptPrinter(Printer):  # type: ignore[misc]
    """A printer of JavaScript with BigInt literals for the nodes of :mod:`iomodel.counting.evaluation.integral`.

    >>> from sympy import ceiling
    >>> from iomodel.nests.symbols import B_r, N_q, d
    >>> JavaScriptPrinter({}).doprint(integral(3 * d - ceiling(N_q / B_r)))
    '(-ces(N_q,B_r) + 3n*d)'
    """

    def __init__(self, names: dict[Expr, str]) -> None:
        super().__init__()
        self.names = names

    def _print(self, expr: Expr, **more: object) -> str:
        name = self.names.get(expr)
        return name if name is not None else super()._print(expr, **more)

    def _print_Symbol(self, expr: Symbol) -> str:
        return str(expr)

    def _print_Integer(self, expr: Expr) -> str:
        return f"{int(expr)}n" if expr >= 0 else f"(-{-int(expr)}n)"

    def _print_Add(self, expr: Expr) -> str:
        return f"({' + '.join(map(self._print, expr.args))})"

    def _print_Mul(self, expr: Expr) -> str:
        number, rest = expr.as_coeff_mul()
        factors = [self._print(factor) for factor in rest]
        if number < 0:
            return f"-{'*'.join([f'{-int(number)}n'] * (number != -1) + factors)}"
        return "*".join([f"{int(number)}n"] * (number != 1) + factors)

    def _print_Pow(self, expr: Expr) -> str:
        base, power = expr.args
        if not power.is_Integer or not 0 < power <= 8:
            raise NoJavaScriptError(f"no JavaScript for {expr}")
        return f"({'*'.join([self._print(base)] * int(power))})"

    def _print_Function(self, expr: Expr) -> str:
        name = CALLS.get(type(expr))
        if name is None:
            raise NoJavaScriptError(f"no JavaScript for {type(expr).__name__}")
        divides = isinstance(expr, FloorDiv | CeilDiv | Ratio | SumOfFloors)
        sure = SURE if divides and _is_sure(expr.args[1]) else ""
        return f"{name}{sure}({','.join(map(self._print, expr.args))})"

    def emptyPrinter(self, expr: Expr) -> str:
        """Reject nodes without a print method."""
        raise NoJavaScriptError(f"no JavaScript for {type(expr).__name__}")


def _is_sure(divisor: Expr) -> bool:
    """Check that a positive divisor equals its bound of magnitude."""
    if divisor.is_Symbol or divisor.is_Integer:
        return bool(divisor.is_positive)
    return (divisor.is_Mul or divisor.is_Add or divisor.is_Pow) and all(map(_is_sure, divisor.args))


class Nodes:
    """All formulas of a page as one table of texts, each over the letters and the preceding texts.

    >>> from iomodel.nests.symbols import B_r, N_q, d
    >>> from sympy import ceiling
    >>> nodes = Nodes()
    >>> first, second = nodes.add(d * ceiling(N_q / B_r)), nodes.add(N_q + ceiling(N_q / B_r))
    >>> nodes.texts(), nodes.places[first], nodes.places[second]
    (['ces(N_q,B_r)', 'd*x0', '(N_q + x0)'], 1, 2)
    """

    def __init__(self) -> None:
        self._fractions: dict[Expr, tuple[Expr, Expr]] = {}
        self._roots: dict[Expr, None] = {}
        self.places: dict[Expr, int] = {}

    def add(self, formula: Expr) -> Expr:
        """Add a formula and return its key in `places`, which gives its number once all are printed."""
        root = self._whole(integral(formula))
        self._roots.setdefault(root)
        return root

    def _whole(self, node: Expr) -> Expr:
        """Rewrite an integer with a single division at the end, in place of fractional terms."""
        above, below = self._cleared(node)
        return above if below == 1 else Ratio(above, below)

    def _cleared(self, node: Expr) -> tuple[Expr, Expr]:
        """Return numerator and denominator of a node."""
        if node not in self._fractions:
            self._fractions[node] = self._fraction(node)
        return self._fractions[node]

    def _fraction(self, node: Expr) -> tuple[Expr, Expr]:
        if not node.args:
            return node, ONE
        if isinstance(node, Ratio):
            (above, over), (under, below) = map(self._cleared, node.args)
            return above * below, over * under
        if node.is_Add:
            parts = [self._cleared(part) for part in node.args]
            split = [below.as_coeff_Mul() for _, below in parts]
            common = ilcm(1, *(number for number, _ in split)) * Mul(*dict.fromkeys(letters for _, letters in split))
            return Add(*(above * (common / below) for above, below in parts)), common
        if node.is_Mul:
            parts = [self._cleared(part) for part in node.args]
            return Mul(*(above for above, _ in parts)), Mul(*(below for _, below in parts))
        if node.is_Pow:
            above, below = self._cleared(node.args[0])
            return above ** node.args[1], below ** node.args[1]
        return node.func(*map(self._whole, node.args)), ONE

    def texts(self) -> list[str]:
        """Print all formulas."""
        uses: Counter[Expr] = Counter()
        order: dict[Expr, None] = {}
        for root in self._roots:
            _visit(root, uses, order)
        names: dict[Expr, str] = {}
        texts: list[str] = []
        printer = JavaScriptPrinter(names)
        for node in order:
            if node in self._roots or (uses[node] > 1 and node.args):
                self.places[node] = len(texts)
                texts.append(printer.doprint(node))
                if node.args:
                    names[node] = f"x{self.places[node]}"
        return texts


def _visit(node: Expr, uses: Counter[Expr], order: dict[Expr, None]) -> None:
    """Count the uses of each part, and order parts before the expressions that contain them."""
    if node in order:
        return
    for part in node.args:
        uses[part] += 1
        _visit(part, uses, order)
    order[node] = None
