"""Standard attention: S and P go through HBM (Dao et al. 2022, arXiv:2205.14135, Algorithms 0 and 3).

By default each operand makes one ideal pass, as in the paper. With tiles the products are tiled GEMMs that
accumulate an output tile while rank-one slices of the operands stream past.

Eager frameworks run elementwise steps as separate kernels. `mask_pass` adds the mask to S in a kernel that reads and
writes S once more. `dropout_pass` applies dropout to P in a kernel, as PyTorch does outside fused attention: it stores
the dropped P for the product, and a mask of one byte per element, from which the backward pass computes dP; P, the
dropped P and the mask stay in HBM. The option is independent of the call: the pass exists, with a random number per
element of P, even if the call has no dropout; otherwise it is that dropout, and no random state is stored.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import ceiling

from iomodel.algorithms._gradients import stores, summed
from iomodel.algorithms._products import BACKWARD, DROPPED_BACKWARD, DROPPED_OUTPUT, OUTPUT, SCORES, elementwise, gemm
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import UNFUSED
from iomodel.nests.language import Drop, Exp, Hold, Kernel, Load, Random, Scores, Sink, Statement, Store
from iomodel.nests.symbols import N_k, N_q, d, d_v, m_1, m_2, n_1, n_2
from iomodel.nests.tensors import P, P_drop, S, dK, dP, dP_drop, dropout_mask, dS, dV, key, query


def declare(tiled: bool, mask_pass: bool, dropout_pass: bool) -> Iterator[Kernel]:
    """Declare lines 1 to 3 of Algorithm 0, with optional passes; the traffic does not depend on the mask."""
    yield gemm(SCORES, tiled, [Scores(query, key), Store(S)])
    if mask_pass:
        yield elementwise("S = S + mask", [Load(S), Store(S)], tiled)
    softmax: list[Statement] = [Hold(S, "fp32"), Load(S), Exp(query, key), Sink(query), Store(P, held=S)]
    yield elementwise("P = softmax(S)", softmax, tiled)
    if dropout_pass:
        drop: list[Statement] = [
            Load(P),
            Hold(dropout_mask),
            Random(query, key),
            Store(dropout_mask),
            Store(P_drop, held=P),
        ]
        yield elementwise("P_drop = dropout(P)", drop, tiled)
        yield replace(gemm(DROPPED_OUTPUT, tiled), keeps=(P,))  # used by the gradient of the softmax
    else:
        yield gemm(OUTPUT, tiled, each=[Drop(query, key)])  # P is kept for the backward pass


def backward(tiled: bool, dropout_pass: bool) -> Iterator[Kernel]:
    """Declare lines 1 to 5 of Algorithm 3, from the P of the forward pass; a constant mask has no gradient."""
    dv, dp, dq, dk = DROPPED_BACKWARD if dropout_pass else BACKWARD
    if dropout_pass:
        yield gemm(dv, tiled, list(stores(dV)))
        yield gemm(dp, tiled)
        yield elementwise(
            "dP = dropout mask o dP_drop", [Load(dP_drop), Load(dropout_mask), Store(dP, held=dP_drop)], tiled
        )
    else:
        yield gemm(dv, tiled, list(stores(dV)), [Drop(query, key)])
        yield gemm(dp, tiled, [Drop(query, key), Store(dP)])
    yield elementwise(
        "dS = P o (dP - rowsum(P o dP))", [Load(P), Hold(dP, "fp32"), Load(dP), Store(dS, held=dP)], tiled
    )
    yield gemm(dq, tiled)
    yield gemm(dk, tiled, list(stores(dK)))
    yield from summed()


ALGORITHM = Algorithm(
    name="standard",
    title="Standard attention",
    cite="Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness, "
    "arXiv:2205.14135 (2022), Algorithms 0 and 3",
    declare=declare,
    backward=backward,
    options={"tiled": False, "mask_pass": False, "dropout_pass": False},
    classes=frozenset({"exact"}),
    # The backward pass starts from P: the slope of a cap is known from S alone. Pages are for kernels that stream keys.
    without={"forward": frozenset({"paged"}), "backward": frozenset({"softcap"})},
    tiled_by="tiled",
    execution={"forward": UNFUSED, "backward": UNFUSED},
    published=(
        Published(
            (N_q + N_k) * (d + d_v) + 4 * N_q * N_k,
            "arXiv:2205.14135, Algorithm 0: 4 N d + 4 N^2 where N_q = N_k = N and d_v = d",
        ),
        Published(
            2 * (N_q + N_k) * (d + d_v) + 7 * N_q * N_k,
            "arXiv:2205.14135, Algorithm 3: 8 N d + 7 N^2 where N_q = N_k = N and d_v = d",
            direction="backward",
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
