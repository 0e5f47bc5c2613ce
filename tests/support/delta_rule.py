"""The chunked delta rule (Yang et al. 2024, arXiv:2406.06484, section 3), declared outside the package.

It has a size of its own, the positions of a chunk, and a tile of its own, the columns of the state of one block.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Integer, ceiling

from iomodel.nests import (
    Algorithm,
    Axis,
    Hold,
    Kernel,
    Load,
    Loop,
    MatMul,
    N_k,
    N_q,
    Published,
    Requirement,
    Store,
    Tensor,
    d,
    d_v,
    depth,
    symbol,
    value,
)

CHUNK = symbol("chunk_size", "L_c", "positions of a chunk of the delta rule", "positions")
BLOCK_V = symbol("block_v", "B_v", "columns of the state that a thread block keeps", "elements")
L_c, B_v = CHUNK.symbol, BLOCK_V.symbol

ONE = Integer(1)
chunk = Axis("chunk", ceiling(N_q / L_c))
row, column, inner = Axis("row", L_c), Axis("column", L_c), Axis("inner", L_c)

Q = Tensor("Q", (chunk, row, depth))
K = Tensor("K", (chunk, row, depth), per="kv_head")
V = Tensor("V", (chunk, row, value), per="kv_head")
beta = Tensor("beta", (chunk, row), "fp32", per="kv_head")
W = Tensor("W", (chunk, row, depth), per="kv_head")
U = Tensor("U", (chunk, row, value), per="kv_head")
O = Tensor("O", (chunk, row, value))
A = Tensor("A", (row, column), "fp32")
T = Tensor("T", (row, column), "fp32")
S = Tensor("S", (row, column), "fp32")
state = Tensor("state", (depth, value), "fp32")


def declare(carry: bool) -> Iterator[Kernel]:
    """Equations 10 and 11, then 8 and 9."""
    yield Kernel("W = T K, U = T V", [
        Loop(chunk, ONE, [
            Load(K), Load(V), Load(beta),
            Hold(A), MatMul(row, column, depth),
            Hold(T), MatMul(row, column, inner),  # forward substitution
            Hold(W), MatMul(row, depth, column),
            Hold(U), MatMul(row, value, column),
            Store(W), Store(U),
        ]),
    ], per="kv_head")  # fmt: skip
    yield Kernel("state and outputs", [
        Loop(value, B_v, [
            Load(state) if carry else Hold(state),
            Loop(chunk, ONE, [
                Load(Q), Load(K), Load(W), Load(U),
                MatMul(row, value, depth),  # U - W S
                Hold(S), MatMul(row, column, depth),
                Hold(O, "fp32"), MatMul(row, value, depth), MatMul(row, value, column),
                Store(O),
                MatMul(depth, value, row),  # S + K^T U
            ]),
            *([Store(state)] if carry else []),
        ]),
    ])  # fmt: skip


DELTA_RULE = Algorithm(
    name="delta_rule",
    title="DeltaNet, chunked",
    cite="Yang, Wang, Zhang, Shen and Kim, Parallelizing Linear Transformers with the Delta Rule over Sequence Length, "
    "arXiv:2406.06484 (2024), equations 8 to 11",
    declare=declare,
    options={"chunk_size": 64, "carry": False},
    symbols=(CHUNK, BLOCK_V),
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both"),
        Requirement.multiple("chunk_size", N_q, L_c, "a divisor of q_len = {q_len}"),
    ),
    approximates="the delta rule in place of attention: a state that each key corrects towards its value",
    masks=("causal",),
    published=(
        Published(
            N_q * (2 * d + 2 * d_v + 1) + (3 * N_q * d) * ceiling(d_v / B_v) + 2 * N_q * d_v,
            "by hand: K, V, beta, W and U once; Q, K and W once for each block of columns, U and O once",
        ),
    ),
)
