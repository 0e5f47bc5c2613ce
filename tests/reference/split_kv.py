"""Flash-decoding (Dao, Haziza, Massa and Sizov 2023): FlashAttention-2 on parts of the keys, then combined.

The partial results are those of FlashAttention-2 (arXiv:2307.08691, Algorithm 1), each with its own
log-sum-exp, which the second kernel weighs them by.
"""

from dataclasses import replace

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from . import flash2
from .cache import Cache, forward
from .extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, Visit, programs, split, visits
from .masks import BoolArray, finite, logsumexp, reciprocal
from .written import PLAIN, Statistics, Written, masks_of


def partial(
    machine: Machine,
    cache: Cache,
    program: Program,
    statistics: Statistics,
    *,
    rows: slice,
    visited: list[Visit],
    part: int,
    empty: bool,
    written: Written,
    block_q: int,
    block_kv: int,
    off: int,
) -> None:
    """Attention of one query tile to the keys of one split, with its log-sum-exp; or not normalised, with m and l."""
    hbm, sram, extras = machine.hbm, machine.sram, cache.extras
    d, d_v = cache.depth["K"], cache.depth["V"]
    n = rows.stop - rows.start
    q = sram.alloc("Q", (block_q, d), "io")[:n]
    o = sram.alloc("O", (block_q, d_v), "fp32")[:n]
    l = sram.alloc("l", (block_q,), "fp32")[:n]
    m = sram.alloc("m", (block_q,), "fp32")[:n]
    slope = alloc_per_head(machine, "slopes", program, "fp32", block_q)
    cache.alloc_stationary()
    cache.alloc_tile(block_kv, "K", "V")
    bias = alloc_bias(machine, block_q, block_kv, program)
    s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
    if visited or written.eager_loads:
        q[:] = hbm.load("Q", program.rows(rows))
    if visited:
        load_per_head(machine, "slopes", program, slope, rows)
        cache.load_stationary(program)
    o[:], l[:], m[:] = 0.0, 0.0, -np.inf
    for visit in visited:
        s = s_tile[:n, : visit.keys.stop - visit.keys.start]
        k, v = cache.load_tile(program, visit, "K", "V")
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
    if not (empty and written.drop_empty_splits):
        if written.two_statistics:
            saved = {"m_acc": m, "l_acc": l}
        else:
            o *= reciprocal(l)[:, None]
            saved = {"LSE_acc": logsumexp(m, l)}
        hbm.store("O_acc", (part, *program.rows(rows)), o)
        for name, values in saved.items():
            statistics.store(name, program, rows, block_q, values, part=(part,))
    sram.free()


def combine(
    machine: Machine, statistics: Statistics, program: Program, row: int, at: tuple[int, int, int], splits: int
) -> None:
    """Weigh the parts of one row by their log-sum-exp, or by their m; a sink is one more part, without a value."""
    hbm, sram = machine.hbm, machine.sram
    names = ("m_acc", "l_acc") if "m_acc" in hbm.arrays else ("LSE_acc",)
    loaded = [sram.alloc(name, (splits,), "fp32") for name in names]
    o = sram.alloc("O", hbm.arrays["O"].shape[3:], "fp32")
    o_part = sram.alloc("O_acc", o.shape, "fp32")
    place = (*statistics.at(program), row) if statistics.padded else at
    for buffer, name in zip(loaded, names, strict=True):
        buffer[:] = hbm.load(name, (slice(0, splits), *place))
    weights = loaded[0]
    m = weights.max()
    sink = sram.alloc("sinks", (1,), "io") if "sinks" in hbm.arrays else None
    if sink is not None:
        sink[:] = hbm.load("sinks", slice(at[1], at[1] + 1))
        m = np.maximum(m, sink[0])
    base = finite(m)
    weights[:] = machine.exp(weights - base)
    l = (weights * loaded[1] if len(loaded) > 1 else weights).sum(keepdims=True)
    if sink is not None:
        l += machine.exp(sink - base)
    o[:] = 0.0
    for part, weight in enumerate(weights):
        o_part[:] = hbm.load("O_acc", (part, *at))
        o += weight * o_part
    hbm.store("O", at, o * reciprocal(l))
    if "LSE" in hbm.arrays:
        statistics.store("LSE", program, slice(row, row + 1), 1, logsumexp(m, l))
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
    splits: int,
    lse: bool = True,
) -> Run:
    """Cut the key tiles into `splits` runs of equal length, of which the last may be shorter or empty."""
    if splits == 1 and not written.combine_one_split:  # nothing to combine
        return flash2.run(
            Q, K, V, left=left, right=right, align=align, packed=packed, capacity=capacity, seen=seen, extras=extras,
            written=replace(written, two_statistics=False), block_q=block_q, block_kv=block_kv, lse=lse,
        )  # fmt: skip
    machine, cache, extras = forward(Q, K, V, capacity, extras)
    hbm = machine.hbm
    hbm.alloc("O_acc", (splits, *Q.shape[:3], V.shape[-1]), width="fp32")
    statistics = Statistics(machine, Q, K, packed, written)
    for name in ("m_acc", "l_acc") if written.two_statistics else ("LSE_acc",):
        statistics.alloc(name, block_q, parts=(splits,))
    off = offset(Q.shape[2], K.shape[2], align)
    length = -(-len(split(K.shape[2], block_kv)) // splits) * block_kv  # keys of a split
    mask, as_read = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=block_q
    )
    tiles = visits(mask, block_q, block_kv, as_read)
    for program in programs(Q, K, packed):
        for rows, visited in tiles:
            for part in range(splits):
                here = [visit for visit in visited if visit.keys.start // length == part]
                partial(
                    machine, cache, program, statistics,
                    rows=rows, visited=here, part=part, empty=part * length >= K.shape[2], written=written,
                    block_q=block_q, block_kv=block_kv, off=off,
                )  # fmt: skip
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    if lse:
        statistics.alloc("LSE", 1)
    combined = -(-K.shape[2] // length) if written.drop_empty_splits else splits
    for program in programs(Q, K, packed):
        for row in range(program.length):
            heads, queries = program.positions(slice(row, row + 1))
            combine(machine, statistics, program, row, (program.batch, int(heads[0]), int(queries[0])), combined)
    for name in ("O_acc", "m_acc", "l_acc", "LSE_acc"):
        if name in hbm.arrays:
            hbm.free(name)
    return machine.result(O=hbm.arrays["O"], LSE=statistics.value("LSE"))
