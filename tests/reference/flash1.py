"""FlashAttention, forward (Dao et al. 2022, arXiv:2205.14135, section 3.1, Algorithm 1)."""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .cache import forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, Visit, programs, row_mask, split, visits
from .masks import BoolArray, finite, logsumexp, reciprocal


def initialise(machine: Machine, program: Program, block_q: int) -> None:
    """Line 2: constants, nothing on chip. A sink is a logit without a value: the state after having seen it."""
    hbm, sram = machine.hbm, machine.sram
    if "sinks" not in hbm.arrays:
        everything = program.rows(slice(None))
        hbm.store("O", everything, 0.0)
        hbm.store("l", everything, 0.0)
        hbm.store("m", everything, -np.inf)
        return
    for rows in split(program.length, block_q):
        sink = alloc_per_head(machine, "sinks", program, "io")
        assert sink is not None
        load_per_head(machine, "sinks", program, sink)
        hbm.store("O", program.rows(rows), 0.0)
        hbm.store("l", program.rows(rows), 1.0)
        hbm.store("m", program.rows(rows), sink[program.member(rows)])
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
    hbm.alloc("l", Q.shape[:3], width="fp32")
    hbm.alloc("m", Q.shape[:3], width="fp32")
    off = offset(Q.shape[2], K.shape[2], align)
    mask = row_mask(Q, K, left=left, right=right, align=align, packed=packed, seen=seen)
    by_keys: dict[int, list[Visit]] = {j.start: [] for j in split(K.shape[2], block_kv)}
    for _, visited in visits(mask, block_q, block_kv):
        for visit in visited:
            by_keys[visit.keys.start].append(visit)

    for program in programs(Q, K, packed):
        initialise(machine, program, block_q)  # line 2
        q_tile = sram.alloc("Q", (block_q, d), "io")
        o_tile = sram.alloc("O", (block_q, d_v), "fp32")
        l_tile = sram.alloc("l", (block_q,), "fp32")
        m_tile = sram.alloc("m", (block_q,), "fp32")
        l_inner = sram.alloc("l~", (block_q,), "fp32")
        m_inner = sram.alloc("m~", (block_q,), "fp32")
        slope = alloc_per_head(machine, "slopes", program, "fp32")
        cache.alloc_stationary()
        cache.alloc_tile(block_kv, "K", "V")
        bias = alloc_bias(machine, block_q, block_kv)
        s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
        for inner in by_keys.values():  # line 5
            if not inner:
                continue  # no query sees this key tile
            keys = inner[0].keys
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
                l[:], m[:] = hbm.load("l", at), hbm.load("m", at)
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
                hbm.store("l", at, l)  # line 13
                hbm.store("m", at, m)
        sram.free()
    l, m = hbm.arrays["l"], hbm.arrays["m"]
    return machine.result(O=hbm.arrays["O"], LSE=logsumexp(m, l), l=l, m=m)
