"""Launch configurations of tiles on a device, with their placement, occupancy and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.arithmetic import anywhere, larger
from iomodel.counting.kinds import kind_of
from iomodel.counting.options import structural
from iomodel.devices.device import Hardware
from iomodel.devices.rates import Rates, rates, split_in_tf32
from iomodel.errors import InfeasibleError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED, Execution
from iomodel.nests.implementation import Implementation
from iomodel.placement.check import checked, excess, off_steps, refused_launch
from iomodel.placement.fit import ALONE, BlockFit, in_one_memory
from iomodel.placement.implementations import implementation_for, no_kernel
from iomodel.placement.placement import Launch, Placement, placements
from iomodel.timing.balance import Rows
from iomodel.timing.kernel_time import Elapsed, KernelTime, Launched, Setting, described, elapsed
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.kernel_work_sum import added, together
from iomodel.timing.parameters import Parameters
from iomodel.timing.shared_memory import WarpLayout
from iomodel.timing.work_at_point import Demands, demands, widened
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Mixed, Shape, Workload

SCHEDULERS = 4
"""Warp schedulers of an SM [-]."""

MOST_ASKED = 16
"""Tiles whose work and fastest launch a clock keeps."""

Fitting = tuple[Placement, Launch, BlockFit]
"""A launch configuration of a tile that fits, with its placement and its resources."""


@dataclass(frozen=True)
class TimedLaunch:
    """One timed launch configuration of a pass: tiles with warps and stages, and the work and time of each kernel."""

    tiles: Mapping[str, int]
    clock: Clock
    runs: tuple[tuple[KernelWork, Elapsed], ...]

    @property
    def times(self) -> list[float]:
        """Time of each kernel [s]."""
        return [took.seconds for _, took in self.runs]

    @property
    def seconds(self) -> float:
        """Time of all kernels in sequence [s]."""
        return sum(self.times)

    @cached_property
    def kernels(self) -> tuple[KernelTime, ...]:
        """The kernels, with the bounds of their DRAM traffic."""
        return tuple(self.clock.described(demand, took) for demand, took in self.runs)


@dataclass(frozen=True)
class Clock:
    """A timer of one pass of an algorithm on a device, for any tile."""

    algorithm: Algorithm
    workload: Shape | Mixed
    hardware: Hardware
    options: Mapping[str, Any]
    parameters: Parameters
    rates: Rates
    execution: Execution
    demands: Demands
    placements: tuple[Placement, ...]
    assumed: bool = False
    asked: dict[tuple[int, ...], tuple[KernelWork, ...]] = field(default_factory=dict, compare=False, repr=False)
    fitted: dict[tuple[Any, ...], TimedLaunch] = field(default_factory=dict, compare=False, repr=False)

    @property
    def bare(self) -> str | None:
        """The assumption about memory where no kernel of the algorithm runs on the device, with the reason."""
        if not self.assumed or self.hardware.simulated:
            return None
        return f"registers apart from shared memory ({no_kernel(self.algorithm, self.workload, self.hardware)})"

    def demand(self, widths: tuple[int, int], tiles: Mapping[str, int]) -> tuple[KernelWork, ...]:
        """Evaluate the work of the kernels at a tile, over rows as wide as compiled; cached for all launches."""
        point = (*widths, *tiles.values())
        work = self.asked.get(point)
        if work is None:
            if isinstance(self.workload, Shape):
                work = self._at(self.workload, widths, tiles)
            else:
                parts = ((call, self._at(call, widths, tiles)) for call in self.workload.sequences)
                work = _in_one_launch(parts)
            if len(self.asked) >= MOST_ASKED:
                self.asked.clear()
            self.asked[point] = work
        return work

    def over(
        self, widths: tuple[int, int], tiles: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[KernelWork, ...]:
        """Evaluate the work of the kernels at arrays of tiles and of some options, over rows as wide as compiled."""
        chosen = {**self.options, **options}
        if isinstance(self.workload, Shape):
            return self.demands.over(self.workload, _as_wide(self.workload, widths), chosen, tiles, True)
        return _in_one_launch(
            (call, self.demands.over(call, _as_wide(call, widths), chosen, tiles)) for call in self.workload.sequences
        )

    def _at(self, call: Shape, widths: tuple[int, int], tiles: Mapping[str, int]) -> tuple[KernelWork, ...]:
        return self.demands.at(call, _as_wide(call, widths), self.options, tiles)

    @property
    def rows(self) -> Attention | VarlenAttention | None:
        """The call whose rows a mask relates; None for a workload without a mask."""
        return self.workload if isinstance(self.workload, Attention | VarlenAttention) else None

    @property
    def packed(self) -> bool:
        """True if the rows of a group of query heads share a tile."""
        return bool(self.options.get("packed"))

    @property
    def widths(self) -> tuple[int, int]:
        """Widths of the rows of the call; 0 for a workload without a mask."""
        return (0, 0) if self.rows is None else (self.rows.head_dim, self.rows.value_dim)

    def seconds_over(self, work: Sequence[KernelWork], launched: Launched) -> Any:
        """Time tiles from their work, numbers or arrays, at their launch [s]."""
        total = 0.0
        for demand in work:
            took = self.elapsed(demand, self.rows, launched)
            total = total + took.seconds * (demand.requested_bytes > 0)  # without traffic it is not launched
        return total

    def in_one_memory(self, tiles: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Time arrays of tiles and of some options whose live data share one memory [s]; infinite where none fits."""

        def work(points: Any) -> tuple[KernelWork, ...]:
            sizes, chosen = ({name: value[points] for name, value in each.items()} for each in (tiles, options))
            return self.over(self.widths, sizes, chosen)

        size = len(next(iter(tiles.values())))
        footprint = larger(0, *(demand.footprint for demand in work(slice(None))))
        fitting = np.flatnonzero(np.broadcast_to(in_one_memory(self.hardware, footprint).fits, size))
        seconds = np.full(size, np.inf)
        if len(fitting):
            rooms = ((demand, Launched(blocks_per_sm=self.room(demand))) for demand in work(fitting))
            seconds[fitting] = sum(self.seconds_over([demand], launched) for demand, launched in rooms)
        return seconds

    def idle(self, work: Sequence[KernelWork]) -> Any:
        """Count the SMs without a block of the first kernel [-]."""
        units = self.rates.units
        return 0 if units is None or len(work) == 0 else larger(units - work[0].blocks, 0)

    def launched(self, launch: Launch, fit: BlockFit = ALONE) -> Launched:
        """Describe a launch configuration to the time model, with the resources of a block."""
        return Launched(
            WarpLayout.of(launch.residency, launch.along, self.workload.element_size),
            larger(1, fit.blocks_per_sm),
            exposed=launch.residency.exposed,
            turns=launch.residency.turns,
            stages=launch.stages,
            warps=max(launch.residency.parts, launch.warps // SCHEDULERS),
            specialized=launch.residency.producers > 0,
            spilled=fit.spilled,
            repeated=fit.repeated,
        )

    def timed(
        self,
        tiles: Mapping[str, int],
        placement: Placement | None,
        launch: Launch | None,
        fit: BlockFit | None,
        alike: TimedLaunch | None = None,
    ) -> TimedLaunch:
        """Time a tile in one launch configuration with the resources of a block; None for as many blocks as fit.

        Kernels without products take as long as in another configuration of the same layout with as many blocks.
        """
        if placement is None or launch is None:
            sizes, runs = dict(tiles), []
            for demand in self.demand(self.widths, tiles):
                launched = Launched(blocks_per_sm=self.room(demand) if fit is None else fit.blocks_per_sm)
                runs.append((demand, self.elapsed(demand, self.rows, launched)))
        else:
            sizes, runs = {**tiles, "warps": launch.warps, "stages": launch.stages}, []
            launched = self.launched(launch, fit or ALONE)
            work = self.demand(placement.widths, tiles)
            known: Sequence[Any] = [(None, None)] * len(work) if alike is None else alike.runs
            for demand, (_, took) in zip(work, known, strict=True):
                again = took is None or len(demand.products) > 0
                runs.append((demand, self.elapsed(demand, self.rows, launched) if again else took))
        return TimedLaunch(sizes, self, tuple(runs))

    def described(self, demand: KernelWork, took: Elapsed) -> KernelTime:
        """Add the bounds of its DRAM traffic to a timed kernel."""
        return described(demand, self.setting, took)

    def room(self, demand: KernelWork) -> Any:
        """Count the blocks of a kernel that fit an SM, at least one."""
        return in_one_memory(self.hardware, demand.footprint).blocks_per_sm

    @cached_property
    def setting(self) -> Setting:
        """The device and the call that the kernels share."""
        return Setting(self.rates, self.execution, self.parameters, self.rows, self.packed)

    def elapsed(
        self, demand: KernelWork, rows: Rows | VarlenAttention | None, launched: Launched, bounded: bool = False
    ) -> Elapsed:
        """Time a kernel over the rows of one call or of many, or bound its time from below."""
        if anywhere(launched.repeated != 1):
            demand = demand.repeated(launched.repeated)
        return elapsed(demand, self.setting._replace(workload=rows), launched, bounded)

    @cached_property
    def configurations(self) -> list[tuple[Placement, Launch]]:
        """Every launch configuration, with its placement."""
        return [(placement, launch) for placement in self.placements for launch in placement.launches()]

    def launches(self, given: Mapping[str, Any]) -> Iterator[tuple[Placement, Launch]]:
        """Iterate over the launch configurations with the given warps and stages."""
        for placement, launch in self.configurations:
            wanted = (given.get("warps", launch.warps), given.get("stages", launch.stages))
            if wanted == (launch.warps, launch.stages):
                yield placement, launch

    def fastest(self, tiles: Mapping[str, int], given: Mapping[str, Any]) -> TimedLaunch:
        """Find the fastest launch configuration of a tile; raise InfeasibleError if none fits."""
        if not self.placements:
            return self._bare(tiles)
        point = (*tiles.values(), given.get("warps"), given.get("stages"))
        best = self.fitted.get(point)
        if best is not None:
            return best
        fitting = self._fitting(tiles, given)
        timed: list[TimedLaunch] = []
        for placement, launch, fit in fitting:
            alike = [
                one
                for (_, other, room), one in zip(fitting, timed, strict=False)
                if other.residency is launch.residency and room.blocks_per_sm == fit.blocks_per_sm
            ]
            timed.append(self.timed(tiles, placement, launch, fit, alike[0] if alike else None))
        if len(self.fitted) >= MOST_ASKED:
            self.fitted.clear()
        return self.fitted.setdefault(point, min(timed, key=lambda launch: launch.seconds))

    def _fitting(self, tiles: Mapping[str, int], given: Mapping[str, Any]) -> list[Fitting]:
        """List the launch configurations that fit, with their blocks per SM, or raise InfeasibleError.

        A configuration that differs from an earlier one only in as many or more bytes of shared memory read and
        written, or in stages that change neither waits nor bytes in flight, is left out: it is no faster.
        """
        fitting: dict[int, Fitting] = {}
        tried: list[tuple[Placement, Launch]] = []

        @cache
        def loads(number: int) -> list[Any]:
            placement, launch = tried[number]
            launched = self.launched(launch)
            return [launched.shared_bytes(demand) for demand in self.demand(placement.widths, tiles)]

        for number, (placement, launch) in enumerate(self.launches(given)):
            query, key = (tiles[name] for name in placement.tiles)
            choice = placement, launch, placement.fit(query, key, launch)
            tried.append((placement, launch))
            if choice[2].fits and not any(
                self._alike(choice, other)
                and all(least <= own for own, least in zip(loads(number), loads(before), strict=True))
                for before, other in fitting.items()
            ):
                fitting[number] = choice
        if fitting:
            return list(fitting.values())
        if not tried:
            raise refused_launch(given, (launch for _, launch in self.launches({})))
        raise self._misfit(tiles, tried)

    def _alike(self, choice: Fitting, other: Fitting) -> bool:
        """Check that two launch configurations differ at most in the bytes of shared memory that their warps read."""
        (placement, launch, fit), (known, kept, room) = choice, other
        waiting = self.execution.waiting
        staged_alike = (launch.stages <= waiting) == (kept.stages <= waiting) and self.execution.in_flight is not None
        return (
            placement is known
            and launch.residency is kept.residency
            and launch.warps == kept.warps
            and (fit.blocks_per_sm, fit.spilled, fit.repeated) == (room.blocks_per_sm, room.spilled, room.repeated)
            and (launch.stages == kept.stages or staged_alike)
        )

    def _bare(self, tiles: Mapping[str, int]) -> TimedLaunch:
        if not tiles:
            return self.timed(tiles, None, None, ALONE)
        kernels = self.demand(self.widths, tiles)
        footprint = max((demand.footprint for demand in kernels), default=0)
        if not in_one_memory(self.hardware, footprint).fits:
            raise InfeasibleError(
                f"tiles: {dict(tiles)} given; {footprint:,} B are more than the {self.hardware.sram_per_block:,} B of "
                f"a block on {self.hardware.name}",
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
                as_attention(self.workload.longest),
                {name: tiles[name] for name in placement.tiles},
            )
            for placement, launch in tried
        ]
        nearest, (placement, launch) = min(zip(checks, tried, strict=True), key=lambda pair: excess(pair[0]))
        shared = nearest.resources["shared memory"].used
        lacking = {name: resource for name, resource in nearest.resources.items() if resource.slack < 0}
        if [*lacking] == ["MMA shape"]:
            return InfeasibleError(off_steps(placement, launch, nearest.tiles), least=shared, unit="B")
        over = ", ".join(
            f"{name} by {-resource.slack:,}" + f" {resource.unit}" * (resource.unit != "-")
            for name, resource in lacking.items()
        )
        return InfeasibleError(
            f"tiles: {dict(nearest.tiles)} given; on {self.hardware.name} they exceed {over}", least=shared, unit="B"
        )


