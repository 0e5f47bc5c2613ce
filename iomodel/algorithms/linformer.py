"""Linformer (Wang, Li, Khabsa, Fang and Ma 2020, arXiv:2006.04768): keys and values projected to k rows.

Equation 7: softmax(Q (E K)^T / sqrt(d)) F V. E and F are shared by all heads; one matrix serves as both if `shared`.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import B_c, B_p, B_r, B_s, N_k, N_q, d, d_v, k_p
from iomodel.nests.tensors import K, O, Q, V, depth, key, l, m, query, value

projected = Axis("projected", k_p)
E = Tensor("E", (projected, key), per="call")
F = Tensor("F", (projected, key), per="call")
K_proj = Tensor("K_proj", (projected, depth), per="kv_head")
V_proj = Tensor("V_proj", (projected, value), per="kv_head")
S = Tensor("S", (query, projected))


def declare(shared: bool) -> Iterator[Kernel]:
    """Declare both projections in one kernel, then attention to the projected rows as in FlashAttention-2."""
    yield Kernel("K_proj = E K, V_proj = F V", [
        Loop(projected, B_p, [
            Hold(K_proj, "fp32"), Hold(V_proj, "fp32"),
            Loop(key, B_s, [
                Load(E), *([] if shared else [Load(F)]), Load(K), Load(V),
                MatMul(projected, depth, key), MatMul(projected, value, key),
            ]),
            Store(K_proj), Store(V_proj),
        ]),
    ], per="kv_head")  # fmt: skip
    yield Kernel("O = softmax(Q K_proj^T) V_proj", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m), Load(Q),
            Loop(projected, B_c, [
                Load(K_proj), Load(V_proj),
                Hold(S, "fp32"), MatMul(query, projected, depth),
                Exp(query, projected), Exp(query),
                MatMul(query, value, projected),
            ]),
            Store(O),
        ]),
    ])  # fmt: skip


_T_p = ceiling(k_p / B_p)

ALGORITHM = Algorithm(
    name="linformer",
    title="Linformer",
    cite="Wang, Li, Khabsa, Fang and Ma, Linformer: Self-Attention with Linear Complexity, arXiv:2006.04768 (2020), "
    "equation 7",
    declare=declare,
    options={"projected": 256, "shared": False},
    requires=(Requirement.at_most(k_p, "projected", N_k, "up to kv_len = {kv_len}, the rows that are projected"),),
    approximates="attention to k projections of all keys and values",
    masks=("full",),
    published=(
        Published(
            2 * k_p * N_k + (N_k * _T_p + k_p + k_p * ceiling(N_q / B_r)) * (d + d_v) + N_q * (d + d_v),
            "by hand: E and F once, K and V once a tile of projected rows; the projections out, in once a query tile",
        ),
    ),
)
