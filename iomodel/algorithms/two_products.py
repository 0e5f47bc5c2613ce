"""Attention as two tiled products for a small on-chip memory, M << d^2: S is formed and stored once.

The first product keeps a tile of S on chip while columns of Q and K stream, and reduces the softmax of each row to one
number; the second keeps a tile of O while rows of V and columns of S stream. With tiles of sqrt(M) x sqrt(M) both move
2 A (d + d_v) / sqrt(M) + A elements to leading order for A visible pairs, where every schedule that forms each product
once moves 2 A (d + d_v) / sqrt(M) - A - 2 M at least (:mod:`iomodel.counting.bounds`). Saha and Ye 2024
(arXiv:2402.07443) prove that below d^2 attention costs as much as its products; Goto and van de Geijn 2008 (ACM TOMS
34:12) tile a product so.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import BARRIERS
from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.nests.language import Exp, Hold, Kernel, Load, Loop, MatMul, Store
from iomodel.nests.symbols import ONE, N_k, N_q, d, d_v, m_1, m_2, n_1, n_2
from iomodel.nests.tensors import LSE, K, O, Q, S, V, depth, key, l, m, query, value


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


ALGORITHM = Algorithm(
    name="two_products",
    title="Two tiled products",
    cite="after the tiled product of Goto and van de Geijn, Anatomy of high-performance matrix multiplication, "
    "ACM TOMS 34:12 (2008); the regime M < d^2 of Saha and Ye, arXiv:2402.07443 (2024)",
    declare=declare,
    classes=frozenset({"exact"}),
    without={"forward": frozenset(FEATURE_NAMES) - {"latent"}},
    execution={"forward": BARRIERS},
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
    ),
)
