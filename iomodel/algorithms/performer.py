"""Performer (Choromanski et al. 2020, arXiv:2009.14794): softmax attention by positive random features, FAVOR+.

phi(x) = exp(W x' - |x'|^2 / 2) / sqrt(r) with x' = x / d^(1/4), r orthogonal random rows of W (Lemma 1, section 2.4).
O = phi(Q) (phi(K)^T V), each row divided by phi(Q) times the sum of the rows of phi(K) (section 2.2, Algorithm 1).
Under the causal mask the sums go along the sequence in chunks.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._chunks import chunks
from iomodel.nest import (
    Algorithm,
    Axis,
    Cut,
    Exp,
    Hold,
    Kernel,
    Load,
    Loop,
    MatMul,
    Published,
    Requirement,
    Statement,
    Store,
    Tensor,
)
from iomodel.symbols import B_r, B_s, N_k, N_q, d, d_v, r_phi
from iomodel.tensors import K, O, Q, S, V, depth, key, query, value

feature = Axis("feature", r_phi)
W = Tensor("W", (feature, depth), per="call")
F_Q = Tensor("F_Q", (query, feature))
F_K = Tensor("F_K", (key, feature))
KV = Tensor("KV", (feature, value), "fp32", per="kv_head")
z = Tensor("z", (feature,), "fp32", per="kv_head")
KV_head = Tensor("KV", (feature, value), "fp32")
z_head = Tensor("z", (feature,), "fp32")


def declare(causal: bool, carry: bool) -> Iterator[Kernel]:
    """Two kernels, or one scan."""
    if causal:
        yield from scan(carry)
        return
    yield Kernel("KV = phi(K)^T V", [
        Load(W), Hold(KV), Hold(z),
        Loop(key, B_s, [Load(K), Load(V), *features_of_keys(), MatMul(feature, value, key)]),
        Store(KV), Store(z),
    ], per="kv_head")  # fmt: skip
    yield Kernel("O = phi(Q) KV", [
        Loop(query, B_r, [
            Load(W), Load(KV), Load(z), Load(Q), *features_of_queries(),
            Hold(O, "fp32"), MatMul(query, value, feature),
            Store(O),
        ]),
    ])  # fmt: skip


def scan(carry: bool) -> Iterator[Kernel]:
    """A chunk attends to itself and to the sums over all chunks before it; then it is added to them."""
    state = (KV_head, z_head)
    yield Kernel("causal scan", [
        Load(W), *((Load if carry else Hold)(tensor) for tensor in state),
        Cut(chunks(B_r), [
            Load(Q), Load(K), Load(V), *features_of_queries(), *features_of_keys(),
            Hold(S, "fp32"), MatMul(query, key, feature),
            Hold(O, "fp32"), MatMul(query, value, key), MatMul(query, value, feature),
            MatMul(feature, value, key),
            Store(O),
        ]),
        *(Store(tensor) for tensor in state if carry),
    ])  # fmt: skip


def features_of_queries() -> list[Statement]:
    """The features of a query tile."""
    return [Hold(F_Q, "fp32"), MatMul(query, feature, depth), Exp(query, feature)]


def features_of_keys() -> list[Statement]:
    """The features of a key tile."""
    return [Hold(F_K, "fp32"), MatMul(key, feature, depth), Exp(key, feature)]


ALGORITHM = Algorithm(
    name="performer",
    title="Performer",
    cite="Choromanski et al., Rethinking Attention with Performers, arXiv:2009.14794 (2020), Lemma 1 and Algorithm 1",
    declare=declare,
    options={"features": 128, "carry": False},
    requires=(
        *(
            Requirement.at_most(r_phi, "features", N_k, "up to kv_len = {kv_len}, for more outgrow the keys", **given)
            for given in ({"mask": "full"}, {"mask": "causal", "carry": False})
        ),
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for the scan goes over both", mask="causal"),
    ),
    approximates="attention with r positive random features of Q and K in place of exp(q k)",
    masks=("full", "causal"),
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + r_phi * (d + d_v + 1) * (1 + ceiling(N_q / B_r)),
            "by hand: every operand once; the random rows and the sums once for the keys and once in each query tile",
        ),
    ),
)
