"""FlashAttention, forward (Dao et al. 2022, arXiv:2205.14135, section 3.1, Algorithm 1)."""

import numpy as np

from .grid import Visit, programs, row_mask, split, visits
from .machine import FloatArray, Machine, Run
from .masks import finite, logsumexp, reciprocal


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    left: int | None = None,
    right: int | None = None,
    align: str = "bottom-right",
    packed: bool = False,
    capacity: int | None = None,
    block_q: int,
    block_kv: int,
) -> Run:
    """Run Algorithm 1: key tiles outside, query tiles inside, O, l and m read and written every time.

    The comments give the algorithm's lines. HBM holds l and m, not their log-sum-exp: the LSE of the
    result is worked out from them after the run, to check them, and is not counted.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    machine = Machine(Q, K, V, capacity)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    hbm.alloc("l", Q.shape[:3], width="fp32")
    hbm.alloc("m", Q.shape[:3], width="fp32")
    seen = row_mask(Q, K, left=left, right=right, align=align, packed=packed)
    by_keys: dict[int, list[Visit]] = {j.start: [] for j in split(K.shape[2], block_kv)}
    for _, visited in visits(seen, block_q, block_kv):
        for visit in visited:
            by_keys[visit.keys.start].append(visit)

    for program in programs(Q, K, packed):
        q_tile = sram.alloc("Q", (block_q, d), "io")
        o_tile = sram.alloc("O", (block_q, d_v), "fp32")
        l_tile = sram.alloc("l", (block_q,), "fp32")
        m_tile = sram.alloc("m", (block_q,), "fp32")
        l_inner = sram.alloc("l~", (block_q,), "fp32")
        m_inner = sram.alloc("m~", (block_q,), "fp32")
        k_tile = sram.alloc("K", (block_kv, d), "io")
        v_tile = sram.alloc("V", (block_kv, d_v), "io")
        s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
        everything = program.rows(slice(None))
        hbm.store("O", everything, 0.0)  # line 2: constants, nothing on chip
        hbm.store("l", everything, 0.0)
        hbm.store("m", everything, -np.inf)
        for inner in by_keys.values():  # line 5
            if not inner:
                continue  # no query sees this key tile
            keys = inner[0].keys
            n_k = keys.stop - keys.start
            k, v = k_tile[:n_k], v_tile[:n_k]
            k[:] = hbm.load("K", program.keys(keys))  # line 6
            v[:] = hbm.load("V", program.keys(keys))
            for visit in inner:  # line 7
                n = visit.rows.stop - visit.rows.start
                q, o, l, m = q_tile[:n], o_tile[:n], l_tile[:n], m_tile[:n]
                l_ij, m_ij, s = l_inner[:n], m_inner[:n], s_tile[:n, :n_k]
                at = program.rows(visit.rows)
                q[:], o[:] = hbm.load("Q", at), hbm.load("O", at)  # line 8
                l[:], m[:] = hbm.load("l", at), hbm.load("m", at)
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)  # line 9
                s[visit.hidden] = -np.inf
                m_ij[:] = s.max(axis=1)  # line 10
                s[:] = machine.exp(s - finite(m_ij)[:, None])  # P~ overwrites S
                l_ij[:] = s.sum(axis=1)
                # Lines 11 to 13, row by row: the new values are scalars until they overwrite the old.
                m_new = np.maximum(m, m_ij)
                old = machine.exp(m - finite(m_new)) * l
                scale = machine.exp(m_ij - finite(m_new))
                l[:] = old + scale * l_ij
                o[:] = old[:, None] * o + scale[:, None] * machine.matmul(s, v)
                o *= reciprocal(l)[:, None]
                m[:] = m_new
                hbm.store("O", at, o)  # line 12
                hbm.store("l", at, l)  # line 13
                hbm.store("m", at, m)
        sram.free()
    return machine.result(O=hbm.arrays["O"], LSE=logsumexp(hbm.arrays["m"], hbm.arrays["l"]))
