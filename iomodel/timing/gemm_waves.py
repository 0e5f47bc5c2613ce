"""Warps of a tile of a linear layer, and operands shared within a wave of its blocks."""

from __future__ import annotations

from functools import lru_cache

from iomodel.devices.device import Hardware
from iomodel.placement.gemm_tiles import Tile
from iomodel.timing.shared_memory import WarpLayout
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear


def layout(device: Hardware, tile: Tile, layer: Linear) -> WarpLayout:
    """Lay the warps of a block over its tile; matrix units with accumulators read operands directly."""
    together = device.compute.mma.warpgroup_rows is not None
    return _layout(tile.warps, together, device.memory.accumulator.per_sm is not None, ELEMENT_SIZE[layer.dtype])


@lru_cache(maxsize=256)
def _layout(warps: int, together: bool, has_accumulator: bool, element_size: int) -> WarpLayout:
    operands = (
        frozenset({frozenset({"row", "term"}), frozenset({"term", "column"})}) if has_accumulator else frozenset()
    )
    return WarpLayout(warps=(warps, 1), together=together, registers=operands, element_size=element_size)


def wave_trips(layer: Linear, tile: Tile, at_once: int, capacity: int) -> tuple[int, int]:
    """Count the passes of X and of the weights from DRAM [-].

    Concurrent blocks compute a rectangle of output tiles, the one with the least traffic; an operand of a group that
    fits the L2 cache is loaded once.
    """
    rows, columns = -(-layer.rows // tile.block_m), -(-layer.out_features // tile.block_n)
    slots = max(1, at_once // tile.splits)
    weights = 2 if layer.gated else 1
    x = layer.rows * layer.in_features * ELEMENT_SIZE[layer.dtype]
    w = weights * -(-layer.in_features * layer.out_features * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    best: tuple[int, int, int] | None = None
    high = 1
    while True:
        wide = min(columns, max(1, slots // high))
        over_x = 1 if x <= capacity else -(-columns // wide)
        over_w = 1 if w <= capacity else -(-rows // high)
        total = x * over_x + w * over_w
        if best is None or total < best[0]:
            best = total, over_x, over_w
        if high >= min(rows, slots):
            return best[1], best[2]
        high = min(2 * high, rows, slots)
