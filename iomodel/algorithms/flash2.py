"""FlashAttention-2 (Dao 2023, arXiv:2307.08691, Algorithms 1 and 2).

Forward: query tiles outside, keys and values streamed inside; O is written once, with one log-sum-exp per row.
Backward: key tiles outside, queries streamed inside; every visit adds its share of dQ to an fp32 accumulator in HBM.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr, ceiling

from iomodel.algorithms._aiter_residency import AITER_ASSEMBLY
from iomodel.algorithms._ck_residency import CK
from iomodel.algorithms._flash4_residency import CUDNN_BLACKWELL, FLASH_ATTENTION_4, TRTLLM_GEN
from iomodel.algorithms._flashinfer_residency import FLASHINFER
from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._gradients import adds, stores, summed, zeroed_sums
from iomodel.algorithms._sage_residency import SAGEATTENTION
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.algorithms._triton_amd_residency import TRITON_AMD
from iomodel.algorithms._triton_residency import TRITON
from iomodel.algorithms._trtllm_residency import TILED, WHOLE_TILES
from iomodel.algorithms._xformers_residency import SDPA, XFORMERS
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import PACKED, Implementation
from iomodel.nests.language import (
    Accumulate,
    Drop,
    Exp,
    Fill,
    Hold,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    Scores,
    Sink,
    Statement,
    Store,
)
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import ONE, B_c, B_dv, B_r, N_k, N_q, d, d_v, stages
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
    dO,
    dP,
    dQ,
    dQ_acc,
    dQ_slabs,
    dV,
    key,
    l,
    m,
    query,
    slab,
    value,
)


def declare(lse: bool, two_statistics: bool, value_slabs: bool) -> Iterator[Kernel]:
    """Declare lines 3 to 15 of Algorithm 1; line 10 computes one rescaling exponential per row and key tile."""
    tiles = Loop(query, B_r, [
        Hold(O, "fp32"), Hold(l), Hold(m),
        Live(key, [
            Load(Q),
            Loop(key, B_c, masked=True, body=[
                Load(K), Load(V),
                Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key),
                Exp(query, key), Exp(query), Drop(query, key),
                MatMul(query, value, key),
            ]),
        ]),
        Sink(query),
        Store(O),
        *(statistics(two_statistics) if lse else []),
    ])  # fmt: skip
    yield Kernel("flash2", [Loop(value, B_dv, [tiles]) if value_slabs else tiles])


def statistics(two: bool) -> list[Statement]:
    """Store the log-sum-exp of each row, or its maximum and its sum."""
    return [Store(m), Store(l)] if two else [Store(LSE, held=m)]


def saved_statistics(two: bool) -> list[Statement]:
    """Load what :func:`statistics` stored."""
    return [Load(m), Load(l)] if two else [Load(LSE)]


def preprocess(*more: Fill) -> Kernel:
    """Declare D = rowsum(dO o O), line 4 of Algorithm 2, one row at a time."""
    return Kernel("D = rowsum(dO o O)", [Loop(query, ONE, [Load(O), Load(dO), Hold(D), Store(D), *more])])


def backward(deterministic: bool, dq_buffers: Expr, accumulate: bool, two_statistics: bool) -> Iterator[Kernel]:
    """Declare Algorithm 2 as three kernels: D and a zeroed dQ_acc; dK, dV and the sums of dQ; conversion of dQ.

    Line 9 of the paper loads O, and reads and writes dQ; the kernels do not load O, and add to dQ.
    """
    sums = dQ_slabs if deterministic else dQ_acc
    yield preprocess(Fill(sums))
    yield from zeroed_sums(accumulate)
    yield Kernel("flash2 backward", [
        Loop(key, B_c, [
            Hold(dK, "fp32"), Hold(dV, "fp32"),
            Live(query, [
                Load(K), Load(V),
                Loop(query, B_r, masked=True, body=[
                    Load(Q), Load(dO), *saved_statistics(two_statistics), Load(D),
                    Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key), Exp(query, key),
                    Drop(query, key), MatMul(key, value, query),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    MatMul(key, depth, query),
                    Hold(dQ, "fp32"), MatMul(query, depth, key),
                    Accumulate(sums, held=dQ, atomic=not deterministic, within=(slab,)),
                ]),
                *adds(accumulate),
            ]),
            *stores(dK, dV, accumulate=accumulate),
        ]),
    ])  # fmt: skip
    row: list[Statement]
    if deterministic:
        assert slab.length == dq_buffers
        row = [Hold(dQ, "fp32"), Loop(slab, ONE, [Load(sums)]), Store(dQ)]
    else:
        row = [Load(sums), Store(dQ, held=sums)]
    yield Kernel("dQ in its own dtype", [Loop(query, ONE, row)])
    yield from summed(accumulate)


_KERNELS = "github.com/Dao-AILab/flash-attention, csrc/flash_attn"
FORWARD = Residency(
    title="FlashAttention-2 forward: Q, K, V in shared memory, S and O in registers",
    cite=f"{_KERNELS}: kernel_traits.h and flash_fwd_kernel.h",
    shared=(Shared(Q), Shared(K, stages), Shared(V, stages)),
    phases=((Fragment(S), Fragment(O)),),
    overhead=48,
)
_GRADIENTS = (Fragment(dK), Fragment(dV))
BACKWARD = Residency(
    title="FlashAttention-2 backward: Q, dO, K, V, P, dS in shared memory; S, dP, dK, dV, dQ in registers",
    cite=f"{_KERNELS}: kernel_traits.h and flash_bwd_kernel.h",
    shared=(Shared(Q, stages), Shared(dO), Shared(K), Shared(V), Shared(S, dtype="io"), Shared(dP, dtype="io")),
    phases=((Fragment(S), Fragment(dP), *_GRADIENTS), (Fragment(dQ), *_GRADIENTS)),
    overhead=48,
    stages=(1, 2),
    split="tile",
)
V_IN_REGISTERS = replace(
    BACKWARD,
    title=f"{BACKWARD.title}, V too",
    shared=(
        Shared(Q, stages),
        Shared(dO),
        Shared(K),
        Reused((Shared(V),), (Shared(S, dtype="io"), Shared(dP, dtype="io"))),
    ),
    phases=tuple((*phase, Fragment(V, "io")) for phase in BACKWARD.phases),
)
FLASH_ATTENTION_2 = Implementation(
    "flash-attention-2",
    "FlashAttention-2 (CUDA)",
    _KERNELS,
    residency={"forward": (FORWARD,), "backward": (BACKWARD, V_IN_REGISTERS)},
    execution={"backward": replace(PIPELINED, slabs=True)},
    searched=PACKED,
    tiles=shipped_tiles("flash-attention-2", "flash2"),
    aliases=("fa2", "flash-attn-2", "flashattention-2", *SDPA),
    front_end=front_end("flash-attention-2"),
    symbols=("flash_fwd_", "flash_bwd_"),
)
FLASH_ATTENTION_2_VLLM = Implementation(
    "flash-attention-2-vllm",
    "FlashAttention-2 (CUDA), in vLLM's fork on pages",
    "github.com/vllm-project/flash-attention at 04325b67, csrc/flash_attn: flash_api.cpp",
    residency={"forward": (FORWARD,)},
    searched=PACKED,
    tiles=shipped_tiles("flash-attention-2-vllm", "flash2"),
    front_end=front_end("flash-attention-2-vllm"),
)
"""Keys in pages take the split-KV kernel, with one split but for one query."""

_T_c = ceiling(N_k / B_c)

ALGORITHM = Algorithm(
    name="flash2",
    title="FlashAttention-2",
    cite="Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, "
    "arXiv:2307.08691 (2023), Algorithms 1 and 2",
    declare=declare,
    backward=backward,
    options={"lse": True, "deterministic": False, "dq_buffers": 1, "accumulate": False},
    preference=3,
    replaces=("product softmax product",),
    triton_kernels={"forward": (), "block_sparse": ()},
    as_written=("two_statistics", "value_slabs"),
    saved={"lse": True},
    classes=frozenset({"exact", "exact-backward", "row-atomic", "row-atomic-backward", "fixed-split"}),
    implementations=(
        FLASH_ATTENTION_4,
        FLASH_ATTENTION_2,
        FLASH_ATTENTION_2_VLLM,
        FLASHINFER,
        XFORMERS,
        CUDNN_BLACKWELL,
        TRTLLM_GEN,
        WHOLE_TILES,
        TILED,
        SAGEATTENTION,
        AITER_ASSEMBLY,
        CK,
        TRITON_AMD,
        TRITON,
    ),
    execution={"forward": PIPELINED, "backward": PIPELINED},
    published=(
        Published(
            N_q * d + N_k * (d + d_v) * ceiling(N_q / B_r) + N_q * d_v + N_q,
            "arXiv:2307.08691, Algorithm 1, lines 4, 7, 14, 15: Q, O and L once, K and V once a query tile",
        ),
        Published(
            2 * N_q * d_v + 2 * N_k * (d + d_v) + 3 * N_q * d + N_q + N_q * (3 * d + d_v + 2) * _T_c,
            "arXiv:2307.08691, Algorithm 2 with an fp32 accumulator of dQ: O, dO, D; K, V, dK, dV once; Q, dO, L, D "
            "and a read and a write of dQ once a key tile; the accumulator zeroed, read and cast",
            direction="backward",
        ),
    ),
)
