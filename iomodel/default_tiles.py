"""The tiles that an estimate takes where none are given."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.budget import budget_of
from iomodel.cost import tally_for
from iomodel.errors import InputError, SpecError
from iomodel.execution import Execution
from iomodel.expressions import only_taken
from iomodel.fastest import solve_fastest
from iomodel.fitting import clock_for
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.parameters import Parameters
from iomodel.rates import rates
from iomodel.solve import solve
from iomodel.symbols import LAUNCH_NAMES
from iomodel.workload import Attention, VarlenAttention

STARTS = (1, 2, 4, 8)
"""The smallest tiles, so many times, from which it is tried too."""
LARGEST = 1024
"""The largest power of two that is tried for a tile of which nothing larger is known to be of use [rows]."""


def fastest_tiles(
    algorithm: str,
    call: Attention | VarlenAttention,
    device: Hardware,
    parameters: Parameters,
    execution: Execution | None,
    options: Mapping[str, Any],
) -> Mapping[str, int]:
    """The tiles that :func:`iomodel.estimate` takes where none are given.

    Those of least time where the algorithm's kernels are declared for the device; of least traffic in its on-chip
    memory otherwise; none for standard attention, whose operands then make one ideal pass. An approximation has kernels
    whose tiles cost no traffic, but blocks that run side by side: from the tiles of least traffic, powers of two are
    tried one tile after the other until none is faster, and the same from small tiles.
    """
    return _remembered(algorithm, call, device, parameters, execution, tuple(sorted(options.items())))


@lru_cache(maxsize=1024)
def _remembered(
    algorithm: str,
    call: Attention | VarlenAttention,
    device: Hardware,
    parameters: Parameters,
    execution: Execution | None,
    options: tuple[tuple[str, Any], ...],
) -> Mapping[str, int]:
    chosen, found = dict(options), find_algorithm(algorithm)
    tally, _ = tally_for(algorithm, call, chosen, tiled=False)
    if not tally.tiles:
        return FrozenDict({})
    if call.direction == "both":
        return _both(algorithm, call, device, parameters, execution, chosen)
    if found.residency.get(call.direction):
        try:
            best = solve_fastest(algorithm, call, device, "gpu", None, 1, chosen, parameters, execution)
        except (InputError, SpecError):  # a device or a call that the kernels are not for
            pass
        else:
            return best.tiles
    tiles = solve(algorithm, call, device, **chosen).tiles
    if found.approximates and isinstance(call, Attention):
        return _quicker(tiles, algorithm, call, device, parameters, execution, chosen)
    return tiles


def _quicker(
    start: Mapping[str, int],
    algorithm: str,
    call: Attention,
    device: Hardware,
    parameters: Parameters,
    execution: Execution | None,
    options: Mapping[str, Any],
) -> Mapping[str, int]:
    """The tiles that no power of two in place of one of them makes faster."""
    tally, complete = tally_for(algorithm, call, options, tiled=True)
    clock = clock_for(algorithm, call, device, complete, parameters, rates(device, call.dtype), execution)

    def seconds(tiles: Mapping[str, int]) -> float:
        if clock.footprint(tiles) > device.sram_per_block:
            return inf
        return clock.fastest(tiles, {}).seconds

    step = budget_of(device, None, None, None).alignment

    def descended(best: dict[str, int]) -> tuple[float, dict[str, int]]:
        least, changed = seconds(best), True
        while changed:
            changed = False
            for name in best:
                size = step
                while size <= max(LARGEST, start[name]):
                    found = seconds({**best, name: size})
                    if found < least:
                        least, changed, best = found, True, {**best, name: size}
                    size *= 2
        return least, best

    # All kernels share an SM by the largest footprint: a descent from large tiles alone would not leave them.
    points = [{name: start[name] for name in tally.tiles}]
    points += [dict.fromkeys(tally.tiles, step * times) for times in STARTS]
    return FrozenDict(min((descended(point) for point in points), key=lambda found: found[0])[1])


def _both(
    algorithm: str,
    call: Attention | VarlenAttention,
    device: Hardware,
    parameters: Parameters,
    execution: Execution | None,
    options: dict[str, Any],
) -> Mapping[str, int]:
    """Either direction has tiles of its own."""
    found = find_algorithm(algorithm)
    tiles: dict[str, int] = {}
    for direction in ("forward", "backward"):
        taken = only_taken(found, direction, options)
        one = call.model_copy(update={"direction": direction})
        part = fastest_tiles(algorithm, one, device, parameters, execution, taken)
        plain = {name: size for name, size in part.items() if name not in LAUNCH_NAMES}
        names = tally_for(algorithm, call, options, tiled=True)[0].tiles
        for name, size in plain.items():
            tiles[f"bwd_{name}" if direction == "backward" and f"bwd_{name}" in names else name] = size
    return FrozenDict(tiles)
