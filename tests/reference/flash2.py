"""FlashAttention-2, forward (Dao 2023, arXiv:2307.08691, section 3.1, Algorithm 1)."""

import numpy as np

from .grid import programs, row_mask, visits
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
    lse: bool = True,
) -> Run:
    """Run Algorithm 1: query tiles outside, key tiles inside, O normalised once at the end.

    The comments give the algorithm's lines. Line 10 of the paper prints the rescaling factor inverted;
    here it is as in the derivation of section 3.1.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    machine = Machine(Q, K, V, capacity)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    if lse:
        hbm.alloc("LSE", Q.shape[:3], width="fp32")
    tiles = visits(row_mask(Q, K, left=left, right=right, align=align, packed=packed), block_q, block_kv)

    for program in programs(Q, K, packed):
        for rows, visited in tiles:  # line 3
            n = rows.stop - rows.start
            q = sram.alloc("Q", (block_q, d), "io")[:n]
            o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
            l = sram.alloc("l", (block_q,), "fp32")[:n]
            m = sram.alloc("m", (block_q,), "fp32")[:n]
            k_tile = sram.alloc("K", (block_kv, d), "io")
            v_tile = sram.alloc("V", (block_kv, d_v), "io")
            s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
            at = program.rows(rows)
            if visited:  # a tile that sees nothing needs no queries, only its output
                q[:] = hbm.load("Q", at)  # line 4
            o[:], l[:], m[:] = 0.0, 0.0, -np.inf  # line 5
            for visit in visited:  # line 6
                n_k = visit.keys.stop - visit.keys.start
                k, v, s = k_tile[:n_k], v_tile[:n_k], s_tile[:n, :n_k]
                k[:] = hbm.load("K", program.keys(visit.keys))  # line 7
                v[:] = hbm.load("V", program.keys(visit.keys))
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)  # line 8
                s[visit.hidden] = -np.inf
                # Line 9, row by row: the new maximum and the factor are scalars of a row.
                m_new = np.maximum(m, s.max(axis=1))
                base = finite(m_new)
                factor = machine.exp(m - base)
                s[:] = machine.exp(s - base[:, None])  # P overwrites S
                l[:] = factor * l + s.sum(axis=1)
                m[:] = m_new
                o[:] = factor[:, None] * o + machine.matmul(s, v)  # line 10
            o *= reciprocal(l)[:, None]  # line 12
            hbm.store("O", at, o)  # line 14
            if lse:
                hbm.store("LSE", at, logsumexp(m, l))  # lines 13 and 15
            sram.free()
    return machine.result(O=hbm.arrays["O"], LSE=hbm.arrays["LSE"] if lse else None)
