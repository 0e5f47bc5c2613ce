"""FlashAttention-3 forward (Shah et al. 2024, arXiv:2407.08608, Algorithms 1 and 2): FlashAttention-2 for Hopper.

What moves between HBM and the chip is what FlashAttention-2 moves. What differs is what lies on chip: the scores of the
next key tile are made before those of the current one have met their V, so that two tiles of scores are live.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import ceiling

from iomodel.execution import PIPELINED
from iomodel.nest import (
    Algorithm,
    Drop,
    Exp,
    Hold,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    Published,
    Scores,
    Sink,
    Store,
    Tensor,
)
from iomodel.residency import Fragment, Residency, Reused, Shared
from iomodel.symbols import B_c, B_r, N_k, N_q, d, d_v, stages
from iomodel.tensors import LSE, K, O, Q, S, V, depth, key, l, m, query, value

S_next = Tensor("S_next", (query, key))


def declare(lse: bool) -> Iterator[Kernel]:
    """Algorithm 2 with its loads by Algorithm 1; V has a buffer even where it is part of K, which is a tile ahead."""
    yield Kernel("flash3", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Live(key, [
                Load(Q),
                Loop(key, B_c, masked=True, body=[
                    Load(K), Load(V), Hold(V),
                    Hold(S, "fp32"), Hold(S_next, "fp32"), MatMul(query, key, depth), Scores(query, key),
                    Exp(query, key), Exp(query), Drop(query, key),
                    MatMul(query, value, key),
                ]),
            ]),
            Sink(query),
            Store(O),
            *([Store(LSE, held=m)] if lse else []),
        ]),
    ])  # fmt: skip


_SHARED = (Shared(Q), Shared(K, stages), Reused((Shared(V, stages),), (Shared(O, dtype="io"),)))
_OVERLAP = ((Fragment(S), Fragment(S, "io"), Fragment(O)),)
P_IN_REGISTERS = Residency(
    title="FlashAttention-3 forward: Q, two stages of K and V in shared memory; S, P and O in registers",
    cite="github.com/Dao-AILab/flash-attention, hopper: flash_fwd_kernel_sm90.h, tile_size.h",
    shared=_SHARED,
    phases=_OVERLAP,
    overhead=24,
    warps=(4, 8, 12),
    stages=(2,),
    producers=4,
    mma="warpgroup",
    exposed=0.85,
    head_dims=(64, 96, 128, 192, 256, 512),
    capability=("9.0", "9.0"),
)
P_IN_SHARED = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward: Q, P, two stages of K and V in shared memory; S and O in registers",
    shared=(*_SHARED, Shared(S, dtype="io")),
    phases=((Fragment(S), Fragment(O)),),
)
NO_OVERLAP = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward without overlap: P takes the place of S in registers",
    exposed=1.0,
    phases=((Fragment(S), Fragment(O)),),
)
FP8 = replace(
    P_IN_REGISTERS,
    title="FlashAttention-3 forward in fp8: V is transposed to another two stages of shared memory",
    shared=(Shared(Q), Shared(K, stages), Reused((Shared(V, 2 * stages),), (Shared(O, dtype="io"),))),
    dtypes=("fp8",),
)

ALGORITHM = Algorithm(
    name="flash3",
    title="FlashAttention-3",
    cite="Shah, Bikshandi, Zhang, Thakkar, Ramani and Dao, FlashAttention-3: Fast and Accurate Attention with "
    "Asynchrony and Low-precision, arXiv:2407.08608 (2024), Algorithms 1 and 2",
    declare=declare,
    options={"lse": True},
    classes=frozenset({"exact", "row-atomic", "fixed-split"}),
    execution={"forward": PIPELINED},
    residency={"forward": (P_IN_REGISTERS, P_IN_SHARED, NO_OVERLAP, FP8)},
    published=(
        Published(
            N_q * d + N_k * (d + d_v) * ceiling(N_q / B_r) + N_q * d_v + N_q,
            "arXiv:2407.08608, Algorithm 1: Q, O and L once, K and V once a query tile",
        ),
    ),
)
