"""Tiles with proven least HBM bytes under a memory budget, with a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, finite
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.bounds import best_bound
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, UnknownNameError, shown
from iomodel.nests.residency import Residency
from iomodel.placement.budget import budget_of
from iomodel.solving.certificate import Certificate, RunnerUp, binding, steps
from iomodel.solving.parts import PartFormulas, most_kv, parts_for, ranges_for
from iomodel.solving.problem import SearchResult
from iomodel.solving.search import search
from iomodel.solving.solution import Solution
from iomodel.workloads.varlen import as_call
from iomodel.workloads.workload import Workload, as_workload


def solve(
    algorithm: AlgorithmLike,
    workload: Workload,
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
    """Find the tiles with the least HBM traffic in a given memory, with a proof of optimality.

    Every integer tile that is a multiple of `alignment` competes, up to the first that covers its axis. Of tiles with
    equal traffic the one with the larger block_kv wins, then the smaller footprint, then the smaller block_q; of a
    linear layer block_n and block_m in their place, and block_k, which costs no traffic, is as small as it may be.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`. Standard attention is solved as tiled products.
    workload : Attention, VarlenAttention or Linear
        The call.
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
        With a residency, the least number of blocks per SM [-].
    objective : {"traffic", "time"}
        The quantity minimised: bytes, with proof; or, with a residency, the time of the model of
        :func:`iomodel.estimate` over every tile that fits, and less traffic at equal time.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    InfeasibleError
        No tile fits; its `least` is the smallest feasible budget.
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
            obstacle = f"epsilon {epsilon}" if epsilon else "no residency"
            raise InputError(f"objective: 'time' given with {obstacle}; allowed: with residency='gpu', without epsilon")
        from iomodel.solving.fastest import solve_fastest  # imports the time model, for this objective alone

        return solve_fastest(
            algorithm, as_call(workload), hardware, residency, min_block_kv, min_blocks_per_sm, options
        )
    if residency is not None:
        if sram_bytes is not None or sram_elements is not None or alignment is not None:
            raise InputError(
                "residency: given with sram_bytes, sram_elements or alignment; allowed: with hardware alone"
            )
        from iomodel.solving.on_device import solve_resident

        return solve_resident(
            algorithm, as_call(workload), hardware, residency, min_block_kv, min_blocks_per_sm, share, options
        )
    if as_integer("min_blocks_per_sm", min_blocks_per_sm) != 1:
        raise InputError(f"min_blocks_per_sm: {shown(min_blocks_per_sm)} given; allowed: with a residency")
    budget = budget_of(hardware, sram_bytes, sram_elements, alignment)
    bound = BoundCall.bind(algorithm, as_workload(workload), options)
    if min_block_kv is not None and "block_kv" not in bound.compiled.tiles:
        raise UnknownNameError(f"tile of {algorithm}", "block_kv", bound.compiled.tiles)
    least_kv = 1 if min_block_kv is None else as_integer("min_block_kv", min_block_kv)
    compiled = parts_for(bound.algorithm, bound.kind, bound.structure, bound.compiled.numbers, budget.unit)
    formulas, order = compiled.formulas, bound.compiled.tiles
    ranges = ranges_for(compiled, bound, budget.alignment, least_kv, most_kv(bound, budget.alignment))
    problems = [formula.problem(bound, ranges, budget.amount) for formula in formulas]
    rest = compiled.rest.scalars(workload.longest, bound.numbers, ())
    least = max(*(problem.least_footprint for problem in problems), *rest)
    if least > budget.amount:
        raise InfeasibleError(
            f"{algorithm}: no tile fits {budget}; the smallest feasible budget is {least:,} {budget.unit}",
            least=least,
            unit=budget.unit,
        )
    results = [result for problem in problems if (result := search(problem, share)) is not None]
    fixed = {name: ranges[name].first for formula in formulas for name in formula.least}
    chosen = _named(formulas, results, order)
    cost = bound.cost({**chosen, **fixed})
    total_least = cost.hbm_bytes - sum(result.bytes - result.least for result in results)

    def footprint(at: Mapping[str, int]) -> int:
        at = {"no_tile": 1, **fixed, **at}
        return max(formula.occupied(bound, at) for formula in formulas)

    too_large = steps(chosen, ranges, footprint, budget.amount)
    lower = best_bound(algorithm, workload, budget.elements(workload.narrowest))
    certificate = Certificate(
        binding=binding(chosen, ranges, too_large),
        next_step=too_large[0],
        runner_up=_runner_up(formulas, results, order, total_least, fixed),
        least_hbm_bytes=total_least,
        lower_bound=lower,
        ratio=cost.hbm_bytes / lower.bytes,
        examined=sum(f.examined for f in results),
    )
    largest = {name: sizes.last for name, sizes in ranges.items() if name not in fixed}
    saturated = footprint(largest) <= budget.amount
    return Solution(name_of(algorithm), cost.tiles, cost, certificate, budget, float(epsilon), saturated)


def _named(formulas: Sequence[PartFormulas], results: list[SearchResult], order: tuple[str, ...]) -> dict[str, int]:
    """Return the tiles of all searched parts, in the order of the alphabet."""
    sizes: dict[str, int] = {}
    for formula, result in zip(formulas, results, strict=True):
        sizes |= dict(zip(formula.names, result.tile, strict=True))
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
    chosen = [
        SearchResult(tile if i == which else result.least_tile, 0, 0, result.least_tile, None, None, 0)
        for i, result in enumerate(results)
    ]
    return RunnerUp(FrozenDict({**_named(formulas, chosen, order), **fixed}), total + more)


def share_of(epsilon: object) -> Fraction:
    """Return the share of traffic as an exact fraction, or raise InputError."""
    if not finite(epsilon) or epsilon < 0:
        raise InputError(f"epsilon: {shown(epsilon)} given; allowed: a share of traffic from 0 up, such as 0.05")
    return Fraction(str(epsilon))  # the decimal as written, not the nearest binary fraction
