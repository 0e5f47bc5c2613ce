"""Exhaustive search over every tile: what the solver must equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import iomodel
from iomodel.algorithms import algorithm

GEMMS = (("gemm1_m", "gemm1_n"), ("gemm2_m", "gemm2_n"))


def tiles_of(name: str) -> tuple[str, ...]:
    """The tiles that an algorithm takes where it takes any, in the order of the alphabet."""
    tiled_by = algorithm(name).tiled_by
    return iomodel.expressions(name, **({tiled_by: True} if tiled_by else {})).tiles


@dataclass(frozen=True)
class Question:
    """What `iomodel.solve` takes."""

    algorithm: str
    workload: iomodel.Attention
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

    def footprint(self, cost: iomodel.Cost) -> int:
        return cost.footprint_bytes if self.unit == "bytes" else cost.footprint_elements

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        names = tiles_of(self.algorithm)
        return tuple(zip(names[::2], names[1::2], strict=True))

    def rows(self, tile: str) -> int:
        w = self.workload
        queries = w.q_len * (w.group if self.options.get("packed") else 1)
        return {"gemm1_n": w.kv_len, "block_kv": w.kv_len, "gemm2_n": w.value_dim}.get(tile, queries)

    def sizes(self, tile: str) -> range:
        step, rows = self.alignment, self.rows(tile)
        least = min(rows, self.min_block_kv or 1) if tile == "block_kv" else 1
        first, last = (-(-size // step) * step for size in (least, rows))
        return range(first, last + 1, step)

    def everything(self) -> list[tuple[dict[str, int], iomodel.Cost]]:
        """Every tile, fitting or not, with its cost."""
        names = [name for pair in self.pairs for name in pair]
        every = (dict(zip(names, sizes, strict=True)) for sizes in product(*map(self.sizes, names)))
        return [(tiles, self.cost(tiles)) for tiles in every]


@dataclass(frozen=True)
class Answer:
    """The tiles by the documented order, the least traffic and the next, [B]; None where nothing fits."""

    tiles: dict[str, int] | None
    least: int | None
    runner_up: int | None
    least_budget: int


def exhaustive(question: Question) -> Answer:
    every = question.everything()
    least_budget = min(question.footprint(cost) for _, cost in every)
    fitting = [(tiles, cost) for tiles, cost in every if question.footprint(cost) <= question.budget]
    if not fitting:
        return Answer(None, None, None, least_budget)
    traffic = {cost.hbm_bytes for _, cost in fitting}
    least = min(traffic)
    chosen: dict[str, int] = {}
    for pair in question.pairs:
        chosen |= _choose(question, fitting, pair, least)
    return Answer(chosen, least, min(traffic - {least}, default=None), least_budget)


def _choose(
    question: Question, fitting: list[tuple[dict[str, int], iomodel.Cost]], pair: tuple[str, str], least: int
) -> dict[str, int]:
    """One pair of tiles, the others at whatever is least: larger second tile, traffic, footprint, first tile."""
    first, second = pair
    if len(question.pairs) == 1:
        limit = floor(least * (1 + Fraction(str(question.epsilon))))
        rank = min(
            (-tiles[second], cost.hbm_bytes, question.footprint(cost), tiles[first])
            for tiles, cost in fitting
            if cost.hbm_bytes <= limit
        )
        return {first: rank[3], second: -rank[0]}
    best: dict[tuple[int, int], int] = {}
    for tiles, cost in fitting:
        at = tiles[first], tiles[second]
        best[at] = min(best.get(at, cost.hbm_bytes), cost.hbm_bytes)
    share = _part_traffic(question, pair, fitting, least)
    limit = least - share + floor(share * (1 + Fraction(str(question.epsilon))))
    ranked = sorted(
        (-v, traffic, _part_footprint(question, {first: u, second: v}), u)
        for (u, v), traffic in best.items()
        if traffic <= limit
    )
    return {first: ranked[0][3], second: -ranked[0][0]}


def _part_traffic(
    question: Question, pair: tuple[str, str], fitting: list[tuple[dict[str, int], iomodel.Cost]], least: int
) -> int:
    """The part of the least traffic that the tiles of one of the two GEMMs govern."""
    cost = next(cost for _, cost in fitting if cost.hbm_bytes == least)
    size = question.workload.element_size
    counted = {
        GEMMS[0]: cost.reads["Q"] + cost.reads["K"] + cost.writes["S"],
        GEMMS[1]: cost.reads["P"] + cost.reads["V"] + cost.writes["O"],
    }
    return counted[pair] * size


def _part_footprint(question: Question, tiles: dict[str, int]) -> int:
    """Enough to rank: the footprint with the tiles of any other part at their smallest."""
    others = {name: question.sizes(name)[0] for pair in question.pairs for name in pair}
    return question.footprint(question.cost({**others, **tiles}))
