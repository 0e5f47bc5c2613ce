"""Further plain Triton kernels that `triton_compiles.py` compiles: persistent, block-sparse and dense decode kernels.

Written for this benchmark in the manner of `triton_kernels.py`. The block-sparse kernels have the structure of
FlexAttention: lists of the key blocks that a mask sees in part and of those that it sees whole, a loop over each list,
and one backward kernel whose programs compute either dK and dV or dQ.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton_kernels import _softmax_step


@triton.jit
def forward_persistent(Q, K, V, O, LSE, scale, q_len, kv_len, stride, tiles, M: tl.constexpr, N: tl.constexpr,
                       D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """A block of a fixed grid takes one query tile after the other."""
    columns, width = tl.arange(0, N), tl.arange(0, D)
    across = tl.cdiv(q_len, M)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        head, block = (tile // across).to(tl.int64), tile % across
        rows = block * M + tl.arange(0, M)
        q_at, k_at, v_at = Q + head * q_len * stride, K + head * kv_len * stride, V + head * kv_len * stride
        q = tl.load(q_at + rows[:, None] * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
        m = tl.full([M], float("-inf"), tl.float32)
        l = tl.zeros([M], tl.float32)
        o = tl.zeros([M, D], tl.float32)
        end = tl.minimum(kv_len, (block + 1) * M) if CAUSAL else kv_len
        for start in range(0, end, N):
            keys = start + columns
            k = tl.load(k_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
            s = tl.dot(q, tl.trans(k)) * scale
            s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
            if CAUSAL:
                s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
            p, m, l, o = _softmax_step(s, m, l, o)
            v = tl.load(v_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
            o = tl.dot(p.to(V.dtype.element_ty), v, o)
        o = o / l[:, None]
        tl.store(LSE + head * q_len + rows, m + tl.log2(l), mask=rows < q_len)
        tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty),
                 mask=rows[:, None] < q_len)  # fmt: skip


@triton.jit
def decode_dense(Q, K, V, PART, LSE, scale, kv_len, splits, group, stride, M: tl.constexpr, N: tl.constexpr,
                 D: tl.constexpr):  # fmt: skip
    """One split of the keys of one head, for a packed group of queries; keys lie one after the other."""
    head, split = tl.program_id(0), tl.program_id(1)
    rows, columns, width = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(Q + (head * group + rows[:, None]) * stride + width[None, :], mask=rows[:, None] < group, other=0.0)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    share = tl.cdiv(kv_len, splits)
    last = tl.minimum(kv_len, (split + 1) * share)
    for start in range(split * share, last, N):
        keys = start + columns
        k = tl.load(K + keys[None, :] * stride + head * D + width[:, None], mask=keys[None, :] < last, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(keys[None, :] < last, s, float("-inf"))
        p, m, l, o = _softmax_step(s, m, l, o)
        v = tl.load(V + keys[:, None] * stride + head * D + width[None, :], mask=keys[:, None] < last, other=0.0)
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
    out = (head * splits + split) * group + rows
    tl.store(PART + out[:, None] * D + width[None, :], o / l[:, None], mask=rows[:, None] < group)
    tl.store(LSE + out, m + tl.log2(l), mask=rows < group)


@triton.jit
def _first(LIST, block, SPARSE: tl.constexpr):
    """Find the first row of the first listed block."""
    return tl.load(LIST + block * 64) * SPARSE


@triton.jit
def _jump(LIST, block, step, count, R: tl.constexpr, SPARSE: tl.constexpr):
    """Compute the distance to the next tile: within a block, or from a listed block to the next one."""
    at = step // (SPARSE // R)
    here = tl.load(LIST + block * 64 + at, mask=at < count, other=0)
    there = tl.load(LIST + block * 64 + at + 1, mask=at + 1 < count, other=0)
    turns = (step + 1) % (SPARSE // R) == 0
    return tl.where(turns, (there - here) * SPARSE - SPARSE + R, R)


@triton.jit
def _listed(o, l, m, q, k_at, v_at, LIST, COUNT, block, scale, rows, kv_len, stride, N: tl.constexpr,
            D: tl.constexpr, PARTIAL: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Pass over the listed key blocks; only the partial ones are masked."""
    width = tl.arange(0, D)
    count = tl.load(COUNT + block)
    keys = _first(LIST, block, 128) + tl.arange(0, N)
    for step in range(tl.minimum(count * (128 // N), tl.cdiv(kv_len, N))):
        k = tl.load(k_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
        if PARTIAL:
            seen = rows[:, None] >= keys[None, :] if CAUSAL else tl.abs(rows[:, None] - keys[None, :]) < 512
            s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)
        alpha = tl.exp2(m - m_safe)
        p = tl.exp2(s - m_safe[:, None])
        l = l * alpha + tl.sum(p, 1)
        m = m_new
        v = tl.load(v_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        o = tl.dot(p.to(v_at.dtype.element_ty), v, o * alpha[:, None])
        keys += _jump(LIST, block, step, count, N, 128)
    return o, l, m


@triton.jit
def forward_flex(Q, K, V, O, LSE, scale, PART_COUNT, PART_LIST, FULL_COUNT, FULL_LIST, q_len, kv_len, stride,
                 M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """A loop over the key blocks that the mask sees in part, and one over those that it sees whole."""
    head = tl.program_id(1).to(tl.int64)
    rows, width = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    block = tl.program_id(0) * M // 128
    k_at, v_at = K + head * kv_len * stride, V + head * kv_len * stride
    q = tl.load(Q + (head * q_len + rows[:, None]) * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    o, l, m = _listed(o, l, m, q, k_at, v_at, PART_LIST, PART_COUNT, block, scale, rows, kv_len, stride, N, D, True,
                      CAUSAL)  # fmt: skip
    o, l, m = _listed(o, l, m, q, k_at, v_at, FULL_LIST, FULL_COUNT, block, scale, rows, kv_len, stride, N, D, False,
                      CAUSAL)  # fmt: skip
    l = tl.where(l == 0.0, 1.0, l)
    o = o / l[:, None]
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty),
             mask=rows[:, None] < q_len)  # fmt: skip
    tl.store(LSE + head * q_len + rows, m + tl.log2(l), mask=rows < q_len)


@triton.jit
def _listed_dq(dq, q, do, lse, delta, k_at, v_at, LIST, COUNT, block, scale, rows, kv_len, stride, N: tl.constexpr,
               D: tl.constexpr, PARTIAL: tl.constexpr):  # fmt: skip
    width = tl.arange(0, D)
    count = tl.load(COUNT + block)
    keys = _first(LIST, block, 128) + tl.arange(0, N)
    for step in range(tl.minimum(count * (128 // N), tl.cdiv(kv_len, N))):
        k = tl.load(k_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
        if PARTIAL:
            s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
        p = tl.exp2(s - lse[:, None])
        v = tl.load(v_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k_at.dtype.element_ty), k, dq)
        keys += _jump(LIST, block, step, count, N, 128)
    return dq


@triton.jit
def _listed_dkdv(dk, dv, k, v, q_at, do_at, LSE, DELTA, LIST, COUNT, block, scale, columns, q_len, stride,
                 M: tl.constexpr, D: tl.constexpr, PARTIAL: tl.constexpr):  # fmt: skip
    width = tl.arange(0, D)
    count = tl.load(COUNT + block)
    rows = _first(LIST, block, 128) + tl.arange(0, M)
    for step in range(tl.minimum(count * (128 // M), tl.cdiv(q_len, M))):
        q = tl.load(q_at + rows[:, None] * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
        lse = tl.load(LSE + rows, mask=rows < q_len, other=0.0)
        s = tl.dot(k, tl.trans(q)) * scale
        if PARTIAL:
            s = tl.where(rows[None, :] >= columns[:, None], s, float("-inf"))
        p = tl.exp2(s - lse[None, :])
        do = tl.load(do_at + rows[:, None] * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
        dv = tl.dot(p.to(do_at.dtype.element_ty), do, dv)
        delta = tl.load(DELTA + rows, mask=rows < q_len, other=0.0)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(ds.to(q_at.dtype.element_ty), q, dk)
        rows += _jump(LIST, block, step, count, M, 128)
    return dk, dv


@triton.jit
def backward_flex(Q, K, V, DO, DQ, DK, DV, LSE, DELTA, scale, PART_COUNT, PART_LIST, FULL_COUNT, FULL_LIST, q_len,
                  kv_len, key_tiles, stride, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):  # fmt: skip
    """dK and dV of N keys by query tiles of M rows, or dQ of N rows by key tiles of M rows."""
    head = tl.program_id(1).to(tl.int64)
    width = tl.arange(0, D)
    q_at, do_at = Q + head * q_len * stride, DO + head * q_len * stride
    k_at, v_at = K + head * kv_len * stride, V + head * kv_len * stride
    LSE += head * q_len
    DELTA += head * q_len
    if tl.program_id(0) >= key_tiles:
        tile = tl.program_id(0) - key_tiles
        rows = tile * N + tl.arange(0, N)
        at = rows[:, None] * stride + width[None, :]
        q = tl.load(q_at + at, mask=rows[:, None] < q_len, other=0.0)
        do = tl.load(do_at + at, mask=rows[:, None] < q_len, other=0.0)
        lse = tl.load(LSE + rows, mask=rows < q_len, other=0.0)
        delta = tl.load(DELTA + rows, mask=rows < q_len, other=0.0)
        dq = tl.zeros([N, D], tl.float32)
        block = tile * N // 128
        dq = _listed_dq(dq, q, do, lse, delta, k_at, v_at, PART_LIST, PART_COUNT, block, scale, rows, kv_len, stride,
                        M, D, True)  # fmt: skip
        dq = _listed_dq(dq, q, do, lse, delta, k_at, v_at, FULL_LIST, FULL_COUNT, block, scale, rows, kv_len, stride,
                        M, D, False)  # fmt: skip
        tl.store(DQ + head * q_len * stride + at, (dq * scale).to(DQ.dtype.element_ty), mask=rows[:, None] < q_len)
    else:
        tile = tl.program_id(0)
        columns = tile * N + tl.arange(0, N)
        at = columns[:, None] * stride + width[None, :]
        k = tl.load(k_at + at, mask=columns[:, None] < kv_len, other=0.0)
        v = tl.load(v_at + at, mask=columns[:, None] < kv_len, other=0.0)
        dk = tl.zeros([N, D], tl.float32)
        dv = tl.zeros([N, D], tl.float32)
        block = tile * N // 128
        dk, dv = _listed_dkdv(dk, dv, k, v, q_at, do_at, LSE, DELTA, PART_LIST, PART_COUNT, block, scale, columns,
                              q_len, stride, M, D, True)  # fmt: skip
        dk, dv = _listed_dkdv(dk, dv, k, v, q_at, do_at, LSE, DELTA, FULL_LIST, FULL_COUNT, block, scale, columns,
                              q_len, stride, M, D, False)  # fmt: skip
        tl.store(DV + head * kv_len * stride + at, dv.to(DV.dtype.element_ty), mask=columns[:, None] < kv_len)
        tl.store(DK + head * kv_len * stride + at, (dk * scale).to(DK.dtype.element_ty),
                 mask=columns[:, None] < kv_len)  # fmt: skip
