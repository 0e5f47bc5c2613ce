"""Certificates of solutions: limiting resource, next infeasible step, runner-up, lower bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from iomodel.common.results import Record
from iomodel.counting.bounds import Bound
from iomodel.solving.problem import TileRange

Tiles = Mapping[str, int]
Binding = Literal[
    "sram",
    "extent",
    "traffic",
    "time",
    "shared memory",
    "registers",
    "threads",
    "tensor memory",
    "accumulators",
    "MMA shape",
    "blocks per SM",
]


TIE = 0.005
"""Share of a time within which two choices are equally fast [-]; the error of the time model is larger."""


@dataclass(frozen=True)
class NextStep(Record):
    """The smallest infeasible size of one tile at unchanged other tiles, with the resource that it exceeds.

    An empty unit stands for the unit of the budget.
    """

    tile: str
    size: int
    footprint: int
    excess: int
    resource: str = "SRAM"
    unit: str = ""


@dataclass(frozen=True)
class RunnerUp(Record):
    """The cheapest tiles above the least traffic [B], or the fastest tiles above the least time [s]."""

    unless_none = ("seconds",)

    tiles: Tiles
    hbm_bytes: int
    seconds: float | None = None


@dataclass(frozen=True)
class Certificate(Record):
    """The evidence that a solution is optimal.

    Attributes
    ----------
    binding : {"sram", "extent", "traffic", "time", "shared memory", "registers", "threads", "MMA shape", ...}
        The limit on the growth of the tiles: the memory; an axis covered by one tile, or by as many tiles as splits; or
        no saving of traffic, or of time, at the next larger size, which would fit. With an implementation, the resource
        of the device, or "blocks per SM"; "MMA shape" if a larger tile would fit but is no multiple of the instruction
        shape of the warps.
    next_step : NextStep
        The smallest step that does not fit, with the excess.
    runner_up : RunnerUp or None
        The tiles with the next higher cost; None if all tiles that fit have the same cost.
    least_hbm_bytes : int
        The least traffic of all tiles that fit [B]; equal to the traffic of the solution unless epsilon is above 0.
    lower_bound : Bound
        The largest proved lower bound on the traffic of the algorithm.
    ratio : float
        Traffic over the lower bound [-].
    examined : int
        Number of tiles whose traffic was computed; all others are excluded by a bound.
    any_schedule : Bound
        The largest lower bound that holds for every schedule of the same products, whatever moves and when.
    memory : int
        On-chip memory of the bounds, in the unit of the budget: all cells that hold live data. With an
        implementation it is the most that one block holds in shared memory, registers and tensor memory; else the
        budget.
    least_traffic : RunnerUp or None
        With the objective "time": the tiles that request the fewest bytes, and their time; without it on a device that
        no kernel of the algorithm runs on.
    shipped : RunnerUp or None
        With the objective "time": the tile that the implementation ships for the call, with the splits of its
        library's rule and the fastest of other options, and its time by the model.
    ties : int or None
        With the objective "time": the number of choices within 0.5 % of the least time, the solution among them, which
        the time model does not tell apart.
    """

    unless_none = ("least_traffic", "shipped", "ties")

    binding: Binding
    next_step: NextStep
    runner_up: RunnerUp | None
    least_hbm_bytes: int
    lower_bound: Bound
    ratio: float
    examined: int
    any_schedule: Bound
    memory: int
    least_traffic: RunnerUp | None = None
    shipped: RunnerUp | None = None
    ties: int | None = None


def steps(
    tiles: Tiles, ranges: Mapping[str, TileRange], footprint: Callable[[Tiles], int], budget: int
) -> Sequence[NextStep]:
    """Find the smallest infeasible size of each tile, ordered by excess."""
    exceeding = []
    for name, size in tiles.items():
        step = ranges[name].step

        def occupied(count: int, name: str = name, size: int = size, step: int = step) -> int:
            return footprint({**tiles, name: size + count * step})

        high = 1
        while occupied(high) <= budget:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if occupied(middle) <= budget else (low, middle)
        exceeding.append(NextStep(name, size + high * step, occupied(high), occupied(high) - budget))
    return sorted(exceeding, key=lambda step: step.excess)


def binding(tiles: Tiles, ranges: Mapping[str, TileRange], exceeding: Sequence[NextStep]) -> Binding:
    """Name the limit on the growth of the tiles from the steps that do not fit."""
    growable = {name for name, size in tiles.items() if size < ranges[name].last}
    if not growable:
        return "extent"
    stopped = {step.tile for step in exceeding if step.size == tiles[step.tile] + ranges[step.tile].step}
    return "sram" if growable & stopped else "traffic"
