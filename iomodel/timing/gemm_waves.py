"""Warps of a tile of a linear layer, and operands shared within a wave of its blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.devices.device import Hardware
from iomodel.devices.rates import Rates
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.shared_memory import WarpLayout
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear


def layout(device: Hardware, warps: int, layer: Linear) -> WarpLayout:
    """Lay the warps of a block over its tile; matrix units with accumulators read operands directly."""
    together = device.compute.mma.warpgroup_rows is not None
    return _layout(warps, together, device.memory.accumulator.per_sm is not None, ELEMENT_SIZE[layer.dtype])


@lru_cache(maxsize=256)
def _layout(warps: int, together: bool, has_accumulator: bool, element_size: int) -> WarpLayout:
    operands = (
        frozenset({frozenset({"row", "term"}), frozenset({"term", "column"})}) if has_accumulator else frozenset()
    )
    return WarpLayout(
        warps=(warps, 1), together=together, registers=operands, element_size=element_size, accumulates=has_accumulator
    )


def wave_trips(layer: Any, tile: Any, at_once: Any, capacity: int) -> tuple[Any, Any]:
    """Count the passes of X and of the weights from DRAM [-]; numbers, or arrays of layers and tiles.

    Concurrent blocks compute a rectangle of output tiles, the one with the least traffic; an operand of a group that
    fits the L2 cache is loaded once.
    """
    rows, columns = ceil_div(layer.rows, tile.block_m), ceil_div(layer.out_features, tile.block_n)
    slots = larger(1, floor_div(at_once, tile.splits))
    weights = 2 if layer.gated else 1
    x = layer.rows * layer.in_features * ELEMENT_SIZE[layer.dtype]
    w = weights * -(-layer.in_features * layer.out_features * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    last = smaller(rows, slots)
    best: Any = inf
    over_x: Any = 1
    over_w: Any = 1
    high: Any = 1
    while True:
        wide = smaller(columns, larger(1, floor_div(slots, high)))
        of_x = pick(x <= capacity, 1, ceil_div(columns, wide))
        of_w = pick(w <= capacity, 1, ceil_div(rows, high))
        total = x * of_x + w * of_w
        less = total < best
        best, over_x, over_w = pick(less, total, best), pick(less, of_x, over_x), pick(less, of_w, over_w)
        if not anywhere(high < last):
            return over_x, over_w
        high = smaller(2 * high, last)


CLUSTER = 2
"""Blocks of a product that load a tile of an operand together, where matrix units are asynchronous: CUTLASS's default
cluster for sm_90 and sm_100, which cuBLAS's kernels name too [-]."""


def multicast(known: Rates, layer: Any, tile: Any) -> Any:
    """Return the rate of the requests to the L2, of which a cluster makes one for the tile that its blocks share [B/s].

    The blocks of a cluster lie along the rows or along the outputs, whichever shares more; one tile is not shared.
    """
    if known.l2 is None or not known.asynchronous:
        return known.l2
    rows, columns = ceil_div(layer.rows, tile.block_m), ceil_div(layer.out_features, tile.block_n)
    x = tile.block_m * ELEMENT_SIZE[layer.dtype]
    w = (2 if layer.gated else 1) * tile.block_n * WEIGHT_QUARTERS[layer.weight_dtype] / 32
    saved = larger(pick(columns >= CLUSTER, x, 0), pick(rows >= CLUSTER, w, 0)) * (1 - 1 / CLUSTER)
    return known.l2 * (x + w) / (x + w - saved)


def in_waves(demand: KernelWork, layer: Any, tile: Any, known: Rates) -> KernelWork:
    """Add the DRAM traffic of a wave of blocks to a kernel with products."""
    if not demand.products or known.last_cache is None or known.units is None:
        return demand
    return streamed(demand, *wave_trips(layer, tile, known.units * tile.blocks_per_sm, known.last_cache))


WEIGHTS = ("W", "W_gate", "W_up")


def streamed(demand: KernelWork, over_x: Any, over_w: Any) -> KernelWork:
    """Add the DRAM traffic of a kernel that loads X and the weights so many times; these may be arrays."""
    total: Any = 0
    for moved in demand.moved:
        trips = over_x if moved.name == "X" else over_w if moved.name in WEIGHTS else 1
        total = total + smaller(moved.requested, moved.distinct * trips)
    return replace(demand, streamed=total)
