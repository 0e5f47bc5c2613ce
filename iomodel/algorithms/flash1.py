"""FlashAttention (Dao, Fu, Ermon, Rudra, Re 2022, arXiv:2205.14135, Algorithms 1 and 4).

Key tiles outside, queries inside: per-query data pass through HBM once per key tile, O with its statistics l, m in the
forward pass, dQ in the backward pass.
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Integer, ceiling

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._gradients import stores, summed, zeros
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.nests.algorithm import Algorithm, Published
from iomodel.nests.execution import BARRIERS
from iomodel.nests.implementation import Implementation
from iomodel.nests.language import (
    Drop,
    Exp,
    Fill,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Loop,
    MatMul,
    Scores,
    Sink,
    Store,
    Tensor,
)
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import B_c, B_r, N_k, N_q, d, d_v, warps
from iomodel.nests.tensors import D, K, O, Q, S, V, depth, dK, dO, dP, dQ, dV, key, l, m, query, value

l_tile = Tensor("l_tile", (query,), "fp32")
m_tile = Tensor("m_tile", (query,), "fp32")


def declare() -> Iterator[Kernel]:
    """Declare lines 2 to 15 of Algorithm 1; line 11 computes two exponentials per row, which line 12 reuses."""
    yield Kernel("flash1", [
        Loop(query, B_r, [Sink(), Fill(O), Fill(l), Fill(m)]),
        Loop(key, B_c, [
            Live(query, [
                Load(K), Load(V),
                Loop(query, B_r, masked=True, body=[
                    Hold(O, "fp32"), Hold(S, "fp32"), Hold(l_tile), Hold(m_tile),
                    Load(Q), Load(O), Load(l), Load(m),
                    MatMul(query, key, depth), Scores(query, key),
                    Exp(query, key), Exp(query), Exp(query), Drop(query, key),
                    MatMul(query, value, key),
                    Store(O), Store(l), Store(m),
                ]),
            ]),
        ]),
    ])  # fmt: skip


def backward(begin_once: bool) -> Iterator[Kernel]:
    """Declare lines 5 to 24 of Algorithm 4; D_i = rowsum(dO_i o O_i), line 19, is recomputed at every visit.

    With `begin_once` the first visit of a query tile makes D_i, stores it and begins dQ_i; later ones load both.
    """
    begun = [Load(O, only_first=key), Load(dQ, after_first=key), Hold(D), Load(D, after_first=key)]
    kept = [Store(D, only_first=key)]
    yield Kernel("flash1 backward", [
        *([Loop(query, B_r, [Idle(key, [Fill(dQ)])])] if begin_once else [Fill(dQ), *zeros()]),
        Loop(key, B_c, [
            Live(query, [
                Hold(dK, "fp32"), Hold(dV, "fp32"),
                Load(K), Load(V),
                Loop(query, B_r, masked=True, body=[
                    Hold(dQ, "fp32"),
                    Load(Q), Load(dO), Load(l), Load(m),
                    *([*begun, *kept] if begin_once else [Load(O), Load(dQ)]),
                    Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key), Exp(query, key),
                    Drop(query, key), MatMul(key, value, query),
                    Hold(dP, "fp32"), MatMul(query, key, value),
                    MatMul(query, depth, key), Store(dQ),
                    MatMul(key, depth, query),
                ]),
                *stores(dK, dV),
            ]),
            *([Idle(query, [*zeros()])] if begin_once else []),
        ]),
    ])  # fmt: skip
    yield from summed()


_KERNELS = "github.com/HazyResearch/flash-attention at 2ed471ec, csrc/flash_attn/src"
_PARTS = (Shared(O, warps, "fp32"), Shared(l_tile, warps), Shared(m_tile, warps))
"""Buffers in which warps, each with other keys, sum their O and their statistics."""
_BEFORE = Shared(l_tile, Integer(2))
"""Statistics of the key tiles before."""
FORWARD = Residency(
    title="FlashAttention forward: V, then K, pass through one buffer to registers; partial sums of O meet there",
    cite=f"{_KERNELS}/fmha_fprop_kernel_1xN.h",
    shared=(Shared(Q, Integer(2)), Reused((Shared(V),), (Shared(K),), _PARTS), _BEFORE),
    phases=((Fragment(K, "io"), Fragment(V, "io"), Fragment(S), Fragment(O)),),
    overhead=24,
    split="columns",
    head_dims=(16, 32, 64, 128),
    capability=("8.0",),
)
K_IN_SHARED = replace(
    FORWARD,
    title="FlashAttention forward: V in registers, K in shared memory; partial sums of O meet beside it",
    shared=(Shared(Q, Integer(2)), Reused((Shared(V),), (Shared(K),)), *_PARTS, _BEFORE),
    phases=((Fragment(V, "io"), Fragment(S), Fragment(O)),),
    head_dims=(128,),
    sizes=((16,), (256,)),
)
_ROWS = (
    Shared(dO, Integer(2)),
    Shared(Q, Integer(2)),
    Shared(dQ, warps, "fp32"),
    Shared(S, dtype="io"),
    Shared(dP, dtype="io"),
)
V_IN_REGISTERS = Residency(
    title="FlashAttention backward: V in registers, K in shared memory; partial sums of dQ meet beside it",
    cite=f"{_KERNELS}/fmha_dgrad_kernel_1xN_loop.h",
    shared=(Reused((Shared(V),), (Shared(K),)), *_ROWS),
    phases=((Fragment(V, "io"), Fragment(S), Fragment(dP), Fragment(dK), Fragment(dV)),),
    overhead=24,
    warps=(8,),
    split="columns",
    head_dims=(16, 32, 64),
    capability=("8.0",),
)
BOTH_IN_SHARED = replace(
    V_IN_REGISTERS,
    title="FlashAttention backward: K and V in shared memory; partial sums of dQ meet beside them",
    cite=f"{_KERNELS}/fmha_dgrad_fp16_kernel_loop.sm80.cu",
    shared=(Shared(V), Shared(K), *_ROWS),
    phases=((Fragment(S), Fragment(dP), Fragment(dK), Fragment(dV)),),
    head_dims=(64,),
    sizes=((16,), (256,)),
    capability=("8.0",),
)
WIDE = replace(
    BOTH_IN_SHARED,
    title="FlashAttention backward, head dimension 128: K and V in shared memory; partial sums of dQ meet beside them",
    head_dims=(128,),
    sizes=((16,), (128,)),
)
TURING = tuple(
    replace(
        layout,
        title=f"{layout.title}; Turing, in fp16 alone",
        cite=f"{layout.cite}; csrc/flash_attn/fmha_api.cpp takes bf16 on devices of 8.0 and later",
        dtypes=("fp16",),
        capability=("7.5", "7.5"),
    )
    for layout in (FORWARD, K_IN_SHARED, V_IN_REGISTERS)
)
EXECUTION = replace(BARRIERS, serial=(key,))
"""The kernels of 2022: one block for each head."""
BY_QUERY = replace(
    BARRIERS,
    cite="github.com/Dao-AILab/flash-attention, v0.2.8 and later, csrc/flash_attn: blocks also divide the sequence, as "
    "benchmarked in arXiv:2307.08691, Figures 4 and 7",
)
"""The kernels of 2023: blocks also divide the sequence of a head."""
FLASH_ATTENTION_1 = Implementation(
    "flash-attention-1",
    "FlashAttention of 2022 (CUDA): one thread block per head",
    "github.com/HazyResearch/flash-attention at 2ed471ec, csrc/flash_attn",
    residency={
        "forward": (FORWARD, K_IN_SHARED, *TURING[:2]),
        "backward": (BOTH_IN_SHARED, V_IN_REGISTERS, WIDE, *TURING[2:]),
    },
    tiles=shipped_tiles("flash-attention-1", "flash1"),
    aliases=("fa1", "flash-attn-1", "flashattention-1"),
    front_end=front_end("flash-attention-1"),
)
FLASH_ATTENTION_1_2023 = replace(
    FLASH_ATTENTION_1,
    name="flash-attention-1-2023",
    title="FlashAttention of 2023 (CUDA): thread blocks also divide the sequence of a head",
    cite=BY_QUERY.cite,
    execution={"forward": BY_QUERY, "backward": BY_QUERY},
    tiles=shipped_tiles("flash-attention-1-2023", "flash1"),
    aliases=(),
)

_T_c = ceiling(N_k / B_c)

ALGORITHM = Algorithm(
    name="flash1",
    title="FlashAttention",
    cite="Dao, Fu, Ermon, Rudra and Re, FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness, "
    "arXiv:2205.14135 (2022), Algorithms 1 and 4",
    declare=declare,
    backward=backward,
    options={"begin_once": False},
    classes=frozenset({"exact", "exact-backward", "row-atomic", "row-atomic-backward", "fixed-split"}),
    implementations=(FLASH_ATTENTION_1, FLASH_ATTENTION_1_2023),
    execution={"forward": EXECUTION, "backward": EXECUTION},
    paper_share=4,  # Algorithm 1, line 1
    published=(
        Published(
            N_k * (d + d_v) + N_q * d_v + N_q * (d + 2 * d_v) * _T_c + N_q * (2 + 4 * _T_c),
            "arXiv:2205.14135, Algorithm 1: N d (3 + 3 T_c) + N (2 + 4 T_c) where N_q = N_k = N and d_v = d",
        ),
        Published(
            N_q * d + 3 * N_k * (d + d_v) + N_q * (3 * d + 2 * d_v + 2) * _T_c,
            "arXiv:2205.14135, Algorithm 4: N d (7 + 5 T_c) + 2 N T_c where N_q = N_k = N and d_v = d",
            direction="backward",
        ),
    ),
)
