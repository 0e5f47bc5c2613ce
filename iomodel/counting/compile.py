"""Compilation of the formulas of a nest to functions of integers, as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sympy import Expr, Integer, Symbol

from iomodel.counting import folds as counts
from iomodel.counting.bands import Count
from iomodel.counting.compiled_algorithm import CompiledQuantities, Formulas
from iomodel.counting.coverage import HOW_MANY, View
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.expressions import Expressions, declared, formulas
from iomodel.counting.folds import in_bytes, whole
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.quantities import PEAKS, SUMS
from iomodel.counting.requirements import CompiledRequirement
from iomodel.counting.terms import parts_of
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import OPTIONS, SHAPES
from iomodel.nests.language import Nest, Per, Tensor
from iomodel.nests.symbols import BY_NAME, NAME_OF

ONCE: tuple[Per, ...] = ("call", "heads", "kv_heads")
"""Units that occur once per call, whatever its number of sequences."""


def compile_formulas(
    outputs: Sequence[Expr], numbers: Sequence[str], tiles: Sequence[str], operation: str = "attention"
) -> Formulas:
    """Compile formulas over (workload, numbers, tiles) for the symbols of one kind of workload."""
    inputs = [entry.symbol for entry in SHAPES[operation]] + [BY_NAME[name] for name in (*numbers, *tiles)]
    outputs = [whole(formula) for formula in outputs]
    counted: frozenset[Expr] = frozenset().union(*(parts_of(formula, Count) for formula in outputs))
    nodes = sorted(counted, key=str)
    names = {node: Symbol(f"count_{i}", integer=True, nonnegative=True) for i, node in enumerate(nodes)}
    outputs = [formula.xreplace(names) for formula in outputs] if names else list(outputs)
    parts = []
    for node in nodes:
        quantity, outer, *sizes = node.args
        parts.append((str(quantity), str(outer), Compiled(sizes, inputs)))
    return Formulas(Compiled(outputs, [*inputs, *names.values()]), tuple(parts), tuple(numbers), tuple(tiles))


def compiled_quantities(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]
) -> CompiledQuantities:
    """Compile every quantity of (algorithm, kind, options that shape a formula)."""
    expressions, chosen = formulas(algorithm, kind, options), dict(options)
    nest, view = declared(algorithm, kind, chosen), View(kind.mask, bool(chosen.get("packed")))
    numbers = tuple(entry.name for entry in OPTIONS if entry.name in algorithm.takes(kind.direction))

    sums = [getattr(expressions, name) for name in (*SUMS, *PEAKS)]
    every = [*expressions.reads.values(), *expressions.writes.values(), *sums, *_allocations(nest, view)]
    compiled = compile_formulas(every, numbers, expressions.tiles, kind.operation)
    inputs = compiled.compiled.inputs[: len(compiled.compiled.inputs) - len(compiled.nodes)]
    once = _once(expressions, nest, view, inputs) if kind.operation == "attention" else None
    reads, writes = tuple(expressions.reads), tuple(expressions.writes)
    dtypes = (*_dtypes(reads, counts.moves(nest, view, counts.READS)),
              *_dtypes(writes, counts.moves(nest, view, counts.WRITES)))  # fmt: skip
    return CompiledQuantities(reads, writes, dtypes, expressions.tiles, numbers, len(nest), compiled, once)


def _dtypes(names: Sequence[str], moved: Iterable[Tensor]) -> Iterator[str | None]:
    """Yield the kind of dtype of each tensor; None for one that changes its dtype."""
    every = [(tensor.name, tensor.dtype) for tensor in moved]
    for name in names:
        kinds = {dtype for at, dtype in every if at == name}
        yield kinds.pop() if len(kinds) == 1 else None


def _allocations(nest: Nest, view: View, per: Sequence[Per] = tuple(HOW_MANY)) -> list[Expr]:
    return [size for weight in (counts.elements, in_bytes) for size in counts.allocations(nest, view, weight, per)]


def _once(expressions: Expressions, nest: Nest, view: View, inputs: Sequence[Symbol]) -> Compiled | None:
    """Compile the part of the outputs that does not repeat with the sequences of a call; None if there is none."""
    calls = tuple(kernel for kernel in nest if kernel.per == "call")
    moved = [
        {t.name: m for t, m in counts.moves(calls, view, kinds).items()} for kinds in (counts.READS, counts.WRITES)
    ]
    outputs = [
        side.get(name, Integer(0))
        for side, names in zip(moved, (expressions.reads, expressions.writes), strict=True)
        for name in names
    ]
    traffic = counts.hbm_bytes(calls, view)
    outputs += [traffic if name == "hbm_bytes" else Integer(0) for name in (*SUMS, *PEAKS)]
    outputs += _allocations(nest, view, ONCE)
    return Compiled(outputs, inputs) if any(output != 0 for output in outputs) else None


def compiled_requirements(declaration: Algorithm) -> tuple[CompiledRequirement, ...]:
    """Compile the requirements of an algorithm."""
    made = []
    for requirement in declaration.requires:
        names = tuple(sorted(NAME_OF[symbol] for symbol in requirement.holds.free_symbols))
        inputs = [BY_NAME[name] for name in names]
        holds = Compiled([requirement.holds], inputs)
        most = None if requirement.most is None else Compiled([requirement.most], inputs)
        made.append(CompiledRequirement(requirement.field, requirement.allowed, requirement.given, names, holds, most))
    return tuple(made)


def compiled_compulsory(declaration: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]) -> Formulas:
    """Compile the elements and bytes of the inputs of a nest and of its final outputs."""
    nest, view = declared(declaration, kind, dict(options)), View(kind.mask)
    sizes = [counts.compulsory(nest, view, weight) for weight in (counts.elements, in_bytes)]
    return compile_formulas(sizes, (), (), kind.operation)
