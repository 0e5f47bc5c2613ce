"""Python source of formulas, with shared subexpressions and with the invariant factors grouped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Mul, Symbol

from iomodel.counting.evaluation.definitions import defined
from iomodel.counting.evaluation.integral import CeilDiv, FloorDiv
from iomodel.counting.evaluation.shared_parts import shared_parts
from iomodel.nests.symbols import NAME_OF


class Writer:
    """A writer of Python source for the nodes of :mod:`iomodel.counting.evaluation.integral`.

    Invariant factors and terms come first, in brackets; with `calls`, divisions become function calls.
    """

    def __init__(self, inputs: Sequence[Symbol], varying: Iterable[Symbol] = (), calls: bool = False) -> None:
        self.varying, self.calls = set(varying), calls
        # Letters of the alphabet are safe names; any other symbol gets a generated name.
        self.names = {symbol: str(symbol) if symbol in NAME_OF else f"v{i}" for i, symbol in enumerate(inputs)}

    def varies(self, expr: Expr) -> bool:
        """Check that an expression contains an array."""
        return bool(self.varying) and not self.varying.isdisjoint(expr.free_symbols)

    def text(self, expr: Expr) -> str:
        """Write an expression, with brackets around a sum."""
        if expr.is_Symbol or expr in self.names:
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
    """Build one function of the inputs from formulas of opaque nodes; it returns a tuple.

    `functions` holds the functions that the nodes call, by name; `varying` holds the inputs that are arrays.
    """
    varying = tuple(varying)
    text = source(formulas, inputs, varying, calls) if varying or calls else quick_source(formulas, inputs)
    return defined(text, functions)


def source(
    formulas: Sequence[Expr], inputs: Sequence[Symbol], varying: Iterable[Symbol] = (), calls: bool = False
) -> str:
    """Write the source of the function.

    >>> from iomodel.counting.evaluation.integral import integral
    >>> from iomodel.nests.symbols import B, B_r, H, N_q, d
    >>> from sympy import ceiling
    >>> print(source([integral(B * H * N_q * ceiling(N_q / B_r))], [B, H, N_q, B_r], [N_q]))
    def formulas(B, H, N_q, B_r):
        return ((B*H)*N_q*(-(-(N_q)//(B_r))),)
    """
    writer = Writer(inputs, varying, calls)
    if writer.varying:  # an operation on arrays costs more than the factoring
        formulas = [nested(formula) for formula in formulas]
    shared, results = shared_parts(formulas)
    lines = []
    for i, (symbol, part) in enumerate(shared):
        lines.append(f"t{i} = {writer.text(part)}")
        writer.names[symbol] = f"t{i}"
        if writer.varies(part):
            writer.varying.add(symbol)
    return _written(writer, inputs, lines, results)


@lru_cache(maxsize=4096)
def shared_source(formulas: tuple[Expr, ...], inputs: tuple[Symbol, ...]) -> str:
    """Write the source of the function for scalars once for all records with these formulas."""
    return source(formulas, inputs)


def quick_source(formulas: Sequence[Expr], inputs: Sequence[Symbol]) -> str:
    """Write the source of the function for scalars, in a tenth of the time, for code with few runs.

    Equal subexpressions are shared as they stand; sums and products that overlap are not searched for common parts.

    >>> from iomodel.nests.symbols import B_r, N_q, d
    >>> print(quick_source([(N_q + d) * B_r, (N_q + d) * d], [N_q, d, B_r]))
    def formulas(N_q, d, B_r):
        t0 = ((N_q + d))
        return ((B_r*t0), (d*t0))
    """
    writer = Writer(inputs)
    every: dict[Expr, bool] = {}  # True if repeated; parts come before the expressions that contain them

    def visit(expr: Expr) -> None:
        if expr in every:
            every[expr] = True
        elif expr.args:
            for part in expr.args:
                visit(part)
            every[expr] = False

    for formula in formulas:
        visit(formula)
    lines: list[str] = []
    for part in (expr for expr, repeated in every.items() if repeated):
        name = f"t{len(lines)}"
        lines.append(f"{name} = {writer.text(part)}")
        writer.names[part] = name
    return _written(writer, inputs, lines, formulas)


def _written(writer: Writer, inputs: Sequence[Symbol], lines: list[str], results: Sequence[Expr]) -> str:
    returned = ", ".join(writer.text(result) for result in results)
    lines.append(f"return ({returned}{',' * (len(results) == 1)})")
    return f"def formulas({', '.join(writer.names[symbol] for symbol in inputs)}):\n    " + "\n    ".join(lines)


def nested(formula: Expr) -> Expr:
    """Factor out the most common factor of the terms of a sum, repeatedly (Horner's scheme).

    >>> from iomodel.nests.symbols import N_k, N_q, d, d_v
    >>> nested(N_q * d + N_q * d_v + N_k * d)
    N_q*d_v + d*(N_k + N_q)
    """
    if not formula.is_Add:
        return formula
    shared: Counter[Expr] = Counter()
    for term in formula.args:
        shared.update({factor.as_base_exp()[0] for factor in Mul.make_args(term) if not factor.is_Number})
    factor = max(shared, key=shared.__getitem__, default=None)
    if factor is None or shared[factor] < 2:
        return formula
    inside = [term / factor for term in formula.args if _has(term, factor)]
    beside = [term for term in formula.args if not _has(term, factor)]
    product = Mul(factor, nested(Add(*inside)), evaluate=False)
    return Add(product, nested(Add(*beside)), evaluate=False) if beside else product


def _has(term: Expr, factor: Expr) -> bool:
    return any(part.as_base_exp()[0] == factor for part in Mul.make_args(term))
