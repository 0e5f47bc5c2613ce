"""The usual tiles of a linear layer: which fit a device, how many blocks an SM takes, what a wave of them shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from iomodel.hardware import Hardware
from iomodel.linear.layer import WEIGHT_QUARTERS, Linear
from iomodel.shared_traffic import Layout
from iomodel.workload import ELEMENT_SIZE

ROWS = (16, 32, 64, 128, 256)
COLUMNS = (64, 128, 256)
LARGE = (512, 1024, 2048)
"""More of either, for on-chip memories far larger than that of an SM."""
SLICE = 128
"""Width of a slice of X: a line of the swizzled shared memory [B]."""
STAGES = (4, 3, 2)
SPARE = 1.5
"""Registers of a block over those of its sums: addresses, fragments [-]."""


@dataclass(frozen=True)
class Tile:
    """A tile of the output with its slices, and how many blocks an SM takes."""

    block_m: int
    block_n: int
    block_k: int
    splits: int
    blocks_per_sm: int

    @cached_property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """The tiles by name."""
        names = ("block_m", "block_n", "block_k", "splits")
        return tuple((name, getattr(self, name)) for name in names)


def candidates(device: Hardware, layers: Sequence[Linear], units: int | None) -> Iterator[Tile]:
    """Tiles that fit: rows around those there are, columns as usual, the sum split where blocks are few."""
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
            for splits in _splits(first, slices, tiles, units):
                yield Tile(block_m, block_n, slices, splits, blocks)


def _splits(layer: Linear, slices: int, tiles: int, units: int | None) -> Iterator[int]:
    unit = slices if layer.scale_block is None else max(slices, layer.scale_block)
    most = -(-layer.in_features // unit)
    splits = 1
    while splits == 1 or (units is not None and splits <= most and tiles * splits <= 2 * units and splits <= 16):
        yield splits
        splits *= 2


def _blocks_per_sm(device: Hardware, layer: Linear, block_m: int, block_n: int, block_k: int) -> int:
    """How many blocks an SM takes of a tile, 0 where it does not fit."""
    sram = device.memory.sram
    weights = 2 if layer.gated else 1
    stage = block_m * block_k * ELEMENT_SIZE[layer.dtype]
    stage += weights * -(-block_k * block_n * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    sums = 4 * weights * block_m * block_n
    own, registers = device.memory.accumulator.per_sm, device.limits.registers_per_sm
    limits = [32 if device.limits.blocks_per_sm is None else int(device.limits.blocks_per_sm.value)]
    extra = 0
    if own is not None:
        limits.append(int(own.value) // sums)
    elif registers is not None:
        limits.append(int(4 * registers.value / (SPARE * sums)))
    else:
        extra = sums
    stages = next((many for many in STAGES if many * stage + extra <= device.sram_per_block), 0)
    if not stages:
        return 0
    per_sm = device.sram_per_block if sram.per_sm is None else int(sram.per_sm.value)
    limits.append(per_sm // (stages * stage + extra))
    return min(limits)


def layout(device: Hardware, tile: Tile, layer: Linear) -> Layout:
    """How the warps of a block lie over its tile; matrix units with sums of their own take operands unseen."""
    own = device.memory.accumulator.per_sm is not None
    operands = frozenset({frozenset({"row", "term"}), frozenset({"term", "column"})}) if own else frozenset()
    return Layout(
        warps=(max(1, min(8, tile.block_m * tile.block_n // 4096)), 1),
        together=device.compute.mma.warpgroup_rows is not None,
        registers=operands,
        element_size=ELEMENT_SIZE[layer.dtype],
    )


def wave_trips(layer: Linear, tile: Tile, at_once: int, capacity: int) -> tuple[int, int]:
    """How often X and the weights come from DRAM [-].

    The blocks that run at the same time take a rectangle of output tiles, the one that leaves least traffic; an
    operand of a group that the L2 holds comes once.
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
