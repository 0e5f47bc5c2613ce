"""Formulas of a part of an algorithm over arrays of problems, in int64.

A formula is split into a sum of weights times counts. The weights do not depend on tiles and are evaluated once per
problem; the counts, a few numbers of tiles and rows, are evaluated once per pair of a problem and a tile.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
from sympy import Add, Expr, Function, Integer, Mul, Symbol

from iomodel.counting.compile import compile_formulas
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.coverage import View
from iomodel.counting.evaluation.arithmetic import ARRAY, Size, as_size
from iomodel.counting.evaluation.codegen import function
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.expressions import declared
from iomodel.counting.folds import hbm_bytes
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.structure import parts
from iomodel.nests.algorithm import Algorithm
from iomodel.solving.parts import PartFormulas, Parts, parts_for

Values = Any
"""An int64 array with one element per problem, or an int for all problems."""
Evaluate = Callable[[Any, Values, Values], Any]
"""A formula at outer and inner tiles of selected problems; None selects all problems."""


def take(values: Values, who: Any) -> Values:
    """Select the values of the problems `who`; None selects all problems."""
    return values if who is None or isinstance(values, int) else values[who]


def _weighed(expr: Expr, tiles: set[Symbol], lengths: set[Symbol]) -> dict[Expr, Expr]:
    """Return the weight of every count in a sum of products; the weight of 1 does not depend on tiles."""
    if not expr.free_symbols & tiles:
        return {Integer(1): expr}
    if not isinstance(expr, Add | Mul) or expr.free_symbols <= lengths:
        return {expr: Integer(1)}
    parts_of = [_weighed(arg, tiles, lengths) for arg in expr.args]
    weights: dict[Expr, Expr] = {}
    if isinstance(expr, Add):
        terms = [term for part in parts_of for term in part.items()]
    else:
        terms = [(Integer(1), Integer(1))]
        for part in parts_of:
            terms = [(count * more, weight * by) for count, weight in terms for more, by in part.items()]
    for count, weight in terms:
        weights[count] = weights.get(count, Integer(0)) + weight
    return weights


class Weighted:
    """A formula over (workload, numbers, outer, inner) as a sum of weights times counts, compiled on first use."""

    def __init__(self, expr: Expr, inputs: Sequence[Symbol]) -> None:
        self.expr, self.inputs = expr, tuple(inputs)

    @cached_property
    def _compiled(self) -> tuple[Callable[..., Any], Callable[..., Any], list[int]]:
        """Compile the weights, the weight of 1 first, and the counts; list the places of the numbers in the counts."""
        numbers, tiles = self.inputs[:-2], set(self.inputs[-2:])
        inside = [node.free_symbols for node in self.expr.atoms(Function) if node.free_symbols & tiles]
        lengths = tiles.union(*inside)
        weights_of = _weighed(self.expr, tiles, lengths)
        weights = function([weights_of.pop(Integer(1), Integer(0)), *weights_of.values()], numbers, ARRAY)
        places = [place for place, symbol in enumerate(numbers) if symbol in lengths]
        counted = [*(numbers[place] for place in places), *self.inputs[-2:]]
        return weights, function([*weights_of], counted, ARRAY, counted), places

    def at(self, point: Sequence[Values], many: int) -> Evaluate:
        """Bind the formula to the numbers of problems, as a function of selected problems and two tiles."""
        weigh, count_all, places = self._compiled
        base, *weights = (w if isinstance(w, np.ndarray) and w.ndim else int(w) for w in weigh(*point))
        lengths = [point[place] for place in places]

        def evaluate(who: Any, u: Values, v: Values) -> Any:
            counts = count_all(*(take(column, who) for column in lengths), u, v)
            total = take(base, who)
            for weight, count in zip(weights, counts, strict=True):
                total = total + take(weight, who) * count
            size = many if who is None else len(who)
            return total if np.shape(total) == (size,) else np.full(size, total, dtype=np.int64)

        return evaluate


@dataclass(frozen=True)
class FootprintFormula:
    """The footprint, with the intercept and the slope in each tile that it is linear in."""

    value: Weighted
    outer: tuple[Weighted, Weighted] | None
    inner: tuple[Weighted, Weighted] | None


def _line(expr: Expr, tile: Symbol, inputs: Sequence[Symbol]) -> tuple[Weighted, Weighted] | None:
    if any(tile in node.free_symbols for node in expr.atoms(Function)) or not expr.is_polynomial(tile):
        return None
    slope = expr.diff(tile)
    if tile in slope.free_symbols or slope == 0:
        return None
    return Weighted(expr.subs(tile, 0), inputs), Weighted(slope, inputs)


@dataclass(frozen=True)
class PartArrays:
    """The formulas of :class:`iomodel.solving.parts.PartFormulas` over arrays of problems."""

    formulas: PartFormulas
    traffic: Weighted
    footprint: FootprintFormula
    base: Weighted
    strict: Weighted
    moved: Compiled
    occupied: Compiled


@dataclass(frozen=True)
class ManyParts:
    """The parts of an algorithm over arrays, with the traffic and footprint of its kernels without tiles."""

    parts: Parts
    arrays: tuple[PartArrays, ...]
    rest_traffic: Weighted
    rest_footprint: Weighted
    rest_sizes: Compiled


def fits(formulas: Compiled, bounds: Sequence[Size]) -> Any:
    """Check that all values fit int64 for bounds on every input, numbers or arrays over problems."""
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite bound does not fit either
        sizes = [as_size(size).fitting() for size in formulas.sizes(*bounds)]
    return reduce(operator.and_, [size.fits for size in sizes])


def _part(part: PartFormulas) -> PartArrays:
    def expr(formula: Formulas) -> Expr:
        return formula.compiled.formulas[0]

    inputs = part.traffic.compiled.inputs
    occupied, outer, inner = expr(part.footprint), *inputs[-2:]
    every = [expr(formula) for formula in (part.traffic, part.footprint, part.base, part.strict)]
    lines = _line(occupied, outer, inputs), _line(occupied, inner, inputs)
    traffic, _, base, strict = (Weighted(weighed, inputs) for weighed in every)
    strict = traffic if part.provable else strict
    footprint = FootprintFormula(Weighted(occupied, inputs), *lines)
    moved = Compiled([every[0], *every[2:]], inputs)
    return PartArrays(part, traffic, footprint, base, strict, moved, Compiled([occupied], inputs))


@lru_cache(maxsize=256)
def many_parts(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], numbers: tuple[str, ...], unit: str
) -> ManyParts | None:
    """Compile the parts of an algorithm over arrays; None if each call needs a search of its own."""
    compiled = parts_for(algorithm, kind, options, numbers, unit)
    if any(part.irregular for part in compiled.formulas):  # no bound holds: every tile is looked at
        return None
    if any(formula.nodes for part in compiled.formulas for formula in (part.traffic, part.footprint, part.strict)):
        return None
    if algorithm.approximates:
        return None
    if any(part.masked and not part.provable and not part.prefers_inner for part in compiled.formulas):
        return None  # beside the largest outer tile, the first inner tile need not be the cheapest
    chosen = dict(options)
    view = View(kind.mask, chosen["packed"])
    _, fixed = parts(declared(algorithm, kind, chosen), kind.mask)
    beside = compile_formulas([hbm_bytes(fixed, view)], numbers, ())
    if beside.nodes or compiled.rest.nodes:
        return None
    inputs = (*beside.compiled.inputs, Symbol("no_outer"), Symbol("no_inner"))
    moves_beside, occupied_beside = (formula.compiled.formulas[0] for formula in (beside, compiled.rest))
    return ManyParts(
        compiled,
        tuple(map(_part, compiled.formulas)),
        Weighted(moves_beside, inputs),
        Weighted(occupied_beside, inputs),
        Compiled([moves_beside, occupied_beside], inputs),
    )
