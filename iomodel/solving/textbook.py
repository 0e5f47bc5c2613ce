"""Tiles of least traffic under one memory budget, with proof: the textbook's machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InfeasibleError
from iomodel.solving.certificate import Certificate, RunnerUp, binding, steps
from iomodel.solving.parts import PartFormulas
from iomodel.solving.problem import SearchResult, Tile
from iomodel.solving.question import Question
from iomodel.solving.search import search
from iomodel.solving.solution import Solution


def solve_textbook(
    question: Question,
    share: Fraction = Fraction(0),
    notes: tuple[str, ...] = (),
    faster: Mapping[str, int] | None = None,
) -> Solution:
    """Solve for the least traffic in one memory, as :func:`iomodel.solve` with the textbook's implementation.

    The solution has the tiles of least traffic, or `faster` ones, which it compares with these.
    """
    algorithm, budget = question.algorithm, question.budget
    bound, (compiled, ranges) = question.bound, question.tileable
    formulas, order = compiled.formulas, bound.compiled.tiles
    problems = [formula.problem(bound, ranges, budget.amount) for formula in formulas]
    rest = compiled.rest.scalars(bound.workload.longest, bound.numbers, ())
    least = max(*(problem.least_footprint for problem in problems), *rest)
    if least > budget.amount:
        raise InfeasibleError(
            f"{algorithm}: no tile fits {budget}; the smallest feasible budget is {least:,} {budget.unit}"
            + "".join(f"; {note}" for note in notes)
            + f"; iomodel.estimate times {algorithm} without tiles" * bool(question.hardware and algorithm.tiled_by),
            least=least,
            unit=budget.unit,
        )
    results = [result for problem in problems if (result := search(problem, share)) is not None]
    fixed = {name: ranges[name].first for formula in formulas for name in formula.least}
    chosen = named_tiles(formulas, [result.tile for result in results], order)
    cost = bound.cost({**chosen, **fixed})
    total_least = cost.hbm_bytes - sum(result.bytes - result.least for result in results)
    fewest = None
    if faster is not None and faster != {**chosen, **fixed}:
        fewest = RunnerUp(cost.tiles, total_least)
        chosen, fixed = ({name: faster[name] for name in sizes} for sizes in (chosen, fixed))
        cost = bound.cost(faster)

    def footprint(at: Mapping[str, int]) -> int:
        at = {"no_tile": 1, **fixed, **at}
        return max(formula.occupied(bound, at) for formula in formulas)

    too_large = steps(chosen, ranges, footprint, budget.amount)
    lower, any_schedule = question.lower_bounds
    limit = binding(chosen, ranges, too_large)
    certificate = Certificate(
        binding="time" if fewest is not None and limit == "traffic" else limit,
        next_step=too_large[0],
        runner_up=None if fewest is not None else _runner_up(formulas, results, order, total_least, fixed),
        least_hbm_bytes=total_least,
        lower_bound=lower,
        ratio=cost.hbm_bytes / lower.bytes,
        examined=sum(f.examined for f in results),
        any_schedule=any_schedule,
        memory=budget.amount,
        least_traffic=fewest,
    )
    largest = {name: sizes.last for name, sizes in ranges.items() if name not in fixed}
    saturated = footprint(largest) <= budget.amount
    return Solution(question.name, cost.tiles, cost, certificate, budget, float(share), saturated, notes=notes)


def named_tiles(formulas: Sequence[PartFormulas], tiles: Iterable[Tile], order: tuple[str, ...]) -> dict[str, int]:
    """Return the tiles of all searched parts by name, in the order of the alphabet."""
    sizes: dict[str, int] = {}
    for formula, tile in zip(formulas, tiles, strict=True):
        sizes |= dict(zip(formula.names, tile, strict=True))
    return {name: sizes[name] for name in order if name in sizes}


def _runner_up(
    formulas: Sequence[PartFormulas],
    results: list[SearchResult],
    order: tuple[str, ...],
    total: int,
    fixed: Mapping[str, int],
) -> RunnerUp | None:
    """Return the cheapest tiles above the least traffic: one part takes its runner-up, the others their least."""
    steps_up = [
        (result.runner_up_bytes - result.least, i, result.runner_up)
        for i, result in enumerate(results)
        if result.runner_up is not None and result.runner_up_bytes is not None
    ]
    if not steps_up:
        return None
    more, which, tile = min(steps_up)
    chosen = [tile if i == which else result.least_tile for i, result in enumerate(results)]
    return RunnerUp(FrozenDict({**named_tiles(formulas, chosen, order), **fixed}), total + more)
