"""Ranking of the tiles of one linear layer at many numbers of rows, evaluated in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from iomodel.algorithms import algorithm
from iomodel.common.arithmetic import smaller
from iomodel.counting.kinds import kind_of
from iomodel.devices.device import Hardware
from iomodel.devices.rates import Rates
from iomodel.nests.execution import PIPELINED
from iomodel.placement.gemm_tiles import Tile
from iomodel.timing.gemm_waves import layout, trips_over
from iomodel.timing.kernel_time import Launched, elapsed
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.parameters import Parameters
from iomodel.timing.shared_memory import WarpLayout
from iomodel.timing.work_at_point import demands
from iomodel.workloads.linear import Linear

ROWS = (tuple(1 << power for power in range(9)), tuple(1 << power for power in range(9, 14)))
"""Rows ranked together, small and large: the batches at which planners compute decode steps [rows]."""
WEIGHTS = ("W", "W_gate", "W_up")


class _Point(NamedTuple):
    """The numbers of a layer, those of its rows in an array."""

    point: tuple[object, ...]


class _Tiles(NamedTuple):
    """The sizes of tiles, each in an array."""

    block_m: Any
    block_n: Any
    block_k: Any
    splits: Any


def rank(
    device: Hardware,
    points: Sequence[tuple[Linear, Tile]],
    known: Rates,
    free: Rates,
    parameters: Parameters,
) -> tuple[list[float], list[float]]:
    """Time the first kernel, and the others, of a layer at many rows and tiles [s].

    `known` has the rates of the device, `free` those without the limits of a benchmark.
    """
    first = points[0][0]
    tiles = _Tiles(*(np.array([getattr(tile, name) for _, tile in points]) for name in _Tiles._fields))
    sizes = tiles._asdict()
    rows = np.array([layer.rows for layer, _ in points])
    call = _Point(tuple(rows if symbol == "rows" else value for symbol, value in first.numbers.items()))
    work = demands(algorithm("gemm"), kind_of(first), (), PIPELINED).over(call, call, sizes, sizes, constants=True)
    per_sm = np.array([tile.blocks_per_sm for _, tile in points])
    layouts = [layout(device, tile.warps, layer) for layer, tile in points]
    launched = Launched(layouts[0], per_sm, layouts=masked_layouts(layouts))
    times = []
    for demand in work:
        moved = in_waves(demand, first, rows, tiles, per_sm, known)
        took = elapsed(moved, None, False, free, PIPELINED, launched, parameters).seconds
        times.append(np.broadcast_to(took * (demand.requested_bytes > 0), rows.shape))
    others: Any = sum(times[1:], np.zeros(rows.shape))
    return times[0].tolist(), others.tolist()


def masked_layouts(layouts: Sequence[WarpLayout]) -> tuple[tuple[Any, WarpLayout], ...]:
    """Return each layout with the mask of its points; none if all points have the first one."""
    distinct = list(dict.fromkeys(layouts))
    if len(distinct) == 1:
        return ()
    return tuple((np.array([each is layout for each in layouts]), layout) for layout in distinct)


def in_waves(demand: KernelWork, layer: Any, rows: Any, tiles: Any, per_sm: Any, known: Rates) -> KernelWork:
    """Add the DRAM traffic of a wave of blocks to a kernel with products."""
    if not demand.products or known.last_cache is None or known.units is None:
        return demand
    return streamed(demand, *trips_over(layer, rows, tiles, known.units * per_sm, known.last_cache))


def streamed(demand: KernelWork, over_x: Any, over_w: Any) -> KernelWork:
    """Add the DRAM traffic of a kernel that loads X and the weights so many times; these may be arrays."""
    total: Any = 0
    for moved in demand.moved:
        trips = over_x if moved.name == "X" else over_w if moved.name in WEIGHTS else 1
        total = total + smaller(moved.requested, moved.distinct * trips)
    return replace(demand, streamed=total)
