"""The formulas of a part of an algorithm over arrays of problems, in int64.

A formula is split into a sum of weights times counts: what no tile changes is worked out once a problem, and what is
left, a few counts of tiles and rows, once for every pair of a problem and a tile.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
from sympy import Add, Expr, Function, Integer, Mul, Symbol

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.arithmetic import ARRAY, Size, as_size
from iomodel.compiled import Compiled
from iomodel.counts import READS, WRITES, in_bytes, moves
from iomodel.coverage import View
from iomodel.expressions import Kind, declared
from iomodel.generated import function
from iomodel.question import PartFormulas, Parts, parts_for
from iomodel.structure import parts
from iomodel.tally import Formulas, compile_formulas

Values = Any
"""An int64 array with one element a problem, or an int that holds for all."""
Evaluate = Callable[[Any, Values, Values], Any]
"""A formula at outer and inner tiles of some problems; None is all of them."""


def take(values: Values, who: Any) -> Values:
    """The values of some problems; of all where `who` is None."""
    return values if who is None or isinstance(values, int) else values[who]


def _weighed(expr: Expr, tiles: set[Symbol], lengths: set[Symbol]) -> dict[Expr, Expr]:
    """The weight of every count in a sum of products; that of 1 is what no tile changes."""
    if not expr.free_symbols & tiles:
        return {Integer(1): expr}
    if not isinstance(expr, Add | Mul) or expr.free_symbols <= lengths:
        return {expr: Integer(1)}
    each = [_weighed(arg, tiles, lengths) for arg in expr.args]
    found: dict[Expr, Expr] = {}
    if isinstance(expr, Add):
        terms = [term for part in each for term in part.items()]
    else:
        terms = [(Integer(1), Integer(1))]
        for part in each:
            terms = [(count * more, weight * by) for count, weight in terms for more, by in part.items()]
    for count, weight in terms:
        found[count] = found.get(count, Integer(0)) + weight
    return found


class Weighted:
    """A formula over (workload, numbers, outer, inner) as a sum of weights times counts, compiled when it is used."""

    def __init__(self, expr: Expr, inputs: Sequence[Symbol]) -> None:
        self.expr, self.inputs = expr, tuple(inputs)

    @cached_property
    def _compiled(self) -> tuple[Callable[..., Any], Callable[..., Any], list[int]]:
        """What gives the weights, the first that of 1; what gives the counts; which numbers the counts take."""
        numbers, tiles = self.inputs[:-2], set(self.inputs[-2:])
        inside = [node.free_symbols for node in self.expr.atoms(Function) if node.free_symbols & tiles]
        lengths = tiles.union(*inside)
        found = _weighed(self.expr, tiles, lengths)
        weights = function([found.pop(Integer(1), Integer(0)), *found.values()], numbers, ARRAY)
        places = [place for place, symbol in enumerate(numbers) if symbol in lengths]
        counted = [*(numbers[place] for place in places), *self.inputs[-2:]]
        return weights, function([*found], counted, ARRAY, counted), places

    def at(self, point: Sequence[Values], many: int) -> Evaluate:
        """The formula of so many problems, as a function of them and two tiles."""
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
class Occupied:
    """The footprint, and its value at no rows and slope in each tile where it is a straight line in that tile."""

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
    """What :class:`iomodel.question.PartFormulas` holds, over arrays of problems."""

    formulas: PartFormulas
    traffic: Weighted
    footprint: Occupied
    base: Weighted
    strict: Weighted
    moved: Compiled
    occupied: Compiled


@dataclass(frozen=True)
class ManyParts:
    """The parts of an algorithm, what is moved and occupied beside them; whether arrays will do at all."""

    parts: Parts
    arrays: tuple[PartArrays, ...]
    rest_traffic: Weighted
    rest_footprint: Weighted
    rest_sizes: Compiled


def fits(formulas: Compiled, bounds: Sequence[Size]) -> Any:
    """Whether all values fit int64, given the bounds of every input: numbers, or arrays for each problem."""
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite bound does not fit either
        sizes = [as_size(size).fitting() for size in formulas.sizes(*bounds)]
    return reduce(operator.and_, [size.fits for size in sizes])


def _part(found: PartFormulas) -> PartArrays:
    def expr(formula: Formulas) -> Expr:
        return formula.compiled.formulas[0]

    inputs = found.traffic.compiled.inputs
    occupied, outer, inner = expr(found.footprint), *inputs[-2:]
    every = [expr(formula) for formula in (found.traffic, found.footprint, found.base, found.strict)]
    lines = _line(occupied, outer, inputs), _line(occupied, inner, inputs)
    traffic, _, base, strict = (Weighted(each, inputs) for each in every)
    strict = traffic if found.part.provable else strict
    footprint = Occupied(Weighted(occupied, inputs), *lines)
    moved = Compiled([every[0], *every[2:]], inputs)
    return PartArrays(found, traffic, footprint, base, strict, moved, Compiled([occupied], inputs))


@lru_cache(maxsize=256)
def many_parts(
    name: str, kind: Kind, options: tuple[tuple[str, Any], ...], numbers: tuple[str, ...], unit: str
) -> ManyParts | None:
    """The parts of an algorithm over arrays, compiled once; None where they are searched one call at a time."""
    found = parts_for(name, kind, options, numbers, unit)
    if any(formula.nodes for part in found.formulas for formula in (part.traffic, part.footprint, part.strict)):
        return None
    shapes = [one.part for one in found.formulas]
    if find_algorithm(name).approximates:
        return None
    if any(part.masked and not part.provable and not part.prefers_inner for part in shapes):
        return None  # of the inner tiles beside the largest outer one the first need not be the cheapest
    chosen = dict(options)
    view = View(kind.mask, chosen["packed"])
    _, fixed = parts(declared(find_algorithm(name), kind, chosen), kind.mask)
    moved = [moves(fixed, view, side) for side in (READS, WRITES)]
    traffic = Add(*(in_bytes(tensor.dtype) * count for side in moved for tensor, count in side.items()))
    beside = compile_formulas([traffic], numbers, ())
    if beside.nodes or found.rest.nodes:
        return None
    inputs = (*beside.compiled.inputs, Symbol("no_outer"), Symbol("no_inner"))
    moves_beside, occupied_beside = (formula.compiled.formulas[0] for formula in (beside, found.rest))
    return ManyParts(
        found,
        tuple(map(_part, found.formulas)),
        Weighted(moves_beside, inputs),
        Weighted(occupied_beside, inputs),
        Compiled([moves_beside, occupied_beside], inputs),
    )
