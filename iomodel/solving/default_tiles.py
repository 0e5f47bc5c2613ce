"""Default tiles of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.options import only_taken
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InfeasibleError, InputError, IOModelError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import (
    LAUNCH_NAMES,
)
from iomodel.nests.implementation import PACKED, TEXTBOOK, Implementation
from iomodel.placement.budget import budget_of
from iomodel.placement.implementations import implementations_for
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.candidates import choices
from iomodel.solving.fastest import solve_fastest
from iomodel.solving.solve import solve
from iomodel.timing.clock import clock_for
from iomodel.timing.parameters import Parameters
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention, as_call
from iomodel.workloads.workload import Workload

Choice = tuple[Mapping[str, int], Mapping[str, Any]]
"""Tiles, and the options that go with them."""
STARTS = (1, 2, 4, 8)
"""Multiples of the smallest tiles at which further descents start."""
LARGEST = 1024
"""The largest power of two tried for a tile, unless the start of the descent is larger [rows]."""


def fastest_tiles(
    algorithm: AlgorithmLike,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: Mapping[str, Any],
) -> Choice:
    """Return the default tiles of :func:`iomodel.estimate`, with the options that go with them.

    The default is the tile that the implementation ships for the call, else the tiles of least time on it; the tiles of
    least traffic in one memory where no implementation runs on the device, with the numbers that the algorithm has
    searched. Standard attention has no default tiles:
    each operand makes one ideal pass. The tiles of an approximation, and of a workload other than attention, change
    little traffic, but the number of concurrent blocks: a coordinate descent over powers of two, and over the numbers
    that the algorithm has searched, starts from the tiles of least traffic and from small tiles.
    """
    chosen = tuple(sorted(options.items()))
    return _remembered(find_algorithm(algorithm), call, device, parameters, implementation, chosen)


@lru_cache(maxsize=1024)
def _remembered(
    algorithm: Algorithm,
    call: Workload,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: tuple[tuple[str, Any], ...],
) -> Choice:
    chosen = dict(options)
    if not BoundCall.bind(algorithm, call, chosen, tiled=False).tiles:
        return FrozenDict({}), chosen
    if not isinstance(call, Call):
        tiles = solve(algorithm, call, device, implementation="textbook", **chosen).tiles
        return _quicker(tiles, algorithm, call, device, parameters, chosen)
    call = as_call(call)
    if call.direction == "both":
        return _both(algorithm, call, device, parameters, implementation, chosen)
    failure: InfeasibleError | None = None
    for kernels in implementations_for(algorithm, call, device, implementation):
        shipped = shipped_choice(algorithm, call, device, kernels, chosen, parameters)
        if shipped is not None:
            return shipped
        try:
            best = solve_fastest(algorithm, call, device, kernels, None, 1, chosen, parameters)
        except InfeasibleError as error:
            failure = failure or error
        except InputError:
            if implementation is not None:
                raise
        else:
            return best.tiles, {**chosen, **{name: best.options[name] for name in best.searched}}
    if failure is not None:
        raise failure
    if implementation is None and algorithm.searched and not algorithm.approximates:
        fastest = _fastest_of_least_traffic(algorithm, call, device, chosen, parameters)
        if fastest is not None:
            return fastest
    tiles = solve(algorithm, call, device, implementation="textbook", **chosen).tiles
    if algorithm.approximates and isinstance(call, Attention):
        return _quicker(tiles, algorithm, call, device, parameters, chosen)
    return tiles, chosen


def shipped_choice(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    kernels: Implementation,
    options: Mapping[str, Any],
    parameters: Parameters,
) -> Choice | None:
    """Return the shipped tile of a call with the fastest of the options that the kernels choose; None if none fits."""

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        return shipped_tile(kernels, call, device, chosen)

    return best_choice(algorithm, call, device, kernels, options, parameters, tile)


def best_choice(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    kernels: Implementation,
    options: Mapping[str, Any],
    parameters: Parameters,
    tile: Callable[[Mapping[str, Any]], Mapping[str, int] | None],
) -> Choice | None:
    """Return the fastest of the options that the kernels choose, at the tile under each; None if no tile fits."""
    known = rates(device, call.dtype)
    best: tuple[float, Choice | None] = (inf, None)
    for searched in choices(kernels, call, algorithm.takes(call.direction), options):
        chosen = {**options, **searched}
        sizes = tile(chosen)
        if sizes is None:
            continue
        launch = {name: sizes[name] for name in LAUNCH_NAMES & sizes.keys()}
        try:
            bound = BoundCall.bind(algorithm, call, chosen)
            plain = bound.sizes({name: sizes[name] for name in bound.tiles if name in sizes})
            timed = clock_for(algorithm, call, device, bound.options, parameters, known, kernels).fastest(plain, launch)
        except IOModelError:
            continue
        if timed.seconds < best[0]:
            best = timed.seconds, (FrozenDict(timed.tiles), chosen)
    return best[1]


def _fastest_of_least_traffic(
    algorithm: Algorithm,
    call: Attention | VarlenAttention,
    device: Hardware,
    options: Mapping[str, Any],
    parameters: Parameters,
) -> Choice | None:
    """Return the fastest of the searched numbers and of packing, each at its tiles of least traffic in one memory."""

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        try:
            return solve(algorithm, call, device, implementation="textbook", **chosen).tiles
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


def _both(
    algorithm: AlgorithmLike,
    call: Attention | VarlenAttention,
    device: Hardware,
    parameters: Parameters,
    implementation: str | Implementation | None,
    options: dict[str, Any],
) -> Choice:
    """Combine the default tiles of both directions."""
    declaration = find_algorithm(algorithm)
    tiles: dict[str, int] = {}
    for direction in ("forward", "backward"):
        taken = only_taken(declaration, direction, options)
        pass_call = call.model_copy(update={"direction": direction})
        part, searched = fastest_tiles(algorithm, pass_call, device, parameters, implementation, taken)
        options = {**options, **searched}
        plain = {name: size for name, size in part.items() if name not in LAUNCH_NAMES}
        names = BoundCall.bind(algorithm, call, options).tiles
        for name, size in plain.items():
            tiles[f"bwd_{name}" if direction == "backward" and f"bwd_{name}" in names else name] = size
    return FrozenDict(tiles), options
