"""FlashAttention-3, backward (Shah et al. 2024, arXiv:2407.08608, Appendix B.1), as its public kernels do it.

A kernel ahead makes D and the log-sum-exp in base 2 and zeroes the sums of dQ; another converts these at the end. In
the kernel between them a producer loads, two or three warp groups multiply and one more warp adds their tiles of dQ to
HBM. They run one after the other here, and a tile is on chip once, however many stages it has there.
"""

from collections.abc import Mapping

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..grid import split
from ..masks import BoolArray, finite
from ..written import PLAIN, Written
from .gradients import KeyGradients
from .tiles import Call, Scores, prepare

LN_2 = np.log(2.0)


def statistics(call: Call, block_q: int) -> None:
    """D and the log-sum-exp in base 2, 0 for a row that sees nothing; zeros where dQ will be added up.

    Row by row, or tile by tile where statistics are of whole tiles.
    """
    hbm, sram = call.machine.hbm, call.machine.sram
    d_v = hbm.arrays["O"].shape[-1]
    block = block_q if call.written.padded_statistics else 1
    for name in ("D", "LSE_log2"):
        call.statistics.alloc(name, block_q)
    hbm.alloc("dQ_acc", hbm.arrays["Q"].shape, width="fp32")
    for program in call.programs:
        o_tile, do_tile = sram.alloc("O", (block, d_v), "io"), sram.alloc("dO", (block, d_v), "io")
        lse_tile, d_tile = sram.alloc("LSE", (block,), "fp32"), sram.alloc("D", (block,), "fp32")
        for rows in split(program.length, block):
            n = rows.stop - rows.start
            at, o, do, lse, D = program.rows(rows), o_tile[:n], do_tile[:n], lse_tile[:n], d_tile[:n]
            o[:], do[:] = hbm.load("O", at), hbm.load("dO", at)
            lse[:] = call.statistics.load("LSE", program, rows, block)
            D[:] = (do * o).sum(axis=1)
            lse[:] = finite(lse) / LN_2
            call.statistics.store("D", program, rows, block, D)
            call.statistics.store("LSE_log2", program, rows, block, lse)
            hbm.store("dQ_acc", at, 0.0)
        sram.free()


def gradients_of_keys(call: Call, gradients: KeyGradients, block_q: int, block_kv: int, deterministic: bool) -> None:
    """Run a thread block a key tile: dK and dV stay on chip, each tile of dQ is added to HBM."""
    machine, hbm, sram = call.machine, call.machine.hbm, call.machine.sram
    d, d_v = hbm.arrays["K"].shape[-1], hbm.arrays["V"].shape[-1]
    for program in call.programs:
        q_tile, do_tile = sram.alloc("Q", (block_q, d), "io"), sram.alloc("dO", (block_q, d_v), "io")
        lse_tile, d_tile = sram.alloc("LSE_log2", (block_q,), "fp32"), sram.alloc("D", (block_q,), "fp32")
        dq_tile = sram.alloc("dQ", (block_q, d), "fp32")
        k_tile, v_tile = sram.alloc("K", (block_kv, d), "io"), sram.alloc("V", (block_kv, d_v), "io")
        dk_tile, dv_tile = sram.alloc("dK", (block_kv, d), "fp32"), sram.alloc("dV", (block_kv, d_v), "fp32")
        scores = Scores(call, program, block_q, block_kv)
        for keys, visited in call.by_keys(block_q, block_kv):
            n_k = keys.stop - keys.start
            k, v, dk, dv = k_tile[:n_k], v_tile[:n_k], dk_tile[:n_k], dv_tile[:n_k]
            dk[:], dv[:] = 0.0, 0.0
            if visited or call.written.eager_loads:
                k[:], v[:] = hbm.load("K", program.keys(keys)), hbm.load("V", program.keys(keys))
            if visited:
                scores.begin()
            for visit in visited:
                n = visit.rows.stop - visit.rows.start
                q, do, lse, D, dq = q_tile[:n], do_tile[:n], lse_tile[:n], d_tile[:n], dq_tile[:n]
                at = program.rows(visit.rows)
                q[:], lse[:] = hbm.load("Q", at), call.statistics.load("LSE_log2", program, visit.rows, block_q)
                do[:], D[:] = hbm.load("dO", at), call.statistics.load("D", program, visit.rows, block_q)
                tile = scores.remake(visit, q, k, lse * LN_2)  # exp2(S log2(e) - lse)
                dv += machine.matmul((tile.p * tile.z).T, do)
                ds = scores.back(tile, do, v, D)
                dq[:] = machine.matmul(ds, k)
                dk += machine.matmul(ds.T, q)
                hbm.add("dQ_acc", at, dq, atomic=not deterministic)
            if visited or not gradients.accumulated:
                gradients.put("dK", program, keys, dk)
                gradients.put("dV", program, keys, dv)
        sram.free()


def convert_dq(call: Call) -> None:
    """DQ from its sums in fp32, a row at a time."""
    hbm, sram = call.machine.hbm, call.machine.sram
    hbm.alloc("dQ", hbm.arrays["dQ_acc"].shape)
    for program in call.programs:
        total = sram.alloc("dQ_acc", (1, hbm.arrays["dQ"].shape[-1]), "fp32")
        for row in split(program.length, 1):
            total[:] = hbm.load("dQ_acc", program.rows(row))
            hbm.store("dQ", program.rows(row), total)
        sram.free()
    hbm.free("dQ_acc")


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    dO: FloatArray,
    saved: Mapping[str, FloatArray],
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    seen: BoolArray | None = None,
    packed: bool = False,
    capacity: int | None = None,
    extras: Extras = NONE,
    written: Written = PLAIN,
    block_q: int,
    block_kv: int,
    deterministic: bool = False,
) -> Run:
    """Run the kernels on O and LSE; gradients of keys that query heads share are always added up in HBM."""
    call = prepare(
        (Q, K, V, dO), saved, ("O", "LSE"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(block_q,),
    )  # fmt: skip
    machine, hbm = call.machine, call.machine.hbm
    gradients = KeyGradients(machine, Q, packed, accumulate=True)
    if gradients.accumulated:
        gradients.alloc()
        gradients.zero()
    statistics(call, block_q)
    if not gradients.accumulated:
        gradients.alloc()
    gradients_of_keys(call, gradients, block_q, block_kv, deterministic)
    for name in ("D", "LSE_log2"):
        hbm.free(name)
    convert_dq(call)
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
