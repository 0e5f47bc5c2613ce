"""Tiles of least time of a linear layer on a device, a common tile of libraries within the error of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError
from iomodel.placement.budget import Budget
from iomodel.placement.check import check_layer
from iomodel.placement.gemm_tiles import GemmTile, buffered
from iomodel.solving.certificate import Binding, Certificate, NextStep, RunnerUp
from iomodel.solving.layer_tiles import LayerTiles, Timed
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.timing.kernel_time import KernelTime
from iomodel.timing.parameters import Parameters
from iomodel.timing.totals import dram_interval, seconds_of
from iomodel.workloads.linear import Linear

GROWN = ("block_m", "block_n")
"""Tiles of which a larger one saves requests."""


@dataclass(frozen=True)
class LayerCandidate:
    """A tile of a layer with the kernels that run it and its exact cost."""

    tile: GemmTile
    kernels: tuple[KernelTime, ...]
    cost: Cost
    parameters: Parameters

    @property
    def seconds(self) -> float:
        """Time of the layer [s]."""
        return seconds_of([kernel.seconds for kernel in self.kernels], self.parameters)

    @property
    def runner_up(self) -> RunnerUp:
        """The tile with its launch, splits, traffic and time."""
        tiles = {**dict(self.tile.sizes), **self.tile.launch}
        return RunnerUp(FrozenDict(tiles), self.cost.hbm_bytes, self.seconds)


def solve_layer(question: Question, top: int = 1) -> Solution:
    """Solve for the least time of a linear layer, as :func:`iomodel.solve` with ``objective="time"``.

    A common tile of libraries is taken unless another one is faster beyond the error of the model.
    """
    algorithm, layer, device, options = question.algorithm, question.call, question.device, question.options
    assert isinstance(layer, Linear)
    given = question.bound.options["splits"] if "splits" in options else None
    ranked = LayerTiles(question.layers, layer, algorithm, given, question.least_blocks).ranked()
    if ranked is None:
        raise InfeasibleError(
            f"{algorithm}: no common tile of a linear layer has {question.least_blocks} blocks per SM on {device.name}",
            least=device.sram_per_block + 1,
            unit="B",
        )
    best = _candidate(question, ranked.tile(int(ranked.seconds.argmin())))
    return Solution.comparing(
        lambda: _compared(question, best, ranked),
        algorithm=question.name,
        tiles=FrozenDict({**best.cost.tiles, **best.tile.launch}),
        cost=best.cost,
        implementation=question.library.name,
        known_seconds=best.seconds,
        searched=() if given is not None else ("splits",),
        ranked=_best(question, ranked, top) if top > 1 else (),
        notes=(),
        hardware=device,
    )


def _candidate(question: Question, tile: GemmTile) -> LayerCandidate:
    """Return a tile with its kernels and its exact cost."""
    assert isinstance(question.call, Linear)
    sizes = dict(tile.sizes)
    splits = sizes.pop("splits")
    wanted = {**sizes, **tile.launch}
    kernels, _ = question.layers.fastest((question.call,), wanted, splits, question.algorithm)
    cost = question.adding({"splits": splits}).bound.cost(sizes)
    return LayerCandidate(tile, tuple(kernels), cost, question.parameters)


def _best(question: Question, ranked: Timed, top: int) -> tuple[RunnerUp, ...]:
    """Return so many of the fastest tiles, the fastest first."""
    ordered = ranked.in_order
    return tuple(_candidate(question, ordered.tile(place)).runner_up for place in range(min(top, len(ordered.seconds))))


def _compared(question: Question, best: LayerCandidate, ranked: Timed) -> Mapping[str, Any]:
    """Return the fields of a solution that compare its tile with the others."""
    layer, device = question.call, question.device
    assert isinstance(layer, Linear)
    ordered = ranked.in_order
    beyond = np.flatnonzero(ordered.seconds > ordered.seconds[0])
    slower = _candidate(question, ordered.tile(int(beyond[0]))).runner_up if len(beyond) else None
    fewest = _candidate(question, ordered.tile(int(ordered.requested.argmin())))
    lower, any_schedule = question.lower_bounds
    placed = check_layer(question.algorithm, layer, device, best.tile.launch, best.cost.tiles)
    certificate = Certificate(
        binding=_binding(device, layer, best.tile),
        next_step=_next_step(device, layer, best.tile),
        runner_up=slower,
        least_hbm_bytes=fewest.cost.hbm_bytes,
        lower_bound=lower,
        ratio=best.cost.hbm_bytes / lower.bytes,
        examined=len(ordered.seconds),
        any_schedule=any_schedule,
        memory=device.on_chip_per_block,
        least_traffic=fewest.runner_up,
    )
    distinct, capacity = question.compulsory.bytes, question.rates.cached
    return {
        "certificate": certificate,
        "budget": Budget(device.sram_per_block, "B", device.name, best.tile.block_k),
        "saturated": certificate.binding == "extent",
        "placed": placed,
        "known_dram_bytes": dram_interval(best.kernels, distinct, best.cost.hbm_bytes, capacity),
    }


def _binding(device: Hardware, layer: Linear, tile: GemmTile) -> Binding:
    """Name the limit on the growth of a tile: the resource that a tile of twice the size exceeds."""
    sizes = dict(tile.sizes)
    growable = [
        name for name, extent in zip(GROWN, (layer.rows, layer.out_features), strict=True) if sizes[name] < extent
    ]
    if not growable:
        return "extent"
    for name in growable:
        for resource in buffered(device, layer, {**sizes, name: 2 * sizes[name]}).fit.over:
            return resource  # type: ignore[return-value]
    return "time"


def _next_step(device: Hardware, layer: Linear, tile: GemmTile) -> NextStep:
    """Find the nearest larger tile, by doubling one of its sizes, that exceeds a resource."""
    sizes = dict(tile.sizes)
    for factor in (2**power for power in count(1)):
        for name in GROWN:
            larger = {**sizes, name: factor * sizes[name]}
            fit = buffered(device, layer, larger).fit
            for resource, excess in fit.over.items():
                return NextStep(name, larger[name], fit.used[resource], excess, resource, "B")
    raise AssertionError  # a large tile exceeds every memory
