"""Loki (Singhania et al. 2024, arXiv:2406.02542, Algorithm 1): attention to the keys of the largest approximate scores.

Keys are cached rotated to their principal components, so that the leading components give an approximate score. A query
is rotated too, scores every key by a few components, and attends to the top k keys with all components.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_p, B_r, B_s, N_k, N_q, d, d_v, k_top, r_low
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, l, m, query, value

component = Axis("component", d)
leading = Axis("leading", r_low)
selected = Axis("selected", k_top)
R = Tensor("R", (depth, component), per="kv_heads")
K_new = Tensor("K_new", (query, depth), per="kv_head")
K_rows = Tensor("K", (query, component), per="kv_head", inside=True)
K_leading = Tensor("K", (key, leading), per="kv_head", inside=True)
K_selected = Tensor("K", (selected, component), per="kv_head", inside=True)
V_selected = Tensor("V", (selected, value), per="kv_head", inside=True)
Q_rot = Tensor("Q_rot", (query, component))
I = Tensor("I", (query, selected), "int32")
S_selected = Tensor("S", (query, selected))


def declare() -> Iterator[Kernel]:
    """Declare the cache update; scores of all keys; selection in one ideal pass; attention to the selected keys."""
    yield Kernel("K = K_new R", [
        Loop(query, B_p, [
            Load(R), Load(K_new), Hold(K_rows, "fp32"), MatMul(query, component, depth), Store(K_rows),
        ]),
    ], per="kv_head", keeps=(K, V))  # fmt: skip
    yield Kernel("approximate scores", [
        Loop(query, B_r, [
            Load(R), Load(Q), Hold(Q_rot, "fp32"), MatMul(query, component, depth), Store(Q_rot),
            Loop(key, B_c, [Load(K_leading), Hold(S, "fp32"), MatMul(query, key, leading), Store(S)]),
        ]),
    ])  # fmt: skip
    yield Kernel("top k", [
        Loop(query, ONE, [Hold(I), Loop(key, ONE, [Load(S)]), Store(I)]),
    ])  # fmt: skip
    yield Kernel("attention to the selected keys", [
        Loop(query, ONE, [
            Load(I), Load(Q_rot), Hold(O, "fp32"), Hold(l), Hold(m),
            Loop(selected, B_s, [
                Load(K_selected), Load(V_selected),
                Hold(S_selected, "fp32"), MatMul(query, selected, component),
                Exp(query, selected), Exp(query),
                MatMul(query, value, selected),
            ]),
            Store(O),
        ]),
    ])  # fmt: skip


_T_r = ceiling(N_q / B_r)

ALGORITHM = Algorithm(
    name="loki",
    title="Loki",
    cite="Singhania, Singh, He, Feizi and Bhatele, Loki: Low-rank Keys for Efficient Sparse Attention, "
    "arXiv:2406.02542 (2024), Algorithm 1",
    declare=declare,
    options={"rank": 32, "top_k": 256},
    requires=(
        Requirement.at_most(r_low, "rank", d, "up to head_dim = {head_dim}, all components of a key"),
        Requirement.at_most(k_top, "top_k", N_k, "up to kv_len = {kv_len}, all keys"),
        Requirement.at_most(N_q, "q_len", N_k, "up to kv_len = {kv_len}, for each query brings a key"),
    ),
    approximates="attention to the k keys of the largest scores by their leading principal components",
    masks=("full",),
    published=(
        Published(
            d**2 * (ceiling(N_q / B_p) + _T_r)
            + N_q * (5 * d + d_v)
            + r_low * N_k * _T_r
            + 2 * N_q * N_k
            + N_q * k_top * (2 + d + d_v),
            "by hand: R once a tile of new keys and of queries; Q, O, the new keys and both rotated forms; the leading "
            "columns once a query tile; S and the choice out and in; each selected row of K and V once a query",
        ),
    ),
)
