"""Tiles of least time on a device, by timing every tile that fits at every launch configuration.

The time is no monotone function of the tile size (waves, trips and padding jump), so the search is exhaustive; a few
hundred tiles fit. Options that the kernels choose per call (splits, packing of grouped heads) are searched too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bounds import lower_bounds
from iomodel.counting.options import check_options
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import Implementation
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.certificate import RunnerUp
from iomodel.solving.on_device import LaunchProblem, LaunchProblems, Timed, binding_of, ways_for
from iomodel.solving.problem import SearchResult, Tile
from iomodel.solving.solution import Solution
from iomodel.timing.clock import Clock, TimedLaunch, clock_for
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.totals import dram_interval, seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

ROWS = 128
"""Rows of a tile in the rule for packing [rows]."""
Rank = tuple[float, int, int, int, int]


@dataclass(frozen=True)
class Setting:
    """The options that the kernels choose, with the launch configurations and the timer under them."""

    searched: Mapping[str, Any]
    variants: LaunchProblems
    results: list[tuple[LaunchProblem, SearchResult]]
    clock: Clock

    @cached_property
    def shipped(self) -> Mapping[str, int] | None:
        """The tile that the implementation ships for these options."""
        variants = self.variants
        call = variants.ask.workload
        assert isinstance(call, Attention | VarlenAttention)
        return shipped_tile(variants.implementation, call, variants.device, variants.ask.options)


@dataclass(frozen=True)
class Ranked:
    """A tile that fits at a launch configuration, with its rank: time, traffic and tie-breakers."""

    rank: Rank
    setting: Setting
    variant: LaunchProblem
    tile: Tile

    @property
    def tiles(self) -> dict[str, int]:
        """The tiles, with warps and stages."""
        launch = self.variant.launch
        return {**self.variant.sizes(self.tile), "warps": launch.warps, "stages": launch.stages}

    @property
    def key(self) -> tuple[Any, ...]:
        """The tiles, launch and options, which name a choice to its user."""
        return (*self.tiles.values(), *self.setting.searched.values())

    def timed(self) -> TimedLaunch:
        """Time the tile."""
        query, key = self.variant.sizes(self.tile).values()
        occupied = self.variant.placement.occupied(query, key, self.variant.launch)
        sizes = self.variant.sizes(self.tile)
        names = self.setting.variants.ask.compiled.tiles
        placement, launch = self.variant.placement, self.variant.launch
        return self.setting.clock.timed(
            {name: sizes[name] for name in names}, placement, launch, occupied.blocks_per_sm
        )

    def as_runner_up(self) -> RunnerUp:
        """Return the tile with its traffic and time, searched options included."""
        tiles = FrozenDict({**self.tiles, **{name: int(value) for name, value in self.setting.searched.items()}})
        sizes = self.variant.sizes(self.tile)
        launch = {"warps": self.variant.launch.warps, "stages": self.variant.launch.stages}
        # A tile beyond the end of an axis is searched in the coarsest layout alone; its launch takes the fastest.
        seconds = min(self.rank[0], self.setting.clock.fastest(sizes, launch).seconds)
        return RunnerUp(tiles, self.setting.variants.cost(sizes).hbm_bytes, seconds)


def solve_fastest(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    implementation: Implementation,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    options: Mapping[str, Any],
    parameters: Parameters = DEFAULT,
    top: int = 1,
) -> Solution:
    """Solve for the least time, as :func:`iomodel.solve` with ``objective="time"``."""
    settings = settings_for(
        algorithm, call, device, implementation, min_block_kv, min_blocks_per_sm, options, parameters
    )
    ranked = sorted((entry for setting in settings for entry in timed_tiles(setting)), key=lambda entry: entry.rank)
    best = ranked[0]
    slower = next((entry for entry in distinct(ranked) if entry.rank[0] > best.rank[0]), None)
    least = min(ranked, key=lambda entry: (entry.rank[1], entry.rank))
    shipped = next(filter(_is_shipped, distinct(ranked)), None)
    kernels = best.timed().kernels
    cost = best.setting.variants.cost(best.variant.sizes(best.tile))
    compulsory = lower_bounds(algorithm, call, 1)["compulsory"].bytes
    timed = Timed(
        seconds_of(kernels, parameters),
        dram_interval(kernels, compulsory, cost.hbm_bytes, best.setting.clock.rates.l2_capacity),
        least.as_runner_up(),
        None if shipped is None else shipped.as_runner_up(),
    )
    solution = best.setting.variants.solution(
        best.setting.results,
        best.variant,
        best.tile,
        0.0,
        None if slower is None else slower.as_runner_up(),
        binding_of(best.variant, best.tile, "time"),
        timed,
    )
    leading = tuple(entry.as_runner_up() for entry in islice(distinct(ranked), top)) if top > 1 else ()
    return replace(solution, searched=tuple(best.setting.searched), ranked=leading)


def _is_shipped(entry: Ranked) -> bool:
    """Check that the implementation ships a tile for the options that go with it."""
    tile = entry.setting.shipped
    return tile is not None and tile.items() <= entry.tiles.items()


def settings_for(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    implementation: Implementation,
    min_block_kv: int | None,
    min_blocks_per_sm: int,
    options: Mapping[str, Any],
    parameters: Parameters,
) -> list[Setting]:
    """Build the search of every choice of the options that the implementation chooses and the caller has not given."""
    declaration, known = find_algorithm(algorithm), rates(device, call.dtype)
    settings: list[Setting] = []
    failure: InputError | InfeasibleError | None = None
    for searched in choices(implementation, call, declaration.takes(call.direction), options):
        chosen = {**options, **searched}
        try:
            check_options(declaration, chosen, direction=call.direction)
            variants = ways_for(algorithm, call, device, implementation, min_block_kv, min_blocks_per_sm, chosen)
            results = variants.found()
        except (InputError, InfeasibleError) as error:  # more splits than key tiles, say
            if not searched:
                raise
            failure = failure or error
            continue
        clock = clock_for(algorithm, call, device, variants.ask.options, parameters, known, implementation)
        settings.append(Setting(searched, variants, results, clock))
    if not settings:
        assert failure is not None  # every choice was refused
        raise failure
    return settings


def choices(
    implementation: Implementation,
    call: Attention | VarlenAttention,
    taken: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield each combination of the searched options that are not given."""
    free = {
        name: values
        for name, values in implementation.searched.items()
        if name not in options and (_underfilled(call) if name == "packed" else name in taken)
    }
    for values in product(*free.values()):
        yield dict(zip(free, values, strict=True))


