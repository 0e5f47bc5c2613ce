"""Common tiles of linear layers: those that fit a device, with their resources and occupancy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from iomodel.algorithms import answering
from iomodel.common.arithmetic import anywhere, ceil_div, larger, pick, smaller
from iomodel.common.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.placement.fit import BlockFit
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear

ROWS = (16, 32, 64, 128, 256)
COLUMNS = (64, 128, 160, 192, 256)
"""Widths between powers of two, which libraries have too, fill whole waves of SMs more often."""
LARGE = (512, 1024, 2048)
"""Larger sizes, for on-chip memories far larger than that of an SM."""
SLICE = 128
"""Width of a slice of X: a line of swizzled shared memory [B]."""
STAGES = (4, 3, 2)
SPARE = 1.5
"""Ratio of a block's registers to those of its sums, for addresses and fragments [-]."""


@dataclass(frozen=True)
class GemmTile:
    """A tile of the output with its slices, its launch, and the number of blocks per SM."""

    block_m: int
    block_n: int
    block_k: int
    splits: int
    blocks_per_sm: int
    warps: int
    stages: int

    @cached_property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Tiles by name."""
        names = ("block_m", "block_n", "block_k", "splits")
        return tuple((name, getattr(self, name)) for name in names)

    @property
    def launch(self) -> dict[str, int]:
        """Warps and stages of a block."""
        return {"warps": self.warps, "stages": self.stages}


class Buffered(NamedTuple):
    """Resources of a thread block of a tile, with the number of its buffers of a slice of either operand."""

    fit: BlockFit
    stages: int


def buffered(device: Hardware, layer: Any, sizes: Mapping[str, int], stages: int | None = None) -> Buffered:
    """Count the resources of a block of a tile, with as many stages as fit if their number is not given."""
    block_m, block_n, block_k = (sizes[name] for name in ("block_m", "block_n", "block_k"))
    weights = 2 if layer.gated else 1
    stage = block_m * block_k * ELEMENT_SIZE[layer.dtype]
    stage += weights * -(-block_k * block_n * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    return _buffered(device, stage, weights * block_m * block_n, stages)


@per_device
def _buffered(device: Hardware, stage: int, outputs: int, stages: int | None) -> Buffered:
    """Count the resources of a block from the bytes of a stage and the number of its sums.

    The sums lie in accumulators, else in registers, else in the memory of the buffers.
    """
    sums, place, amount, extra = 4 * outputs, "", 0, 0
    accumulator, registers = device.memory.accumulator.per_sm, device.limits.registers_per_sm
    if accumulator is not None:
        place, amount = "accumulators", int(accumulator.value)
    elif registers is not None:
        place, amount = "registers", int(4 * registers.value / SPARE)
    else:
        extra = sums
    limit, per_sm = device.sram_per_block, device.memory.sram.per_sm
    if stages is None:
        stages = next((each for each in STAGES if each * stage + extra <= limit), STAGES[-1])
    shared = stages * stage + extra
    used, limits = {"shared memory": shared}, {"shared memory": limit}
    blocks = {"blocks": 32 if device.limits.blocks_per_sm is None else int(device.limits.blocks_per_sm.value)}
    if place:
        used[place], limits[place], blocks[place] = sums, amount, amount // sums
    blocks["shared memory"] = (limit if per_sm is None else int(per_sm.value)) // shared
    return Buffered(BlockFit(used, limits, blocks, dict.fromkeys(used, "B")), stages)


def warps_of(block_m: int, block_n: int) -> int:
    """Return the usual number of warps of a tile."""
    return max(1, min(8, block_m * block_n // 4096))


def blocks_of(fit: BlockFit) -> int:
    """Return the number of blocks per SM; 0 if a block exceeds a limit."""
    blocks: int = 0 if fit.over else fit.blocks_per_sm
    return blocks


def fitting(device: Hardware, layer: Linear, sizes: Mapping[str, int]) -> Iterator[GemmTile]:
    """Yield the tile of these sizes, with `warps` and `stages` if given, if a block of it fits."""
    fit, stages = buffered(device, layer, sizes, sizes.get("stages"))
    if blocks := blocks_of(fit):
        warps = sizes.get("warps") or warps_of(sizes["block_m"], sizes["block_n"])
        plain = {name: sizes[name] for name in ("block_m", "block_n", "block_k", "splits")}
        yield GemmTile(**plain, blocks_per_sm=blocks, warps=warps, stages=stages)


def candidates(
    device: Hardware, layers: Sequence[Linear], units: int | None, splits: int | None = None
) -> Iterator[GemmTile]:
    """Yield tiles that fit: heights near the number of rows, common widths, split sums if there are few blocks."""
    return (tile for tile, competes in competing(device, layers, units, splits) if competes)


def competing(
    device: Hardware, layers: Sequence[Any], units: int | None, splits: Any = None
) -> Iterator[tuple[GemmTile, Any]]:
    """Yield the common tiles that fit, each with a mask of the points where it competes.

    The numbers of the layers may be arrays, over whose points a block of scales is narrower than the rows, or none is.
    """
    first = layers[0]
    most_rows = larger(*(layer.rows for layer in layers))
    slices = max(16, SLICE // ELEMENT_SIZE[first.dtype])
    if first.scale_block is not None and anywhere(first.scale_block < first.in_features):
        slices = next(size for size in range(min(slices, first.scale_block), 0, -1) if not first.scale_block % size)
    searched = answering(first)[0].implementations[0].searched["splits"]
    most = ceil_div(first.in_features, slices if first.scale_block is None else max(slices, first.scale_block))
    large = LARGE if device.sram_per_block > 1 << 20 else ()
    enough: Any = 1 << 30
    for size in reversed((*ROWS, *large)):
        enough = pick(most_rows <= size, size, enough)
    for block_m in (*ROWS, *large):
        near = (block_m <= enough) & (4 * block_m >= smaller(enough, 128))
        if not anywhere(near):
            continue
        for block_n in (*COLUMNS, *large):
            sizes = {"block_m": block_m, "block_n": block_n, "block_k": slices}
            fit, stages = buffered(device, first, sizes)
            if not (blocks := blocks_of(fit)):
                continue
            tiles = sum(
                layer.groups * ceil_div(layer.rows, block_m) * ceil_div(layer.out_features, block_n) for layer in layers
            )
            options = _splits(searched, most, tiles, units) if splits is None else ((splits, True),)
            for parts, few in options:
                warps = warps_of(block_m, block_n)
                yield GemmTile(block_m, block_n, slices, parts, blocks, warps, stages), near & few


def _splits(searched: Sequence[int], most: Any, tiles: Any, units: int | None) -> Iterator[tuple[int, Any]]:
    """Yield the numbers of parts of a sum, each with a mask of the points where so many may pay."""
    for splits in searched:
        if splits == 1:
            yield splits, True
        elif units is not None:
            yield splits, (splits <= most) & (tiles * splits <= 2 * units)
