"""Map of two tiles: traffic, feasibility, and use of every resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.display import sizes_text
from iomodel.common.validation import as_integer
from iomodel.counting.cost import cost
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.alphabet import LAUNCH
from iomodel.nests.implementation import TEXTBOOK, Implementation
from iomodel.placement.check import Check
from iomodel.placement.placement import Launch, layouts_for, placements
from iomodel.solving.question import Question
from iomodel.solving.solution import Solution
from iomodel.solving.solve import solve
from iomodel.studies.check import check
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.varlen import VarlenAttention, as_call

MOST = 40
"""Most sizes of each tile on a map; more are thinned out to even ratios."""
_LAUNCH = tuple(entry.name for entry in LAUNCH)


@dataclass(frozen=True)
class TileMap:
    """Two tiles varied against each other, all others as in the solution.

    Attributes
    ----------
    solution : Solution
        Tiles of least traffic, which are on the map.
    names : tuple of str
        Names of the two tiles; sizes of the first are the rows of the map.
    rows, columns : list of int
        Sizes of the two tiles [rows].
    traffic : array of float
        Requests, NaN for tiles that the algorithm does not support [B].
    fits : array of bool
        True for tiles that fit.
    shares : mapping of resource to array of float
        Share of each resource that the tile uses [-]; above 1 if exceeded.
    misfit : str
        Reason for which a tile within all limits may still not fit.
    notes : tuple of str
        Further restrictions.
    """

    solution: Solution
    names: tuple[str, str]
    rows: list[int]
    columns: list[int]
    traffic: NDArray[np.float64]
    fits: NDArray[np.bool_]
    shares: Mapping[str, NDArray[np.float64]]
    misfit: str
    notes: tuple[str, ...]


Judged = tuple[bool, Mapping[str, float]]
"""True if a tile fits, and its share of each resource."""


def tile_map(
    algorithm: AlgorithmLike,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    implementation: str | Implementation | None,
    launch: Mapping[str, int],
    budget: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TileMap:
    """Build the map around the tiles of least traffic."""
    device = None if hardware is None else as_device(hardware)
    kernels = TEXTBOOK
    if device is not None and not budget:
        kernels = Question.ask(algorithm, as_call(workload), device, implementation, options).library
    elif not isinstance(implementation, str | Implementation | None) or (
        implementation not in (None, TEXTBOOK, TEXTBOOK.name)
    ):
        raise InputError("implementation: given with another budget; allowed: with hardware alone")
    if not kernels.residency or device is None:
        if launch:
            raise InputError(f"{next(iter(launch))}: given; allowed: only with an implementation, on a device")
        solution = solve(algorithm, as_call(workload), device, implementation=TEXTBOOK, **budget, **options)
        bound = Question.ask(algorithm, solution.cost.workload, device, options=options).bound
        step, amount, unit = (solution.budget.alignment,) * 2, solution.budget.amount, solution.budget.unit

        def judge(sizes: Mapping[str, int]) -> Judged:
            counted = bound.at(sizes)
            used = counted.footprint_bytes if unit == "B" else counted.footprint_elements
            return used <= amount, {"SRAM": used / amount}

        return _mapped(solution, step, judge, options, ())
    call = as_attention(workload)
    solution, kernel = _launched(algorithm, call, device, kernels, launch, options)
    placed = solution.placed
    assert placed is not None  # of a solution with an implementation
    threads = placed.resources["threads"]
    chosen = {name: placed.tiles[name] for name in _LAUNCH}

    def judge_resident(sizes: Mapping[str, int]) -> Judged:
        checked = check(algorithm, call, device, {**sizes, **chosen}, kernel, **options)
        return checked.fits, _shares(checked)

    steps = _steps(algorithm, call, device, kernel, chosen["warps"], options)
    notes = (
        f"{chosen['warps']} warps, {chosen['stages']} stage{'s' * (chosen['stages'] > 1)}: "
        f"{threads.used:,} of {threads.limit:,} threads",
        f"MMA steps {steps[0]} x {steps[1]}",
    )
    return _mapped(solution, steps, judge_resident, options, notes)


def _shares(checked: Check) -> dict[str, float]:
    return {
        name: checked.resources[name].used / checked.resources[name].limit for name in ("shared memory", "registers")
    }


def _launched(
    algorithm: AlgorithmLike,
    call: Attention,
    device: Hardware,
    kernels: Implementation,
    launch: Mapping[str, int],
    options: Mapping[str, Any],
) -> tuple[Solution, Implementation]:
    """Find the tiles of least traffic with the given warps and stages, and the kernel of these tiles."""
    fixed: dict[str, Any] = {name: (as_integer(name, size),) for name, size in launch.items()}
    solutions, failure = [], None
    for layout in layouts_for(find_algorithm(algorithm), call, device, kernels):
        kernel = replace(kernels, residency={call.direction: (replace(layout, **fixed) if fixed else layout,)})
        try:
            solution = solve(algorithm, call, device, implementation=kernel, objective="traffic", **options)
        except (InfeasibleError, InputError) as error:
            failure = error
        else:
            solutions.append((solution, kernel))
    if failure is not None and not solutions:
        raise failure
    return min(solutions, key=lambda pair: (pair[0].cost.hbm_bytes, -list(pair[0].tiles.values())[1]))


def _steps(
    algorithm: AlgorithmLike,
    call: Attention,
    device: Hardware,
    kernel: Implementation,
    warps: int,
    options: Mapping[str, Any],
) -> tuple[int, int]:
    """Compute the steps that tiles are multiples of in every layout of the warps [rows]."""
    bound = Question.ask(algorithm, call, device, options=options).bound
    (placed,) = placements(bound.algorithm, call, device, kernel, dict(bound.structure), bound.kind)
    layout = placed.residency
    steps = [placed.steps(Launch(layout, warps, along, min(layout.stages))) for along in placed.layouts(warps)]
    return gcd(*(query for query, _ in steps)), gcd(*(key for _, key in steps))


def _mapped(
    solution: Solution,
    steps: tuple[int, int],
    judge: Callable[[Mapping[str, int]], Judged],
    options: Mapping[str, Any],
    notes: tuple[str, ...],
) -> TileMap:
    chosen = {name: size for name, size in solution.tiles.items() if name not in _LAUNCH}
    if len(chosen) < 2:
        raise InputError(f"algorithm: {solution.algorithm} given; allowed: an algorithm with two tiles")
    first, second, *_ = chosen
    call = solution.cost.workload
    longest = max(call.q_len * call.group, call.kv_len, call.head_dim) if isinstance(call, Attention) else max(
        max(call.q_lens) * call.group, *call.kv_lens
    )  # fmt: skip

    def sizes(name: str, step: int, fixed: str, least: int) -> list[int]:
        def room(size: int) -> bool:
            return max(judge({**chosen, fixed: least, name: size})[1].values()) <= 1

        return _sizes(step, chosen[name], longest, room)

    rows, columns = sizes(first, steps[0], second, steps[1]), sizes(second, steps[1], first, steps[0])
    judged = [[judge({**chosen, first: u, second: v}) for v in columns] for u in rows]
    traffic = [[_bytes(solution, {**chosen, first: u, second: v}, options) for v in columns] for u in rows]
    shares = {name: np.array([[cell[1][name] for cell in row] for row in judged]) for name in judged[0][0][1]}
    fits = np.array([[cell[0] for cell in row] for row in judged]) & np.isfinite(np.array(traffic))
    misfit = "fewer tiles than splits" if solution.placed is None else "not a multiple of the MMA step of the warps"
    if len(chosen) > 2:
        notes += (sizes_text(dict(list(chosen.items())[2:])),)
    if not even(rows) or not even(columns):
        notes += ("not all sizes are drawn",)
    return TileMap(solution, (first, second), rows, columns, np.array(traffic), fits, shares, misfit, notes)


def _sizes(step: int, best: int, longest: int, room: Callable[[int], bool]) -> list[int]:
    """List multiples of a step up to a third beyond the largest that fits, or to the size that covers every axis."""
    last, covering = max(step, best), -(-longest // step) * step
    while last < covering and room(last):
        last *= 2
    low = last // 2
    while last - low > max(step, last // 64):
        middle = (low + last) // (2 * step) * step
        low, last = (middle, last) if room(middle) else (low, middle)
    top = max(2, min(-(-4 * last // (3 * step)), covering // step), best // step)  # in steps
    if top <= MOST:
        return [step * count for count in range(1, top + 1)]
    ratios = {round(top ** (number / (MOST - 1))) for number in range(MOST)}
    return sorted({step * count for count in ratios} | {best})


def _bytes(solution: Solution, sizes: Mapping[str, int], options: Mapping[str, Any]) -> float:
    try:
        return float(cost(solution.algorithm, solution.cost.workload, sizes, **options).hbm_bytes)
    except InputError:  # fewer tiles than splits
        return float("nan")


def even(sizes: Sequence[int]) -> bool:
    """Check that sizes are consecutive multiples of the first."""
    return list(sizes) == [sizes[0] * count for count in range(1, len(sizes) + 1)]


def ticks(sizes: Sequence[int], most: int) -> list[int]:
    """Select at most `most` of the sizes if evenly spaced, otherwise powers of two.

    >>> ticks([16, 32, 48, 64, 80], 3), ticks([16, 48, 256], 3)
    ([32, 64], [16, 64, 256])
    """
    if even(sizes):
        step = -(-len(sizes) // most)
        return list(sizes[step - 1 :: step])
    powers = [2**k for k in range(sizes[0].bit_length() - 1, sizes[-1].bit_length() + 1)]
    return powers[:: -(-len(powers) // most)]
