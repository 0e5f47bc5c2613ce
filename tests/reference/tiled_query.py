"""Attention one query tile at a time, with the tile's whole strip of scores on chip.

No paper gives this as pseudocode. It is the fusion that comes before FlashAttention's online softmax
(Dao et al. 2022, arXiv:2205.14135, section 3.1): S never reaches HBM, yet the softmax of a row waits for
all its scores. One query per tile is the naive kernel.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from .cache import forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import programs, visits
from .masks import BoolArray, finite, reciprocal
from .written import PLAIN, Written, masks_of


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
    seen: BoolArray | None = None,
    extras: Extras | None = None,
    written: Written = PLAIN,
    block_q: int,
    block_kv: int,
) -> Run:
    """Run two loops over the key tiles for each query tile: one for the scores, one for the output."""
    d, d_v, kv_len = Q.shape[-1], V.shape[-1], K.shape[2]
    machine, cache, extras = forward(Q, K, V, capacity, extras)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    off = offset(Q.shape[2], kv_len, align)
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    tiles = visits(mask, block_q, block_kv, as_read)

    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            n = rows.stop - rows.start
            q = sram.alloc("Q", (block_q, d), "io")[:n]
            strip = sram.alloc("S", (block_q, kv_len), "fp32")[:n]
            o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
            slope = alloc_per_head(machine, "slopes", program, "fp32", block_q)
            sink = alloc_per_head(machine, "sinks", program, "io", block_q)
            cache.alloc_stationary()
            at = program.rows(rows)
            load_per_head(machine, "sinks", program, sink, rows)
            if visited or written.eager_loads:  # a tile that sees nothing needs no queries, only its output
                q[:] = hbm.load("Q", at)
            if visited:
                load_per_head(machine, "slopes", program, slope, rows)
                cache.load_stationary(program)

            cache.alloc_tile(block_kv, "K")
            bias = alloc_bias(machine, block_q, block_kv, program)
            for visit in visited:
                (k,) = cache.load_tile(program, visit, "K")
                s = strip[:, visit.keys]
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)
                transform(machine, extras, s, program, rows=rows, keys=visit.keys, offset=off, bias=bias, slope=slope)
                s[visit.hidden] = -np.inf
            cache.free_tile("K")  # K and V are never on chip together
            if bias is not None:
                sram.free("bias")

            # Exact softmax in place, row by row: the maximum and the sum are scalars of a row.
            filled = [key for visit in visited for key in range(visit.keys.start, visit.keys.stop)]
            s = strip[:, filled]
            m = s.max(axis=1, initial=-np.inf)
            if sink is not None:  # one more logit, without a value
                m = np.maximum(m, sink[program.member(rows)])
            p = machine.exp(s - finite(m)[:, None])
            l = p.sum(axis=1)
            if sink is not None:
                l += machine.exp(sink[program.member(rows)] - m)
            strip[:, filled] = p * reciprocal(l)[:, None]

            cache.alloc_tile(block_kv, "V")
            o[:] = 0.0
            for visit in visited:
                (v,) = cache.load_tile(program, visit, "V")
                p = strip[:, visit.keys] * kept(machine, extras, program, rows, visit.keys)
                o += machine.matmul(p, v)
            hbm.store("O", at, o)
            sram.free()
    return machine.result(O=hbm.arrays["O"])
