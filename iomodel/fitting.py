"""The ways in which a tile runs on a device: where it lies, how many blocks an SM takes, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.check import checked, excess
from iomodel.demand import Demand
from iomodel.demand_sum import together
from iomodel.demands import Demands, demands, widened
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.execution import PIPELINED, Execution
from iomodel.expressions import kind_of, structural
from iomodel.hardware import Hardware
from iomodel.parameters import Parameters
from iomodel.placement import Launch, Placement, placements
from iomodel.question import Asked
from iomodel.rates import Rates
from iomodel.shared_traffic import Layout
from iomodel.timing import KernelTime, Launched, kernel_time
from iomodel.workload import Attention, VarlenAttention


@dataclass(frozen=True)
class Timed:
    """One way to run a pass: the tiles with warps and stages, and the time of each kernel."""

    tiles: Mapping[str, int]
    kernels: tuple[KernelTime, ...]

    @property
    def seconds(self) -> float:
        """All kernels, one after the other [s]."""
        return sum(kernel.seconds for kernel in self.kernels)


@dataclass(frozen=True)
class Clock:
    """One pass of an algorithm on a device: what times any of its tiles."""

    algorithm: str
    workload: Attention | VarlenAttention
    hardware: Hardware
    options: Mapping[str, Any]
    parameters: Parameters
    rates: Rates
    execution: Execution
    demands: Demands
    placements: tuple[Placement, ...]
    bare: str | None = None
    asked: dict[tuple[int, ...], tuple[Demand, ...]] = field(default_factory=dict, compare=False, repr=False)

    def demand(self, widths: tuple[int, int], tiles: Mapping[str, int]) -> tuple[Demand, ...]:
        """What the kernels ask for at a tile, over rows as wide as they are compiled for; folded once for all ways."""
        point = (*widths, *tiles.values())
        found = self.asked.get(point)
        if found is None:
            if isinstance(self.workload, Attention):
                found = self._at(self.workload, widths, tiles)
            else:
                kernels: dict[str, list[tuple[Demand, Attention]]] = {}
                for call in self.workload.sequences:
                    for demand in self._at(call, widths, tiles):
                        kernels.setdefault(demand.title, []).append((demand, call))
                found = tuple(together(parts) for parts in kernels.values())
            self.asked[point] = found
        return found

    def _at(self, call: Attention, widths: tuple[int, int], tiles: Mapping[str, int]) -> tuple[Demand, ...]:
        return self.demands.at(call, widened(call, *widths), self.options, tiles)

    def timed(
        self,
        tiles: Mapping[str, int],
        placement: Placement | None,
        launch: Launch | None,
        blocks: int | None,
        quick: bool = False,
    ) -> Timed:
        """The time of a tile in one way of running it; `blocks` on an SM at once, None for as many as there is room."""
        call = self.workload
        if placement is None or launch is None:
            launched, sizes = Launched(), dict(tiles)
            widths = (call.head_dim, call.value_dim)
        else:
            widths = (placement.padded.head_dim, placement.padded.value_dim)
            layout = Layout.of(launch.residency, launch.along, call.element_size)
            launched = Launched(layout, exposed=launch.residency.exposed)
            sizes = {**tiles, "warps": launch.warps, "stages": launch.stages}
        packed = bool(self.options["packed"])
        kernels = []
        for demand in self.demand(widths, tiles):
            each = replace(launched, blocks_per_sm=self._room(demand) if blocks is None else blocks)
            kernels.append(kernel_time(demand, call, packed, self.rates, self.execution, each, self.parameters, quick))
        return Timed(sizes, tuple(kernels))

    def footprint(self, tiles: Mapping[str, int]) -> int:
        """What the largest kernel occupies on chip, where no kernel is declared for the device [B]."""
        call = self.workload
        return max((demand.footprint for demand in self.demand((call.head_dim, call.value_dim), tiles)), default=0)

    def _room(self, demand: Demand) -> int:
        """How many blocks of a kernel find room on an SM, at least one."""
        per_sm = self.hardware.memory.sram.per_sm
        room = self.hardware.sram_per_block if per_sm is None else int(per_sm.value)
        return max(1, room // max(1, demand.footprint))

    def launches(self, given: Mapping[str, Any]) -> Iterator[tuple[Placement, Launch]]:
        """The ways to launch that have the warps and stages given."""
        for placement in self.placements:
            for launch in placement.launches():
                wanted = (given.get("warps", launch.warps), given.get("stages", launch.stages))
                if wanted == (launch.warps, launch.stages):
                    yield placement, launch

    def fastest(self, tiles: Mapping[str, int], given: Mapping[str, Any]) -> Timed:
        """The fastest way to run a tile; InfeasibleError if it fits in none."""
        if not self.placements:
            return self._bare(tiles)
        fitting: list[tuple[Placement, Launch, int]] = []
        tried = []
        for placement, launch in self.launches(given):
            query, key = (tiles[name] for name in placement.tiles)
            occupied = placement.occupied(query, key, launch)
            if not occupied.over:
                fitting.append((placement, launch, occupied.blocks_per_sm))
            tried.append((placement, launch))
        if fitting:
            placement, launch, blocks = fitting[0]
            if len(fitting) > 1:
                quick = [self.timed(tiles, *way, True).seconds for way in fitting]
                placement, launch, blocks = fitting[quick.index(min(quick))]
            return self.timed(tiles, placement, launch, blocks)
        if not tried:
            known = {(launch.warps, launch.stages) for _, launch in self.launches({})}
            allowed = ", ".join(f"{warps} and {stages}" for warps, stages in sorted(known))
            typed = " and ".join(f"{name} {size}" for name, size in sorted(given.items(), reverse=True))
            raise InputError(f"tiles: {typed} given; allowed: warps and stages {allowed}")
        raise self._misfit(tiles, tried)

    def _bare(self, tiles: Mapping[str, int]) -> Timed:
        limit = self.hardware.sram_per_block
        if not tiles:
            return self.timed(tiles, None, None, 1)
        if (footprint := self.footprint(tiles)) > limit:
            raise InfeasibleError(
                f"tiles: {dict(tiles)} given; {footprint:,} B are more than the {limit:,} B of a block on "
                f"{self.hardware.name}",
                least=footprint,
                unit="B",
            )
        return self.timed(tiles, None, None, None)

    def _misfit(self, tiles: Mapping[str, int], tried: Sequence[tuple[Placement, Launch]]) -> InfeasibleError:
        checks = [
            checked(
                placement,
                launch,
                self.algorithm,
                Asked(self.workload, ()).longest,
                {name: tiles[name] for name in placement.tiles},
            )
            for placement, launch in tried
        ]
        nearest = min(checks, key=excess)
        over = ", ".join(
            f"{name} by {-resource.slack:,}" + f" {resource.unit}" * (resource.unit != "-")
            for name, resource in nearest.resources.items()
            if resource.slack < 0
        )
        shared = nearest.resources["shared memory"].used
        return InfeasibleError(
            f"tiles: {dict(nearest.tiles)} given; on {self.hardware.name} they exceed {over}", least=shared, unit="B"
        )


def clock_for(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware,
    options: Mapping[str, Any],
    parameters: Parameters,
    found: Rates,
    execution: Execution | None = None,
) -> Clock:
    """What times the tiles of one pass, forward or backward; `options` are complete."""
    declaration, kind = find_algorithm(algorithm), kind_of(workload)
    chosen = structural(options)
    how = execution or declaration.execution.get(workload.direction, PIPELINED)
    placed: list[Placement] = []
    bare: str | None = None
    if declaration.residency.get(workload.direction) and options.get("tiled", True):
        try:
            placed = placements(algorithm, Asked(workload, ()).longest, hardware, "gpu", dict(chosen), kind)
        except (InputError, SpecError) as error:  # no such GPU, or no kernel for the call: a bare on-chip memory
            bare = f"registers apart from shared memory ({error})"
    return Clock(
        algorithm,
        workload,
        hardware,
        options,
        parameters,
        found,
        how,
        demands(algorithm, kind, chosen, how),
        tuple(placed),
        bare,
    )
