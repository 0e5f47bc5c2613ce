"""The small kernels before and after that have one row of one head on chip at a time."""

from ..grid import split
from .tiles import Call


def preprocess(call: Call) -> None:
    """D = rowsum(dO o O); D of a row is a scalar until it is written."""
    hbm, sram = call.machine.hbm, call.machine.sram
    *shape, d_v = hbm.arrays["O"].shape
    hbm.alloc("D", tuple(shape), width="fp32")
    for program in call.programs:
        o, do = sram.alloc("O", (1, d_v), "io"), sram.alloc("dO", (1, d_v), "io")
        for row in split(program.length, 1):
            at = program.rows(row)
            o[:], do[:] = hbm.load("O", at), hbm.load("dO", at)
            hbm.store("D", at, (do * o).sum(axis=1))
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
