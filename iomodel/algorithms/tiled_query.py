"""Tiled-query attention: the entire score strip of a few queries stays on chip, with an ordinary softmax.

Nothing is rescaled and no statistics reach HBM. With block_q = 1 it is the naive kernel, one query per thread block.
Keeping rows of S on chip is the fusion of FLAT (Kao et al., ASPLOS 2023, arXiv:2107.06419).
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import PIPELINED
from iomodel.nests.language import Drop, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Scores, Sink, Store
from iomodel.nests.symbols import B_c, B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, query, value


def declare() -> Iterator[Kernel]:
    """Stream K once to fill the strip, and V once to consume it; the two tiles are never live together."""
    yield Kernel("tiled_query", [
        Loop(query, B_r, [
            Hold(S, "fp32"), Hold(O, "fp32"),
            Live(key, [
                Load(Q),
                Loop(key, B_c, masked=True, body=[Load(K), MatMul(query, key, depth), Scores(query, key)]),
                Loop(key, B_c, masked=True, body=[Exp(query, key), Drop(query, key)]),
                Loop(key, B_c, masked=True, body=[Load(V), MatMul(query, value, key)]),
            ]),
            Sink(query),
            Store(O),
        ]),
    ])  # fmt: skip


ALGORITHM = Algorithm(
    name="tiled_query",
    title="Tiled-query attention",
    cite="Kao, Subramanian, Agrawal, Yazdanbakhsh and Krishna, FLAT: An Optimized Dataflow for Mitigating Attention "
    "Bottlenecks, ASPLOS 2023, arXiv:2107.06419 (the row-granular fusion)",
    declare=declare,
    classes=frozenset({"exact", "row-atomic"}),
    execution={"forward": PIPELINED},
    published=(
        Published(
            N_q * d + N_k * (d + d_v) * ceiling(N_q / B_r) + N_q * d_v,
            "as FlashAttention-2 without the log-sum-exp: the strip changes what is on chip, not what streams",
        ),
    ),
)
