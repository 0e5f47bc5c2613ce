"""Tiles of least time on the textbook's machine: those of a call on a device without a kernel for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.nests.algorithm import Algorithm, AlgorithmLike
from iomodel.nests.implementation import PACKED, TEXTBOOK
from iomodel.placement.budget import budget_of
from iomodel.placement.implementations import no_kernel
from iomodel.solving.best_choice import Choice, best_choice
from iomodel.solving.solution import Solution
from iomodel.solving.textbook import solve_textbook
from iomodel.timing.clock import clock_for
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.totals import seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Workload

STARTS = (1, 2, 4, 8)
"""Multiples of the smallest tiles at which further descents start."""
LARGEST = 1024
"""The largest power of two tried for a tile, unless the start of the descent is larger [rows]."""


def textbook_choice(
    algorithm: Algorithm,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    options: Mapping[str, Any],
    searches: bool = True,
    min_block_kv: int | None = None,
) -> Choice:
    """Choose the tiles of a call on the textbook's machine, with the options that go with them.

    They are the tiles of least traffic, under the fastest packing and numbers that the algorithm has searched unless
    `searches` is False. The tiles of an approximation, and of a workload other than attention, change little traffic,
    but the number of concurrent blocks: a coordinate descent over powers of two, and over the numbers that the
    algorithm has searched, starts from the tiles of least traffic and from small tiles.
    """
    if searches and isinstance(call, Attention | VarlenAttention) and algorithm.searched and not algorithm.approximates:
        fastest = _fastest_of_least_traffic(algorithm, call, device, min_block_kv, options, parameters)
        if fastest is not None:
            return fastest
    tiles = _least_traffic(algorithm, call, device, min_block_kv, options)
    descends = not isinstance(call, Call) or (algorithm.approximates and isinstance(call, Attention))
    if descends and min_block_kv is None:
        return _quicker(tiles, algorithm, call, device, parameters, dict(options))
    return tiles, options


def solve_on_textbook(
    algorithm: AlgorithmLike, call: Workload, device: Hardware, min_block_kv: int | None, options: Mapping[str, Any]
) -> Solution | None:
    """Solve a call on a device without a kernel for it, as :func:`iomodel.solve` does without an objective.

    It returns None where the least traffic decides alone: on a device without the rates of a time, and for a call
    whose tiles and options :func:`textbook_choice` does not search.
    """
    declaration = find_algorithm(algorithm)
    plain = isinstance(call, Call) and not (declaration.searched or declaration.approximates)
    if plain or isinstance(call, Linear):
        return None
    try:
        known = rates(device, call.dtype)
    except SpecError:
        return None
    tiles, chosen = textbook_choice(declaration, call, device, DEFAULT, options, min_block_kv=min_block_kv)
    notes = (no_kernel(declaration, call, device),)
    budget = budget_of(device, None, None, None)
    solution = solve_textbook(declaration, call, budget, min_block_kv, Fraction(0), chosen, notes, faster=tiles)
    bound = BoundCall.bind(declaration, call, chosen)
    clock = clock_for(declaration, call, device, bound.options, DEFAULT, known, TEXTBOOK)
    return replace(
        solution,
        seconds=seconds_of(clock.fastest(bound.sizes(tiles), {}).times, DEFAULT),
        searched=tuple(name for name in chosen if name not in options),
    )


def _least_traffic(
    algorithm: Algorithm, call: Workload, device: Hardware, min_block_kv: int | None, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Solve for the tiles of least traffic in the memory of a device."""
    budget = budget_of(device, None, None, None)
    notes = (no_kernel(algorithm, call, device),)
    return solve_textbook(algorithm, call, budget, min_block_kv, Fraction(0), options, notes).tiles


def _fastest_of_least_traffic(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    min_block_kv: int | None,
    options: Mapping[str, Any],
    parameters: Parameters,
) -> Choice | None:
    """Return the fastest of the searched numbers and of packing, each at its tiles of least traffic in one memory."""

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        try:
            return _least_traffic(algorithm, call, device, min_block_kv, chosen)
        except (InfeasibleError, InputError):  # a split of less than a tile of keys, too
            return None

    kernels = replace(TEXTBOOK, searched={**algorithm.searched, **PACKED})
    return best_choice(algorithm, call, device, kernels, options, parameters, tile)


def _quicker(
    start: Mapping[str, int],
    algorithm: Algorithm,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    options: dict[str, Any],
) -> Choice:
    """Descend to tiles and numbers of `searched` that no replacement of one of them makes faster."""
    names = BoundCall.bind(algorithm, call, options).tiles
    numbers = {name: sizes for name, sizes in algorithm.searched.items() if name not in options}
    known, step = rates(device, call.dtype), budget_of(device, None, None, None).alignment

    def seconds(point: Mapping[str, int]) -> float:
        chosen = {**options, **{name: point[name] for name in numbers}}
        try:
            bound = BoundCall.bind(algorithm, call, chosen)
            tiles = bound.sizes({name: point[name] for name in names})
            clock = clock_for(algorithm, call, device, bound.options, parameters, known, "textbook")
            return clock.fastest(tiles, {}).seconds
        except (InfeasibleError, InputError):
            return inf

    def candidates(name: str) -> Iterator[int]:
        size = step
        while name in names and size <= max(LARGEST, start[name]):
            yield size
            size *= 2
        yield from numbers.get(name, ())

    def descended(best: dict[str, int]) -> tuple[float, dict[str, int]]:
        least, changed = seconds(best), True
        while changed:
            changed = False
            for name in best:
                for size in candidates(name):
                    time = seconds({**best, name: size})
                    if time < least:
                        least, changed, best = time, True, {**best, name: size}
        return least, best

    # All kernels share an SM by the largest footprint: a descent from large tiles alone would stay there.
    unsearched = {name: algorithm.options[name] for name in numbers}
    points = [{name: start[name] for name in names}, *(dict.fromkeys(names, step * times) for times in STARTS)]
    best = min((descended({**point, **unsearched}) for point in points), key=lambda found: found[0])[1]
    return FrozenDict({name: best[name] for name in names}), {**options, **{name: best[name] for name in numbers}}
