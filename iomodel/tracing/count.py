"""How many events a trace has, from the nest alone: a formula, so that what is too long is refused before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Expr, Integer

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.coverage import View
from iomodel.expressions import Kind, declared
from iomodel.nest import Elementwise, Exp, Leaf, Load, Nest, Path, Random, Tanh, walk
from iomodel.tally import Formulas, Tally, compile_formulas
from iomodel.workload import Attention

Structure = tuple[tuple[str, Any], ...]


def events_by_kernel(
    tally: Tally, kind: Kind, structure: Structure, call: Attention, given: Mapping[str, Any], sizes: Sequence[int]
) -> tuple[int, ...]:
    """Events of one run of each kernel [-]."""
    formulas = _compiled(tally.formulas.algorithm, kind, structure, tally.numbers, tally.tiles)
    return formulas.scalars(call, [given[name] for name in tally.numbers], sizes)


@lru_cache(maxsize=64)
def _compiled(
    algorithm: str, kind: Kind, structure: Structure, numbers: tuple[str, ...], tiles: tuple[str, ...]
) -> Formulas:
    view = View(kind.mask, dict(structure)["packed"])
    nest = declared(find_algorithm(algorithm), kind, dict(structure))
    return compile_formulas([_events((kernel,), view) for kernel in nest], numbers, tiles)


def _events(nest: Nest, view: View) -> Expr:
    total: Expr = Integer(0)
    for leaf, path in walk(nest):
        if not isinstance(leaf, Elementwise) or isinstance(leaf, Exp | Tanh | Random):
            total += view.condition(path) * _runs(leaf, path, view)
    return total


def _runs(leaf: Leaf, path: Path, view: View) -> Expr:
    """How often a statement runs: what it would cover of no axis at all."""
    every = view.covered((), path)
    if isinstance(leaf, Load) and leaf.after_first is not None:
        return every - view.covered((), view.first_trip(path, leaf.after_first))
    return every
