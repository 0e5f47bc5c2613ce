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
    return _buffered(device, *_amounts(layer, sizes), stages)


def blocks_at(device: Hardware, layer: Any, sizes: Mapping[str, Any], stages: Any) -> Any:
    """Return the blocks per SM of tiles in so many stages, which may be arrays; 0 where a block exceeds a limit."""
    stage, outputs = _amounts(layer, sizes)
    return blocks_of(_resources(device, stages * stage, outputs))


def _amounts(layer: Any, sizes: Mapping[str, Any]) -> tuple[Any, Any]:
    """Count the bytes of a stage of a tile, and the sums of a block; the sizes may be arrays."""
    block_m, block_n, block_k = (sizes[name] for name in ("block_m", "block_n", "block_k"))
    weights = 2 if layer.gated else 1
    stage = block_m * block_k * ELEMENT_SIZE[layer.dtype]
    stage = stage + weights * -(-block_k * block_n * WEIGHT_QUARTERS[layer.weight_dtype] // 32)
    return stage, weights * block_m * block_n


@per_device
def _buffered(device: Hardware, stage: int, outputs: int, stages: int | None) -> Buffered:
    """Count the resources of a block from the bytes of a stage and the number of its sums."""
    if stages is None:
        extra = _resources(device, 0, outputs).used["shared memory"]
        limit = device.sram_per_block
        stages = next((each for each in STAGES if each * stage + extra <= limit), STAGES[-1])
    return Buffered(_resources(device, stages * stage, outputs), stages)


def _resources(device: Hardware, buffers: Any, outputs: Any) -> BlockFit:
    """Count the resources of a block with so many bytes of buffers and so many sums, which may be arrays.

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
    shared = buffers + extra
    used, limits = {"shared memory": shared}, {"shared memory": limit}
    blocks: dict[str, Any] = {"blocks": 32}
    if device.limits.blocks_per_sm is not None:
        blocks["blocks"] = int(device.limits.blocks_per_sm.value)
    if place:
        used[place], limits[place], blocks[place] = sums, amount, amount // sums
    blocks["shared memory"] = (limit if per_sm is None else int(per_sm.value)) // larger(1, shared)
    return BlockFit(used, limits, blocks, dict.fromkeys(used, "B"))


def warps_of(block_m: Any, block_n: Any) -> Any:
    """Return the usual number of warps of a tile."""
    return larger(1, smaller(8, block_m * block_n // 4096))


def blocks_of(fit: BlockFit) -> Any:
    """Return the number of blocks per SM; 0 if a block exceeds a limit."""
    return pick(fit.fits, fit.blocks_per_sm, 0)


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
    searched = splits_of(first)
    most = ceil_div(first.in_features, slices if first.scale_block is None else max(slices, first.scale_block))
    large = _large(device)
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


def splits_of(layer: Linear) -> Sequence[int]:
    """Return the numbers of parts of a sum that libraries try."""
    searched: Sequence[int] = answering(layer)[0].implementations[0].searched["splits"]
    return searched


def largest(device: Hardware) -> int:
    """Return the largest size of a common tile on a device."""
    return (*ROWS, *_large(device))[-1]


def _large(device: Hardware) -> tuple[int, ...]:
    return LARGE if device.sram_per_block > 1 << 20 else ()


def _splits(searched: Sequence[int], most: Any, tiles: Any, units: int | None) -> Iterator[tuple[int, Any]]:
    """Yield the numbers of parts of a sum, each with a mask of the points where so many may pay."""
    for splits in searched:
        if splits == 1:
            yield splits, True
        elif units is not None:
            yield splits, (splits <= most) & (tiles * splits <= 2 * units)
