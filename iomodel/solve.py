"""Tiles with proven least HBM bytes under a memory budget, and the certificate that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from iomodel.bounds import best_bound
from iomodel.budget import budget_of
from iomodel.certificate import Certificate, RunnerUp, binding, steps
from iomodel.cost import cost_at, tally_for
from iomodel.coverage import View
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.expressions import kind_of, structural
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.problem import Found
from iomodel.question import Asked, PartFormulas, most_kv, parts_for, ranges_for
from iomodel.residency import Residency
from iomodel.search import search
from iomodel.solution import Solution
from iomodel.symbols import BY_NAME, NAME_OF
from iomodel.validation import as_integer, finite
from iomodel.workload import Attention, VarlenAttention


def solve(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None = None,
    *,
    sram_bytes: int | None = None,
    sram_elements: int | None = None,
    alignment: int | None = None,
    min_block_kv: int | None = None,
    epsilon: float = 0.0,
    residency: str | Residency | None = None,
    min_blocks_per_sm: int = 1,
    objective: Literal["traffic", "time"] = "traffic",
    **options: Any,
) -> Solution:
    """Find the tiles that move the fewest HBM bytes in the memory given; proven, not searched for in part.

    Every integer tile that is a multiple of `alignment` competes, up to the first that covers its axis. Of tiles with
    equal traffic the one with the larger block_kv wins, then the smaller footprint, then the smaller block_q.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`. Standard attention is solved as tiled products.
    workload : Attention or VarlenAttention
        The attention call.
    hardware : Hardware or str, optional
        A device, whose on-chip memory for one thread block is the budget.
    sram_bytes, sram_elements : int, optional
        A bare budget in place of a device [B], [elements] (the papers' M).
    alignment : int, optional
        Tiles are multiples of it [rows]: that of the device (16) by default, 1 for a bare budget.
    min_block_kv : int, optional
        The least block_kv allowed [rows]; a tile that covers all keys always is.
    epsilon : float
        The share of the least traffic that may be given up for the largest block_kv [-].
    residency : "gpu" or Residency, optional
        Where the tiles lie on the device: as the algorithm's kernels have them ("gpu"), or as declared in a
        :class:`iomodel.Residency`. Shared memory, registers, threads and the shape of the matrix instructions then
        bind, and warps and stages are chosen too: of tiles with equal traffic and block_kv, the one of which an SM
        takes more blocks, then less shared memory, fewer warps, fewer stages. Needs `hardware`.
    min_blocks_per_sm : int
        With a residency, how many blocks an SM is to take at least [-].
    objective : {"traffic", "time"}
        What is to be least: bytes, proven; or, with a residency, the time of the model of :func:`iomodel.estimate`,
        of every tile that fits. Of tiles that take equally long the one with less traffic wins.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    InfeasibleError
        No tile fits; its `least` is the least budget that would do.
    UnknownNameError, InputError
        An unknown name; a value out of range; not exactly one budget.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> s = iomodel.solve("flash2", w, sram_elements=51200, lse=False)
    >>> dict(s.tiles), s.cost.hbm_elements, s.certificate.binding
    ({'block_q': 373, 'block_kv': 5}, 6291456, 'sram')
    """
    share = share_of(epsilon)
    if not isinstance(objective, str) or objective not in ("traffic", "time"):
        raise UnknownNameError("objective", objective, ["traffic", "time"])
    if objective == "time":
        if residency is None or epsilon:
            given = f"epsilon {epsilon}" if epsilon else "no residency"
            raise InputError(f"objective: 'time' given with {given}; allowed: with residency='gpu', without epsilon")
        from iomodel.fastest import solve_fastest  # the time model, which no other question needs

        return solve_fastest(algorithm, workload, hardware, residency, min_block_kv, min_blocks_per_sm, options)
    if residency is not None:
        if sram_bytes is not None or sram_elements is not None or alignment is not None:
            raise InputError(
                "residency: given with sram_bytes, sram_elements or alignment; allowed: with hardware alone"
            )
        from iomodel.resident import solve_resident

        return solve_resident(algorithm, workload, hardware, residency, min_block_kv, min_blocks_per_sm, share, options)
    if as_integer("min_blocks_per_sm", min_blocks_per_sm) != 1:
        raise InputError(f"min_blocks_per_sm: {shown(min_blocks_per_sm)} given; allowed: with a residency")
    budget = budget_of(hardware, sram_bytes, sram_elements, alignment)
    tally, complete = tally_for(algorithm, workload, options, tiled=True)
    if min_block_kv is not None and "block_kv" not in tally.tiles:
        raise UnknownNameError(f"tile of {algorithm}", "block_kv", tally.tiles)
    least_kv = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    kind = kind_of(workload)
    ask = Asked(workload, tuple(complete[name] for name in tally.numbers), tally.numbers)
    compiled = parts_for(algorithm, kind, structural(complete), tally.numbers, budget.unit)
    formulas = compiled.formulas
    view = View(kind.mask, complete["packed"])
    ranges = ranges_for(compiled, view, ask, budget.alignment, least_kv, most_kv(ask, complete, budget.alignment))
    problems = [formula.problem(ask, ranges, budget.amount) for formula in formulas]
    least = max(
        [problem.least_footprint for problem in problems] + [*compiled.rest.scalars(ask.longest, ask.numbers, ())]
    )
    if least > budget.amount:
        raise InfeasibleError(
            f"{algorithm}: no tile fits {budget}; the least that would do is {least:,} {budget.unit}",
            least=least,
            unit=budget.unit,
        )
    found = [result for problem in problems if (result := search(problem, share)) is not None]
    tiles = _named(formulas, found, tally.tiles)
    cost = cost_at(tally, workload, tiles, complete)
    total_least = cost.hbm_bytes - sum(result.bytes - result.least for result in found)

    def footprint(at: Mapping[str, int]) -> int:
        at = {"no_tile": 1, **at}
        return max(
            problem.footprint(at[NAME_OF[formula.part.outer]], at[NAME_OF[formula.part.inner]])
            for problem, formula in zip(problems, formulas, strict=True)
        )

    too_large = steps(tiles, ranges, footprint, budget.amount)
    bound = best_bound(algorithm, workload, budget.elements(min(workload.element_size, workload.kv_element_size)))
    certificate = Certificate(
        binding=binding(tiles, ranges, too_large),
        next_step=too_large[0],
        runner_up=_runner_up(formulas, found, tally.tiles, total_least),
        least_hbm_bytes=total_least,
        lower_bound=bound,
        ratio=cost.hbm_bytes / bound.bytes,
        examined=sum(f.examined for f in found),
    )
    saturated = footprint({name: sizes.last for name, sizes in ranges.items()}) <= budget.amount
    return Solution(algorithm, cost.tiles, cost, certificate, budget, float(epsilon), saturated)


def _named(formulas: Sequence[PartFormulas], found: list[Found], order: tuple[str, ...]) -> dict[str, int]:
    """The tiles of all parts, in the order of the alphabet."""
    sizes: dict[Any, int] = {}
    for formula, result in zip(formulas, found, strict=True):
        sizes |= dict(zip((formula.part.outer, formula.part.inner), result.tile, strict=True))
    return {name: sizes[BY_NAME[name]] for name in order}


def _runner_up(
    formulas: Sequence[PartFormulas], found: list[Found], order: tuple[str, ...], total: int
) -> RunnerUp | None:
    """The cheapest way to move more than the least: one part steps to its own runner-up, the others stay least."""
    steps_up = [
        (result.runner_up_bytes - result.least, i, result.runner_up)
        for i, result in enumerate(found)
        if result.runner_up is not None and result.runner_up_bytes is not None
    ]
    if not steps_up:
        return None
    more, which, tile = min(steps_up)
    chosen = [
        Found(tile if i == which else result.least_tile, 0, 0, result.least_tile, None, None, 0)
        for i, result in enumerate(found)
    ]
    return RunnerUp(FrozenDict(_named(formulas, chosen, order)), total + more)


def share_of(epsilon: object) -> Fraction:
    """The share of traffic that may be given up, or InputError."""
    if not finite(epsilon) or epsilon < 0:
        raise InputError(f"epsilon: {shown(epsilon)} given; allowed: a share of traffic from 0 up, such as 0.05")
    return Fraction(str(epsilon))  # the decimal that was written, not the nearest binary fraction
