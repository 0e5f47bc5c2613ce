"""The small kernels before and after that have one row of one head on chip at a time."""

import numpy as np

from ..grid import split
from .tiles import Call


def preprocess(call: Call, *tiles: int) -> None:
    """D = rowsum(dO o O), row by row; or in the first of these tiles, where statistics are of whole tiles."""
    hbm, sram = call.machine.hbm, call.machine.sram
    d_v = hbm.arrays["O"].shape[-1]
    block = tiles[0] if call.written.padded_statistics else 1
    call.statistics.alloc("D", *tiles)
    for program in call.programs:
        o_tile, do_tile = sram.alloc("O", (block, d_v), "io"), sram.alloc("dO", (block, d_v), "io")
        d_tile = sram.alloc("D", (block,), "fp32") if block > 1 or call.written.padded_statistics else np.zeros(1)
        for rows in split(program.length, block):
            n = rows.stop - rows.start
            at, o, do = program.rows(rows), o_tile[:n], do_tile[:n]
            o[:], do[:] = hbm.load("O", at), hbm.load("dO", at)
            d_tile[:n] = (do * o).sum(axis=1)
            call.statistics.store("D", program, rows, block, d_tile[:n])
        sram.free()


def sum_slabs(call: Call) -> None:
    """dQ, the sum of the slabs of dQ_acc; of a single slab a conversion from fp32."""
    hbm, sram = call.machine.hbm, call.machine.sram
    slabs, *shape, d = hbm.arrays["dQ_acc"].shape
    hbm.alloc("dQ", (*shape, d))
    for program in call.programs:
        total = sram.alloc("dQ", (1, d), "fp32")
        slab = sram.alloc("dQ_acc", (1, d), "fp32") if slabs > 1 else total
        for row in split(program.length, 1):
            at = program.rows(row)
            total[:] = hbm.load("dQ_acc", (0, *at))
            for n in range(1, slabs):
                slab[:] = hbm.load("dQ_acc", (n, *at))
                total += slab
            hbm.store("dQ", at, total)
        sram.free()
    hbm.free("dQ_acc")
