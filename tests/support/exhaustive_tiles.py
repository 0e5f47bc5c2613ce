"""Exhaustive search over every tile: what the solver must equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import floor
from typing import Any

from sympy import Add, Expr

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting import folds as counts
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.compile import compile_formulas
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import kind_of
from iomodel.counting.options import check_options, structural
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.language import Kernel, Loop, walk
from iomodel.nests.symbols import BY_NAME
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention
from tests.support.strategies import EXACT
from tests.support.tile_names import tile_names

Call = Attention | VarlenAttention
Pair = tuple[str, str]
WAYS = [(name, way) for name in EXACT if name != "eager" for way in algorithm(name).directions]  # it has no tiles
"""Every algorithm in every direction that it answers."""

KEYS = ("block_kv", "dq_block_kv", "bwd_block_kv")
EXTENTS = {
    **dict.fromkeys((*KEYS, "gemm1_n", "gemm3_m", "gemm4_n", "gemm6_m"), "kv_len"),
    **dict.fromkeys(("gemm2_n", "gemm3_n"), "value_dim"),
    **dict.fromkeys(("gemm5_n", "gemm6_n"), "head_dim"),
}
"""What a tile cuts; the others cut queries."""


def tiles_of(name: str, direction: str = "forward") -> tuple[str, ...]:
    """The tiles that an algorithm takes where it takes any, in the order of the alphabet."""
    tiled_by = algorithm(name).tiled_by
    return tile_names(name, direction=direction, **({tiled_by: True} if tiled_by else {}))


@dataclass(frozen=True)
class At:
    """A pair of sizes with the others at their smallest: the traffic [B], and what it occupies."""

    first: int
    second: int
    bytes: int
    footprint: int


@dataclass(frozen=True)
class Question:
    """What `iomodel.solve` takes."""

    algorithm: str
    workload: Call
    unit: str
    budget: int
    alignment: int
    min_block_kv: int | None
    epsilon: float
    options: Mapping[str, Any]

    def solve(self, **changes: Any) -> iomodel.Solution:
        given: dict[str, Any] = {
            f"sram_{self.unit}": self.budget,
            "alignment": self.alignment,
            "min_block_kv": self.min_block_kv,
            "epsilon": self.epsilon,
            **self.options,
            **changes,
        }
        return iomodel.solve(self.algorithm, self.workload, **given)

    def cost(self, tiles: Mapping[str, int]) -> iomodel.Cost:
        return iomodel.cost(self.algorithm, self.workload, tiles, **self.options)

    def cost_at(self, tiles: Mapping[str, int]) -> iomodel.Cost:
        """The cost at any tiles, even so large that there are fewer of them than splits."""
        return BoundCall.bind(self.algorithm, self.workload, self.options).at(tiles)

    def footprint(self, cost: iomodel.Cost) -> int:
        return cost.footprint_bytes if self.unit == "bytes" else cost.footprint_elements

    @property
    def pairs(self) -> tuple[Pair, ...]:
        names = tiles_of(self.algorithm, self.workload.direction)
        return tuple(zip(names[::2], names[1::2], strict=True))

    def longest(self, extent: str) -> int:
        lengths = {"q_len": "q_lens", "kv_len": "kv_lens"}
        if isinstance(self.workload, VarlenAttention) and extent in lengths:
            return max(getattr(self.workload, lengths[extent]))
        return int(getattr(self.workload, extent))

    def rows(self, tile: str) -> int:
        if tile in EXTENTS:
            return self.longest(EXTENTS[tile])
        second = self.workload.direction == "both" and tile not in tiles_of(self.algorithm)
        packed = self.options.get("packed") and not second  # a backward pass behind a forward pass packs no rows
        return self.longest("q_len") * (self.workload.group if packed else 1)

    def sizes(self, tile: str) -> list[int]:
        step, rows = self.alignment, self.rows(tile)
        least = min(rows, self.min_block_kv or 1) if tile in KEYS else 1
        first, last = (-(-size // step) * step for size in (least, rows))
        splits = self.options.get("splits", 1) if tile in KEYS else 1
        return [size for size in range(first, last + 1, step) if -(-rows // size) >= splits]

    @cached_property
    def smallest(self) -> dict[str, int]:
        return {name: self.sizes(name)[0] for pair in self.pairs for name in pair}

    def table(self, pair: Pair) -> list[At]:
        """Every size of a pair of tiles, fitting or not, the tiles of other kernels at their smallest."""
        first, second = pair
        found = []
        for u in self.sizes(first):
            for v in self.sizes(second):
                cost = self.cost({**self.smallest, first: u, second: v})
                found.append(At(u, v, cost.hbm_bytes, self.footprint(cost)))
        return found

    @cached_property
    def tables(self) -> dict[Pair, list[At]]:
        """Tiles of different kernels do not meet: traffic adds up, the largest footprint counts (a test says so)."""
        return {pair: self.table(pair) for pair in self.pairs}

    def total(self, bytes_at: Mapping[Pair, int]) -> int:
        """The traffic of all pairs together [B], given that of each with the others at their smallest."""
        least = self.cost(self.smallest).hbm_bytes
        return least + sum(moved - least for moved in bytes_at.values())

    def own_bytes(self, pair: Pair, sizes: Mapping[str, int]) -> int:
        """What the kernels that a pair of tiles governs move [B]."""
        kind, found = kind_of(self.workload), algorithm(self.algorithm)
        options = check_options(found, self.options, tiled=True, direction=kind.direction)
        numbers = {name: value for name, value in options.items() if name in NUMBERS}
        formula = _governed(self.algorithm, kind, structural(options), pair, tuple(numbers))
        calls = [self.workload] if isinstance(self.workload, Attention) else self.workload.sequences
        return sum(formula.scalars(call, [*numbers.values()], [sizes[name] for name in pair])[0] for call in calls)


@cache
def _governed(name: str, kind: Any, options: Any, pair: Pair, numbers: tuple[str, ...]) -> Formulas:
    chosen = dict(options)
    symbols, view = {BY_NAME[tile] for tile in pair}, View(kind.mask, chosen["packed"])

    def moved(nest: tuple[Kernel, ...]) -> Expr:
        sides = [counts.moves(nest, view, side) for side in (counts.READS, counts.WRITES)]
        return Add(*(counts.in_bytes(tensor.dtype) * count for side in sides for tensor, count in side.items()))

    kernels = tuple(
        kernel
        for kernel in declared(algorithm(name), kind, chosen)
        if any(isinstance(block, Loop) and block.tile in symbols for _, path in walk((kernel,)) for block in path)
        or moved((kernel,)).free_symbols & symbols  # the number of splits with keys depends on a tile of another kernel
    )
    traffic = moved(kernels)
    return compile_formulas([traffic], numbers, pair)


@dataclass(frozen=True)
class Answer:
    """The tiles by the documented order, the least traffic and the next, [B]; None where nothing fits."""

    tiles: dict[str, int] | None
    least: int | None
    runner_up: int | None
    least_budget: int


def exhaustive(question: Question) -> Answer:
    """Look at every tile."""
    least_budget = max(min(at.footprint for at in table) for table in question.tables.values())
    if least_budget > question.budget:
        return Answer(None, None, None, least_budget)
    chosen: dict[str, int] = {}
    least: dict[Pair, int] = {}
    more = []
    for pair, table in question.tables.items():
        fitting = [at for at in table if at.footprint <= question.budget]
        moved = sorted({at.bytes for at in fitting})
        least[pair] = moved[0]
        more += [moved[1] - moved[0]] if len(moved) > 1 else []
        cheapest = next(at for at in fitting if at.bytes == moved[0])
        own = question.own_bytes(pair, dict(zip(pair, (cheapest.first, cheapest.second), strict=True)))
        limit = moved[0] - own + floor(own * (1 + Fraction(str(question.epsilon))))
        best = min(
            (at for at in fitting if at.bytes <= limit),
            key=lambda at: (-at.second, at.bytes, at.footprint, at.first),
        )
        chosen |= dict(zip(pair, (best.first, best.second), strict=True))
    total = question.total(least)
    return Answer(chosen, total, total + min(more) if more else None, least_budget)