def _in_one_launch(parts: Iterable[tuple[Shape, Sequence[KernelWork]]]) -> tuple[KernelWork, ...]:
    """Add up the work of each kernel over the shapes of a workload."""
    kernels: dict[str, list[tuple[KernelWork, Shape]]] = {}
    for call, work in parts:
        for demand in work:
            kernels.setdefault(demand.title, []).append((demand, call))
    return tuple(
        together([(demand, as_attention(call)) for demand, call in each])
        if isinstance(each[0][1], Attention)
        else added([demand for demand, _ in each])
        for each in kernels.values()
    )


def _as_wide(call: Shape, widths: tuple[int, int]) -> Shape:
    return widened(call, *widths) if isinstance(call, Attention) else call


def clock_for(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware,
    options: Mapping[str, Any],
    parameters: Parameters,
    found: Rates,
    implementation: str | Implementation | None = None,
    placed: Sequence[Placement] | None = None,
) -> Clock:
    """Build the timer of one pass, forward or backward; `options` are complete.

    Without an implementation that runs the call on the device, tiles share one memory. `placed` has the layouts of the
    implementation on the device where they are known.
    """
    declaration, kind = find_algorithm(algorithm), kind_of(workload)
    assert isinstance(workload, Shape | Mixed)
    chosen = structural(options)
    kernels = implementation_for(declaration, workload, hardware, implementation)
    shared = declaration.execution.get(workload.direction, PIPELINED)
    how = kernels.execution.get(workload.direction, shared)
    assumed = False
    if placed is None and options.get("tiled", True):
        if kernels.residency:
            placed = placements(declaration, as_attention(workload.longest), hardware, kernels, dict(chosen), kind)
        else:
            assumed = implementation is None and bool(declaration.implementations)
    if how.paged_clocks and not (isinstance(workload, Attention) and workload.page_size):
        how = how.without_pages()  # arrays of calls have pages of one key where there are none
    if placed and placed[0].residency.tf32_products:
        found = split_in_tf32(found, rates(hardware, "tf32"), placed[0].residency.tf32_products)
    hosted = max(parameters.host_launch, how.host_launch)
    return Clock(
        declaration,
        workload,
        hardware,
        options,
        parameters if hosted == parameters.host_launch else replace(parameters, host_launch=hosted),
        found,
        how,
        demands(declaration, kind, chosen, how),
        tuple(placed or ()),
        assumed,
    )
