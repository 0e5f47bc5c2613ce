"""Backward pass without atomics: one pass for dK and dV, another for dQ, each with separate tiles.

This is the backward pass of Triton's fused attention tutorial (Tillet et al.), after FlashAttention-2 (Dao 2023,
arXiv:2307.08691, Algorithm 2). S and dP are computed twice, seven products instead of five; nothing is added in HBM.
"""

from collections.abc import Iterator

from sympy import ceiling

from iomodel.algorithms._gradients import adds, stores, summed, zeroed_sums
from iomodel.algorithms.flash2 import preprocess, saved_statistics
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import PIPELINED
from iomodel.nests.language import Drop, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Scores, Statement, Store
from iomodel.nests.symbols import B_c, B_c_dQ, B_r, B_r_dQ, N_k, N_q, d, d_v
from iomodel.nests.tensors import D, K, Q, S, V, depth, dK, dO, dP, dQ, dV, key, query, value

KEYS: list[Statement] = [Load(K), Load(V)]
SCORES: list[Statement] = [Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key), Exp(query, key)]


def backward(accumulate: bool, delta_twice: bool, two_statistics: bool) -> Iterator[Kernel]:
    """Declare three kernels: D; key tiles outside for dK and dV; query tiles outside for dQ.

    The pass for dQ may be two calls for each query tile, of the key tiles below the diagonal and of those that it
    crosses, that both load D.
    """
    queries = [Load(Q), Load(dO), *saved_statistics(two_statistics), Load(D)]
    yield preprocess()
    yield from zeroed_sums(accumulate)
    yield Kernel("dK, dV", [
        Loop(key, B_c, [
            Hold(dK, "fp32"), Hold(dV, "fp32"),
            Live(query, [
                *KEYS,
                Loop(query, B_r, masked=True, body=[
                    *queries, *SCORES, Drop(query, key), MatMul(key, value, query),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    MatMul(key, depth, query),
                ]),
                *adds(accumulate),
            ]),
            *stores(dK, dV, accumulate=accumulate),
        ]),
    ])  # fmt: skip
    yield Kernel("dQ", [
        Loop(query, B_r_dQ, [
            Hold(dQ, "fp32"),
            Live(key, [
                *queries, *([Load(D)] if delta_twice else []),
                Loop(key, B_c_dQ, masked=True, body=[
                    *KEYS, *SCORES, Drop(query, key),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    MatMul(query, depth, key),
                ]),
            ]),
            Store(dQ),
        ]),
    ])  # fmt: skip
    yield from summed(accumulate)


ALGORITHM = Algorithm(
    name="two_pass",
    title="Two-pass backward",
    cite="Triton tutorial 06, fused attention (github.com/triton-lang/triton, python/tutorials), after Dao, "
    "FlashAttention-2, arXiv:2307.08691 (2023), Algorithm 2",
    backward=backward,
    classes=frozenset({"recomputed-backward"}),
    options={"accumulate": False},
    triton_kernels={"backward_dkdv": ("dK, dV",), "backward_dq": ("dQ",), "backward": ("dK, dV", "dQ")},
    as_written=("delta_twice", "two_statistics"),
    execution={"backward": PIPELINED},
    published=(
        Published(
            2 * N_q * d_v
            + N_q
            + 2 * N_k * (d + d_v)
            + N_q * (d + d_v + 2) * (1 + ceiling(N_k / B_c))
            + N_k * (d + d_v) * ceiling(N_q / B_r_dQ)
            + N_q * d,
            "by hand: O, dO, D; K, V, dK, dV, Q, dO, L, D once a key tile; Q, dO, L, D, dQ, K, V once a query tile",
            direction="backward",
        ),
    ),
)
