"""Plain Triton forward kernels with masks that `triton_compiles.py` compiles: selected blocks, documents, windows.

Written for this benchmark in the manner of `triton_kernels.py`, for the registers of masks and of carried key
positions. No compile of the block-sparse kernel of `triton_kernels_more.py`, which is held out, took part in them.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _guarded_step(s, m, l):
    """Update the running maximum and sum where rows may see no key; return the weights and the rescaling."""
    m_new = tl.maximum(m, tl.max(s, 1))
    m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)
    alpha = tl.exp2(m - m_safe)
    p = tl.exp2(s - m_safe[:, None])
    return p, alpha, m_new, l * alpha + tl.sum(p, 1)


@triton.jit
def forward_selected(Q, K, V, O, LSE, scale, SELECTED, COUNT, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr,
                     D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """One loop over the key blocks that a query tile selects; the position goes from one block to the next."""
    head = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    rows, width = tile * M + tl.arange(0, M), tl.arange(0, D)
    k_at, v_at = K + head * kv_len * stride, V + head * kv_len * stride
    q = tl.load(Q + (head * q_len + rows[:, None]) * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    count = tl.load(COUNT + tile)
    listed = SELECTED + tile * 32
    keys = tl.load(listed) * N + tl.arange(0, N)
    for step in range(count):
        k = tl.load(k_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
        if CAUSAL:
            s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
        p, alpha, m, l = _guarded_step(s, m, l)
        v = tl.load(v_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        o = tl.dot(p.to(V.dtype.element_ty), v, o * alpha[:, None])
        here = tl.load(listed + step)
        there = tl.load(listed + step + 1, mask=step + 1 < count, other=0)
        keys += (there - here) * N
    l = tl.where(l == 0.0, 1.0, l)
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l), mask=rows < q_len)
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty),
             mask=rows[:, None] < q_len)  # fmt: skip


@triton.jit
def _banded(o, l, m, q, k_at, v_at, IDS, ids, scale, rows, first, last, kv_len, stride, N: tl.constexpr,
            D: tl.constexpr, EDGE: tl.constexpr, DOCUMENTS: tl.constexpr):  # fmt: skip
    width = tl.arange(0, D)
    keys = first + tl.arange(0, N)
    for _ in range(first, last, N):
        k = tl.load(k_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
        if DOCUMENTS:
            other = tl.load(IDS + keys, mask=keys < kv_len, other=-1)
            s = tl.where(ids[:, None] == other[None, :], s, float("-inf"))
        if EDGE:
            seen = (rows[:, None] >= keys[None, :]) & (rows[:, None] - keys[None, :] < 1024)
            s = tl.where(seen, s, float("-inf"))
        p, alpha, m, l = _guarded_step(s, m, l)
        v = tl.load(v_at + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        o = tl.dot(p.to(v_at.dtype.element_ty), v, o * alpha[:, None])
        keys += N
    return o, l, m


@triton.jit
def forward_banded(Q, K, V, O, LSE, scale, IDS, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr,
                   D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """A loop over the keys at the edges of a window, with documents if CAUSAL, and one over the keys within."""
    head = tl.program_id(1).to(tl.int64)
    rows, width = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    k_at, v_at = K + head * kv_len * stride, V + head * kv_len * stride
    q = tl.load(Q + (head * q_len + rows[:, None]) * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
    ids = tl.load(IDS + rows, mask=rows < q_len, other=-2)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    middle = tl.program_id(0) * M
    first = tl.maximum(middle - 1024, 0)
    o, l, m = _banded(o, l, m, q, k_at, v_at, IDS, ids, scale, rows, middle, tl.minimum(middle + M, kv_len), kv_len,
                      stride, N, D, True, CAUSAL)  # fmt: skip
    o, l, m = _banded(o, l, m, q, k_at, v_at, IDS, ids, scale, rows, first, middle, kv_len, stride, N, D, False,
                      CAUSAL)  # fmt: skip
    l = tl.where(l == 0.0, 1.0, l)
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l), mask=rows < q_len)
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty),
             mask=rows[:, None] < q_len)  # fmt: skip
