"""Tiles of least time of a call in both directions: those of the forward and of the backward pass together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from iomodel.algorithms import name_of
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import compulsory, largest_bounds
from iomodel.nests.implementation import TEXTBOOK
from iomodel.solving.by_pass import in_turn, in_whole, joined
from iomodel.solving.certificate import Certificate, RunnerUp
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.timing.clock import TimedLaunch
from iomodel.timing.totals import dram_interval, seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

Passes = Mapping[str, Solution]
DEFERRED = ("certificate", "budget", "saturated", "placed", "known_dram_bytes")
"""Fields that are computed when they are first read."""


class Joined(NamedTuple):
    """Tiles of both passes under their names in a call of both, with the sums of requests [B] and times [s]."""

    tiles: Mapping[str, int]
    hbm_bytes: int
    seconds: float


def solve_both(question: Question, solve_pass: Callable[[Question], Solution], top: int) -> Solution:
    """Solve each pass, the forward pass first: the backward pass takes the options that it chose.

    Each kernel takes its fastest launch, so that the tiles name no warps and stages.
    """

    def solved(part: Question) -> tuple[Solution, Mapping[str, Any]]:
        solution = solve_pass(part)
        return _timed(part, solution), {name: solution.options[name] for name in solution.searched}

    passes, chosen = in_turn(question, solved)
    bound = question.bound(chosen)
    best = _joined(bound.tiles, {direction: as_runner_up(solution) for direction, solution in passes.items()})
    solutions = passes.values()
    whole = cache(lambda: _whole(question, bound, passes, best))
    return Solution.deferring(
        {name: _field(name, whole) for name in DEFERRED},
        algorithm=name_of(question.algorithm),
        tiles=best.tiles,
        cost=bound.cost(best.tiles),
        epsilon=0.0,
        implementation=" and ".join(dict.fromkeys(solution.implementation for solution in solutions)),
        known_seconds=best.seconds,
        searched=tuple(dict.fromkeys(name for solution in solutions for name in solution.searched)),
        ranked=_ranked(bound.tiles, passes, top) if top > 1 else (),
        notes=tuple(dict.fromkeys(note for solution in solutions for note in solution.notes)),
        hardware=question.device,
    )


def _field(name: str, whole: Callable[[], Mapping[str, Any]]) -> Callable[[Solution], Any]:
    """Read a field that is computed with other fields."""
    return lambda _: whole()[name]


def as_runner_up(solution: Solution) -> RunnerUp:
    """Return the tiles of a solution with their requests and time."""
    return RunnerUp(solution.tiles, solution.cost.hbm_bytes, solution.known_seconds)


def _joined(names: Sequence[str], passes: Mapping[str, RunnerUp]) -> Joined:
    """Join the tiles of both passes."""
    requested = sum(choice.hbm_bytes for choice in passes.values())
    tiles = joined(names, {direction: choice.tiles for direction, choice in passes.items()})
    return Joined(tiles, requested, sum(choice.seconds or 0.0 for choice in passes.values()))


def _ranked(names: Sequence[str], passes: Passes, top: int) -> tuple[RunnerUp, ...]:
    """Return the fastest pairs of tiles."""
    pairs = product(*(solution.ranked for solution in passes.values()))
    ranked = sorted(
        (_joined(names, dict(zip(passes, pair, strict=True))) for pair in pairs), key=lambda one: one.seconds
    )
    distinct = {one.tiles: RunnerUp(*one) for one in reversed(ranked)}
    return tuple(sorted(distinct.values(), key=lambda choice: choice.seconds or 0.0)[:top])


def _whole(question: Question, bound: BoundCall, passes: Passes, best: Joined) -> Mapping[str, Any]:
    """Compute the fields that compare tiles; the limits on their growth are those of the slower pass."""
    slower_direction, slower = max(passes.items(), key=lambda entry: entry[1].seconds or 0.0)
    why, names, workload, algorithm = slower.certificate, bound.tiles, bound.workload, question.algorithm
    assert isinstance(workload, Attention | VarlenAttention)
    chosen = {direction: as_runner_up(solution) for direction, solution in passes.items()}
    others = [
        _joined(names, {**chosen, direction: solution.certificate.runner_up})
        for direction, solution in passes.items()
        if solution.certificate.runner_up is not None
    ]
    second = min(others, key=lambda pair: pair.seconds, default=None)

    def instead(kind: str) -> RunnerUp | None:
        found = {direction: getattr(solution.certificate, kind) for direction, solution in passes.items()}
        if not any(found.values()):
            return None
        return RunnerUp(*_joined(names, {direction: found[direction] or chosen[direction] for direction in passes}))

    cost = bound.cost(best.tiles)
    lower, any_schedule = largest_bounds(algorithm, workload, sram_bytes=why.memory)
    certificate = Certificate(
        binding=why.binding,
        next_step=replace(why.next_step, tile=in_whole(names, slower_direction, why.next_step.tile)),
        runner_up=None if second is None else RunnerUp(*second),
        least_hbm_bytes=sum(solution.certificate.least_hbm_bytes for solution in passes.values()),
        lower_bound=lower,
        ratio=cost.hbm_bytes / lower.bytes,
        examined=sum(solution.certificate.examined for solution in passes.values()),
        any_schedule=any_schedule,
        memory=why.memory,
        least_traffic=instead("least_traffic"),
        shipped=instead("shipped"),
    )
    launches = [
        _launched(question.in_direction(direction, solution.options), solution)
        for direction, solution in passes.items()
    ]
    kernels = [kernel for launch in launches for kernel in launch.kernels]
    distinct, capacity = compulsory(algorithm, workload).bytes, question.rates.cached
    return {
        "certificate": certificate,
        "budget": slower.budget,
        "saturated": all(solution.saturated for solution in passes.values()),
        "placed": slower.placed,
        "known_dram_bytes": dram_interval(kernels, distinct, cost.hbm_bytes, capacity),
    }


def _launched(question: Question, solution: Solution) -> TimedLaunch:
    """Time the tiles of one pass by the kernels that they are of."""
    known = question.algorithm.implementations
    named = next((each for each in known if each.name == solution.implementation), TEXTBOOK)
    asked = question if question.implementation is not None else question.by(named)
    return asked.choosing(solution.options).launched(solution.tiles)


def _timed(question: Question, solution: Solution) -> Solution:
    """Add the time of a pass that no kernel of the device runs."""
    if solution.timed:
        return solution
    return replace(solution, known_seconds=seconds_of(_launched(question, solution).times, question.parameters))
