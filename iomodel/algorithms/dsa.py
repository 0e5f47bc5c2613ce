"""DeepSeek sparse attention (DeepSeek-AI 2025, arXiv:2512.02556, section 2.1): attention to keys that an indexer ranks.

The lightning indexer scores every visible key for every query (equation 1): I(t, s) = sum over its heads j of
w(t, j) ReLU(q(t, j) k(s)), with one row k per key. A query attends to the keys of its k largest scores (equation 2),
the same ones in all heads; so a kernel gathers their rows once for a tile of heads of one query. Formulas call the
heads of the indexer H_I and their width d_I.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Integer, Min, ceiling

from iomodel.algorithms._streaming import streamed
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.execution import PIPELINED
from iomodel.nests.language import Axis, Cut, Hold, Kernel, Load, Loop, MatMul, Piece, Store, Tensor
from iomodel.nests.symbols import B_I, H_I, B_c, B_r, B_s, N_k, N_q, d, d_I, d_v, k_top
from iomodel.nests.tensors import K, O, Q, V, depth, group, key, query, value

ONE = Integer(1)
index_head = Axis("index_head", H_I)
index_depth = Axis("index_depth", d_I)
slot = Axis("slot", k_top)
"""Places in a row of chosen keys; those that a query leaves empty hold no key."""

Q_I = Tensor("Q_I", (query, index_head, index_depth), per="batch")
K_I = Tensor("K_I", (key, index_depth), per="batch")
W_I = Tensor("W_I", (query, index_head), "fp32", per="batch")
A_I = Tensor("A_I", (query, index_head, key), "fp32", per="batch")
"""Products of the heads of the indexer, on chip alone."""
S_I = Tensor("S_I", (query, key), "fp32", per="batch")
I = Tensor("I", (query, slot), "int32", per="batch")

I_chosen = Tensor("I", (query, slot), "int32", per="batch", inside=True)
Q_heads = Tensor("Q", (query, group, depth), per="kv_head", inside=True)
O_heads = Tensor("O", (query, group, value), per="kv_head", inside=True)
K_chosen = Tensor("K", (key, depth), per="kv_head", inside=True)
V_chosen = Tensor("V", (key, value), per="kv_head", inside=True)
S_heads = Tensor("S", (group, key))
l_heads = Tensor("l", (group,), "fp32")
m_heads = Tensor("m", (group,), "fp32")

_later = Min(N_q, N_k - k_top)
"""Queries that see more than k keys; the others attend to all that they see, the last of them to exactly k."""
KEYS_APART = replace(
    PIPELINED,
    cite="github.com/deepseek-ai/DeepGEMM: the kernels of the indexer divide the keys of a query among blocks",
    spread=(key,),
)
"""The tiles of scores of one query are independent; attention to the chosen keys sums over them in one block."""


def declare(causal: bool) -> Iterator[Kernel]:
    """Declare the scores of the indexer, the choice in one ideal pass, and attention to the chosen keys."""
    yield Kernel("index scores", [
        Cut([Piece(ONE, {}, "causal" if causal else "full")], [
            Loop(query, B_I, [
                Load(Q_I), Load(W_I),
                Loop(key, B_s, masked=causal, body=[
                    Load(K_I), Hold(A_I), Hold(S_I),
                    Loop(index_head, ONE, [
                        MatMul(query, key, index_depth), MatMul(query, key, index_head),  # its weight times ReLU
                    ]),
                    Store(S_I),
                ]),
            ]),
        ]),
    ], per="batch")  # fmt: skip
    yield Kernel("top k", [
        Loop(query, ONE, [Hold(I), Loop(key, ONE, masked=causal, body=[Load(S_I)]), Store(I)]),
    ], per="batch")  # fmt: skip
    every = [Piece(ONE, {N_k: k_top})]
    split = [Piece(ONE, {N_q: _later, N_k: k_top}), Piece(ONE, {N_q: N_q - _later, N_k: k_top}, "causal")]
    yield Kernel("attention to the chosen keys", [
        Cut(split if causal else every, [
            Loop(query, ONE, [
                Loop(group, B_r, [
                    Load(I_chosen), Load(Q_heads), Hold(O_heads, "fp32"), Hold(l_heads), Hold(m_heads),
                    Loop(key, B_c, masked=causal, body=streamed(
                        group, key, S_heads, [Load(K_chosen, clipped=causal), Load(V_chosen, clipped=causal)],
                    )),
                    Store(O_heads),
                ]),
            ]),
        ]),
    ], per="kv_head", keeps=(Q, K, V, O))  # fmt: skip


ALGORITHM = Algorithm(
    name="dsa",
    title="DeepSeek sparse attention",
    cite="DeepSeek-AI, DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models, arXiv:2512.02556 (2025), "
    "section 2.1, equations 1 and 2",
    declare=declare,
    features=("latent",),
    options={"index_heads": 64, "index_queries": 2, "index_dim": 128, "top_k": 2048},
    execution={"forward": KEYS_APART},
    requires=(
        Requirement.at_most(k_top, "top_k", N_k, "up to kv_len = {kv_len}, all keys"),
        Requirement.at_most(
            N_q, "q_len", N_k, "up to kv_len = {kv_len}, for a query sees a key of its own", mask="causal"
        ),
    ),
    approximates="attention to the k keys of the largest scores by an indexer of its own, the same in all heads",
    masks=("full", "causal"),
    published=(
        Published(
            N_q * H_I * (d_I + 1)
            + N_k * d_I * ceiling(N_q / B_I)
            + 2 * N_q * N_k
            + 2 * N_q * k_top
            + N_q * (d + d_v)
            + N_q * k_top * (d + d_v),
            "by hand: the indexer's queries and weights once, its keys once a query tile; scores and choice out and "
            "in; Q and O; the chosen rows of K and V once a query",
        ),
    ),
)
