"""Tiles of least time on a GPU: every tile that fits, in every way to launch it, is timed.

The time of a tile is no monotone function of its size (waves, trips and padding jump), so that nothing is left out;
what fits is a few hundred tiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iomodel.certificate import RunnerUp
from iomodel.check import as_residency
from iomodel.execution import Execution
from iomodel.fitting import Clock, clock_for
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.parameters import DEFAULT, Parameters
from iomodel.problem import Tile
from iomodel.rates import rates
from iomodel.residency import Residency
from iomodel.resident import Way, Ways, binding_of, ways_for
from iomodel.solution import Solution
from iomodel.workload import Attention, VarlenAttention, as_call


def solve_fastest(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    residency: str | Residency,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    options: Mapping[str, Any],
    parameters: Parameters = DEFAULT,
    execution: Execution | None = None,
) -> Solution:
    """:func:`iomodel.solve` with ``objective="time"``."""
    call = as_call(workload)
    as_residency(residency)
    ways = ways_for(algorithm, call, hardware, residency, min_block_kv, min_blocks_per_sm, options)
    found = ways.found()
    known = rates(ways.device, call.dtype)
    clock = clock_for(algorithm, call, ways.device, ways.options, parameters, known, execution)
    ranked = sorted(_timed(ways, clock), key=lambda one: one[0])
    (seconds, *_), way, tile = ranked[0]
    slower = next((one for one in _distinct(ranked) if one[0][0] > seconds), None)
    runner_up = None
    if slower is not None:
        rank, other, size = slower
        launch = {"warps": other.launch.warps, "stages": other.launch.stages}
        sizes = other.sizes(size)
        runner_up = RunnerUp(FrozenDict({**sizes, **launch}), ways.cost(sizes).hbm_bytes, rank[0])
    return ways.solution(found, way, tile, 0.0, runner_up, binding_of(way, tile, "time"), seconds)


Rank = tuple[float, int, int, int, int]


def _distinct(ranked: Iterable[tuple[Rank, Way, Tile]]) -> Iterator[tuple[Rank, Way, Tile]]:
    """The best way to run each tile with its warps and stages, which is all that tiles can tell."""
    seen = set()
    for rank, way, tile in ranked:
        told = (*way.sizes(tile).values(), way.launch.warps, way.launch.stages)
        if told not in seen:
            seen.add(told)
            yield rank, way, tile


def _timed(ways: Ways, clock: Clock) -> Iterator[tuple[Rank, Way, Tile]]:
    """Every tile that fits: its time, its traffic, and what breaks a tie."""
    for way in ways.ways:
        problem = way.problem
        for u in range(problem.outer.first, problem.outer.last + 1, problem.outer.step):
            if problem.footprint(u, problem.inner.first) > problem.budget:
                break
            for v in range(problem.inner.first, problem.inner.last + 1, problem.inner.step):
                if problem.footprint(u, v) > problem.budget:
                    break
                sizes = way.sizes((u, v))
                query, key = sizes.values()
                occupied = way.placement.occupied(query, key, way.launch)
                timed = clock.timed(
                    {name: sizes[name] for name in ways.tally.tiles},
                    way.placement,
                    way.launch,
                    occupied.blocks_per_sm,
                    quick=True,
                )
                rank = (timed.seconds, problem.bytes_at(u, v), -key, occupied.shared, way.launch.warps)
                yield rank, way, (u, v)
