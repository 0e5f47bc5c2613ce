"""The kernel that flash2 and two_pass have in common: dK and dV, key tiles outside, query tiles inside."""

from collections.abc import Callable

from iomodel.testing.machine import FloatArray

from ..grid import Program, Visit
from .gradients import KeyGradients
from .tiles import Call, Scores, load_lse

AddDQ = Callable[[Program, Visit, int, FloatArray], None]


def run_keys(call: Call, gradients: KeyGradients, block_q: int, block_kv: int, add_dq: AddDQ | None = None) -> None:
    """Run the loops of FlashAttention-2's Algorithm 2, whose lines the comments give.

    With `add_dq`, the product dS K of each tile is made too and handed on, with the number of the key tile.
    """
    hbm, sram = call.machine.hbm, call.machine.sram
    d, d_v = hbm.arrays["K"].shape[-1], hbm.arrays["V"].shape[-1]
    for program in call.programs:
        k_tile = sram.alloc("K", (block_kv, d), "io")
        v_tile = sram.alloc("V", (block_kv, d_v), "io")
        dk_tile = sram.alloc("dK", (block_kv, d), "fp32")
        dv_tile = sram.alloc("dV", (block_kv, d_v), "fp32")
        q_tile = sram.alloc("Q", (block_q, d), "io")
        do_tile = sram.alloc("dO", (block_q, d_v), "io")
        lse_tile = sram.alloc("LSE", (block_q,), "fp32")
        if call.written.two_statistics:
            sram.alloc("l", (block_q,), "fp32")  # the log-sum-exp of a row is then in the place of m
        d_tile = sram.alloc("D", (block_q,), "fp32")
        dq_tile = sram.alloc("dQ", (block_q, d), "fp32") if add_dq else None
        scores = Scores(call, program, block_q, block_kv)
        for number, (keys, visited) in enumerate(call.by_keys(block_q, block_kv)):  # line 5
            n_k = keys.stop - keys.start
            k, v, dk, dv = k_tile[:n_k], v_tile[:n_k], dk_tile[:n_k], dv_tile[:n_k]
            if visited or call.written.eager_loads:
                k[:], v[:] = hbm.load("K", program.keys(keys)), hbm.load("V", program.keys(keys))  # line 6
            if visited:
                scores.begin()
            dk[:], dv[:] = 0.0, 0.0  # line 7
            for visit in visited:  # line 8
                n = visit.rows.stop - visit.rows.start
                q, do, lse, D = q_tile[:n], do_tile[:n], lse_tile[:n], d_tile[:n]
                at = program.rows(visit.rows)
                q[:], do[:] = hbm.load("Q", at), hbm.load("dO", at)  # line 9; O went into D
                lse[:] = load_lse(call, program, visit.rows, block_q)
                D[:] = call.statistics.load("D", program, visit.rows, block_q)
                tile = scores.remake(visit, q, k, lse)  # lines 10 and 11
                dv += call.machine.matmul((tile.p * tile.z).T, do)  # line 12
                ds = scores.back(tile, do, v, D)  # lines 13 and 14
                if add_dq and dq_tile is not None:
                    dq_tile[:n] = call.machine.matmul(ds, k)
                    add_dq(program, visit, number, dq_tile[:n])  # line 15
                dk += call.machine.matmul(ds.T, q)  # line 16
            if visited or not gradients.accumulated:
                gradients.put("dK", program, keys, dk)  # line 18
                gradients.put("dV", program, keys, dv)
        sram.free()
