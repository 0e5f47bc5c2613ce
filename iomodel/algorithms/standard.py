"""Standard attention: three kernels, S and P through HBM (Dao et al. 2022, arXiv:2205.14135, Algorithm 0).

By default each operand makes one ideal pass, as in the paper. With tiles the two products are tiled GEMMs that
accumulate an output tile while rank-one slices of the operands stream past.
"""

from collections.abc import Iterator

from sympy import Integer, ceiling

from iomodel.nest import Algorithm, Exp, Hold, Kernel, Load, Loop, MatMul, Published, Store
from iomodel.symbols import N_k, N_q, d, d_v, m_1, m_2, n_1, n_2
from iomodel.tensors import K, O, P, Q, S, V, depth, key, query, value

ONE = Integer(1)


def declare(tiled: bool) -> Iterator[Kernel]:
    """Lines 1 to 3 of Algorithm 0; a mask changes none of the traffic."""
    yield from (_tiled() if tiled else _ideal())


def _ideal() -> Iterator[Kernel]:
    yield Kernel("S = Q K^T", [Load(Q), Load(K), Hold(S, "fp32"), MatMul(query, key, depth), Store(S)])
    yield Kernel("P = softmax(S)", [Hold(S, "fp32"), Load(S), Exp(query, key), Store(P, held=S)])
    yield Kernel("O = P V", [Load(P), Load(V), Hold(O, "fp32"), MatMul(query, value, key), Store(O)])


def _tiled() -> Iterator[Kernel]:
    yield Kernel("S = Q K^T", [
        Loop(query, m_1, [
            Loop(key, n_1, [
                Hold(S, "fp32"),
                Loop(depth, ONE, [Load(Q), Load(K), MatMul(query, key, depth)]),
                Store(S),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("P = softmax(S)", [
        Loop(query, ONE, [Hold(S, "fp32"), Load(S), Exp(query, key), Store(P, held=S)]),
    ])  # fmt: skip
    yield Kernel("O = P V", [
        Loop(query, m_2, [
            Loop(value, n_2, [
                Hold(O, "fp32"),
                Loop(key, ONE, [Load(P), Load(V), MatMul(query, value, key)]),
                Store(O),
            ]),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="standard",
    title="Standard attention",
    cite="Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness, "
    "arXiv:2205.14135 (2022), Algorithm 0",
    declare=declare,
    options={"tiled": False},
    classes=frozenset({"exact"}),
    tiled_by="tiled",
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + 4 * N_q * N_k,
            "arXiv:2205.14135, Algorithm 0: 4 N d + 4 N^2 where N_q = N_k = N and d_v = d",
        ),
        Published(
            N_q * d * ceiling(N_k / n_1)
            + N_k * d * ceiling(N_q / m_1)
            + N_q * N_k * (3 + ceiling(d_v / n_2))
            + N_k * d_v * ceiling(N_q / m_2)
            + N_q * d_v,
            "tiled products: each operand once a tile of the other (Goto and van de Geijn 2008, ACM TOMS 34:12)",
            {"tiled": True},
        ),
    ),
)
