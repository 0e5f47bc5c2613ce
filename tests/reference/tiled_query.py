"""Attention one query tile at a time, with the tile's whole strip of scores on chip.

No paper gives this as pseudocode. It is the fusion that comes before FlashAttention's online softmax
(Dao et al. 2022, arXiv:2205.14135, section 3.1): S never reaches HBM, yet the softmax of a row waits for
all its scores. One query per tile is the naive kernel.
"""

import numpy as np

from .grid import programs, row_mask, visits
from .machine import FloatArray, Machine, Run
from .masks import finite, reciprocal


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
    """Run two loops over the key tiles for each query tile: one for the scores, one for the output."""
    d, d_v, kv_len = Q.shape[-1], V.shape[-1], K.shape[2]
    machine = Machine(Q, K, V, capacity)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    tiles = visits(row_mask(Q, K, left=left, right=right, align=align, packed=packed), block_q, block_kv)

    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            n = rows.stop - rows.start
            q = sram.alloc("Q", (block_q, d), "io")[:n]
            strip = sram.alloc("S", (block_q, kv_len), "fp32")[:n]
            o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
            at = program.rows(rows)
            if visited:  # a tile that sees nothing needs no queries, only its output
                q[:] = hbm.load("Q", at)

            k_tile = sram.alloc("K", (block_kv, d), "io")
            for visit in visited:
                k = k_tile[: visit.keys.stop - visit.keys.start]
                k[:] = hbm.load("K", program.keys(visit.keys))
                s = strip[:, visit.keys]
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)
                s[visit.hidden] = -np.inf
            sram.free("K")  # K and V are never on chip together

            if visited:
                # Exact softmax in place, row by row: the maximum and the sum are scalars of a row.
                filled = np.concatenate([np.arange(visit.keys.start, visit.keys.stop) for visit in visited])
                s = strip[:, filled]
                p = machine.exp(s - finite(s.max(axis=1))[:, None])
                strip[:, filled] = p * reciprocal(p.sum(axis=1))[:, None]

            v_tile = sram.alloc("V", (block_kv, d_v), "io")
            o[:] = 0.0
            for visit in visited:
                v = v_tile[: visit.keys.stop - visit.keys.start]
                v[:] = hbm.load("V", program.keys(visit.keys))
                o += machine.matmul(strip[:, visit.keys], v)
            hbm.store("O", at, o)
            sram.free()
    return machine.result(O=hbm.arrays["O"])
