"""Small kernels in Triton's language, written from the papers: what `iomodel.triton.count` is held against."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def flash2(
    Q, K, V, O, LSE, scale, heads, kv_heads, n_q, n_k,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, STORES_LSE: tl.constexpr,
    LOADS_K_TWICE: tl.constexpr = False,
):  # fmt: skip
    """Algorithm 1 of arXiv:2307.08691, on contiguous [batch, heads, length, D]."""
    row = tl.program_id(1)
    kv_row = row // heads * kv_heads + row % heads // (heads // kv_heads)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.arange(0, D)
    q = tl.load(Q + (row * n_q + m)[:, None] * D + c[None, :], mask=m[:, None] < n_q, other=0.0)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    out = tl.zeros([BLOCK_M, D], tl.float32)
    end = n_k
    if CAUSAL:
        end = tl.minimum(n_k, tl.maximum(0, tl.minimum(n_q, (tl.program_id(0) + 1) * BLOCK_M) + n_k - n_q))
    for start in range(0, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        place = (kv_row * n_k + n)[:, None] * D + c[None, :]
        k = tl.load(K + place, mask=n[:, None] < n_k, other=0.0)
        if LOADS_K_TWICE and start == 0:
            k = tl.load(K + place, mask=n[:, None] < n_k, other=0.0)
        v = tl.load(V + place, mask=n[:, None] < n_k, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = n[None, :] < n_k
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None] + n_k - n_q)
        s = tl.where(seen, s, float("-inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp(s - base[:, None])
        factor = tl.exp(top - base)
        total = total * factor + tl.sum(p, 1)
        out = out * factor[:, None] + tl.dot(p, v, input_precision="ieee")
        top = higher
    tl.store(O + (row * n_q + m)[:, None] * D + c[None, :], out / total[:, None], mask=m[:, None] < n_q)
    if STORES_LSE:
        tl.store(LSE + row * n_q + m, top + tl.log(total), mask=m < n_q)


@triton.jit
def gemm(X, W, Y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Multiply X [m, k] by W [n, k] transposed, tile by tile."""
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        c = start + tl.arange(0, BLOCK_K)
        x = tl.load(X + i[:, None] * k + c[None, :], mask=(i[:, None] < m) & (c[None, :] < k), other=0.0)
        w = tl.load(W + j[None, :] * k + c[:, None], mask=(j[None, :] < n) & (c[:, None] < k), other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    tl.store(Y + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def softmax(X, Y, columns, BLOCK: tl.constexpr):
    """Softmax of one row per program."""
    c = tl.arange(0, BLOCK)
    x = tl.load(X + tl.program_id(0) * columns + c, mask=c < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + tl.program_id(0) * columns + c, e / tl.sum(e, 0), mask=c < columns)


@triton.jit
def transposed_by_block_pointers(X, Y, m, n, BLOCK: tl.constexpr):
    """Transpose X [m, n] with block pointers that advance along a row of tiles."""
    first = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(X, (m, n), (n, 1), (first, 0), (BLOCK, BLOCK), (1, 0))
    target = tl.make_block_ptr(Y, (n, m), (m, 1), (0, first), (BLOCK, BLOCK), (1, 0))
    for _ in range(0, n, BLOCK):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tl.trans(tile).to(target.dtype.element_ty), boundary_check=(0, 1))
        source = tl.advance(source, (0, BLOCK))
        target = tl.advance(target, (BLOCK, 0))


@triton.jit
def doubled_by_descriptors(X, Y, m, n, BLOCK: tl.constexpr):
    """Double X [m, n] through tensor descriptors that the kernel makes."""
    source = tl.make_tensor_descriptor(X, [m, n], [n, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(Y, [m, n], [n, 1], [BLOCK, BLOCK])
    place = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(place, 2 * source.load(place))


@triton.jit
def doubled_by_host_descriptors(source, target, BLOCK: tl.constexpr):
    """Double a tensor through descriptors that the host makes."""
    place = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    target.store(place, 2 * source.load(place))


@triton.jit
def histogram(X, H, n, BLOCK: tl.constexpr):
    """Count values with atomic additions."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < n, other=0)
    tl.atomic_add(H + x, 1, mask=i < n)


@triton.jit
def interleaved(X, Y, O, n, BLOCK: tl.constexpr):
    """Take elements of X and of Y in turn, through one block of pointers."""
    i = tl.arange(0, BLOCK)
    tl.store(O + i, tl.load(tl.where(i % 2 == 0, X + i, Y + i), mask=i < n), mask=i < n)


@triton.jit
def through_addresses(TABLE, O, BLOCK: tl.constexpr):
    """Copy the tensors whose addresses are in a table."""
    i = tl.arange(0, BLOCK)
    X = tl.load(TABLE + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(O + tl.program_id(0) * BLOCK + i, tl.load(X + i))


@triton.jit
def helper(x):
    """Square, as a device function."""
    return x * x


@triton.jit
def chosen(X, Y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Square through a device function; an odd length is masked."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(Y + i, helper(tl.load(X + i)))
    else:
        tl.store(Y + i, helper(tl.load(X + i, mask=i < n)), mask=i < n)


tuned: Any = triton.autotune(configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 4})], key=["n"])(
    triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(chosen)
)


@triton.jit
def scaled_sums(X, Y, scale, n, BLOCK: tl.constexpr, LANGUAGE: tl.constexpr):
    """Add up blocks of X times a scale; the scale and the places are converted, as only scalars can be."""
    factor = scale.to(tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(0, n, BLOCK):
        place = i.to(tl.int64) + tl.arange(0, BLOCK)
        total += tl.load(X + place, mask=place < n, other=0.0) * factor
    if LANGUAGE:
        for j in tl.range(n // BLOCK, num_stages=2):
            total += j.to(tl.float32)
    tl.store(Y, tl.sum(total, 0))
