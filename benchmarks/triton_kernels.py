"""Plain Triton kernels that `triton_compiles.py` compiles: attention forward, decode and backward, and a product.

Written for this benchmark, in the ways that public kernels are written. Tensors are rows of one head, the last
dimension contiguous; a block index along axis 1 selects the head. Tile sizes are constants of the compiler.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _softmax_step(s, m, l, o):
    """Update the running maximum and sum, rescale the output, return the weights."""
    m_new = tl.maximum(m, tl.max(s, 1))
    alpha = tl.exp2(m - m_new)
    p = tl.exp2(s - m_new[:, None])
    return p, m_new, l * alpha + tl.sum(p, 1), o * alpha[:, None]


@triton.jit
def forward(Q, K, V, O, LSE, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
            CAUSAL: tl.constexpr):  # fmt: skip
    """One loop over the keys; both edges masked."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns, width = tl.arange(0, N), tl.arange(0, D)
    Q += head * q_len * stride
    K += head * kv_len * stride
    V += head * kv_len * stride
    q = tl.load(Q + rows[:, None] * stride + width[None, :], mask=rows[:, None] < q_len, other=0.0)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    end = tl.minimum(kv_len, (tl.program_id(0) + 1) * M) if CAUSAL else kv_len
    for start in range(0, end, N):
        keys = start + columns
        k = tl.load(K + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < kv_len, s, float("-inf"))
        if CAUSAL:
            s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
        p, m, l, o = _softmax_step(s, m, l, o)
        v = tl.load(V + keys[:, None] * stride + width[None, :], mask=keys[:, None] < kv_len, other=0.0)
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l), mask=rows < q_len)
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty),
             mask=rows[:, None] < q_len)  # fmt: skip


@triton.jit
def forward_early(Q, K, V, O, LSE, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
                  CAUSAL: tl.constexpr):  # fmt: skip
    """One loop over the keys, K and V loaded before the first product; only the last keys are masked."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns, width = tl.arange(0, N), tl.arange(0, D)
    q = tl.load(Q + (head * q_len + rows[:, None]) * stride + width[None, :])
    k_at = K + head * kv_len * stride + columns[None, :] * stride + width[:, None]
    v_at = V + head * kv_len * stride + columns[:, None] * stride + width[None, :]
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.full([M], 1.0, tl.float32)
    o = tl.zeros([M, D], tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else kv_len
    for start in range(0, end, N):
        k = tl.load(k_at)
        v = tl.load(v_at)
        s = tl.dot(q, k) * scale
        if CAUSAL:
            s += tl.where(rows[:, None] >= (start + columns)[None, :], 0, -1.0e6)
        p, m, l, o = _softmax_step(s, m, l, o)
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
        k_at += N * stride
        v_at += N * stride
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l))
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty))


@triton.jit
def _inner(o, l, m, q, K, V, scale, rows, first, last, stride, N: tl.constexpr, D: tl.constexpr,
           DIAGONAL: tl.constexpr):  # fmt: skip
    columns, width = tl.arange(0, N), tl.arange(0, D)
    for start in range(first, last, N):
        k = tl.load(K + (start + columns)[None, :] * stride + width[:, None])
        s = tl.dot(q, k) * scale
        if DIAGONAL:
            s = tl.where(rows[:, None] >= (start + columns)[None, :], s, -1.0e6)
        p, m, l, o = _softmax_step(s, m, l, o)
        v = tl.load(V + (start + columns)[:, None] * stride + width[None, :])
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
    return o, l, m


@triton.jit
def forward_two(Q, K, V, O, LSE, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A loop below the diagonal and one along it; lengths are multiples of the tiles."""
    head = tl.program_id(1).to(tl.int64)
    block = tl.program_id(0)
    rows = block * M + tl.arange(0, M)
    width = tl.arange(0, D)
    K += head * kv_len * stride
    V += head * kv_len * stride
    q = tl.load(Q + (head * q_len + rows[:, None]) * stride + width[None, :])
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.full([M], 1.0, tl.float32)
    o = tl.zeros([M, D], tl.float32)
    o, l, m = _inner(o, l, m, q, K, V, scale, rows, 0, block * M, stride, N, D, False)
    o, l, m = _inner(o, l, m, q, K, V, scale, rows, block * M, (block + 1) * M, stride, N, D, True)
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l))
    tl.store(O + (head * q_len + rows[:, None]) * stride + width[None, :], o.to(O.dtype.element_ty))


