"""Why a tile is the best: what binds, the next step that does not fit, the runner-up, the lower bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iomodel.bounds import Bound
from iomodel.problem import Range

Tiles = Mapping[str, int]
Binding = Literal[
    "sram", "extent", "traffic", "time", "shared memory", "registers", "threads", "MMA shape", "blocks per SM"
]


@dataclass(frozen=True)
class Step:
    """The least larger size of one tile, the others as they are, that does not fit, and which resource it exceeds.

    The unit is that of the budget where none is named.
    """

    tile: str
    size: int
    footprint: int
    excess: int
    resource: str = "SRAM"
    unit: str = ""


@dataclass(frozen=True)
class RunnerUp:
    """The cheapest tiles among all that move more bytes than the least [B], or the fastest that are slower [s]."""

    tiles: Tiles
    hbm_bytes: int
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data; seconds only where time was the objective."""
        timed = {} if self.seconds is None else {"seconds": self.seconds}
        return {"tiles": dict(self.tiles), "hbm_bytes": self.hbm_bytes, **timed}


@dataclass(frozen=True)
class Certificate:
    """The grounds on which a solution stands.

    Attributes
    ----------
    binding : {"sram", "extent", "traffic", "time", "shared memory", "registers", "threads", "MMA shape", ...}
        What keeps the tiles from growing: the memory; that one tile covers its axis, or leaves just as many as there
        are splits; or that the next size up would fit but saves no traffic, or no time. With a residency, which
        resource of the device, or "blocks per SM"; "MMA shape" where a tile that would fit is no multiple of what the
        warps multiply together.
    next_step : Step
        The smallest step that does not fit, and by how much.
    runner_up : RunnerUp or None
        The next cost up; None if every tile that fits costs the same.
    least_hbm_bytes : int
        The least traffic of all tiles that fit [B]; the solution's own, unless epsilon traded some away.
    lower_bound : Bound
        The largest proved lower bound that holds for the algorithm.
    ratio : float
        Traffic over the lower bound [-].
    examined : int
        Tiles whose traffic was computed; all others are excluded by a bound.
    """

    binding: Binding
    next_step: Step
    runner_up: RunnerUp | None
    least_hbm_bytes: int
    lower_bound: Bound
    ratio: float
    examined: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        runner_up = self.runner_up
        return {
            "binding": self.binding,
            "next_step": dict(self.next_step.__dict__),
            "runner_up": runner_up and runner_up.to_dict(),
            "least_hbm_bytes": self.least_hbm_bytes,
            "lower_bound": self.lower_bound.to_dict(),
            "ratio": self.ratio,
            "examined": self.examined,
        }


def steps(tiles: Tiles, ranges: Mapping[str, Range], footprint: Callable[[Tiles], int], budget: int) -> Sequence[Step]:
    """For each tile the smallest larger size that does not fit, least excess first."""
    found = []
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
        found.append(Step(name, size + high * step, occupied(high), occupied(high) - budget))
    return sorted(found, key=lambda step: step.excess)


def binding(tiles: Tiles, ranges: Mapping[str, Range], found: Sequence[Step]) -> Binding:
    """What keeps the tiles from growing, given the steps that do not fit."""
    growable = {name for name, size in tiles.items() if size < ranges[name].last}
    if not growable:
        return "extent"
    stopped = {step.tile for step in found if step.size == tiles[step.tile] + ranges[step.tile].step}
    return "sram" if growable & stopped else "traffic"
