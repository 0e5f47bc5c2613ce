"""Backward pass with queries held: the loops of FlashAttention's, exchanged.

Query tiles with their dQ stay on chip, and keys pass through HBM once per query tile with their dK and dV: three rows
a query in place of four a key. Where the queries fit at once, every tensor moves once; no schedule that forms D from O
moves less.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._gradients import summed, zeros
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import BARRIERS
from iomodel.nests.language import (
    Drop,
    Exp,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    Scores,
    Statement,
    Store,
    Tensor,
    When,
)
from iomodel.nests.symbols import ONE, B_c, B_r, N_k, N_q, d, d_v
from iomodel.nests.tensors import (
    LSE,
    D,
    K,
    O,
    Q,
    S,
    V,
    depth,
    dK,
    dK_expanded,
    dO,
    dP,
    dQ,
    dV,
    dV_expanded,
    grouped,
    key,
    query,
    value,
)


def backward() -> Iterator[Kernel]:
    """Declare one kernel; O passes one column at a time, and the first visit of a key tile begins its dK and dV."""
    own, expanded = (dK, dV), (dK_expanded, dV_expanded)
    yield Kernel("held_queries", [
        Loop(key, B_c, [Idle(query, [*zeros()])]),
        Loop(query, B_r, [
            Hold(dQ, "fp32"),
            Live(key, [
                Load(Q), Load(dO), Load(LSE), Hold(D),
                Loop(value, ONE, [Load(O)]),
                Loop(key, B_c, masked=True, body=[
                    Load(K), Load(V), When(grouped, _sums(*own), unless=True), When(grouped, _sums(*expanded)),
                    Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key), Exp(query, key),
                    Drop(query, key), MatMul(key, value, query),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    MatMul(query, depth, key),
                    MatMul(key, depth, query),
                    When(grouped, [*map(Store, own)], unless=True), When(grouped, [*map(Store, expanded)]),
                ]),
            ]),
            Store(dQ),
        ]),
    ])  # fmt: skip
    yield from summed()


def _sums(*tensors: Tensor) -> list[Statement]:
    return [statement for sums in tensors for statement in (Hold(sums, "fp32"), Load(sums, after_first=query))]


ALGORITHM = Algorithm(
    name="held_queries",
    title="Backward pass with queries held",
    cite="the loops of Dao et al., FlashAttention, arXiv:2205.14135 (2022), Algorithm 4, exchanged",
    backward=backward,
    classes=frozenset({"exact-backward", "row-atomic-backward"}),
    execution={"backward": BARRIERS},
    published=(
        Published(
            N_q * (2 * d + 2 * d_v + 1) + N_k * (d + d_v) * (3 * ceiling(N_q / B_r) - 1),
            "by hand: Q, dO, O, LSE, dQ once; K, V, dK, dV once a query tile, dK and dV also read but at the first",
            direction="backward",
        ),
    ),
)
