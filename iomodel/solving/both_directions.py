"""Tiles of least time of a call in both directions: those of the forward and of the backward pass together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import compulsory, largest_bounds
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.solving.certificate import Certificate, RunnerUp
from iomodel.solving.solution import Solution
from iomodel.timing.clock import TimedLaunch, clock_for
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.totals import dram_interval, seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

Passes = Sequence[tuple[str, Solution]]
DEFERRED = ("certificate", "budget", "saturated", "placed", "dram_bytes")
"""Fields that are computed when they are first read."""


class Joined(NamedTuple):
    """Tiles of both passes under their names in a call of both, with the sums of requests [B] and times [s]."""

    tiles: Mapping[str, int]
    hbm_bytes: int
    seconds: float


def solve_both(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    implementation: str | Implementation | None,
    solve_pass: Callable[[Attention | VarlenAttention, Mapping[str, Any]], Solution],
    options: Mapping[str, Any],
    top: int,
) -> Solution:
    """Solve each pass, the forward pass first: the backward pass takes the options that it chose.

    Each kernel takes its fastest launch, so that the tiles name no warps and stages.
    """
    declaration, chosen, passes = find_algorithm(algorithm), dict(options), []
    for direction in ("forward", "backward"):
        taken = only_taken(declaration, direction, chosen)
        solution = solve_pass(call.model_copy(update={"direction": direction}), taken)
        chosen |= {name: solution.options[name] for name in solution.searched}
        passes.append((direction, _timed(algorithm, solution, device, implementation)))
    bound = BoundCall.bind(declaration, call, chosen)
    names = bound.tiles
    best = _joined(names, [(direction, as_runner_up(solution)) for direction, solution in passes])
    libraries = dict.fromkeys(solution.implementation for _, solution in passes)
    whole = cache(lambda: _whole(algorithm, bound, device, implementation, passes, best))
    return Solution.deferring(
        {name: _field(name, whole) for name in DEFERRED},
        algorithm=name_of(algorithm),
        tiles=best.tiles,
        cost=bound.cost(best.tiles),
        epsilon=0.0,
        implementation=" and ".join(libraries),
        seconds=best.seconds,
        searched=tuple(dict.fromkeys(name for _, solution in passes for name in solution.searched)),
        ranked=_ranked(names, passes, top) if top > 1 else (),
        notes=tuple(dict.fromkeys(note for _, solution in passes for note in solution.notes)),
        hardware=device,
    )


def _field(name: str, whole: Callable[[], Mapping[str, Any]]) -> Callable[[Solution], Any]:
    """Read a field that is computed with other fields."""
    return lambda _: whole()[name]


def as_runner_up(solution: Solution) -> RunnerUp:
    """Return the tiles of a solution with their requests and time."""
    return RunnerUp(solution.tiles, solution.cost.hbm_bytes, solution.seconds)


def _named(names: Sequence[str], direction: str, tile: str) -> str:
    """Return the name of a tile of a pass in a call of both."""
    return f"bwd_{tile}" if direction == "backward" and f"bwd_{tile}" in names else tile


def _joined(names: Sequence[str], passes: Sequence[tuple[str, RunnerUp]]) -> Joined:
    """Join the tiles of both passes."""
    tiles = {
        _named(names, direction, tile): size
        for direction, choice in passes
        for tile, size in choice.tiles.items()
        if tile not in LAUNCH_NAMES
    }
    ordered = FrozenDict({name: tiles[name] for name in names if name in tiles})
    requested = sum(choice.hbm_bytes for _, choice in passes)
    return Joined(ordered, requested, sum(choice.seconds or 0.0 for _, choice in passes))


def _ranked(names: Sequence[str], passes: Passes, top: int) -> tuple[RunnerUp, ...]:
    """Return the fastest pairs of tiles."""
    pairs = product(*([(direction, choice) for choice in solution.ranked] for direction, solution in passes))
    ranked = sorted((_joined(names, pair) for pair in pairs), key=lambda joined: joined.seconds)
    distinct = {joined.tiles: RunnerUp(*joined) for joined in reversed(ranked)}
    return tuple(sorted(distinct.values(), key=lambda choice: choice.seconds or 0.0)[:top])


def _whole(
    algorithm: AlgorithmLike,
    bound: BoundCall,
    device: Hardware,
    implementation: str | Implementation | None,
    passes: Passes,
    best: Joined,
) -> Mapping[str, Any]:
    """Compute the fields that compare tiles; the limits on their growth are those of the slower pass."""
    slower_direction, slower = max(passes, key=lambda entry: entry[1].seconds or 0.0)
    why, names, workload = slower.certificate, bound.tiles, bound.workload
    assert isinstance(workload, Attention | VarlenAttention)
    chosen = {direction: as_runner_up(solution) for direction, solution in passes}
    others = [
        _joined(names, list({**chosen, direction: solution.certificate.runner_up}.items()))
        for direction, solution in passes
        if solution.certificate.runner_up is not None
    ]
    second = min(others, key=lambda joined: joined.seconds, default=None)

    def instead(kind: str) -> RunnerUp | None:
        found = {direction: getattr(solution.certificate, kind) for direction, solution in passes}
        if not any(found.values()):
            return None
        tiles = [(direction, choice or chosen[direction]) for direction, choice in found.items()]
        return RunnerUp(*_joined(names, tiles))

    cost = bound.cost(best.tiles)
    lower, any_schedule = largest_bounds(algorithm, workload, sram_bytes=why.memory)
    certificate = Certificate(
        binding=why.binding,
        next_step=replace(why.next_step, tile=_named(names, slower_direction, why.next_step.tile)),
        runner_up=None if second is None else RunnerUp(*second),
        least_hbm_bytes=sum(solution.certificate.least_hbm_bytes for _, solution in passes),
        lower_bound=lower,
        ratio=cost.hbm_bytes / lower.bytes,
        examined=sum(solution.certificate.examined for _, solution in passes),
        any_schedule=any_schedule,
        memory=why.memory,
        least_traffic=instead("least_traffic"),
        shipped=instead("shipped"),
    )
    launches = [_launched(algorithm, solution, device, implementation) for _, solution in passes]
    kernels = [kernel for launch in launches for kernel in launch.kernels]
    capacity = rates(device, workload.dtype).cached
    return {
        "certificate": certificate,
        "budget": slower.budget,
        "saturated": all(solution.saturated for _, solution in passes),
        "placed": slower.placed,
        "dram_bytes": dram_interval(kernels, compulsory(algorithm, workload).bytes, cost.hbm_bytes, capacity),
    }


def _launched(
    algorithm: AlgorithmLike, solution: Solution, device: Hardware, implementation: str | Implementation | None
) -> TimedLaunch:
    """Time the tiles of one pass by the kernels that they are of."""
    call, known = solution.cost.workload, find_algorithm(algorithm).implementations
    assert isinstance(call, Attention | VarlenAttention)
    named = next((each for each in known if each.name == solution.implementation), TEXTBOOK)
    clock = clock_for(
        algorithm, call, device, solution.options, DEFAULT, rates(device, call.dtype), implementation or named
    )
    launch = {name: size for name, size in solution.tiles.items() if name in LAUNCH_NAMES}
    return clock.fastest({name: size for name, size in solution.tiles.items() if name not in launch}, launch)


def _timed(
    algorithm: AlgorithmLike, solution: Solution, device: Hardware, implementation: str | Implementation | None
) -> Solution:
    """Add the time of a pass that no kernel of the device runs."""
    if solution.seconds is not None:
        return solution
    return replace(solution, seconds=seconds_of(_launched(algorithm, solution, device, implementation).times, DEFAULT))
