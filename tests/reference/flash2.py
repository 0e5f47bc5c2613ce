"""FlashAttention-2, forward (Dao 2023, arXiv:2307.08691, section 3.1, Algorithm 1)."""

from itertools import product

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from .cache import forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import programs, split, visits
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
    block_value: int | None = None,
    lse: bool = True,
) -> Run:
    """Run Algorithm 1: query tiles outside, key tiles inside, O normalised once at the end.

    The comments give the algorithm's lines. Line 10 of the paper prints the rescaling factor inverted;
    here it is as in the derivation of section 3.1.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    machine, cache, extras = forward(Q, K, V, capacity, extras, written)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    statistics = Statistics(machine, Q, K, packed, written)
    for name in (("m", "l") if written.two_statistics else ("LSE",)) if lse else ():
        statistics.alloc(name, block_q)
    slab = block_value if written.value_slabs and block_value else d_v
    off = offset(Q.shape[2], K.shape[2], align)
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    tiles = in_order(visits(mask, block_q, block_kv, as_read), written)

    for program in programs(Q, K, packed):
        for columns, (rows, visited) in product(split(d_v, slab), tiles):  # line 3
            n = rows.stop - rows.start
            q = sram.alloc("Q", (block_q, d), "io")[:n]
            o = sram.alloc("O", (block_q, slab), "fp32")[:n, : columns.stop - columns.start]
            l = sram.alloc("l", (block_q,), "fp32")[:n]
            m = sram.alloc("m", (block_q,), "fp32")[:n]
            slope = alloc_per_head(machine, "slopes", program, "fp32", block_q)
            sink = alloc_per_head(machine, "sinks", program, "io", block_q)
            cache.alloc_stationary()
            cache.alloc_tile(block_kv, "K", "V", columns=slab)
            bias = alloc_bias(machine, block_q, block_kv, program)
            s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
            at = program.rows(rows)
            load_per_head(machine, "sinks", program, sink, rows)
            if visited or written.eager_loads:  # a tile that sees nothing needs no queries, only its output
                q[:] = hbm.load("Q", at)  # line 4
            if visited:
                load_per_head(machine, "slopes", program, slope, rows)
                cache.load_stationary(program)
            o[:], l[:], m[:] = 0.0, 0.0, -np.inf  # line 5
            for visit in visited:  # line 6
                s = s_tile[:n, : visit.keys.stop - visit.keys.start]
                k, v = cache.load_tile(program, visit, "K", "V", columns=columns)  # line 7
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)  # line 8
                transform(machine, extras, s, program, rows=rows, keys=visit.keys, offset=off, bias=bias, slope=slope)
                s[visit.hidden] = -np.inf
                # Line 9, row by row: the new maximum and the factor are scalars of a row.
                m_new = np.maximum(m, s.max(axis=1))
                base = finite(m_new)
                factor = machine.exp(m - base)
                s[:] = machine.exp(s - base[:, None])  # P overwrites S
                l[:] = factor * l + s.sum(axis=1)
                m[:] = m_new
                s *= kept(machine, extras, program, rows, visit.keys)
                o[:] = factor[:, None] * o + machine.matmul(s, v)  # line 10
            if sink is not None:  # one more logit, without a value; the rescaling is of scalars of a row
                logit = sink[program.member(rows)]
                m_new = np.maximum(m, logit)
                factor = np.exp(m - m_new)
                l[:] = factor * l + machine.exp(logit - m_new)
                o *= factor[:, None]
                m[:] = m_new
            o *= reciprocal(l)[:, None]  # line 12
            hbm.store("O", (*at, columns), o)  # line 14
            saved = {"LSE": logsumexp(m, l), "m": m, "l": l}  # lines 13 and 15
            for name in saved.keys() & hbm.arrays.keys():
                statistics.store(name, program, rows, block_q, saved[name])
            cache.end_walk()
        sram.free()
    m, l = statistics.value("m"), statistics.value("l")
    logarithms = statistics.value("LSE") if m is None or l is None else logsumexp(m, l)
    return machine.result(O=hbm.arrays["O"], LSE=logarithms)
