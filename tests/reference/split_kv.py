"""Flash-decoding (Dao, Haziza, Massa and Sizov 2023): FlashAttention-2 on parts of the keys, then combined.

The partial results are those of FlashAttention-2 (arXiv:2307.08691, Algorithm 1), each with its own
log-sum-exp, which the second kernel weighs them by.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from . import flash2
from .cache import Cache, forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, Visit, programs, row_mask, split, visits
from .masks import BoolArray, finite, logsumexp, reciprocal


def partial(
    machine: Machine,
    cache: Cache,
    program: Program,
    *,
    rows: slice,
    visited: list[Visit],
    part: int,
    block_q: int,
    block_kv: int,
    off: int,
) -> None:
    """Attention of one query tile to the keys of one split, normalised, with its log-sum-exp."""
    hbm, sram, extras = machine.hbm, machine.sram, cache.extras
    d, d_v = cache.depth["K"], cache.depth["V"]
    n = rows.stop - rows.start
    q = sram.alloc("Q", (block_q, d), "io")[:n]
    o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
    l = sram.alloc("l", (block_q,), "fp32")[:n]
    m = sram.alloc("m", (block_q,), "fp32")[:n]
    slope = alloc_per_head(machine, "slopes", program, "fp32")
    cache.alloc_stationary()
    cache.alloc_tile(block_kv, "K", "V")
    bias = alloc_bias(machine, block_q, block_kv)
    s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
    if visited:
        q[:] = hbm.load("Q", program.rows(rows))
        load_per_head(machine, "slopes", program, slope)
        cache.load_stationary(program)
    o[:], l[:], m[:] = 0.0, 0.0, -np.inf
    for visit in visited:
        s = s_tile[:n, : visit.keys.stop - visit.keys.start]
        k, v = cache.load_tile(program, visit.keys, "K", "V")
        s[:] = machine.matmul(q, k.T) / np.sqrt(d)
        transform(machine, extras, s, program, rows=rows, keys=visit.keys, offset=off, bias=bias, slope=slope)
        s[visit.hidden] = -np.inf
        m_new = np.maximum(m, s.max(axis=1))
        base = finite(m_new)
        factor = machine.exp(m - base)
        s[:] = machine.exp(s - base[:, None])
        l[:] = factor * l + s.sum(axis=1)
        m[:] = m_new
        s *= kept(machine, extras, program, rows, visit.keys)
        o[:] = factor[:, None] * o + machine.matmul(s, v)
    o *= reciprocal(l)[:, None]
    hbm.store("O_acc", (part, *program.rows(rows)), o)
    hbm.store("LSE_acc", (part, *program.rows(rows)), logsumexp(m, l))
    sram.free()


def combine(machine: Machine, at: tuple[int, int, int], splits: int) -> None:
    """Weigh the parts of one row by their log-sum-exp; a sink is one more part, without a value."""
    hbm, sram = machine.hbm, machine.sram
    weights = sram.alloc("LSE_acc", (splits,), "fp32")
    o = sram.alloc("O", hbm.arrays["O"].shape[3:], "fp32")
    o_part = sram.alloc("O_acc", o.shape, "fp32")
    weights[:] = hbm.load("LSE_acc", (slice(None), *at))
    m = weights.max()
    sink = sram.alloc("sinks", (1,), "io") if "sinks" in hbm.arrays else None
    if sink is not None:
        sink[:] = hbm.load("sinks", slice(at[1], at[1] + 1))
        m = np.maximum(m, sink[0])
    base = finite(m)
    weights[:] = machine.exp(weights - base)
    l = weights.sum(keepdims=True)
    if sink is not None:
        l += machine.exp(sink - base)
    o[:] = 0.0
    for part, weight in enumerate(weights):
        o_part[:] = hbm.load("O_acc", (part, *at))
        o += weight * o_part
    hbm.store("O", at, o * reciprocal(l))
    if "LSE" in hbm.arrays:
        hbm.store("LSE", at, logsumexp(m, l)[0])
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
    splits: int,
    lse: bool = True,
) -> Run:
    """Cut the key tiles into `splits` runs of equal length, of which the last may be shorter or empty."""
    if splits == 1:  # nothing to combine
        return flash2.run(
            Q, K, V, left=left, right=right, align=align, packed=packed, capacity=capacity, seen=seen, extras=extras,
            block_q=block_q, block_kv=block_kv, lse=lse,
        )  # fmt: skip
    machine, cache, extras = forward(Q, K, V, capacity, extras)
    hbm = machine.hbm
    hbm.alloc("O_acc", (splits, *Q.shape[:3], V.shape[-1]), width="fp32")
    hbm.alloc("LSE_acc", (splits, *Q.shape[:3]), width="fp32")
    off = offset(Q.shape[2], K.shape[2], align)
    length = -(-len(split(K.shape[2], block_kv)) // splits) * block_kv  # keys of a split
    mask = row_mask(Q, K, left=left, right=right, align=align, packed=packed, seen=seen)
    tiles = visits(mask, block_q, block_kv)
    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            for part in range(splits):
                here = [visit for visit in visited if visit.keys.start // length == part]
                partial(
                    machine, cache, program,
                    rows=rows, visited=here, part=part, block_q=block_q, block_kv=block_kv, off=off,
                )  # fmt: skip
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    if lse:
        hbm.alloc("LSE", Q.shape[:3], width="fp32")
    for batch, head, query in np.ndindex(Q.shape[:3]):
        combine(machine, (batch, head, query), splits)
    hbm.free("O_acc")
    hbm.free("LSE_acc")
    return machine.result(O=hbm.arrays["O"], LSE=hbm.arrays["LSE"] if lse else None)
