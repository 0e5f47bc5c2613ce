"""Tiles of least time on a GPU, by timing every tile that fits at every launch configuration.

The time is no monotone function of the tile size (waves, trips and padding jump), so the search is exhaustive; a few
hundred tiles fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.nests.execution import Execution
from iomodel.nests.residency import Residency
from iomodel.placement.check import as_residency
from iomodel.solving.certificate import RunnerUp
from iomodel.solving.on_device import LaunchProblem, LaunchProblems, binding_of, ways_for
from iomodel.solving.problem import Tile
from iomodel.solving.solution import Solution
from iomodel.timing.clock import Clock, clock_for
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention, as_call


def solve_fastest(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    residency: str | Residency,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    options: Mapping[str, Any],
    parameters: Parameters = DEFAULT,
    execution: Execution | None = None,
) -> Solution:
    """Solve for the least time, as :func:`iomodel.solve` with ``objective="time"``."""
    call = as_call(workload)
    as_residency(residency)
    variants = ways_for(algorithm, call, hardware, residency, min_block_kv, min_blocks_per_sm, options)
    results = variants.found()
    known = rates(variants.device, call.dtype)
    clock = clock_for(algorithm, call, variants.device, variants.ask.options, parameters, known, execution)
    ranked = sorted(_timed(variants, clock), key=lambda entry: entry[0])
    (seconds, *_), variant, tile = ranked[0]
    slower = next((entry for entry in _distinct(ranked) if entry[0][0] > seconds), None)
    runner_up = None
    if slower is not None:
        rank, other, size = slower
        launch = {"warps": other.launch.warps, "stages": other.launch.stages}
        sizes = other.sizes(size)
        runner_up = RunnerUp(FrozenDict({**sizes, **launch}), variants.cost(sizes).hbm_bytes, rank[0])
    return variants.solution(results, variant, tile, 0.0, runner_up, binding_of(variant, tile, "time"), seconds)


Rank = tuple[float, int, int, int, int]


def _distinct(ranked: Iterable[tuple[Rank, LaunchProblem, Tile]]) -> Iterator[tuple[Rank, LaunchProblem, Tile]]:
    """Yield the best launch of each setting of tiles, warps and stages."""
    known = set()
    for rank, variant, tile in ranked:
        setting = (*variant.sizes(tile).values(), variant.launch.warps, variant.launch.stages)
        if setting not in known:
            known.add(setting)
            yield rank, variant, tile


def _timed(variants: LaunchProblems, clock: Clock) -> Iterator[tuple[Rank, LaunchProblem, Tile]]:
    """Yield every tile that fits with its rank: time, traffic and tie-breakers."""
    for variant in variants.ways:
        problem = variant.problem
        for u in range(problem.outer.first, problem.outer.last + 1, problem.outer.step):
            if problem.footprint(u, problem.inner.first) > problem.budget:
                break
            for v in range(problem.inner.first, problem.inner.last + 1, problem.inner.step):
                if problem.footprint(u, v) > problem.budget:
                    break
                sizes = variant.sizes((u, v))
                query, key = sizes.values()
                occupied = variant.placement.occupied(query, key, variant.launch)
                timed = clock.timed(
                    {name: sizes[name] for name in variants.ask.compiled.tiles},
                    variant.placement,
                    variant.launch,
                    occupied.blocks_per_sm,
                    quick=True,
                )
                rank = (timed.seconds, problem.bytes_at(u, v), -key, occupied.shared, variant.launch.warps)
                yield rank, variant, (u, v)
