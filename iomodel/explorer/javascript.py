"""Formulas as JavaScript, with common subexpressions printed once for all formulas together.

A text consists of letters of the alphabet, numbered nodes (``x12``) and calls of functions that the page defines three
times: on BigInt, on Number, and on bounds of magnitude. The same text serves all three because its only operators are
``+``, ``*`` and the minus in front of a factor; without its minus signs it bounds its own magnitude.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sympy import Add, Expr, Integer, Mul, ilcm

from iomodel.counting.evaluation.integral import CeilDiv, FloorDiv, Maximum, Minimum, Ratio, SumOfFloors, integral

CALLS: dict[type, str] = {FloorDiv: "fl", CeilDiv: "ce", Ratio: "qu", Maximum: "mx", Minimum: "mn", SumOfFloors: "sf"}
"""JavaScript name of every node that is a call."""
ONE = Integer(1)
SURE = "s"
"""Suffix of a division whose divisor equals its bound of magnitude: a product of letters and positive numbers."""


class NoJavaScriptError(TypeError):
    """A formula contains a node that the page cannot evaluate."""


def template(expr: Expr) -> str:
    """Return the JavaScript of a node with a place for each distinct argument, with BigInt literals.

    Raises
    ------
    NoJavaScriptError
        The page cannot evaluate the node.

    >>> from sympy import ceiling
    >>> from iomodel.nests.symbols import B_r, N_q, d
    >>> template(integral(ceiling(N_q / B_r))), template(3 * d)
    ('ces({0},{1})', '3n*{0}')
    """
    if expr.is_Symbol:
        return str(expr)
    if expr.is_Integer:
        return f"{int(expr)}n" if expr >= 0 else f"(-{-int(expr)}n)"
    if expr.is_Add:
        return f"({' + '.join(_places(len(expr.args)))})"
    if expr.is_Mul:
        return _product(*expr.as_coeff_mul())
    if expr.is_Pow:
        power = expr.args[1]
        if power.is_Integer and 0 < power <= 8:
            return f"({'*'.join(['{0}'] * int(power))})"
    name = CALLS.get(type(expr))
    if name is None:
        raise NoJavaScriptError(f"no JavaScript for {type(expr).__name__} in {expr}")
    divides = isinstance(expr, FloorDiv | CeilDiv | Ratio | SumOfFloors)
    sure = SURE if divides and _is_sure(expr.args[1]) else ""
    return f"{name}{sure}({','.join(_places(len(expr.args)))})"


def _places(count: int) -> list[str]:
    return [f"{{{number}}}" for number in range(count)]


def _product(number: Expr, rest: tuple[Expr, ...]) -> str:
    factors = _places(len(rest))
    if number < 0:
        return f"-{'*'.join([f'{-int(number)}n'] * (number != -1) + factors)}"
    return "*".join([f"{int(number)}n"] * (number != 1) + factors)


def _arguments(expr: Expr) -> tuple[Expr, ...]:
    """Return the arguments in the order of the places of the template."""
    if expr.is_Mul:
        return tuple(expr.as_coeff_mul()[1])
    return tuple(expr.args[:1] if expr.is_Pow else expr.args)


def _is_sure(divisor: Expr) -> bool:
    """Check that a positive divisor equals its bound of magnitude."""
    if divisor.is_Symbol or divisor.is_Integer:
        return bool(divisor.is_positive)
    return (divisor.is_Mul or divisor.is_Add or divisor.is_Pow) and all(map(_is_sure, divisor.args))


Entry = tuple[str, tuple[int, ...]]
"""A node: its template, and the numbers of its arguments, which are less than its own."""


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
        self._numbers: dict[Expr, int] = {}
        self._known: dict[Entry, int] = {}
        self.entries: list[Entry] = []
        self.roots: dict[int, None] = {}
        self.places: dict[int, int] = {}

    def add(self, formula: Expr) -> int:
        """Add a formula and return its key in `places`, which gives the number of its text once all are printed."""
        root = self._number(self._whole(integral(formula)))
        self.roots.setdefault(root)
        return root

    def merge(self, entries: Iterable[tuple[str, Sequence[int]]], roots: Iterable[int]) -> list[int]:
        """Add the entries of another table and return the number of each."""
        numbers: list[int] = []
        for text, arguments in entries:
            numbers.append(self._entry(text, tuple(numbers[argument] for argument in arguments)))
        self.roots.update(dict.fromkeys(numbers[root] for root in roots))
        return numbers

    def _number(self, node: Expr) -> int:
        if node not in self._numbers:
            self._numbers[node] = self._entry(template(node), tuple(map(self._number, _arguments(node))))
        return self._numbers[node]

    def _entry(self, text: str, arguments: tuple[int, ...]) -> int:
        number = self._known.setdefault((text, arguments), len(self.entries))
        if number == len(self.entries):
            self.entries.append((text, arguments))
        return number

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
        """Print all formulas: those that are asked for, and the parts of several, have a text of their own."""
        uses = Counter(argument for _, arguments in self.entries for argument in set(arguments))
        shown: list[str] = []
        texts: list[str] = []
        for number, (text, arguments) in enumerate(self.entries):
            shown.append(text.format(*(shown[argument] for argument in arguments)))
            if number in self.roots or (uses[number] > 1 and arguments):
                self.places[number] = len(texts)
                texts.append(shown[number])
                if arguments:
                    shown[number] = f"x{self.places[number]}"
        return texts
