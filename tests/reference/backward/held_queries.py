"""The loops of FlashAttention's backward pass exchanged: query tiles stay with their dQ, dK and dV go through HBM."""

from collections.abc import Mapping

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..masks import BoolArray
from ..written import PLAIN, Written
from .gradients import KeyGradients
from .tiles import Scores, prepare


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
) -> Run:
    """Run one kernel on O and LSE: query tiles outside, key tiles inside.

    A query tile makes D of its O, one column at a time. The first query tile that a key tile meets begins its dK and
    dV on chip, the other ones load both, and all store them. A key tile that meets none gets zeros.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    call = prepare(
        (Q, K, V, dO), saved, ("O", "LSE"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(block_q,),
    )  # fmt: skip
    machine, hbm, sram = call.machine, call.machine.hbm, call.machine.sram
    gradients = KeyGradients(machine, Q, packed)
    hbm.alloc("dQ", Q.shape)
    gradients.alloc()

    for program in call.programs:
        for keys, visited in call.by_keys(block_q, block_kv):
            if not visited:
                n_k = keys.stop - keys.start
                gradients.put("dK", program, keys, np.zeros((n_k, d)))
                gradients.put("dV", program, keys, np.zeros((n_k, d_v)))
        begun: set[int] = set()
        for rows, visited in call.by_queries(block_q, block_kv):
            n, at = rows.stop - rows.start, program.rows(rows)
            dq = sram.alloc("dQ", (block_q, d), "fp32")[:n]
            dq[:] = 0.0
            if visited or written.eager_loads:
                q = sram.alloc("Q", (block_q, d), "io")[:n]
                do = sram.alloc("dO", (block_q, d_v), "io")[:n]
                lse = sram.alloc("LSE", (block_q,), "fp32")[:n]
                q[:], do[:] = hbm.load("Q", at), hbm.load("dO", at)
                lse[:] = call.statistics.load("LSE", program, rows, block_q)
            if visited:
                D = sram.alloc("D", (block_q,), "fp32")[:n]
                D[:] = 0.0
                column = sram.alloc("O", (block_q, 1), "io")[:n]
                for u in range(d_v):
                    column[:] = hbm.load("O", (*at, slice(u, u + 1)))
                    D += do[:, u] * column[:, 0]
                sram.free("O")
                k_tile = sram.alloc("K", (block_kv, d), "io")
                v_tile = sram.alloc("V", (block_kv, d_v), "io")
                dk_tile = sram.alloc("dK~", (block_kv, d), "fp32")
                dv_tile = sram.alloc("dV~", (block_kv, d_v), "fp32")
                scores = Scores(call, program, block_q, block_kv, by_rows=True)
                scores.begin(rows)
            for visit in visited:
                n_k = visit.keys.stop - visit.keys.start
                k, v, dk, dv = k_tile[:n_k], v_tile[:n_k], dk_tile[:n_k], dv_tile[:n_k]
                k[:], v[:] = 0.0, 0.0
                loaded = visit.loaded.stop - visit.loaded.start
                k[:loaded], v[:loaded] = (hbm.load(name, program.keys(visit.loaded)) for name in ("K", "V"))
                dk[:], dv[:] = 0.0, 0.0
                if visit.keys.start in begun:
                    dk[:], dv[:] = (gradients.get(name, program, visit.keys) for name in ("dK", "dV"))
                begun.add(visit.keys.start)
                tile = scores.remake(visit, q, k, lse)
                dv += machine.matmul((tile.p * tile.z).T, do)
                ds = scores.back(tile, do, v, D)
                dq += machine.matmul(ds, k)
                dk += machine.matmul(ds.T, q)
                gradients.put("dK", program, visit.keys, dk)
                gradients.put("dV", program, visit.keys, dv)
            hbm.store("dQ", at, dq)
            sram.free()
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
