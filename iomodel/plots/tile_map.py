"""A map of tiles: the traffic of each, whether it fits, and how much of every resource it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.check import Check, as_device, as_residency, check
from iomodel.cost import cost, cost_at, tally_for
from iomodel.errors import InfeasibleError, InputError
from iomodel.expressions import kind_of, structural
from iomodel.hardware import Hardware
from iomodel.placement import Launch, placements
from iomodel.residency import Residency
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.symbols import LAUNCH
from iomodel.validation import as_integer
from iomodel.workload import Attention, VarlenAttention, as_attention, as_call

MOST = 40
"""Sizes of each tile on a map; where there would be more, they are thinned out in even ratios."""
_LAUNCH = tuple(entry.name for entry in LAUNCH)


@dataclass(frozen=True)
class TileMap:
    """Two tiles against each other, all others as in the solution.

    Attributes
    ----------
    solution : Solution
        The tiles of least traffic, which are on the map.
    names : tuple of str
        The two tiles: the first one's sizes are the rows of the map.
    rows, columns : list of int
        The sizes [rows].
    traffic : array of float
        HBM traffic, NaN where the algorithm takes no such tile [B].
    fits : array of bool
        Whether the tile fits.
    shares : mapping of resource to array of float
        What the tile takes of each resource, over what there is [-]; above 1 where it is exceeded.
    misfit : str
        Why a tile that exceeds nothing may still not fit.
    notes : tuple of str
        What else is to be kept to.
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
"""Whether a tile fits, and its share of each resource."""


