"""What a solver asks: the parts of an algorithm compiled, and the workload and ranges they are searched over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Expr, Integer

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counts import elements, in_bytes
from iomodel.coverage import View
from iomodel.errors import InputError
from iomodel.expressions import Kind, declared
from iomodel.nest import Axis, Nest
from iomodel.problem import Problem, Range, Tile
from iomodel.structure import Part, parts
from iomodel.symbols import B_1, BY_NAME, FOLLOWS, NAME_OF
from iomodel.tally import Formulas, compile_formulas, total
from iomodel.workload import Attention, VarlenAttention


@dataclass(frozen=True)
class PartFormulas:
    """A part with its traffic [B] and footprint compiled over (workload, numbers, outer, inner)."""

    part: Part
    traffic: Formulas
    footprint: Formulas
    base: Formulas
    strict: Formulas

    @property
    def names(self) -> tuple[str, str]:
        """The outer and the inner tile."""
        return NAME_OF[self.part.outer], NAME_OF[self.part.inner]

    def problem(
        self,
        ask: Asked,
        ranges: Mapping[str, Range],
        budget: int,
        footprint: Callable[[int, int], int] | None = None,
        known: dict[Tile, int] | None = None,
    ) -> Problem:
        """The question that the search answers for this part, under its own footprint or another."""
        outer, inner = (ranges[name] for name in self.names)
        base, strict, least_stream = None, None, 0
        if self.part.masked:
            fixed, bounded = ask.total(self.base), ask.total(self.strict)
            base, least_stream = fixed(1, 1), bounded(outer.rows, 1) - fixed(outer.rows, 1)
            strict = None if self.part.provable else bounded
        return Problem(
            outer,
            inner,
            cost=ask.total(self.traffic),
            footprint=footprint or ask.at_longest(self.footprint),
            budget=budget,
            prefer_inner=self.part.prefers_inner,
            irregular=self.part.irregular,
            base=base,
            strict=strict,
            least_stream=least_stream,
            costs=ask.totals(self.traffic),
            known={} if known is None else known,
        )


@dataclass(frozen=True)
class Asked:
    """A workload and the options that are numbers: what formulas are evaluated at beside tiles."""

    workload: Attention | VarlenAttention
    numbers: tuple[int, ...]
    names: tuple[str, ...] = ()

    @cached_property
    def longest(self) -> Attention:
        """A call of one sequence whose footprint no other sequence exceeds."""
        if isinstance(self.workload, Attention):
            return self.workload
        return self.workload.sequences[0].model_copy(
            update={"q_len": max(self.workload.q_lens), "kv_len": max(self.workload.kv_lens)}
        )

    def lengths(self, axis: Axis, each: int) -> list[int]:
        """The lengths that a tile along an axis cuts, in rows of `each` a position, longest first [rows]."""
        w, extent = self.workload, NAME_OF.get(axis.length, "")
        many = {} if isinstance(w, Attention) else {"q_len": w.q_lens, "kv_len": w.kv_lens}
        point = {**self.longest.numbers, **dict(zip(self.names, self.numbers, strict=bool(self.names)))}
        longest = self.longest.numbers.get(extent) or max(
            1, int(axis.length.xreplace({BY_NAME[name]: Integer(value) for name, value in point.items()}))
        )
        return sorted({length * each for length in many.get(extent, [longest])}, reverse=True)

    def total(self, formula: Formulas) -> Callable[[int, int], int]:
        """The value of a formula at two tiles, summed over the sequences."""
        workload = self.workload
        if isinstance(workload, Attention):
            return self._at(formula, workload)
        if formula.nodes:
            each = [self._at(formula, sequence) for sequence in workload.sequences]
            return lambda u, v: sum(one(u, v) for one in each)
        q_lens, kv_lens, times = workload.counted
        point = tuple(workload.at(times, q_lens, kv_lens).values())
        return lambda u, v: total(formula.arrays(point, self.numbers, (u, v))[0])

    def at_longest(self, formula: Formulas) -> Callable[[int, int], int]:
        """The value of a formula at two tiles, at the longest lengths."""
        return self._at(formula, self.longest)

    def _at(self, formula: Formulas, workload: Attention) -> Callable[[int, int], int]:
        if formula.nodes:
            return lambda u, v: formula.scalars(workload, self.numbers, (u, v))[0]
        scalars, point = formula.compiled.scalars, (*workload.point, *self.numbers)
        return lambda u, v: scalars(*point, u, v)[0]

    def totals(self, formula: Formulas) -> Callable[[Any, Any], Any] | None:
        """The value at many tiles at once, where that is possible."""
        if formula.nodes or not isinstance(self.workload, Attention):
            return None
        point = self.workload.point
        return lambda us, v: formula.arrays(point, self.numbers, (us, v))[0]


@dataclass(frozen=True)
class Parts:
    """The parts of an algorithm, and the footprint of the kernels that have no tile."""

    formulas: tuple[PartFormulas, ...]
    rest: Formulas


@lru_cache(maxsize=256)
def parts_for(
    name: str, kind: Kind, options: tuple[tuple[str, Any], ...], numbers: tuple[str, ...], unit: str
) -> Parts:
    """The parts of an algorithm, compiled once."""
    chosen = dict(options)
    view, weight = View(kind.mask, chosen["packed"]), (in_bytes if unit == "B" else elements)
    found, fixed = parts(declared(find_algorithm(name), kind, chosen), kind.mask)

    def traffic(nest: Nest) -> Expr:
        sides = (counts.moves(nest, view, counts.READS), counts.moves(nest, view, counts.WRITES))
        return Add(*(in_bytes(tensor.dtype) * moved for side in sides for tensor, moved in side.items()))

    def made(part: Part) -> PartFormulas:
        tiles = (NAME_OF[part.outer], NAME_OF[part.inner])
        occupied = counts.footprint(part.nest, view, weight)
        nests = (part.nest, part.only("fixed", "area"), part.only("fixed", "once a tile", "streamed", "area"))
        every, base, strict = (compile_formulas([traffic(nest)], numbers, tiles) for nest in nests)
        return PartFormulas(part, every, compile_formulas([occupied], numbers, tiles), base, strict)

    rest = counts.footprint(fixed, view, weight) if fixed else Integer(0)
    return Parts(tuple(made(part) for part in found), compile_formulas([rest], numbers, ()))


def ranges_for(
    found: Parts, view: View, ask: Asked, steps: int | Mapping[str, int], least_kv: int, most_kv: int | None
) -> dict[str, Range]:
    """The sizes that each tile may have: multiples of a step, of one for all or of one for each."""
    ranges = {}
    longest = ask.longest
    for formula in found.formulas:
        for symbol, axis in formula.part.axes.items():
            packed = view.rows(axis) != axis.length
            rows, *shorter = ask.lengths(axis, longest.group if packed else 1)
            name = NAME_OF[symbol]
            if symbol == B_1:
                ranges[name] = Range(1)
                continue
            keys = name == "block_kv" or FOLLOWS.get(name) == "block_kv"
            step = steps if isinstance(steps, int) else steps[name]
            most = most_kv if name == "block_kv" else None
            ranges[name] = Range(rows, step, least_kv if keys else 1, most, tuple(shorter))
            if ranges[name].first > ranges[name].last:
                raise InputError(
                    f"min_block_kv: {least_kv} given; allowed: up to {ranges[name].last}, for as many tiles as splits"
                )
    return ranges


def most_kv(ask: Asked, options: Mapping[str, Any], alignment: int) -> int | None:
    """The largest key tile of which there are as many as splits; None if that is no matter."""
    splits, kv_len = int(options.get("splits", 1)), ask.longest.kv_len
    if splits == 1:
        return None
    most = (kv_len - 1) // (splits - 1)
    if most < alignment:
        tiles = -(-kv_len // alignment)
        raise InputError(f"splits: {splits} given; allowed: up to {tiles}, the tiles of {alignment} keys in {kv_len}")
    return most