def _underfilled(call: Attention | VarlenAttention) -> bool:
    """Check that packing the rows of grouped heads fills tiles better.

    This is the rule of FlashAttention-3 (github.com/Dao-AILab/flash-attention, hopper: heuristics.h, should_pack_gqa):
    tiles of one head are filled to less than 0.9 of the tiles of a packed group; lengths that differ are packed.
    """
    if call.heads == call.kv_heads:
        return False
    if isinstance(call, VarlenAttention):
        return True

    def filled(rows: int) -> float:
        return rows / (-(-rows // ROWS) * ROWS)

    return filled(call.q_len) < 0.9 * filled(call.q_len * call.group)


def distinct(ranked: Iterable[Ranked]) -> Iterator[Ranked]:
    """Yield the best launch of each setting of tiles, warps, stages and options."""
    known = set()
    for entry in ranked:
        if entry.key not in known:
            known.add(entry.key)
            yield entry


def timed_tiles(setting: Setting) -> Iterator[Ranked]:
    """Yield every tile that fits with its rank."""
    for variant in setting.variants.ways:
        problem = variant.problem
        for u in range(problem.outer.first, problem.outer.last + 1, problem.outer.step):
            if problem.footprint(u, problem.inner.first) > problem.budget:
                break
            for v in range(problem.inner.first, problem.inner.last + 1, problem.inner.step):
                if problem.footprint(u, v) > problem.budget:
                    break
                query, key = variant.sizes((u, v)).values()
                shared = variant.placement.shared_bytes(query, key, variant.launch.stages)
                rank = (0.0, problem.bytes_at(u, v), -key, shared, variant.launch.warps)
                entry = Ranked(rank, setting, variant, (u, v))
                yield replace(entry, rank=(entry.timed().seconds, *entry.rank[1:]))
