"""FlashAttention-3, forward (Shah et al. 2024, arXiv:2407.08608, section 3, Algorithms 1 and 2)."""

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from .cache import forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import programs, visits
from .masks import BoolArray, finite, logsumexp, reciprocal
from .written import PLAIN, Statistics, Written, in_order, masks_of


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
    lse: bool = True,
) -> Run:
    """Run the producer of Algorithm 1 and the consumer of Algorithm 2 in step, with one stage of K and one of V.

    The comments give the lines of Algorithm 2. The scores of the next tile are made before the softmax of the
    current one is multiplied by its V, so that two tiles of scores are on chip; K is a tile ahead of V.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    machine, cache, extras = forward(Q, K, V, capacity, extras, written)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    statistics = Statistics(machine, Q, K, packed, written)
    if lse:
        statistics.alloc("LSE", block_q)
    off = offset(Q.shape[2], K.shape[2], align)
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    tiles = in_order(visits(mask, block_q, block_kv, as_read), written)

    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            n = rows.stop - rows.start
            q = sram.alloc("Q", (block_q, d), "io")[:n]
            o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
            l = sram.alloc("l", (block_q,), "fp32")[:n]
            m = sram.alloc("m", (block_q,), "fp32")[:n]
            slope = alloc_per_head(machine, "slopes", program, "fp32", block_q)
            sink = alloc_per_head(machine, "sinks", program, "io", block_q)
            cache.alloc_stationary()
            cache.alloc_tile(block_kv, "K")
            cache.alloc_tile(block_kv, "V")  # of its own even if V is part of K: K is already the next tile
            bias = alloc_bias(machine, block_q, block_kv, program)
            s_cur = sram.alloc("S", (block_q, block_kv), "fp32")
            s_next = sram.alloc("S_next", (block_q, block_kv), "fp32")
            at = program.rows(rows)
            load_per_head(machine, "sinks", program, sink, rows)
            if visited or written.eager_loads:  # a tile that sees nothing needs no queries, only its output
                q[:] = hbm.load("Q", at)
            if visited:
                load_per_head(machine, "slopes", program, slope, rows)
                cache.load_stationary(program)
            o[:], l[:], m[:] = 0.0, 0.0, -np.inf  # line 2
            p, v = s_cur[:n, :0], np.zeros((0, d_v))  # before the first tile: no P, no V
            for visit in visited:  # lines 3 to 6 are the first trip, 7 to 17 the others
                s = s_next[:n, : visit.keys.stop - visit.keys.start]
                (k,) = cache.load_tile(program, visit, "K")  # lines 3 and 8
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)  # lines 4 and 9
                transform(machine, extras, s, program, rows=rows, keys=visit.keys, offset=off, bias=bias, slope=slope)
                s[visit.hidden] = -np.inf
                o[:] += machine.matmul(p, v)  # line 11
                # Lines 3 and 10. Algorithm 1 issues the loads of K_j and V_j together, at the same addresses,
                # yet the one buffer of V is free only here.
                (v,) = cache.load_tile(program, visit, "V", after="K")
                # Lines 6 and 13, row by row: the new maximum and the factor are scalars of a row.
                m_new = np.maximum(m, s.max(axis=1))
                base = finite(m_new)
                factor = machine.exp(m - base)
                s[:] = machine.exp(s - base[:, None])  # P overwrites S
                l[:] = factor * l + s.sum(axis=1)
                m[:] = m_new
                s *= kept(machine, extras, program, rows, visit.keys)
                o *= factor[:, None]  # lines 6 and 14
                p = s_cur[:n, : s.shape[1]]
                p[:] = s  # line 16
            o[:] += machine.matmul(p, v)  # lines 18 and 19
            if sink is not None:  # one more logit, without a value; the rescaling is of scalars of a row
                logit = sink[program.member(rows)]
                m_new = np.maximum(m, logit)
                factor = np.exp(m - m_new)
                l[:] = factor * l + machine.exp(logit - m_new)
                o *= factor[:, None]
                m[:] = m_new
            o *= reciprocal(l)[:, None]  # line 20, with all that follows
            hbm.store("O", at, o)
            if lse:
                statistics.store("LSE", program, rows, block_q, logsumexp(m, l))
            cache.end_walk()
        sram.free()
    return machine.result(O=hbm.arrays["O"], LSE=statistics.value("LSE"))
