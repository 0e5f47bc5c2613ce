"""Tiles of least time of a linear layer on a device, among the common tiles of libraries."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError
from iomodel.placement.budget import Budget
from iomodel.placement.check import check_layer
from iomodel.placement.gemm_tiles import GemmTile, buffered
from iomodel.solving.certificate import Binding, Certificate, NextStep, RunnerUp
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
    """Solve for the least time of a linear layer, as :func:`iomodel.solve` with ``objective="time"``."""
    algorithm, layer, device, options = question.algorithm, question.call, question.device, question.options
    assert isinstance(layer, Linear)
    given = question.bound.options["splits"] if "splits" in options else None
    clock, least = question.layers, question.least_blocks
    ranked = clock.ranking(layer, given, algorithm)
    tiles = [tile for _, tile in ranked if tile.blocks_per_sm >= least]
    if not tiles:
        raise InfeasibleError(
            f"{algorithm}: no common tile of a linear layer has {least} blocks per SM on {device.name}",
            least=device.sram_per_block + 1,
            unit="B",
        )

    def candidate(tile: GemmTile) -> LayerCandidate:
        sizes = dict(tile.sizes)
        splits = sizes.pop("splits")
        kernels, _ = clock.fastest((layer,), {**sizes, **tile.launch}, splits, algorithm)
        cost = question.adding({"splits": splits}).bound.cost(sizes)
        return LayerCandidate(tile, tuple(kernels), cost, question.parameters)

    found = [candidate(tile) for tile in tiles]
    best = found[0]
    slower = next((each for each in found if each.seconds > best.seconds), None)
    fewest = min(found, key=lambda each: each.cost.hbm_bytes)
    lower, any_schedule = question.lower_bounds
    placed = check_layer(algorithm, layer, device, best.tile.launch, best.cost.tiles)
    certificate = Certificate(
        binding=_binding(device, layer, best.tile),
        next_step=_next_step(device, layer, best.tile),
        runner_up=None if slower is None else slower.runner_up,
        least_hbm_bytes=fewest.cost.hbm_bytes,
        lower_bound=lower,
        ratio=best.cost.hbm_bytes / lower.bytes,
        examined=len(found),
        any_schedule=any_schedule,
        memory=device.on_chip_per_block,
        least_traffic=fewest.runner_up,
    )
    distinct, capacity = question.compulsory.bytes, question.rates.cached
    return Solution(
        question.name, placed.tiles, best.cost, certificate,
        Budget(device.sram_per_block, "B", device.name, best.tile.block_k), 0.0,
        certificate.binding == "extent", placed, question.library.name,
        known_seconds=best.seconds,
        known_dram_bytes=dram_interval(best.kernels, distinct, best.cost.hbm_bytes, capacity),
        searched=() if given is not None else ("splits",),
        ranked=tuple(each.runner_up for each in found[:top]) if top > 1 else (),
        hardware=device,
    )  # fmt: skip


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
