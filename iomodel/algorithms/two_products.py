"""Attention as two tiled products for a small on-chip memory, M << d^2: S is formed and stored once.

The first product keeps a tile of S on chip while columns of Q and K stream, and reduces the softmax of each row to one
number; the second keeps a tile of O while rows of V and columns of S stream. With tiles of sqrt(M) x sqrt(M) both move
2 A (d + d_v) / sqrt(M) + A elements to leading order for A visible pairs, where every schedule that forms each product
once moves 2 A (d + d_v) / sqrt(M) - A - 2 M at least (:mod:`iomodel.counting.bounds`). Saha and Ye 2024
(arXiv:2402.07443) prove that below d^2 attention costs as much as its products; Goto and van de Geijn 2008 (ACM TOMS
34:12) tile a product so.

Backward, each of the five products is tiled so, with P, dP and dS in HBM: 2 A (3 d + 2 d_v) / sqrt(M) + 5 A elements
to leading order, within 9 % of the bound for d_v = d.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._gradients import stores, summed
from iomodel.algorithms._products import BACKWARD, gemm
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import BARRIERS
from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Store
from iomodel.nests.symbols import ONE, N_k, N_q, d, d_v, m_1, m_2, m_3, m_4, m_5, m_6, n_1, n_2, n_3, n_4, n_5, n_6
from iomodel.nests.tensors import LSE, D, K, O, P, Q, S, V, depth, dK, dO, dP, dS, dV, key, l, m, query, value


def declare() -> Iterator[Kernel]:
    """Declare S and the log-sum-exp of its rows by rank-one updates, then O by rank-one updates from S."""
    yield Kernel("S", [
        Loop(query, m_1, [
            Hold(l), Hold(m),
            Loop(key, n_1, masked=True, body=[
                Hold(S, "fp32"),
                Loop(depth, ONE, [Load(Q), Load(K), MatMul(query, key, depth)]),
                Exp(query, key), Exp(query), Store(S),
            ]),
            Store(LSE, held=l),
        ]),
    ])  # fmt: skip
    yield Kernel("O", [
        Loop(query, m_2, [
            Load(LSE),
            Loop(value, n_2, [
                Hold(O, "fp32"),
                Loop(key, ONE, masked=True, body=[Load(V), Load(S), Exp(query, key), MatMul(query, value, key)]),
                Store(O),
            ]),
        ]),
    ])  # fmt: skip


def backward() -> Iterator[Kernel]:
    """Declare P, dV, D, dP, dS, dQ and dK, one kernel each; P and dP have one tile, D and dS take single elements."""
    dv, dp, dq, dk = BACKWARD
    yield Kernel("P", [
        Loop(query, m_4, [
            Load(LSE),
            Loop(key, n_4, masked=True, body=[
                Hold(S, "fp32"),
                Loop(depth, ONE, [Load(Q), Load(K), MatMul(query, key, depth)]),
                Exp(query, key), Store(P, held=S),
            ]),
        ]),
    ])  # fmt: skip
    yield gemm(dv, True, list(stores(dV)), masked=True)
    yield Kernel("D = rowsum(dO o O)", [
        Loop(query, ONE, [Hold(D), Loop(value, ONE, [Load(O), Load(dO)]), Store(D)]),
    ])  # fmt: skip
    yield Kernel(dp.title, [
        Loop(query, m_4, [
            Loop(key, n_4, masked=True, body=[
                Hold(dP, "fp32"),
                Loop(value, ONE, [Load(dO), Load(V), MatMul(query, key, value)]),
                Store(dP),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("dS = P o (dP - D)", [
        Loop(query, ONE, [
            Load(D),
            Loop(key, ONE, masked=True, body=[Load(P), Hold(dP, "fp32"), Load(dP), Store(dS, held=dP)]),
        ]),
    ])  # fmt: skip
    yield gemm(dq, True, masked=True)
    yield gemm(dk, True, list(stores(dK)), masked=True)
    yield from summed()


ALGORITHM = Algorithm(
    name="two_products",
    title="Two tiled products",
    cite="after the tiled product of Goto and van de Geijn, Anatomy of high-performance matrix multiplication, "
    "ACM TOMS 34:12 (2008); the regime M < d^2 of Saha and Ye, arXiv:2402.07443 (2024)",
    declare=declare,
    backward=backward,
    classes=frozenset({"exact", "exact-backward"}),
    without={"forward": frozenset(FEATURE_NAMES) - {"latent"}, "backward": frozenset(FEATURE_NAMES)},
    execution={"forward": BARRIERS, "backward": BARRIERS},
    published=(
        Published(
            N_q * d * ceiling(N_k / n_1)
            + N_k * d * ceiling(N_q / m_1)
            + N_q * N_k * (1 + ceiling(d_v / n_2))
            + N_k * d_v * ceiling(N_q / m_2)
            + N_q * (d_v + 2),
            "by hand: Q once a key tile, K once a query tile; S written once and read once a slice of O, V once a "
            "query tile; LSE written and read, O written",
        ),
        Published(
            N_q * (d + d_v) * ceiling(N_k / n_4)
            + N_k * (d + d_v) * ceiling(N_q / m_4)
            + N_q * N_k * (5 + ceiling(d_v / n_3) + ceiling(d / n_5) + ceiling(d / n_6))
            + N_q * d_v * ceiling(N_k / m_3)
            + N_k * d * ceiling(N_q / m_5)
            + N_q * d * ceiling(N_k / m_6)
            + N_k * (d + d_v)
            + N_q * (d + 2 * d_v + 3),
            "by hand: each product's operands once a tile of the other; P, dP and dS written, P and dP read for dS; "
            "O, dO and D; LSE and D read, the gradients written",
            direction="backward",
        ),
    ),
)
