"""One matrix product as a kernel of its own, for standard attention."""

from collections.abc import Callable

from iomodel.testing.machine import FloatArray, Machine

from ..grid import split

Tile = tuple[int, int]
Load = Callable[[slice, slice], FloatArray]
Store = Callable[[slice, slice, FloatArray], None]


def product(
    machine: Machine,
    shape: tuple[int, int, int],
    tile: Tile | None,
    *,
    load_a: Load,
    load_b: Load,
    store: Store,
    random: bool = False,
) -> None:
    """Make the product a b of shape m, n, k by result tiles, streaming a column of a and a row of b at a time.

    Without a tile everything is on chip and each operand is moved once. Operands are loaded, and the result is
    stored, by rows and columns. With `random`, the state of dropout's generator is loaded for each result tile.
    """
    sram = machine.sram
    m, n, k = shape
    tile_m, tile_n, step = (*tile, 1) if tile else shape
    for rows in split(m, tile_m):
        for columns in split(n, tile_n):
            height, width = rows.stop - rows.start, columns.stop - columns.start
            result = sram.alloc("result", (tile_m, tile_n), "fp32")[:height, :width]
            a = sram.alloc("a", (tile_m, step), "io")[:height]
            b = sram.alloc("b", (step, tile_n), "io")[:, :width]
            if random:
                sram.alloc("R", (2,), "int64")[:] = machine.hbm.load("R", ...)
            result[:] = 0.0
            for inner in split(k, step):
                a[:] = load_a(rows, inner)
                b[:] = load_b(inner, columns)
                result += machine.matmul(a, b)
            store(rows, columns, result)
            sram.free()
