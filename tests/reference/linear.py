"""A linear layer run tile by tile on the counting machine.

Products as in Goto and van de Geijn 2008 (ACM TOMS 34:12): a block keeps an output tile in fp32 and streams slices of
the operands. Where the sum is split, each part leaves its own result in HBM, and a second kernel adds them up.
"""

from dataclasses import dataclass

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import IntArray, split


@dataclass(frozen=True)
class Weights:
    """The weights of a layer by name, each [group, term, column], their scales [group, block, column], a bias."""

    values: dict[str, FloatArray]
    scales: dict[str, FloatArray]
    scale_block: int
    bias: FloatArray | None


def silu(x: FloatArray, machine: Machine) -> FloatArray:
    return x / (1 + machine.exp(-x))


def dealt(terms: int, block_k: int, block: int | None, splits: int) -> list[list[slice]]:
    """Spans of terms for each part: one span a block of scales, or one for all slices of the part."""
    if block is not None:
        spans = split(terms, block)
        each = -(-len(spans) // splits)
        return [spans[i * each : (i + 1) * each] for i in range(splits)]
    slices = split(terms, block_k)
    each = -(-len(slices) // splits)
    parts = [slices[i * each : (i + 1) * each] for i in range(splits)]
    return [[slice(part[0].start, part[-1].stop)] if part else [] for part in parts]


def gemm(
    x: FloatArray,
    weights: Weights,
    block_m: int,
    block_n: int,
    block_k: int,
    splits: int,
    wrapped_edges: bool = False,
) -> Run:
    """Run the kernel; with wrapped edges, tiles at the edge of Y load the first rows or columns again."""
    machine = Machine(X=x)
    hbm, sram = machine.hbm, machine.sram
    groups, rows, terms = x.shape
    names = list(weights.values)
    columns = weights.values[names[0]].shape[2]
    results = ["G", "Y"] if len(names) == 2 else ["Y"]
    for name in names:
        hbm.alloc(name, weights.values[name].shape, weights.values[name], "kv")
        if weights.scales:
            hbm.alloc(f"{name}_scale", weights.scales[name].shape, weights.scales[name])
    if weights.bias is not None:
        hbm.alloc("bias", weights.bias.shape, weights.bias)
    hbm.alloc("Y", (groups, rows, columns))
    if splits > 1:
        for result in results:
            hbm.alloc(f"{result}_acc", (splits, groups, rows, columns), width="fp32")
    parts = dealt(terms, block_k, weights.scale_block if weights.scales else None, splits)

    def over(tile: slice, block: int, length: int) -> IntArray:
        place = np.arange(tile.start, tile.start + block if wrapped_edges else tile.stop)
        return place % length

    def alloc_tile() -> dict[str, FloatArray]:
        return {result: sram.alloc(result, (block_m, block_n), "fp32") for result in results}

    def stream(group: int, m: slice, n: slice, spans: list[slice], tile: dict[str, FloatArray]) -> None:
        height, width = m.stop - m.start, n.stop - n.start
        for result in results:
            tile[result][:height, :width] = 0.0
        for span in spans:
            scale = {}
            if weights.scales:
                for name in names:
                    scale[name] = sram.alloc(f"{name}_scale", (1, block_n), "io")
                    place = slice(span.start // weights.scale_block, span.start // weights.scale_block + 1)
                    scale[name][:, :width] = hbm.load(f"{name}_scale", (group, place, n))
            for k in split(span.stop - span.start, block_k):
                k = slice(span.start + k.start, span.start + k.stop)
                depth = k.stop - k.start
                a = sram.alloc("X", (block_m, block_k), "io")
                a[:, :depth][: len(over(m, block_m, rows))] = hbm.load("X", (group, over(m, block_m, rows), k))
                for name, result in zip(names, results, strict=True):
                    b = sram.alloc(name, (block_k, block_n), "kv")
                    place = over(n, block_n, columns)
                    loaded = hbm.load(name, (group, k, place))  # NumPy puts the axis of places first
                    b[:depth, : len(place)] = loaded.T
                    right = b[:depth, :width] * scale[name][:, :width] if scale else b[:depth, :width]
                    tile[result][:height, :width] += machine.matmul(a[:height, :depth], right)
                sram.free("X", *names)
            if weights.scales:
                sram.free(*(f"{name}_scale" for name in names))

    def finish(group: int, m: slice, n: slice, tile: dict[str, FloatArray]) -> None:
        height, width = m.stop - m.start, n.stop - n.start
        y = tile["Y"][:height, :width]
        if weights.bias is not None:
            row = sram.alloc("bias", (block_n,), "io")
            row[:width] = hbm.load("bias", (group, n))
            y = y + row[:width]
        if "G" in tile:
            y = silu(tile["G"][:height, :width], machine) * y
        hbm.store("Y", (group, m, n), y)
        sram.free()

    tiles = [(g, m, n) for g in range(groups) for m in split(rows, block_m) for n in split(columns, block_n)]
    for group, m, n in tiles:
        if splits == 1:
            tile = alloc_tile()
            if weights.bias is not None:  # its buffer is there from the start
                sram.alloc("bias", (block_n,), "io")
            stream(group, m, n, parts[0], tile)
            if weights.bias is not None:
                sram.free("bias")
            finish(group, m, n, tile)
            continue
        for part, spans in enumerate(parts):
            tile = alloc_tile()
            stream(group, m, n, spans, tile)
            for result in results:
                height, width = m.stop - m.start, n.stop - n.start
                hbm.store(f"{result}_acc", (part, group, m, n), tile[result][:height, :width])
            sram.free()
    if splits > 1:
        for group, m, n in tiles:
            height, width = m.stop - m.start, n.stop - n.start
            tile = alloc_tile()
            if weights.bias is not None:
                sram.alloc("bias", (block_n,), "io")
            for result in results:
                tile[result][:height, :width] = 0.0
            for part in range(splits):
                for result in results:
                    acc = sram.alloc(f"{result}_acc", (block_m, block_n), "fp32")
                    acc[:height, :width] = hbm.load(f"{result}_acc", (part, group, m, n))
                    tile[result][:height, :width] += acc[:height, :width]
                sram.free(*(f"{result}_acc" for result in results))
            if weights.bias is not None:
                sram.free("bias")
            finish(group, m, n, tile)
    return machine.result(Y=hbm.arrays["Y"])
