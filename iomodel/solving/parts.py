"""Independently tileable parts of an algorithm, compiled and bound to a workload with the ranges of their tiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iomodel.common.validation import as_integer
from iomodel.counting.bound_call import BoundCall, CutAxis
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.store import obtain, record
from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import FOLLOWS
from iomodel.solving.problem import Problem, Tile, TileRange
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Shape, Workload


@record
@dataclass(frozen=True)
class PartFormulas:
    """A part of an algorithm with its traffic [B] and footprint, compiled over (workload, numbers, outer, inner).

    Attributes
    ----------
    names : tuple of str
        The outer and the inner tile.
    axes : tuple of CutAxis
        The axis that each tile cuts.
    masked, irregular, provable, prefers_inner, serpentine : bool
        Properties of :class:`iomodel.counting.structure.Part`.
    least : tuple of str
        The tiles that stay at their smallest allowed size.
    """

    names: tuple[str, str]
    axes: tuple[CutAxis, ...]
    masked: bool
    irregular: bool
    provable: bool
    prefers_inner: bool
    least: tuple[str, ...]
    traffic: Formulas
    footprint: Formulas
    base: Formulas
    strict: Formulas
    serpentine: bool = False

    def occupied(self, ask: BoundCall, at: Mapping[str, int]) -> int:
        """Evaluate the footprint at the sizes of all tiles, in the unit of the budget."""
        outer, inner = (at[name] for name in self.names)
        return ask.at_longest(self.footprint, *(at[name] for name in self.least))(outer, inner)

    def least_traffic(self, workload: Shape, options: Mapping[str, Any], outer: int, inner: Any) -> int:
        """Bound the traffic of tiles up to a largest one, and at any of some options, from below [B].

        The bounds are those of :mod:`iomodel.solving.search`: separable traffic falls with either tile; under a mask,
        one tile that covers the outer axis streams least. The options and the largest inner tile may be arrays.
        """
        if self.irregular or self.serpentine:
            return 0

        def at(formulas: Formulas, *tile: Any) -> Any:
            return formulas.over(workload, [options[name] for name in formulas.numbers], tile)[0]

        if not self.masked:
            return int(at(self.traffic, outer, inner).min())
        return int((at(self.base, 1, 1) + at(self.strict, outer, 1) - at(self.base, outer, 1)).min())

    def problem(
        self,
        ask: BoundCall,
        ranges: Mapping[str, TileRange],
        budget: int,
        footprint: Callable[[int, int], int] | None = None,
        known: dict[Tile, int] | None = None,
    ) -> Problem:
        """Build the search problem of this part, with its own or another footprint."""
        outer, inner = (ranges[name] for name in self.names)
        base, strict, least_stream = None, None, 0
        if self.masked:
            fixed, bounded = ask.total(self.base), ask.total(self.strict)
            base, least_stream = fixed(1, 1), bounded(outer.rows, 1) - fixed(outer.rows, 1)
            strict = None if self.provable else bounded
        return Problem(
            outer,
            inner,
            cost=ask.total(self.traffic),
            footprint=footprint or ask.at_longest(self.footprint, *(ranges[name].first for name in self.least)),
            budget=budget,
            prefer_inner=self.prefers_inner,
            irregular=self.irregular,
            serpentine=self.serpentine,
            base=base,
            strict=strict,
            least_stream=least_stream,
            costs=ask.totals(self.traffic),
            known={} if known is None else known,
        )


@record
@dataclass(frozen=True)
class Parts:
    """The parts of an algorithm, and the footprint of its kernels without tiles."""

    formulas: tuple[PartFormulas, ...]
    rest: Formulas


@lru_cache(maxsize=256)
def parts_for(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], numbers: tuple[str, ...], unit: str
) -> Parts:
    """Return the parts of an algorithm, compiled."""

    def build() -> Parts:
        from iomodel.solving.compile_parts import compiled_parts

        return compiled_parts(algorithm, kind, options, numbers, unit)

    return obtain(algorithm.shipped, "parts", (kind, options, unit), build)


def ranges_for(
    compiled: Parts, ask: BoundCall, steps: int | Mapping[str, int], least_kv: int, most_kv: int | None
) -> dict[str, TileRange]:
    """Compute the range of each tile: the multiples of a common step, or of a step per tile."""
    ranges = {}
    for formula in compiled.formulas:
        for axis in formula.axes:
            rows, *shorter = ask.lengths(axis)
            name = axis.tile
            if name == "no_tile":
                ranges[name] = TileRange(1)
                continue
            keys = name == "block_kv" or FOLLOWS.get(name) == "block_kv"
            step = steps if isinstance(steps, int) else steps[name]
            most = most_kv if name == "block_kv" else None
            ranges[name] = TileRange(rows, step, least_kv if keys else 1, most, tuple(shorter))
            if ranges[name].first > ranges[name].last:
                raise InputError(
                    f"min_block_kv: {least_kv} given; allowed: up to {ranges[name].last}, for at least one tile per "
                    "split"
                )
    return ranges


def most_kv(workload: Workload, options: Mapping[str, Any], alignment: int) -> int | None:
    """Return the largest key tile that leaves at least one tile per split; None for a single split."""
    splits, longest = int(options.get("splits", 1)), workload.longest
    if splits == 1 or not isinstance(longest, Attention):
        return None
    keys = int(options.get("top_k", longest.kv_len))  # where keys are selected, their places are split
    most = (keys - 1) // (splits - 1)
    if most < alignment:
        tiles = -(-keys // alignment)
        raise InputError(f"splits: {splits} given; allowed: up to {tiles}, the tiles of {alignment} keys in {keys}")
    return most


def check_tiled(algorithm: Algorithm, tiles: Collection[str]) -> None:
    """Raise InputError for an algorithm without tiles."""
    if not tiles:
        raise InputError(f"algorithm: {algorithm} given, which has no tiles; allowed: an algorithm with tiles")


def tileable_parts(
    bound: BoundCall, unit: str, alignment: int, min_block_kv: int | None
) -> tuple[Parts, dict[str, TileRange]]:
    """Return the parts of a bound algorithm that are tiled alone, with the ranges of their tiles."""
    check_tiled(bound.algorithm, bound.compiled.tiles)
    if min_block_kv is not None and "block_kv" not in bound.compiled.tiles:
        raise UnknownNameError(f"tile of {bound.algorithm}", "block_kv", bound.compiled.tiles)
    least_kv = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    compiled = parts_for(bound.algorithm, bound.kind, bound.structure, bound.compiled.numbers, unit)
    most = most_kv(bound.workload, bound.options, alignment)
    return compiled, ranges_for(compiled, bound, alignment, least_kv, most)
