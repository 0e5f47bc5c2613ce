"""Tiles of least time of a call in both directions: those of the forward and of the backward pass together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from iomodel.counting.cost import Cost
from iomodel.nests.implementation import TEXTBOOK
from iomodel.solving.by_pass import in_turn, in_whole, joined
from iomodel.solving.certificate import Certificate, RunnerUp
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.timing.clock import TimedLaunch
from iomodel.timing.totals import dram_interval, seconds_of

Passes = Mapping[str, Solution]


def solve_both(question: Question, solve_pass: Callable[[Question], Solution], top: int) -> Solution:
    """Solve each pass, the forward pass first: the backward pass takes the options that it chose.

    Each kernel takes its fastest launch, so that the tiles name no warps and stages.
    """

    def solved(part: Question) -> tuple[Solution, Mapping[str, Any]]:
        solution = solve_pass(part)
        return _timed(part, solution), {name: solution.options[name] for name in solution.searched}

    passes, chosen = in_turn(question, solved)
    bound = question.adding(chosen).bound
    best = _joined(bound.tiles, {direction: as_runner_up(solution) for direction, solution in passes.items()})
    solutions = passes.values()
    cost = bound.cost(best.tiles)
    return Solution.comparing(
        lambda: _whole(question, bound.tiles, passes, cost),
        algorithm=question.name,
        tiles=best.tiles,
        cost=cost,
        implementation=" and ".join(dict.fromkeys(solution.implementation for solution in solutions)),
        known_seconds=best.seconds,
        searched=tuple(dict.fromkeys(name for solution in solutions for name in solution.searched)),
        ranked=_ranked(bound.tiles, passes, top) if top > 1 else (),
        notes=tuple(dict.fromkeys(note for solution in solutions for note in solution.notes)),
        hardware=question.device,
    )


def as_runner_up(solution: Solution) -> RunnerUp:
    """Return the tiles of a solution with their requests and time."""
    return RunnerUp(solution.tiles, solution.cost.hbm_bytes, solution.known_seconds)


def _joined(names: Sequence[str], passes: Mapping[str, RunnerUp]) -> RunnerUp:
    """Join the tiles of both passes under their names in a call of both, and add their requests and times."""
    requested = sum(choice.hbm_bytes for choice in passes.values())
    tiles = joined(names, {direction: choice.tiles for direction, choice in passes.items()})
    return RunnerUp(tiles, requested, sum(_seconds(choice) for choice in passes.values()))


def _ranked(names: Sequence[str], passes: Passes, top: int) -> tuple[RunnerUp, ...]:
    """Return the chosen pair of tiles, then the fastest others."""
    pairs = product(*(solution.ranked for solution in passes.values()))
    chosen, *others = (_joined(names, dict(zip(passes, pair, strict=True))) for pair in pairs)
    distinct = {one.tiles: one for one in sorted(others, key=_seconds, reverse=True) if one.tiles != chosen.tiles}
    return (chosen, *sorted(distinct.values(), key=_seconds))[:top]


def _seconds(choice: RunnerUp) -> float:
    return choice.seconds or 0.0


def _whole(question: Question, names: Sequence[str], passes: Passes, cost: Cost) -> Mapping[str, Any]:
    """Compute the fields that compare tiles; the limits on their growth are those of the slower pass."""
    slower_direction, slower = max(passes.items(), key=lambda entry: entry[1].seconds or 0.0)
    why = slower.certificate
    chosen = {direction: as_runner_up(solution) for direction, solution in passes.items()}
    others = [
        _joined(names, {**chosen, direction: solution.certificate.runner_up})
        for direction, solution in passes.items()
        if solution.certificate.runner_up is not None
    ]
    second = min(others, key=_seconds, default=None)

    def instead(kind: str) -> RunnerUp | None:
        found = {direction: getattr(solution.certificate, kind) for direction, solution in passes.items()}
        if not any(found.values()):
            return None
        return _joined(names, {direction: found[direction] or chosen[direction] for direction in passes})

    lower, any_schedule = (question.by(TEXTBOOK) if slower.placed is None else question).lower_bounds
    certificate = Certificate(
        binding=why.binding,
        next_step=replace(why.next_step, tile=in_whole(names, slower_direction, why.next_step.tile)),
        runner_up=second,
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
        _launched(question.choosing(solution.options).each_pass[direction], solution)
        for direction, solution in passes.items()
    ]
    kernels = [kernel for launch in launches for kernel in launch.kernels]
    distinct, capacity = question.compulsory.bytes, question.rates.cached
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
