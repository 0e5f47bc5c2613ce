"""Layouts of a result: over the warps that multiply, and over the threads that store it.

A layout is the set of index bits of which a thread holds both values, each bit as (axis, weight). A result passes
through shared memory in as many parts as the two layouts have such bits in common beyond those of one access.
"""

from __future__ import annotations

from iomodel.placement.triton_kernel import Tile

WARP = 32
ACCESS = 16
"""Bytes that a thread stores at once [B]."""
Bit = tuple[str, int]


def balanced_warps(rows: int, columns: int, warps: int) -> tuple[int, int]:
    """Divide warps along the rows and columns of a product on its own, so that a warp has as many tiles of each."""
    along_rows = along_columns = 1
    tiles, across = -(-rows // 16), -(-columns // 8)
    while along_rows * along_columns < warps:
        if tiles >= across:
            along_rows *= 2
            tiles = max(1, tiles // 2)
        else:
            along_columns *= 2
            across //= 2
    return along_rows, along_columns


def multiplied(rows: int, columns: int, along: tuple[int, int]) -> set[Bit]:
    """List the bits that a thread holds of a result of mma.sync: two rows and two columns of each 16 x 8 tile."""
    return {("row", 8), ("column", 1), *_bits("row", 16 * along[0], rows), *_bits("column", 8 * along[1], columns)}


def stored(rows: int, columns: int, element: int, warps: int) -> set[Bit]:
    """List the bits that a thread holds of a tile that is loaded or stored row by row."""
    vector = min(columns, ACCESS // element)
    threads = min(columns // vector, WARP)
    across = min(warps, columns // (vector * threads))
    taken = WARP // threads * (warps // across)
    return {
        *_bits("column", 1, vector),
        *_bits("column", vector * threads * across, columns),
        *_bits("row", taken, rows),
    }


def turned(tile: Tile, summed: str, along_columns: int) -> set[Bit]:
    """List the bits that a thread holds of a right operand of mma.sync, whose "row" or "column" is `summed`."""
    other = "column" if summed == "row" else "row"
    extents = {"row": tile.rows, "column": tile.columns}
    # A thread holds 4 B that are contiguous along the sum, and 16 B further on the next.
    packed = {*_bits(summed, 1, 4 // tile.element), *_bits(summed, ACCESS // tile.element, extents[summed])}
    return packed | _bits(other, 8 * along_columns, extents[other])


def turning(tile: Tile, summed: str, along_columns: int, warps: int, arch: int) -> int:
    """Compute the scratch that turns a tile loaded row by row into a right operand of mma.sync [B]."""
    common = turned(tile, summed, along_columns) & stored(tile.rows, tile.columns, tile.element, warps)
    if summed == "column":  # an access takes the contiguous elements
        return tile.size >> len(common - _bits("column", 1, ACCESS))
    if tile.element > 1:  # transposed by matrix loads; before sm_90 an access takes a pair
        return tile.size >> len(common if arch >= 90 else common - {("row", 1)})
    # 8-bit elements are not transposed by matrix loads: an access takes what is common, from sm_90 on of 4 B.
    return tile.size >> max(0, len(common) - (2 if arch >= 90 else 4))


def conversion(tile: Tile, along: tuple[int, int], warps: int, arch: int) -> int:
    """Compute the scratch that converts a result from the layout of mma.sync to that of its store [B].

    From sm_90 on matrix instructions store 16-bit elements in accesses of 4 B.
    """
    access = 4 if arch >= 90 and tile.element == 2 else ACCESS
    rows, columns = tile.rows, tile.columns
    common = multiplied(rows, columns, along) & stored(rows, columns, tile.element, warps)
    beyond = max(0, len(common) - (access // tile.element).bit_length() + 1)
    return tile.size >> beyond


def _bits(axis: str, first: int, end: int) -> set[Bit]:
    weights, weight = set(), first
    while weight < end:
        weights.add((axis, weight))
        weight *= 2
    return weights
