"""Routing Transformer (Roy, Saffar, Vaswani and Grangier 2020, arXiv:2003.05997): attention within clusters.

Algorithm 1: each of c centroids selects the w = ceil(N / c) queries and the w keys whose layer-normalised rows have the
largest products with it, in sequence order, and these attend to one another. Under the causal mask queries serve as
keys, as in the paper, K is not an input, and a query sees no later key. A position in several clusters takes the output
of the last one; a position in none is 0. The update of the centroids belongs to training and is not included.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._streaming import streamed
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Fill, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_p, B_r, N_k, N_q, d, d_v, n_c
from iomodel.nests.tensors import K, O, Q, V, depth, key, query, value

w = ceiling(N_q / n_c)
cluster = Axis("cluster", n_c)
member_q = Axis("member_q", w)
"""The queries of a cluster."""
member_k = Axis("member_k", w)
"""The keys of a cluster."""

MU = Tensor("MU", (cluster, depth), per="heads")
Q_PROD = Tensor("Q_PROD", (query, cluster))
K_PROD = Tensor("K_PROD", (key, cluster))
Q_IDX = Tensor("Q_IDX", (cluster, member_q), "int32")
K_IDX = Tensor("K_IDX", (cluster, member_k), "int32")
Q_IDX_of_keys = Tensor("Q_IDX", (cluster, member_k), "int32", inside=True)
Q_member = Tensor("Q", (cluster, member_q, depth), inside=True)
Q_as_keys = Tensor("Q", (cluster, member_k, depth), inside=True)
K_member = Tensor("K", (cluster, member_k, depth), per="kv_head", inside=True)
V_member = Tensor("V", (cluster, member_k, value), per="kv_head", inside=True)
O_member = Tensor("O", (cluster, member_q, value), inside=True)
S = Tensor("S", (member_q, member_k))
l = Tensor("l", (member_q,), "fp32")
m = Tensor("m", (member_q,), "fp32")


def declare(causal: bool) -> Iterator[Kernel]:
    """Declare the products with the centroids, the members of each cluster, and attention within it."""
    index_k, rows_k = (Q_IDX_of_keys, Q_as_keys) if causal else (K_IDX, K_member)
    yield _products("Q_PROD = Q MU^T", Q, query, Q_PROD)
    if not causal:
        yield _products("K_PROD = K MU^T", K, key, K_PROD)
    yield _members("queries of clusters", query, Q_PROD, Q_IDX)
    if not causal:
        yield _members("keys of clusters", key, K_PROD, K_IDX)
    yield Kernel("O = 0", [Fill(O)])
    yield Kernel("attention within clusters", [
        Loop(cluster, ONE, [
            Loop(member_q, B_r, [
                Hold(O_member, "fp32"), Hold(l), Hold(m), Load(Q_IDX), Load(Q_member),
                Loop(member_k, B_c, streamed(
                    member_q, member_k, S, [Load(index_k), Load(rows_k), Load(V_member)],
                )),
                Store(O_member),
            ]),
        ]),
    ], keeps=(V,))  # fmt: skip


def _products(title: str, of: Tensor, axis: Axis, products: Tensor) -> Kernel:
    """Multiply rows, normalised on load, with all centroids."""
    return Kernel(title, [
        Loop(axis, B_p, [
            Load(MU), Load(of), Hold(products, "fp32"), MatMul(axis, cluster, depth), Store(products),
        ]),
    ])  # fmt: skip


def _members(title: str, axis: Axis, products: Tensor, index: Tensor) -> Kernel:
    """Select the positions with the w largest products, in one ideal pass per cluster."""
    return Kernel(title, [
        Loop(cluster, ONE, [Hold(index), Loop(axis, ONE, [Load(products)]), Store(index)]),
    ])  # fmt: skip


_T_r = ceiling(w / B_r)

ALGORITHM = Algorithm(
    name="routing_transformer",
    title="Routing Transformer",
    cite="Roy, Saffar, Vaswani and Grangier, Efficient Content-Based Sparse Attention with Routing Transformers, "
    "arXiv:2003.05997 (2020), Algorithm 1",
    declare=declare,
    options={"clusters": 32},
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for clusters take as many keys as queries"),
        Requirement.at_most(n_c, "clusters", N_q, "up to q_len = {q_len}, the positions to share out"),
    ),
    approximates="attention of each query to the keys of its cluster",
    masks=("full", "causal"),
    published=(
        Published(
            (N_q + N_k) * (d + 2 * n_c)
            + n_c * d * (ceiling(N_q / B_p) + ceiling(N_k / B_p))
            + 2 * n_c * w
            + N_q * d_v
            + n_c * w * (1 + d + d_v + _T_r * (1 + d + d_v)),
            "by hand: Q and K, their products with the centroids out and in, the centroids once a tile; the members of "
            "each cluster; zeros; of each cluster its queries and outputs once, its keys and values once a query tile",
        ),
    ),
)
