"""FlashAttention, forward (Dao et al. 2022, arXiv:2205.14135, section 3.1, Algorithm 1)."""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .cache import forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, Visit, programs, split, visits
from .masks import BoolArray, finite, logsumexp, reciprocal
from .written import PLAIN, Statistics, Written, masks_of


def initialise(machine: Machine, statistics: Statistics, program: Program, block_q: int) -> None:
    """Line 2: constants, nothing on chip. A sink is a logit without a value: the state after having seen it."""
    hbm, sram = machine.hbm, machine.sram
    for rows in split(program.length, block_q):
        n = rows.stop - rows.start
        l, m = np.zeros(n), np.full(n, -np.inf)
        sink = alloc_per_head(machine, "sinks", program, "io", block_q)
        if sink is not None:
            load_per_head(machine, "sinks", program, sink, rows)
            l, m = np.ones(n), sink[program.member(rows)]
        hbm.store("O", program.rows(rows), 0.0)
        statistics.store("l", program, rows, block_q, l)
        statistics.store("m", program, rows, block_q, m)
        sram.free()


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
    """Run Algorithm 1: key tiles outside, query tiles inside, O, l and m read and written every time.

    The comments give the algorithm's lines. HBM holds l and m, not their log-sum-exp: the LSE of the
    result is worked out from them after the run, to check them, and is not counted.
    """
    d, d_v = Q.shape[-1], V.shape[-1]
    machine, cache, extras = forward(Q, K, V, capacity, extras)
    hbm, sram = machine.hbm, machine.sram
    hbm.alloc("O", (*Q.shape[:3], d_v))
    statistics = Statistics(machine, Q, K, packed, written)
    statistics.alloc("l", block_q)
    statistics.alloc("m", block_q)
    off = offset(Q.shape[2], K.shape[2], align)
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    by_keys: dict[int, list[Visit]] = {j.start: [] for j in split(K.shape[2], block_kv)}
    for _, visited in visits(mask, block_q, block_kv, as_read):
        for visit in visited:
            by_keys[visit.keys.start].append(visit)

    for program in programs(Q, K, packed):
        initialise(machine, statistics, program, block_q)  # line 2
        q_tile = sram.alloc("Q", (block_q, d), "io")
        o_tile = sram.alloc("O", (block_q, d_v), "fp32")
        l_tile = sram.alloc("l", (block_q,), "fp32")
        m_tile = sram.alloc("m", (block_q,), "fp32")
        l_inner = sram.alloc("l~", (block_q,), "fp32")
        m_inner = sram.alloc("m~", (block_q,), "fp32")
        slope = alloc_per_head(machine, "slopes", program, "fp32")
        cache.alloc_stationary()
        cache.alloc_tile(block_kv, "K", "V")
        bias = alloc_bias(machine, block_q, block_kv, program)
        s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
        for keys, inner in zip(split(K.shape[2], block_kv), by_keys.values(), strict=True):  # line 5
            if not inner and not written.eager_loads:
                continue  # no query sees this key tile
            if inner:
                load_per_head(machine, "slopes", program, slope)
                cache.load_stationary(program)
            k, v = cache.load_tile(program, keys, "K", "V")  # line 6
            for visit in inner:  # line 7
                rows = visit.rows
                n, n_k = rows.stop - rows.start, keys.stop - keys.start
                q, o, l, m = q_tile[:n], o_tile[:n], l_tile[:n], m_tile[:n]
                l_ij, m_ij, s = l_inner[:n], m_inner[:n], s_tile[:n, :n_k]
                at = program.rows(rows)
                q[:], o[:] = hbm.load("Q", at), hbm.load("O", at)  # line 8
                l[:], m[:] = (statistics.load(name, program, rows, block_q) for name in ("l", "m"))
                s[:] = machine.matmul(q, k.T) / np.sqrt(d)  # line 9
                transform(machine, extras, s, program, rows=rows, keys=keys, offset=off, bias=bias, slope=slope)
                s[visit.hidden] = -np.inf
                m_ij[:] = s.max(axis=1)  # line 10
                s[:] = machine.exp(s - finite(m_ij)[:, None])  # P~ overwrites S
                l_ij[:] = s.sum(axis=1)
                # Lines 11 to 13, row by row: the new values are scalars until they overwrite the old.
                m_new = np.maximum(m, m_ij)
                old = machine.exp(m - finite(m_new)) * l
                scale = machine.exp(m_ij - finite(m_new))
                l[:] = old + scale * l_ij
                s *= kept(machine, extras, program, rows, keys)
                o[:] = old[:, None] * o + scale[:, None] * machine.matmul(s, v)
                o *= reciprocal(l)[:, None]
                m[:] = m_new
                hbm.store("O", at, o)  # line 12
                statistics.store("l", program, rows, block_q, l)  # line 13
                statistics.store("m", program, rows, block_q, m)
        sram.free()
    l, m = statistics.value("l"), statistics.value("m")
    assert l is not None
    assert m is not None
    return machine.result(O=hbm.arrays["O"], LSE=logsumexp(m, l), l=l, m=m)
