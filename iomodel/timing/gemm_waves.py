"""Warps of a tile of a linear layer, and operands shared within a wave of its blocks."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.devices.device import Hardware
from iomodel.placement.gemm_tiles import Tile
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
        warps=(warps, 1),
        together=together,
        registers=operands,
        element_size=element_size,
        accumulates=has_accumulator,
    )


def wave_trips(layer: Linear, tile: Tile, at_once: int, capacity: int) -> tuple[int, int]:
    """Count the passes of X and of the weights from DRAM [-].

    Concurrent blocks compute a rectangle of output tiles, the one with the least traffic; an operand of a group that
    fits the L2 cache is loaded once.
    """
    return trips_over(layer, layer.rows, tile, at_once, capacity)


def trips_over(layer: Any, layer_rows: Any, tile: Any, at_once: Any, capacity: int) -> tuple[Any, Any]:
    """Count the passes as :func:`wave_trips`; the layer, the tile and the blocks at once may be arrays."""
    rows, columns = ceil_div(layer_rows, tile.block_m), ceil_div(layer.out_features, tile.block_n)
    slots = larger(1, floor_div(at_once, tile.splits))
    weights = 2 if layer.gated else 1
    x = layer_rows * layer.in_features * ELEMENT_SIZE[layer.dtype]
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
