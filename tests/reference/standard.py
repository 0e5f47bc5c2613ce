"""Standard attention, forward (Dao et al. 2022, arXiv:2205.14135, section 2.2, Algorithm 0).

Three kernels, one for each line of the algorithm; each runs over all batches and heads before the next
begins. S and P go through HBM whole, whatever the mask: it changes their values only. The mask and dropout
are part of the softmax and of the last kernel, or kernels of their own.
"""

from dataclasses import replace

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .cache import Cache, forward
from .extras import NONE, Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, transform
from .grid import Program, programs, row_mask, split
from .masks import BoolArray, finite, reciprocal
from .passes import add_mask, alloc_dropped, dropout
from .written import PLAIN, Written

ALL = slice(None)


def scores(cache: Cache, program: Program, gemm_m: int, gemm_n: int, off: int) -> None:
    """Line 1 for one head: S = Q K^T by output tiles, streaming the depth one column at a time."""
    machine, extras = cache.machine, cache.extras
    hbm, sram = machine.hbm, machine.sram
    d, kv_len = hbm.arrays["Q"].shape[-1], hbm.arrays["K"].shape[2]
    for rows in split(program.length, gemm_m):
        for keys in split(kv_len, gemm_n):
            n, n_k = rows.stop - rows.start, keys.stop - keys.start
            s = sram.alloc("S", (gemm_m, gemm_n), "fp32")[:n, :n_k]
            q = sram.alloc("Q", (gemm_m, 1), "io")[:n]
            k = sram.alloc("K", (gemm_n, 1), cache.width)[:n_k]
            slope = alloc_per_head(machine, "slopes", program, "fp32", gemm_m)
            bias = alloc_bias(machine, gemm_m, gemm_n, program)
            load_per_head(machine, "slopes", program, slope, rows)
            for per in ("head", "token"):
                cache.alloc_scale("K", per, 1 if per == "head" else gemm_n)
                cache.load_scale("K", per, program, keys)
            s[:] = 0.0
            for c in range(d):
                q[:] = hbm.load("Q", (*program.rows(rows), slice(c, c + 1)))
                k[:] = cache.load("K", program, keys, slice(c, c + 1))
                s += machine.matmul(q, k.T)
            s *= cache.scale("K", n_k) / np.sqrt(d)
            transform(machine, extras, s, program, rows=rows, keys=keys, offset=off, bias=bias, slope=slope)
            hbm.store("S", (*program.rows(rows), keys), s)
            sram.free()


def scores_ideal(cache: Cache, program: Program, off: int) -> None:
    """Line 1 for one head with everything on chip: each operand is moved once."""
    machine, extras = cache.machine, cache.extras
    hbm, sram = machine.hbm, machine.sram
    d, kv_len = hbm.arrays["Q"].shape[-1], hbm.arrays["K"].shape[2]
    rows, keys = slice(program.length), slice(0, kv_len)
    q = sram.alloc("Q", (program.length, d), "io")
    s = sram.alloc("S", (program.length, kv_len), "fp32")
    slope = alloc_per_head(machine, "slopes", program, "fp32")
    bias = alloc_bias(machine, program.length, kv_len, program)
    cache.alloc_scale("K", "head")
    cache.alloc_tile(kv_len, "K")
    q[:] = hbm.load("Q", program.rows(ALL))
    load_per_head(machine, "slopes", program, slope)
    cache.load_scale("K", "head", program)
    (k,) = cache.load_tile(program, keys, "K")
    s[:] = machine.matmul(q, k.T) / np.sqrt(d)
    transform(machine, extras, s, program, rows=rows, keys=keys, offset=off, bias=bias, slope=slope)
    hbm.store("S", program.rows(ALL), s)
    sram.free()


def softmax(machine: Machine, program: Program, seen: BoolArray, block: int, scores: str = "S") -> None:
    """Line 2 for one head: P = softmax(S), a block of whole rows at a time, in place; S goes by this name."""
    hbm, sram = machine.hbm, machine.sram
    for rows in split(program.length, block):
        s = sram.alloc("S", (block, seen.shape[1]), "fp32")[: rows.stop - rows.start]
        s[:] = hbm.load(scores, program.rows(rows))
        s[~seen[rows]] = -np.inf
        m = s.max(axis=1)
        logit = np.full(len(s), -np.inf)
        if "sinks" in hbm.arrays:  # one more logit, without a value: of each head of these rows
            member = program.member(rows)
            first, last = program.heads_here.start + member.min(), program.heads_here.start + member.max()
            sink = sram.alloc("sinks", (last + 1 - first,), "io")
            sink[:] = hbm.load("sinks", slice(first, last + 1))
            logit = sink[member - member.min()]
        m = np.maximum(m, logit)
        s[:] = machine.exp(s - finite(m)[:, None])
        l = s.sum(axis=1)
        if "sinks" in hbm.arrays:
            l += machine.exp(logit - m)
        s *= reciprocal(l)[:, None]
        hbm.store("P", program.rows(rows), s)
        sram.free()


