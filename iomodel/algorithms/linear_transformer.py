"""Linear Transformer (Katharopoulos, Vyas, Pappas and Fleuret 2020, arXiv:2006.16236): phi(x) = elu(x) + 1 for exp.

Without a mask (equation 6) the d x d_v sum of phi(K)^T V is made once and read by every query tile. Under the causal
mask (equations 9 to 12) one block goes through the sequence in chunks and keeps the sum on chip.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._chunks import chunks
from iomodel.nest import (
    Algorithm,
    Cut,
    Exp,
    Hold,
    Kernel,
    Load,
    Loop,
    MatMul,
    Published,
    Requirement,
    Store,
    Tensor,
)
from iomodel.symbols import B_r, B_s, N_k, N_q, d, d_v
from iomodel.tensors import K, O, Q, S, V, depth, key, query, value

KV = Tensor("KV", (depth, value), "fp32", per="kv_head")
z = Tensor("z", (depth,), "fp32", per="kv_head")
KV_head = Tensor("KV", (depth, value), "fp32")
z_head = Tensor("z", (depth,), "fp32")


def declare(causal: bool, carry: bool) -> Iterator[Kernel]:
    """Two kernels, or one scan."""
    if causal:
        yield from scan(carry)
        return
    yield Kernel("KV = phi(K)^T V", [
        Hold(KV), Hold(z),
        Loop(key, B_s, [Load(K), Load(V), Exp(key, depth), MatMul(depth, value, key)]),
        Store(KV), Store(z),
    ], per="kv_head")  # fmt: skip
    yield Kernel("O = phi(Q) KV", [
        Loop(query, B_r, [
            Load(KV), Load(z), Hold(O, "fp32"), Load(Q),
            Exp(query, depth), MatMul(query, value, depth),
            Store(O),
        ]),
    ])  # fmt: skip


def scan(carry: bool) -> Iterator[Kernel]:
    """A chunk attends to itself and to the sum over all chunks before it; then it is added to that."""
    state = (KV_head, z_head)
    yield Kernel("causal scan", [
        *((Load if carry else Hold)(tensor) for tensor in state),
        Cut(chunks(B_r), [
            Load(Q), Load(K), Load(V), Exp(query, depth), Exp(key, depth),
            Hold(S, "fp32"), MatMul(query, key, depth),
            Hold(O, "fp32"), MatMul(query, value, key), MatMul(query, value, depth),
            MatMul(depth, value, key),
            Store(O),
        ]),
        *(Store(tensor) for tensor in state if carry),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="linear_transformer",
    title="Linear Transformer",
    cite="Katharopoulos, Vyas, Pappas and Fleuret, Transformers are RNNs: Fast Autoregressive Transformers with Linear "
    "Attention, arXiv:2006.16236 (2020), equations 6 and 9 to 12",
    declare=declare,
    options={"carry": False},
    requires=(Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both", mask="causal"),),
    approximates="attention with the kernel phi(q) phi(k), phi(x) = elu(x) + 1, in place of exp(q k)",
    masks=("full", "causal"),
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + d * (d_v + 1) * (1 + ceiling(N_q / B_r)),
            "by hand: every operand once, the sum once out and once in for each query tile",
        ),
    ),
)