def tile_map(
    algorithm: str,
    workload: Attention | VarlenAttention,
    hardware: Hardware | str | None,
    residency: str | Residency | None,
    launch: Mapping[str, int],
    budget: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TileMap:
    """The map around the tiles of least traffic."""
    if residency is None:
        if launch:
            raise InputError(f"{next(iter(launch))}: given without a residency; allowed: with residency='gpu'")
        solution = solve(algorithm, as_call(workload), hardware, **budget, **options)
        tally, complete = tally_for(algorithm, solution.cost.workload, options, tiled=True)
        step, amount, unit = (solution.budget.alignment,) * 2, solution.budget.amount, solution.budget.unit

        def judge(sizes: Mapping[str, int]) -> Judged:
            counted = cost_at(tally, solution.cost.workload, {name: sizes[name] for name in tally.tiles}, complete)
            used = counted.footprint_bytes if unit == "B" else counted.footprint_elements
            return used <= amount, {"SRAM": used / amount}

        return _mapped(solution, step, judge, options, ())
    if hardware is None:
        raise InputError("hardware: none given; residency needs a device, such as hardware('h100-sxm5')")
    call, device = as_attention(workload), as_device(hardware)
    solution, lying = _launched(algorithm, call, device, residency, launch, budget, options)
    placed = solution.placed
    assert placed is not None  # of a solution with a residency
    threads = placed.resources["threads"]
    chosen = {name: placed.tiles[name] for name in _LAUNCH}

    def judge_resident(sizes: Mapping[str, int]) -> Judged:
        looked = check(algorithm, call, device, {**sizes, **chosen}, lying, **options)
        return looked.fits, _shares(looked)

    steps = _steps(algorithm, call, device, lying, chosen["warps"], options)
    notes = (
        f"{chosen['warps']} warps, {chosen['stages']} stage{'s' * (chosen['stages'] > 1)}: "
        f"{threads.used:,} of {threads.limit:,} threads",
        f"MMA steps {steps[0]} x {steps[1]}",
    )
    return _mapped(solution, steps, judge_resident, options, notes)


def _shares(looked: Check) -> dict[str, float]:
    return {name: looked.resources[name].used / looked.resources[name].limit for name in ("shared memory", "registers")}


def _launched(
    algorithm: str,
    call: Attention,
    device: Hardware,
    residency: str | Residency,
    launch: Mapping[str, int],
    budget: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Solution, Residency]:
    """The tiles of least traffic with the warps and stages given, and the residency that they have."""
    as_residency(residency)
    known = find_algorithm(algorithm).residency.get(call.direction, ())
    ways = [residency] if isinstance(residency, Residency) else list(known)
    if not launch or not ways:  # without ways, the solver says what is declared
        solution = solve(algorithm, call, device, residency=residency, **budget, **options)
        assert solution.placed is not None  # of a solution with a residency
        return solution, next(way for way in ways if way.title == solution.placed.residency)
    wanted = {name: (as_integer(name, size),) for name, size in launch.items()}
    found, failure = [], None
    for way in ways:
        narrowed = replace(way, **wanted)
        try:
            found.append((solve(algorithm, call, device, residency=narrowed, **budget, **options), narrowed))
        except (InfeasibleError, InputError) as error:
            failure = error
    if failure is not None and not found:
        raise failure
    return min(found, key=lambda pair: (pair[0].cost.hbm_bytes, -list(pair[0].tiles.values())[1]))


def _steps(
    algorithm: str, call: Attention, device: Hardware, lying: Residency, warps: int, options: Mapping[str, Any]
) -> tuple[int, int]:
    """The steps that a tile is a multiple of, whichever way the warps lie over it [rows]."""
    _, complete = tally_for(algorithm, call, options, tiled=True)
    (placed,) = placements(algorithm, call, device, lying, dict(structural(complete)), kind_of(call))
    steps = [placed.steps(Launch(lying, warps, along, min(lying.stages))) for along in placed.layouts(warps)]
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
        raise InputError(f"algorithm: {solution.algorithm} given; allowed: one with two tiles")
    one, other, *_ = chosen
    call = solution.cost.workload
    longest = max(call.q_len * call.group, call.kv_len, call.head_dim) if isinstance(call, Attention) else max(
        max(call.q_lens) * call.group, *call.kv_lens
    )  # fmt: skip

    def sizes(name: str, step: int, beside: str, least: int) -> list[int]:
        def room(size: int) -> bool:
            return max(judge({**chosen, beside: least, name: size})[1].values()) <= 1

        return _sizes(step, chosen[name], longest, room)

    rows, columns = sizes(one, steps[0], other, steps[1]), sizes(other, steps[1], one, steps[0])
    judged = [[judge({**chosen, one: u, other: v}) for v in columns] for u in rows]
    traffic = [[_bytes(solution, {**chosen, one: u, other: v}, options) for v in columns] for u in rows]
    shares = {name: np.array([[cell[1][name] for cell in row] for row in judged]) for name in judged[0][0][1]}
    fits = np.array([[cell[0] for cell in row] for row in judged]) & np.isfinite(np.array(traffic))
    misfit = "fewer tiles than splits" if solution.placed is None else "no multiple of what the warps multiply"
    if len(chosen) > 2:
        notes += (", ".join(f"{name} = {size}" for name, size in list(chosen.items())[2:]),)
    if not even(rows) or not even(columns):
        notes += ("not every size is drawn",)
    return TileMap(solution, (one, other), rows, columns, np.array(traffic), fits, shares, misfit, notes)


def _sizes(step: int, best: int, longest: int, room: Callable[[int], bool]) -> list[int]:
    """Multiples of a step up to a third beyond the largest there is room for, or to where a tile covers every axis."""
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
    """Whether sizes are all multiples of the first up to the last."""
    return list(sizes) == [sizes[0] * count for count in range(1, len(sizes) + 1)]


def ticks(sizes: Sequence[int], most: int) -> list[int]:
    """At most so many of some sizes if they are even, powers of two if not.

    >>> ticks([16, 32, 48, 64, 80], 3), ticks([16, 48, 256], 3)
    ([32, 64], [16, 64, 256])
    """
    if even(sizes):
        step = -(-len(sizes) // most)
        return list(sizes[step - 1 :: step])
    powers = [2**k for k in range(sizes[0].bit_length() - 1, sizes[-1].bit_length() + 1)]
    return powers[:: -(-len(powers) // most)]
