"""Tensor memory of a Triton kernel on sm_100: accumulators, and the results that become left operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from iomodel.placement.triton_kernel import TritonKernel
from iomodel.placement.triton_schedule import LoopSchedule, instruction
from iomodel.placement.triton_target import TMEM_LIMIT

LEAST = 32
"""Columns of the smallest allocation [-]."""
LEAST_OPERAND = 16
"""Columns of the narrowest operand [-]."""
STEP = 4
"""Columns to whose multiples a tile is aligned [-]."""


@dataclass(frozen=True)
class Accumulator:
    """A tile in tensor memory: a half of the lanes or both, and columns, from `start` until before `end`.

    An operand of half the lanes lies in the same half as `beside`, the accumulator of its product.
    """

    name: str
    halves: int
    columns: int
    start: float
    end: float
    beside: str = ""


def tmem_columns(kernel: TritonKernel, arch: int, warps: int, stages: int) -> int:
    """Compute the columns of tensor memory of a launch [-]; more than 512 make it impossible.

    A column has 128 lanes of 4 B; a tile of 64 rows takes half of them, so that two tiles may share a column.
    """
    together: list[list[Accumulator]] = []
    for each in kernel.programs:
        if instruction(each, arch, warps) != "tcgen05":
            continue
        tiles = [*_accumulators(each, LoopSchedule(each, arch, warps, stages).ahead > 0)]
        if each.looped or not together or all(product.carried for product in each.products):
            together.append(tiles)
        else:  # off a loop, beside the accumulators that the loop before has left
            held = [replace(tile, name=f"{tile.name} before", start=0.0, end=inf) for tile in together[-1]]
            together[-1] = [*held, *tiles]
    total = max((_scanned(tiles) for tiles in together), default=0)
    return max(LEAST, 1 << (total - 1).bit_length()) if 0 < total <= TMEM_LIMIT else total


def _accumulators(kernel: TritonKernel, pipelined: bool) -> Iterator[Accumulator]:
    """Iterate over the tiles in the order of the program; those of a pipelined loop all stay through it."""
    products = tuple(product for product in kernel.products if product.rows % 64 == 0)
    results = {product.name: product.element for product in products}
    results |= {tile.name: tile.element for tile in kernel.loads if tile.made}

    def tile(name: str, rows: int, columns: int, start: float, end: float, beside: str = "") -> Accumulator:
        return Accumulator(name, min(2, rows // 64), columns * max(1, rows // 128), start, end, beside)

    for product in products:
        if product.carried:
            yield tile(product.name, product.rows, product.columns, 0, inf)
    readers = {product.left: position for position, product in enumerate(products) if product.left in results}
    scores, operands = [], []
    for position, product in enumerate(products):
        if not product.carried and not product.into:
            read = readers.get(product.name, len(products))
            start, end = (0.0, inf) if pipelined else (position + 0.1, read + 0.0)
            scores.append(tile(product.name, product.rows, product.columns, start, end))
        if product.left in results and not product.left_turned:
            columns = max(product.depth * results[product.left] // 4, LEAST_OPERAND)
            start, end = (0.0, inf) if pipelined else (position + 0.0, position + 0.5)
            operands.append(tile(f"{product.left} as operand", product.rows, columns, start, end, product.name))
    if pipelined:
        yield from (*scores, *operands)
    else:
        yield from sorted((*scores, *operands), key=lambda each: each.start)


def _scanned(tiles: Sequence[Accumulator]) -> int:
    """Place each tile in the first columns that are free, and return the columns that all take [-]."""
    placed: dict[str, tuple[Accumulator, int, int]] = {}  # tile, first column, half
    for tile in tiles:
        live = [each for each in placed.values() if tile.start < each[0].end]
        halves = [placed[tile.beside][2]] if tile.beside in placed and tile.halves == 1 else range(3 - tile.halves)
        columns = sorted({0, *(-(-(first + other.columns) // STEP) * STEP for other, first, _ in live)})
        placed[tile.name] = next(
            (tile, column, half)
            for column in columns
            for half in halves
            if not any(
                column < first + other.columns
                and first < column + tile.columns
                and half < at + other.halves
                and at < half + tile.halves
                for other, first, at in live
            )
        )
    return max(first + tile.columns for tile, first, _ in placed.values())
