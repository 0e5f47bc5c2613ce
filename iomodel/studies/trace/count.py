"""Number of events of a trace, from the nest alone, so that traces that are too long are rejected before they start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Expr, Integer

from iomodel.counting.compile import compile_formulas
from iomodel.counting.compiled_algorithm import CompiledAlgorithm, Formulas
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import FormulaKind
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Exp, Leaf, Load, Nest, Path, Pointwise, Random, Tanh, walk
from iomodel.workloads.workload import Shape

Structure = tuple[tuple[str, Any], ...]


def events_by_kernel(
    tally: CompiledAlgorithm,
    kind: FormulaKind,
    structure: Structure,
    call: Shape,
    numbers: Mapping[str, Any],
    sizes: Sequence[int],
) -> tuple[int, ...]:
    """Count the events of one run of each kernel [-]."""
    formulas = _compiled(tally.algorithm, kind, structure, tally.numbers, tally.tiles)
    return formulas.scalars(call, [numbers[name] for name in tally.numbers], sizes)


@lru_cache(maxsize=64)
def _compiled(
    algorithm: Algorithm, kind: FormulaKind, structure: Structure, numbers: tuple[str, ...], tiles: tuple[str, ...]
) -> Formulas:
    view = View(kind.mask, bool(dict(structure).get("packed")))
    nest = declared(algorithm, kind, dict(structure))
    return compile_formulas([_events((kernel,), view) for kernel in nest], numbers, tiles, kind.operation)


def _events(nest: Nest, view: View) -> Expr:
    total: Expr = Integer(0)
    view = view.of(nest)
    for leaf, path in walk(nest):
        if not isinstance(leaf, Pointwise) or isinstance(leaf, Exp | Tanh | Random):
            total += view.condition(path) * _runs(leaf, path, view)
    return total


def _runs(leaf: Leaf, path: Path, view: View) -> Expr:
    """Count the repetitions of a statement: its coverage of no axis."""
    every = view.at_trips(leaf, (), path)
    if isinstance(leaf, Load):  # not where a serpentine walk finds its tile on chip
        every -= view.kept(leaf.tensor.axes, path, leaf.tensor.paged, loads=True)
    return every
