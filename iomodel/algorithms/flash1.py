"""FlashAttention forward (Dao, Fu, Ermon, Rudra, Re 2022, arXiv:2205.14135, Algorithm 1).

Key tiles outside, queries inside: O and its statistics l, m go through HBM once a key tile.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nest import Algorithm, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Published, Store, Tensor
from iomodel.symbols import B_c, B_r, N_k, N_q, d, d_v
from iomodel.tensors import K, O, Q, S, V, depth, key, l, m, query, value

l_tile = Tensor("l_tile", (query,), "fp32")
m_tile = Tensor("m_tile", (query,), "fp32")


def declare() -> Iterator[Kernel]:
    """Lines 2 to 15 of Algorithm 1; line 11 takes two exponentials a row, of which line 12 makes use again."""
    yield Kernel("flash1", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Store(O), Store(l), Store(m),
        ]),
        Loop(key, B_c, [
            Live(query, [
                Load(K), Load(V),
                Loop(query, B_r, masked=True, body=[
                    Hold(O, "fp32"), Hold(S, "fp32"), Hold(l_tile), Hold(m_tile),
                    Load(Q), Load(O), Load(l), Load(m),
                    MatMul(query, key, depth),
                    Exp(query, key), Exp(query), Exp(query),
                    MatMul(query, value, key),
                    Store(O), Store(l), Store(m),
                ]),
            ]),
        ]),
    ])  # fmt: skip


_T_c = ceiling(N_k / B_c)

ALGORITHM = Algorithm(
    name="flash1",
    title="FlashAttention",
    cite="Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness, "
    "arXiv:2205.14135 (2022), Algorithm 1",
    declare=declare,
    classes=frozenset({"exact", "row-atomic", "fixed-split"}),
    published=(
        Published(
            N_k * (d + d_v) + N_q * d_v + N_q * (d + 2 * d_v) * _T_c + N_q * (2 + 4 * _T_c),
            "arXiv:2205.14135, Algorithm 1: N d (3 + 3 T_c) + N (2 + 4 T_c) where N_q = N_k = N and d_v = d",
        ),
    ),
)
