"""Common tiles of linear layers: feasibility, occupancy, and operands shared within a wave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from iomodel.devices.device import Hardware
from iomodel.timing.shared_memory import WarpLayout
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear

ROWS = (16, 32, 64, 128, 256)
COLUMNS = (64, 128, 256)
LARGE = (512, 1024, 2048)
"""Larger sizes, for on-chip memories far larger than that of an SM."""
SLICE = 128
"""Width of a slice of X: a line of swizzled shared memory [B]."""
STAGES = (4, 3, 2)
SPARE = 1.5
"""Ratio of a block's registers to those of its sums, for addresses and fragments [-]."""


@dataclass(frozen=True)
class Tile:
    """A tile of the output with its slices, and the number of blocks per SM."""

    block_m: int
    block_n: int
    block_k: int
    splits: int
    blocks_per_sm: int

    @cached_property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Tiles by name."""
        names = ("block_m", "block_n", "block_k", "splits")
        return tuple((name, getattr(self, name)) for name in names)


def fitting(device: Hardware, layer: Linear, sizes: Mapping[str, int]) -> Iterator[Tile]:
    """Yield the tile of these sizes if a block of it fits."""
    blocks = _blocks_per_sm(device, layer, sizes["block_m"], sizes["block_n"], sizes["block_k"])
    if blocks:
        yield Tile(**sizes, blocks_per_sm=blocks)


def candidates(
    device: Hardware, layers: Sequence[Linear], units: int | None, splits: int | None = None
) -> Iterator[Tile]:
    """Yield tiles that fit: heights near the number of rows, common widths, split sums if there are few blocks."""
    first = layers[0]
    most_rows = max(layer.rows for layer in layers)
    slices = max(16, SLICE // ELEMENT_SIZE[first.dtype])
    if first.scale_block is not None and first.scale_block < first.in_features:
        slices = next(size for size in range(min(slices, first.scale_block), 0, -1) if not first.scale_block % size)
    large = LARGE if device.sram_per_block > 1 << 20 else ()
    enough = next((size for size in (*ROWS, *large) if size >= most_rows), 1 << 30)
    for block_m in (*ROWS, *large):
        if block_m > enough:
            break
        if 4 * block_m < min(enough, 128):
            continue
        for block_n in (*COLUMNS, *large):
            blocks = _blocks_per_sm(device, first, block_m, block_n, slices)
            if not blocks:
                continue
            tiles = sum(
                layer.groups * -(-layer.rows // block_m) * -(-layer.out_features // block_n) for layer in layers
            )
            for parts in _splits(first, slices, tiles, units) if splits is None else (splits,):
                yield Tile(block_m, block_n, slices, parts, blocks)


def _splits(layer: Linear, slices: int, tiles: int, units: int | None) -> Iterator[int]:
    unit = slices if layer.scale_block is None else max(slices, layer.scale_block)
    most = -(-layer.in_features // unit)
    splits = 1
    while splits == 1 or (units is not None and splits <= most and tiles * splits <= 2 * units and splits <= 16):
        yield splits
        splits *= 2


def _blocks_per_sm(device: Hardware, layer: Linear, block_m: int, block_n: int, block_k: int) -> int:
    """Count the blocks of a tile per SM, 0 if it does not fit."""
    sram = device.memory.sram
    weights = 2 if layer.gated else 1
    stage = block_m * block_k * ELEMENT_SIZE[layer.dtype]
    stage += weights * -(-block_k * block_n * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    sums = 4 * weights * block_m * block_n
    accumulator, registers = device.memory.accumulator.per_sm, device.limits.registers_per_sm
    limits = [32 if device.limits.blocks_per_sm is None else int(device.limits.blocks_per_sm.value)]
    extra = 0
    if accumulator is not None:
        limits.append(int(accumulator.value) // sums)
    elif registers is not None:
        limits.append(int(4 * registers.value / (SPARE * sums)))
    else:
        extra = sums
    stages = next((count for count in STAGES if count * stage + extra <= device.sram_per_block), 0)
    if not stages:
        return 0
    per_sm = device.sram_per_block if sram.per_sm is None else int(sram.per_sm.value)
    limits.append(per_sm // (stages * stage + extra))
    return min(limits)


def layout(device: Hardware, tile: Tile, layer: Linear) -> WarpLayout:
    """Lay the warps of a block over its tile; matrix units with accumulators read operands directly."""
    warps = max(1, min(8, tile.block_m * tile.block_n // 4096))
    together = device.compute.mma.warpgroup_rows is not None
    return _layout(warps, together, device.memory.accumulator.per_sm is not None, ELEMENT_SIZE[layer.dtype])


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
