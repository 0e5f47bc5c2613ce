"""FlashAttention, backward (Dao et al. 2022, arXiv:2205.14135, appendix B, Algorithm 4)."""

from collections.abc import Mapping

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from ..extras import NONE, Extras
from ..grid import split
from ..masks import BoolArray, reciprocal
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
    begin_once: bool = False,
) -> Run:
    """Run Algorithm 4 on O, l and m: key tiles outside, query tiles inside, dQ read and written every time.

    The comments give the algorithm's lines. `begin_once`: the first key tile that a query tile meets makes D of its O
    and stores it, and begins its dQ on chip; the other ones load D and dQ, and no O. A tile that meets none gets zeros.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    call = prepare(
        (Q, K, V, dO), saved, ("O", "l", "m"),
        left=left, right=right, align=align, seen=seen, packed=packed, capacity=capacity, extras=extras,
        written=written, rows=(block_q,),
    )  # fmt: skip
    machine, hbm, sram = call.machine, call.machine.hbm, call.machine.sram
    gradients = KeyGradients(machine, Q, packed)
    hbm.alloc("dQ", Q.shape)
    gradients.alloc()
    if not begin_once:
        hbm.store("dQ", ..., 0.0)  # line 5: constants, nothing on chip
        gradients.zero()
    else:
        call.statistics.alloc("D", block_q)

    for program in call.programs:
        k_tile = sram.alloc("K", (block_kv, d), "io")
        v_tile = sram.alloc("V", (block_kv, d_v), "io")
        dk_tile = sram.alloc("dK~", (block_kv, d), "fp32")
        dv_tile = sram.alloc("dV~", (block_kv, d_v), "fp32")
        q_tile = sram.alloc("Q", (block_q, d), "io")
        o_tile = sram.alloc("O", (block_q, d_v), "io")
        do_tile = sram.alloc("dO", (block_q, d_v), "io")
        dq_tile = sram.alloc("dQ", (block_q, d), "fp32")
        d_tile = sram.alloc("D", (block_q,), "fp32") if begin_once else np.zeros(block_q)
        l_tile = sram.alloc("l", (block_q,), "fp32")
        m_tile = sram.alloc("m", (block_q,), "fp32")
        scores = Scores(call, program, block_q, block_kv)
        met = {visit.rows.start for _, visited in call.by_keys(block_q, block_kv) for visit in visited}
        for rows in split(program.length, block_q):
            if begin_once and rows.start not in met:
                hbm.store("dQ", program.rows(rows), 0.0)
        for keys, visited in call.by_keys(block_q, block_kv):  # line 6
            n_k = keys.stop - keys.start
            k, v, dk, dv = k_tile[:n_k], v_tile[:n_k], dk_tile[:n_k], dv_tile[:n_k]
            if visited or written.eager_loads:
                k[:], v[:] = hbm.load("K", program.keys(keys)), hbm.load("V", program.keys(keys))  # line 7
            if not visited:  # no query sees this key tile, and its gradients are 0
                if begin_once:
                    gradients.put("dK", program, keys, np.zeros((n_k, d)))
                    gradients.put("dV", program, keys, np.zeros((n_k, d_v)))
                continue
            scores.begin()  # line 1
            dk[:], dv[:] = 0.0, 0.0  # line 8
            for visit in visited:  # line 9
                n = visit.rows.stop - visit.rows.start
                q, o, do, dq = q_tile[:n], o_tile[:n], do_tile[:n], dq_tile[:n]
                l, m = l_tile[:n], m_tile[:n]
                D, at = d_tile[:n], program.rows(visit.rows)
                q[:], do[:] = hbm.load("Q", at), hbm.load("dO", at)  # line 10
                if not begin_once or visit.rows.start in met:
                    o[:] = hbm.load("O", at)
                    D[:] = (do * o).sum(axis=1)  # line 19; a scalar of a row where it is made every time
                if not begin_once:
                    dq[:] = hbm.load("dQ", at)
                elif visit.rows.start in met:
                    met.remove(visit.rows.start)
                    call.statistics.store("D", program, visit.rows, block_q, D)
                    dq[:] = 0.0
                else:
                    D[:] = call.statistics.load("D", program, visit.rows, block_q)
                    dq[:] = hbm.load("dQ", at)
                l[:], m[:] = (call.statistics.load(name, program, visit.rows, block_q) for name in ("l", "m"))
                tile = scores.remake(visit, q, k, m)  # lines 11 to 14
                tile.p[:] *= reciprocal(l)[:, None]
                dv += machine.matmul((tile.p * tile.z).T, do)  # lines 15 and 16
                ds = scores.back(tile, do, v, D)  # lines 17 to 20
                dq += machine.matmul(ds, k)
                hbm.store("dQ", at, dq)  # line 21
                dk += machine.matmul(ds.T, q)  # line 22
            gradients.put("dK", program, keys, dk)  # line 24
            gradients.put("dV", program, keys, dv)
        sram.free()
    gradients.finish()
    return machine.result(dQ=hbm.arrays["dQ"], dK=hbm.arrays["dK"], dV=hbm.arrays["dV"])
