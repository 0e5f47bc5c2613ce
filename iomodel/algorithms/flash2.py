"""FlashAttention-2 forward (Dao 2023, arXiv:2307.08691, Algorithm 1).

Query tiles outside, keys and values streamed inside; O is written once, with one log-sum-exp a row.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nest import Algorithm, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Published, Store
from iomodel.symbols import B_c, B_r, N_k, N_q, d, d_v
from iomodel.tensors import LSE, K, O, Q, S, V, depth, key, l, m, query, value


def declare(lse: bool) -> Iterator[Kernel]:
    """Lines 3 to 15 of Algorithm 1; the rescaling exponential of line 10 is taken once a row and key tile."""
    yield Kernel("flash2", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Live(key, [
                Load(Q),
                Loop(key, B_c, masked=True, body=[
                    Load(K), Load(V),
                    Hold(S, "fp32"), MatMul(query, key, depth),
                    Exp(query, key), Exp(query),
                    MatMul(query, value, key),
                ]),
            ]),
            Store(O),
            *([Store(LSE, held=m)] if lse else []),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="flash2",
    title="FlashAttention-2",
    cite="Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, "
    "arXiv:2307.08691 (2023), Algorithm 1",
    declare=declare,
    options={"lse": True},
    classes=frozenset({"exact", "row-atomic", "fixed-split"}),
    published=(
        Published(
            N_q * d + N_k * (d + d_v) * ceiling(N_q / B_r) + N_q * d_v + N_q,
            "arXiv:2307.08691, Algorithm 1, lines 4, 7, 14, 15: Q, O and L once, K and V once a query tile",
        ),
    ),
)