def output(cache: Cache, program: Program, weights: str, gemm_m: int, gemm_n: int) -> None:
    """Line 3 for one head: O = P V by output tiles, streaming the keys one at a time; P goes by this name."""
    machine, extras = cache.machine, cache.extras
    hbm, sram = machine.hbm, machine.sram
    kv_len, d_v = hbm.arrays["K"].shape[2], cache.depth["V"]
    for rows in split(program.length, gemm_m):
        for columns in split(d_v, gemm_n):
            n, n_v = rows.stop - rows.start, columns.stop - columns.start
            o = sram.alloc("O", (gemm_m, gemm_n), "fp32")[:n, :n_v]
            p = sram.alloc(weights, (gemm_m, 1), "io")[:n]
            v = sram.alloc("V", (1, gemm_n), cache.width)[:, :n_v]
            cache.alloc_scale("V", "head")
            cache.alloc_scale("V", "token")
            cache.load_scale("V", "head", program)
            o[:] = 0.0
            for j in range(kv_len):
                key = slice(j, j + 1)
                p[:] = hbm.load(weights, (*program.rows(rows), key))
                p *= kept(machine, extras, program, rows, key)
                v[:] = cache.load("V", program, key, columns)
                cache.load_scale("V", "token", program, key)
                o += machine.matmul(p, v * cache.scale("V", 1))
            hbm.store("O", (*program.rows(rows), columns), o)
            sram.free()


def output_ideal(cache: Cache, program: Program, weights: str) -> None:
    """Line 3 for one head with everything on chip: each operand is moved once."""
    machine, extras = cache.machine, cache.extras
    hbm, sram = machine.hbm, machine.sram
    rows, keys = slice(program.length), slice(0, hbm.arrays["K"].shape[2])
    p = sram.alloc(weights, (program.length, keys.stop), "io")
    o = sram.alloc("O", (program.length, cache.depth["V"]), "fp32")
    cache.alloc_scale("V", "head")
    cache.alloc_tile(keys.stop, "V")
    p[:] = hbm.load(weights, program.rows(ALL))
    p *= kept(machine, extras, program, rows, keys)
    cache.load_scale("V", "head", program)
    (v,) = cache.load_tile(program, keys, "V")
    o[:] = machine.matmul(p, v)
    hbm.store("O", program.rows(ALL), o)
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
    mask_pass: bool = False,
    dropout_pass: bool = False,
    gemm1_m: int | None = None,
    gemm1_n: int | None = None,
    gemm2_m: int | None = None,
    gemm2_n: int | None = None,
) -> Run:
    """Run Algorithm 0, with all four tiles of its two products or, without any, in its ideal form.

    P is kept without dropout, as the backward pass needs it: dropout is part of the last kernel. With `dropout_pass`
    it is a kernel of its own, at rate 0 if there is none: the dropped P and the mask are kept as well, and the state of
    the generator is not.
    """
    dropped = replace(extras or NONE, dropout=(extras or NONE).dropout or 0.0)
    if dropout_pass:
        extras = replace(dropped, dropout=None)
    machine, cache, extras = forward(Q, K, V, capacity, extras)
    if extras.page_size:
        raise ValueError("standard attention has no pages")
    if replace(written, bias_vector=False) != PLAIN:
        raise ValueError("standard attention skips nothing and keeps no statistics")
    hbm = machine.hbm
    heads = programs(Q, K, packed)
    mask = row_mask(Q, K, left=left, right=right, align=align, packed=packed, seen=seen)
    off = offset(Q.shape[2], K.shape[2], align)
    tiled = None not in (gemm1_m, gemm1_n, gemm2_m, gemm2_n)
    if not tiled and (gemm1_m or gemm1_n or gemm2_m or gemm2_n):
        raise ValueError("give all four tiles, or none")
    hbm.alloc("S", (*Q.shape[:3], K.shape[2]))
    for program in heads:
        if gemm1_m and gemm1_n:
            scores(cache, program, gemm1_m, gemm1_n, off)
        else:
            scores_ideal(cache, program, off)
    block = 1 if tiled else heads[0].length
    if mask_pass:
        for program in heads:
            add_mask(machine, program, mask, block)
        mask = np.ones_like(mask)  # nothing is left to mask
    hbm.alloc("P", (*Q.shape[:3], K.shape[2]))
    for program in heads:
        softmax(machine, program, mask, block)
    hbm.free("S")
    if dropout_pass:
        alloc_dropped(hbm)
        for program in heads:
            dropout(machine, dropped, program, block)
    weights = "P_drop" if dropout_pass else "P"
    hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    for program in heads:
        if gemm2_m and gemm2_n:
            output(cache, program, weights, gemm2_m, gemm2_n)
        else:
            output_ideal(cache, program, weights)
    left_over = {name: hbm.arrays.get(name) for name in ("P", "P_drop", "dropout_mask")}
    return machine.result(O=hbm.arrays["O"], **left_over)