@triton.jit
def forward_descriptor(Q, K, V, O, LSE, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr,
                       D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """One loop over the keys; tiles by tensor descriptors that the kernel makes."""
    head = tl.program_id(1)
    first = tl.program_id(0) * M
    rows = first + tl.arange(0, M)
    heads = tl.num_programs(1)
    q_of = tl.make_tensor_descriptor(Q, [heads * q_len, D], [stride, 1], [M, D])
    k_of = tl.make_tensor_descriptor(K, [heads * kv_len, D], [stride, 1], [N, D])
    v_of = tl.make_tensor_descriptor(V, [heads * kv_len, D], [stride, 1], [N, D])
    q = q_of.load([head * q_len + first, 0])
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.full([M], 1.0, tl.float32)
    o = tl.zeros([M, D], tl.float32)
    end = first + M if CAUSAL else kv_len
    for start in range(0, end, N):
        k = k_of.load([head * kv_len + start, 0])
        s = tl.dot(q, k.T) * scale
        if CAUSAL:
            s = tl.where(rows[:, None] >= (start + tl.arange(0, N))[None, :], s, -1.0e6)
        p, m, l, o = _softmax_step(s, m, l, o)
        v = v_of.load([head * kv_len + start, 0])
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
    o = o / l[:, None]
    tl.store(LSE + head * q_len + rows, m + tl.log2(l))
    tl.store(O + (head * q_len + rows[:, None]) * stride + tl.arange(0, D)[None, :], o.to(O.dtype.element_ty))


@triton.jit
def decode(Q, K, V, TABLE, PART, LSE, scale, kv_len, splits, group, stride, M: tl.constexpr, N: tl.constexpr,
           D: tl.constexpr):  # fmt: skip
    """One split of the keys of one head, for a packed group of queries; a table names the row of each key."""
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
        at = tl.load(TABLE + keys, mask=keys < last, other=0)
        k = tl.load(K + at[None, :] * stride + head * D + width[:, None], mask=keys[None, :] < last, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(keys[None, :] < last, s, float("-inf"))
        v = tl.load(V + at[:, None] * stride + head * D + width[None, :], mask=keys[:, None] < last, other=0.0)
        p, m, l, o = _softmax_step(s, m, l, o)
        o = tl.dot(p.to(V.dtype.element_ty), v, o)
    out = (head * splits + split) * group + rows
    tl.store(PART + out[:, None] * D + width[None, :], o / l[:, None], mask=rows[:, None] < group)
    tl.store(LSE + out, m + tl.log2(l), mask=rows < group)


@triton.jit
def mla_decode(Q, C, TABLE, PART, LSE, scale, kv_len, splits, group, stride, M: tl.constexpr, N: tl.constexpr,
               D: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """One split of the latent rows: their first D columns are keys and values, the next R keys alone."""
    head, split = tl.program_id(0), tl.program_id(1)
    rows, columns, width, rope = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D), D + tl.arange(0, R)
    ours = rows[:, None] < group
    q = tl.load(Q + (head * group + rows[:, None]) * stride + width[None, :], mask=ours, other=0.0)
    q_rope = tl.load(Q + (head * group + rows[:, None]) * stride + rope[None, :], mask=ours, other=0.0)
    m = tl.full([M], float("-inf"), tl.float32)
    l = tl.zeros([M], tl.float32)
    o = tl.zeros([M, D], tl.float32)
    share = tl.cdiv(kv_len, splits)
    last = tl.minimum(kv_len, (split + 1) * share)
    for start in range(split * share, last, N):
        keys = start + columns
        at = tl.load(TABLE + keys, mask=keys < last, other=0)
        c = tl.load(C + at[None, :] * stride + width[:, None], mask=keys[None, :] < last, other=0.0)
        s = tl.dot(q, c)
        c_rope = tl.load(C + at[None, :] * stride + rope[:, None], mask=keys[None, :] < last, other=0.0)
        s = tl.dot(q_rope, c_rope, s) * scale
        s = tl.where(keys[None, :] < last, s, float("-inf"))
        p, m, l, o = _softmax_step(s, m, l, o)
        o = tl.dot(p.to(C.dtype.element_ty), tl.trans(c), o)
    out = (head * splits + split) * group + rows
    tl.store(PART + out[:, None] * D + width[None, :], o / l[:, None], mask=ours)
    tl.store(LSE + out, m + tl.log2(l), mask=rows < group)


@triton.jit
def backward_dkdv(Q, K, V, DO, DK, DV, LSE, DELTA, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr,
                  D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """dK and dV of one key tile: a loop over the query tiles of M rows."""
    head = tl.program_id(1).to(tl.int64)
    columns, width = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, D)
    row0, key0 = head * q_len * stride, head * kv_len * stride
    k = tl.load(K + key0 + columns[:, None] * stride + width[None, :])
    v = tl.load(V + key0 + columns[:, None] * stride + width[None, :])
    dk = tl.zeros([N, D], tl.float32)
    dv = tl.zeros([N, D], tl.float32)
    first = tl.program_id(0) * N // M * M if CAUSAL else 0
    for start in range(first, q_len, M):
        rows = start + tl.arange(0, M)
        q = tl.load(Q + row0 + rows[:, None] * stride + width[None, :])
        lse = tl.load(LSE + head * q_len + rows)
        p = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
        if CAUSAL:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        do = tl.load(DO + row0 + rows[:, None] * stride + width[None, :])
        dv = tl.dot(p.to(DO.dtype.element_ty), do, dv)
        delta = tl.load(DELTA + head * q_len + rows)
        dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(Q.dtype.element_ty), q, dk)
    tl.store(DK + key0 + columns[:, None] * stride + width[None, :], (dk * scale).to(DK.dtype.element_ty))
    tl.store(DV + key0 + columns[:, None] * stride + width[None, :], dv.to(DV.dtype.element_ty))


@triton.jit
def backward_dq(Q, K, V, DO, DQ, LSE, DELTA, scale, q_len, kv_len, stride, M: tl.constexpr, N: tl.constexpr,
                D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """dQ of one query tile: a loop over the key tiles of N rows."""
    head = tl.program_id(1).to(tl.int64)
    rows, width = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    row0, key0 = head * q_len * stride, head * kv_len * stride
    q = tl.load(Q + row0 + rows[:, None] * stride + width[None, :])
    do = tl.load(DO + row0 + rows[:, None] * stride + width[None, :])
    lse = tl.load(LSE + head * q_len + rows)
    delta = tl.load(DELTA + head * q_len + rows)
    dq = tl.zeros([M, D], tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else kv_len
    for start in range(0, end, N):
        keys = start + tl.arange(0, N)
        k = tl.load(K + key0 + keys[:, None] * stride + width[None, :])
        v = tl.load(V + key0 + keys[:, None] * stride + width[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
        if CAUSAL:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = (p * (dp - delta[:, None])).to(K.dtype.element_ty)
        dq = tl.dot(ds, k, dq)
    tl.store(DQ + row0 + rows[:, None] * stride + width[None, :], (dq * scale).to(DQ.dtype.element_ty))


@triton.jit
def matmul(A, B, C, rows, columns, depth, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr,
           D: tl.constexpr):  # fmt: skip
    """A tile of a product; D is the length of one step of the sum."""
    i = (tl.program_id(0) * M + tl.arange(0, M)) % rows
    j = (tl.program_id(1) * N + tl.arange(0, N)) % columns
    step = tl.arange(0, D)
    a_at = A + i[:, None] * stride_a + step[None, :]
    b_at = B + step[:, None] * stride_b + j[None, :]
    c = tl.zeros([M, N], tl.float32)
    for k in range(tl.cdiv(depth, D)):
        a = tl.load(a_at, mask=step[None, :] < depth - k * D, other=0.0)
        b = tl.load(b_at, mask=step[:, None] < depth - k * D, other=0.0)
        c = tl.dot(a, b, c)
        a_at += D
        b_at += D * stride_b
    tl.store(C + i[:, None] * stride_c + j[None, :], c.to(C.dtype.element_ty))
