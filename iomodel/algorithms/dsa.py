"""DeepSeek sparse attention (DeepSeek-AI 2025, arXiv:2512.02556, section 2.1): attention to keys that an indexer ranks.

The lightning indexer scores every visible key for every query (equation 1): I(t, s) = sum over its heads j of
w(t, j) ReLU(q(t, j) k(s)), with one row k per key. A query attends to the keys of its k largest scores (equation 2),
the same ones in all heads; so a kernel gathers their rows once for a tile of heads of one query. The places of a row of
chosen keys can be split among blocks, as in flash-decoding (Dao, Haziza, Massa and Sizov, PyTorch blog, 2023); a last
kernel combines the parts. Formulas call the heads of the indexer H_I and their width d_I.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr, Min, ceiling

from iomodel.algorithms._streaming import streamed
from iomodel.algorithms._tiles import SPLITS
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.execution import PIPELINED
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Load, Loop, MatMul, Piece, Store, Tensor, When
from iomodel.nests.symbols import B_I, H_I, ONE, B_c, B_r, B_s, N_k, N_q, d, d_I, d_v, k_top, s
from iomodel.nests.tensors import K, Q, V, depth, group, key, query, value

index_head = Axis("index_head", H_I)
index_depth = Axis("index_depth", d_I)
slot = Axis("slot", k_top)
"""Places in a row of chosen keys; those that a query leaves empty hold no key."""
split = Axis("split", s, of=key, chunk=B_c * ceiling(ceiling(k_top / B_c) / s))
"""Splits of the places into equal numbers of whole tiles; the last splits may have fewer or none."""

Q_I = Tensor("Q_I", (query, index_head, index_depth), per="batch")
K_I = Tensor("K_I", (key, index_depth), per="batch")
W_I = Tensor("W_I", (query, index_head), "fp32", per="batch")
A_I = Tensor("A_I", (query, index_head, key), "fp32", per="batch")
"""Products of the heads of the indexer, on chip alone."""
S_I = Tensor("S_I", (query, key), "fp32", per="batch")
I = Tensor("I", (query, slot), "int32", per="batch")

I_chosen = Tensor("I", (query, key), "int32", per="batch", inside=True)
"""The row of places as the keys of a piece, whose number is k."""
Q_heads = Tensor("Q", (query, group, depth), per="kv_head", inside=True)
O_heads = Tensor("O", (query, group, value), per="kv_head")
K_chosen = Tensor("K", (key, depth), per="kv_head", inside=True)
V_chosen = Tensor("V", (key, value), per="kv_head", inside=True)
S_heads = Tensor("S", (group, key))
l_heads = Tensor("l", (group,), "fp32")
m_heads = Tensor("m", (group,), "fp32")
O_acc = Tensor("O_acc", (split, query, group, value), "fp32", per="kv_head")
LSE_acc = Tensor("LSE_acc", (split, query, group), "fp32", per="kv_head")

_later = Min(N_q, N_k - k_top)
"""Queries that see more than k keys; the others attend to all that they see, the last of them to exactly k."""
_many = Min(1, s - 1)
KEYS_APART = replace(
    PIPELINED,
    cite="github.com/deepseek-ai/DeepGEMM: the kernels of the indexer divide the keys of a query among blocks",
    spread=(key, split),
)
"""The tiles of scores of one query are independent; attention sums over the chosen keys of a split in one block."""


def declare(splits: Expr, causal: bool) -> Iterator[Kernel]:
    """Declare the scores of the indexer, the choice in one ideal pass, attention to the chosen keys, and its parts."""
    assert split.length == splits
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
    later = [Piece(ONE, {N_q: _later, N_k: k_top}), Piece(ONE, {N_q: N_q - _later, N_k: k_top}, "causal")]
    gathers = [Load(I_chosen), Load(K_chosen, clipped=causal), Load(V_chosen, clipped=causal)]
    yield Kernel("attention to the chosen keys", [
        Cut(later if causal else every, [
            Loop(query, ONE, [
                Loop(group, B_r, [
                    Hold(O_heads, "fp32"), Hold(l_heads), Hold(m_heads),
                    Loop(split, ONE, [
                        Load(Q_heads),
                        Loop(key, B_c, masked=causal, body=streamed(group, key, S_heads, gathers)),
                        When(_many, [Store(O_acc, held=O_heads), Store(LSE_acc, held=m_heads)]),
                    ]),
                    When(_many, unless=True, body=[Store(O_heads)]),
                ]),
            ]),
        ]),
    ], per="kv_head", keeps=(Q, K, V))  # fmt: skip
    yield Kernel("combine", [
        When(_many, [
            Loop(query, ONE, [
                Loop(group, ONE, [
                    Load(LSE_acc), Exp(split, group), Hold(O_heads, "fp32"),
                    Loop(split, ONE, [Load(O_acc)]),
                    Store(O_heads),
                ]),
            ]),
        ]),
    ], per="kv_head")  # fmt: skip


ALGORITHM = Algorithm(
    name="dsa",
    title="DeepSeek sparse attention",
    cite="DeepSeek-AI, DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models, arXiv:2512.02556 (2025), "
    "section 2.1, equations 1 and 2",
    declare=declare,
    features=("latent",),
    options={"index_heads": 64, "index_queries": 2, "index_dim": 128, "top_k": 2048, "splits": 1},
    execution={"forward": KEYS_APART},
    searched={"splits": SPLITS},
    requires=(
        Requirement.at_most(
            s, "splits", ceiling(k_top / B_c), "up to {most}, the tiles of {block_kv} places in top_k = {top_k}"
        ),
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
            + N_q * (d * s + d_v)
            + N_q * k_top * (d + d_v)
            + 2 * _many * s * N_q * (d_v + 1),
            "by hand: the indexer's queries and weights once, its keys once a query tile; scores and choice out and "
            "in; Q once a split and O; the chosen rows of K and V once a query; the partial O and LSE of every split "
            "written and read",
        ),
    ),
)
