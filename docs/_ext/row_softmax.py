"""A kernel for docs/triton-count.md."""

import triton
import triton.language as tl


@triton.jit
def softmax(X, Y, columns, BLOCK: tl.constexpr):
    """Softmax of one row per program."""
    c = tl.arange(0, BLOCK)
    inside = c < columns
    x = tl.load(X + tl.program_id(0) * columns + c, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(Y + tl.program_id(0) * columns + c, e / tl.sum(e, 0), mask=inside)


@triton.jit
def gemm(X, W, Y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """X [m, k] times W [n, k] transposed; each program makes one tile of Y."""
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    j = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        row, column = start + tl.arange(0, BLOCK_K)[:, None], start + tl.arange(0, BLOCK_K)[None, :]
        x = tl.load(X + i * k + column, mask=(i < m) & (column < k), other=0.0)
        w = tl.load(W + j * k + row, mask=(j < n) & (row < k), other=0.0)
        total += tl.dot(x, w)
    tl.store(Y + i * n + j, total, mask=(i < m) & (j < n))
