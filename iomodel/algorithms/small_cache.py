"""Attention for a small on-chip memory, M < d^2: a tile of S stays on chip, columns of all other operands stream.

Saha and Ye 2024 (arXiv:2402.07443) prove that below d^2 attention costs as much as its matrix products, of the order
of N^2 d / sqrt(M), where FlashAttention's N^2 d^2 / M is more. O moves through HBM once per key tile, by columns.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import BARRIERS
from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.nests.language import Exp, Fill, Hold, Idle, Kernel, Load, Loop, MatMul, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, l, m, query, value

factor = Tensor("factor", (query,), "fp32")


def declare() -> Iterator[Kernel]:
    """Declare S by rank-one updates, then O a column at a time; the first visit reads no O."""
    yield Kernel("small_cache", [
        Loop(query, B_r, [
            Hold(l), Hold(m),
            Loop(key, B_c, masked=True, body=[
                Hold(S, "fp32"), Hold(factor),
                Loop(depth, ONE, [Load(Q), Load(K), MatMul(query, key, depth)]),
                Exp(query, key), Exp(query),
                Loop(value, ONE, [
                    Hold(O, "fp32"), Load(V), Load(O, after_first=key), MatMul(query, value, key), Store(O),
                ]),
            ]),
            Idle(key, [Loop(value, ONE, [Fill(O)])]),
        ]),
    ])  # fmt: skip


_T_r, _T_c = ceiling(N_q / B_r), ceiling(N_k / B_c)

ALGORITHM = Algorithm(
    name="small_cache",
    title="Small-cache attention",
    cite="Saha and Ye, The I/O Complexity of Attention, or How Optimal is FlashAttention?, ICML 2024, "
    "arXiv:2402.07443 (the regime M < d^2)",
    declare=declare,
    classes=frozenset({"exact"}),
    without={"forward": frozenset(FEATURE_NAMES)},
    execution={"forward": BARRIERS},
    published=(
        Published(
            N_q * d * _T_c + N_k * (d + d_v) * _T_r + N_q * d_v * (2 * _T_c - 1),
            "by hand: Q once a key tile, K and V once a query tile, O written once a key tile and read back once less",
        ),
    ),
)
