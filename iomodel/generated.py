"""Formulas as the source of one Python function: subexpressions once, what does not vary apart from what does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sympy import Dummy, Expr, Symbol, cse, numbered_symbols

from iomodel.integral import CeilDiv, FloorDiv
from iomodel.nested import nested
from iomodel.symbols import NAME_OF


class Writer:
    """Python for the nodes of :mod:`iomodel.integral`.

    Products and sums of what does not vary come first, in brackets; `calls` makes calls of divisions too.
    """

    def __init__(self, inputs: Sequence[Symbol], varying: Iterable[Symbol] = (), calls: bool = False) -> None:
        self.varying, self.calls = set(varying), calls
        # Letters of the alphabet are safe names; a symbol that anyone else made gets one.
        self.names = {symbol: str(symbol) if symbol in NAME_OF else f"v{i}" for i, symbol in enumerate(inputs)}

    def varies(self, expr: Expr) -> bool:
        """Whether anything in it is an array."""
        return not self.varying.isdisjoint(expr.free_symbols)

    def text(self, expr: Expr) -> str:
        """The expression, a sum in brackets."""
        if expr.is_Symbol:
            return self.names[expr]
        if expr.is_Integer:
            return str(int(expr)) if expr >= 0 else f"({int(expr)})"
        if expr.is_Add:
            return f"({self._joined(expr.args, ' + ')})"
        if expr.is_Mul:
            return self._joined(expr.args, "*")
        arguments = [self.text(arg) for arg in expr.args]
        if expr.is_Pow:
            return "({})**{}".format(*arguments)
        if self.calls or type(expr) not in DIVISIONS:
            return f"{type(expr).__name__}({', '.join(arguments)})"
        return DIVISIONS[type(expr)].format(*arguments)

    def _joined(self, args: Sequence[Expr], sign: str) -> str:
        still = [self.text(arg) for arg in args if not self.varies(arg)]
        moving = [self.text(arg) for arg in args if self.varies(arg)]
        return (
            sign.join([f"({sign.join(still)})"] * bool(still) + moving) if len(still) > 1 else sign.join(still + moving)
        )


DIVISIONS: dict[type, str] = {FloorDiv: "(({})//({}))", CeilDiv: "(-(-({})//({})))"}


def function(
    formulas: Sequence[Expr],
    inputs: Sequence[Symbol],
    functions: Mapping[str, Any],
    varying: Iterable[Symbol] = (),
    calls: bool = False,
) -> Callable[..., tuple[Any, ...]]:
    """Formulas of opaque nodes as one function of the inputs, which returns a tuple.

    `functions` are what the nodes call, by name; `varying` are the inputs that are to be arrays.
    """
    return defined(source(formulas, inputs, varying, calls), functions)


def defined(text: str, known: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that a text of this package's own making defines, first in it, where these names are known."""
    space: dict[str, Any] = dict(known)
    exec(text, space)  # letters of the alphabet, numbered names and operators, nothing that a user wrote
    name = text.removeprefix("def ").partition("(")[0]
    made: Callable[..., Any] = space[name]
    return made


def source(
    formulas: Sequence[Expr], inputs: Sequence[Symbol], varying: Iterable[Symbol] = (), calls: bool = False
) -> str:
    """The text of the function.

    >>> from iomodel.integral import integral
    >>> from iomodel.symbols import B, B_r, H, N_q, d
    >>> from sympy import ceiling
    >>> print(source([integral(B * H * N_q * ceiling(N_q / B_r), {})], [B, H, N_q, B_r], [N_q]))
    def formulas(B, H, N_q, B_r):
        return ((B*H)*N_q*(-(-(N_q)//(B_r))),)
    """
    writer = Writer(inputs, varying, calls)
    if writer.varying:  # an operation on arrays is worth some thought
        formulas = [nested(formula) for formula in formulas]
    # Every node is an integer here, and so are the names of those that occur more than once.
    shared, results = cse(formulas, symbols=numbered_symbols(cls=Dummy, integer=True), list=True)
    lines = []
    for i, (symbol, part) in enumerate(shared):
        lines.append(f"t{i} = {writer.text(part)}")
        writer.names[symbol] = f"t{i}"
        if writer.varies(part):
            writer.varying.add(symbol)
    returned = ", ".join(writer.text(result) for result in results)
    lines.append(f"return ({returned}{',' * (len(results) == 1)})")
    return f"def formulas({', '.join(writer.names[symbol] for symbol in inputs)}):\n    " + "\n    ".join(lines)
