"""Split-KV attention, or flash-decoding: keys are split among thread blocks, and a second kernel combines the parts.

The partial outputs are fp32. FlashAttention-2 (Dao 2023, arXiv:2307.08691) on each part; the combination is that of
Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference (PyTorch blog, 2023).
"""

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr, Min, ceiling

from iomodel.algorithms._aiter_residency import AITER_GLUON
from iomodel.algorithms._flash3_residency import FORWARD as FLASH3
from iomodel.algorithms._flash3_residency import PAGED
from iomodel.algorithms._flash4_residency import FLASH_ATTENTION_4 as FLASH4
from iomodel.algorithms._flash4_residency import GENERATED_DECODE, IN_SECTIONS, SPLIT_FORWARD
from iomodel.algorithms._flash4_residency import TRTLLM_GEN as GENERATED
from iomodel.algorithms._flashinfer_residency import FLASHINFER_SPLIT
from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._latent_residency import AITER_MLA, CUTLASS_MLA, FLASHMLA, TRITON_MLA
from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.algorithms.flash2 import FORWARD
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.execution import PIPELINED
from iomodel.nests.implementation import Implementation
from iomodel.nests.language import (
    Axis,
    Drop,
    Exp,
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
    Tensor,
    When,
)
from iomodel.nests.symbols import ONE, B_c, B_r, N_k, N_q, d, d_v, s
from iomodel.nests.tensors import (
    LSE,
    K,
    LSE_acc,
    O,
    O_acc,
    Q,
    S,
    V,
    depth,
    filled,
    key,
    l,
    l_acc,
    m,
    m_acc,
    query,
    split,
    value,
)


def declare(
    splits: Expr, lse: bool, two_statistics: bool, drop_empty_splits: bool, combine_one_split: bool
) -> Iterator[Kernel]:
    """Divide whole key tiles among splits; a split without tiles still writes a partial result of zero."""
    assert split.length == splits
    many = ONE if combine_one_split else Min(1, splits - 1)
    partial: list[Statement] = [Store(m_acc, held=m), Store(l_acc, held=l)] if two_statistics else [Store(LSE_acc, m)]
    stores = [Store(O_acc, held=O), *partial]
    yield Kernel("flash2 on each split", [
        Loop(query, B_r, [
            Hold(O, "fp32"), Hold(l), Hold(m),
            Loop(split, ONE, [
                Live(key, [
                    Load(Q),
                    Loop(key, B_c, masked=True, body=[
                        Load(K), Load(V),
                        Hold(S, "fp32"), MatMul(query, key, depth), Scores(query, key),
                        Exp(query, key), Exp(query), Drop(query, key),
                        MatMul(query, value, key),
                    ]),
                ]),
                When(many, [Live(split, stores)] if drop_empty_splits else stores),
            ]),
            When(many, unless=True, body=[Sink(query), Store(O), *([Store(LSE, held=m)] if lse else [])]),
        ]),
    ])  # fmt: skip
    parts = filled if drop_empty_splits else split
    whole = (m_acc, l_acc) if two_statistics else (LSE_acc,)
    statistics = [_of(tensor, parts) for tensor in whole]
    yield Kernel("combine", [
        When(many, [
            Loop(query, ONE, [
                *map(Load, statistics), Exp(parts, query), Hold(O, "fp32"),
                Loop(parts, ONE, [Load(_of(O_acc, parts))]),
                Sink(query), Store(O), *([Store(LSE, held=statistics[0])] if lse else []),
            ]),
        ]),
    ])  # fmt: skip


def _of(partial: Tensor, parts: Axis) -> Tensor:
    """Return the partial results of the splits that have any, as a view of those of all splits."""
    return partial if parts == split else replace(partial, axes=(parts, *partial.axes[1:]), inside=True)


FLASH_ATTENTION_2 = Implementation(
    "flash-attention-2",
    "FlashAttention-2 (CUDA), split-KV",
    "github.com/Dao-AILab/flash-attention, csrc/flash_attn: flash_fwd_kernel.h, flash_api.cpp",
    residency={"forward": (FORWARD,)},
    execution={"forward": replace(PIPELINED, spread=(split,), part_clocks=450)},
    searched={"splits": SPLITS, "packed": (False, True)},
    tiles=shipped_tiles("flash-attention-2", "split_kv"),
    front_end=front_end("flash-attention-2"),
)
"""A block of the combination loads the partial results of its rows one after the other: one query on 1,024 to 131,072
keys at head dimension 128, working rows of tests/measured/gpu/h200-sxm.jsonl.gz."""
FLASH_ATTENTION_2_2023 = replace(
    FLASH_ATTENTION_2,
    name="flash-attention-2-2023",
    title="FlashAttention-2 (CUDA), split-KV, as launched until April 2024: splits for one block on an SM",
    tiles=shipped_tiles("flash-attention-2-2023", "split_kv"),
    superseded=True,
    front_end=front_end("flash-attention-2-2023"),
)
FLASH_ATTENTION_2_VLLM = replace(
    FLASH_ATTENTION_2,
    name="flash-attention-2-vllm",
    title="FlashAttention-2 (CUDA), split-KV, in vLLM's fork on pages",
    cite="github.com/vllm-project/flash-attention at 04325b67, csrc/flash_attn: flash_fwd_kernel.h, flash_api.cpp",
    tiles=shipped_tiles("flash-attention-2-vllm", "split_kv"),
    front_end=front_end("flash-attention-2-vllm"),
)
FLASH_ATTENTION_3 = Implementation(
    "flash-attention-3",
    "FlashAttention-3 (CUDA, Hopper), split-KV",
    "github.com/Dao-AILab/flash-attention, hopper: flash_fwd_combine_kernel.h, heuristics.h",
    residency={"forward": tuple(layout for layout in FLASH3 if layout.capability == ("9.0", "9.0"))},
    execution={"forward": replace(PIPELINED, spread=(split,), dependent=True, paged_clocks=PAGED)},
    searched=FLASH_ATTENTION_2.searched,
    tiles=shipped_tiles("flash-attention-3", "split_kv"),
    front_end=front_end("flash-attention-3"),
)
"""The combination is launched dependently (hopper/flash_fwd_combine_launch_template.h). A page that is no multiple of
the key tile takes 16-byte copies with an address for each row (pagedkv_tma in hopper/flash_api.cpp)."""
FLASH_ATTENTION_4 = Implementation(
    "flash-attention-4",
    "FlashAttention-4 (CuTe, Blackwell), split-KV",
    f"{FLASH4.cite}: flash_fwd_sm100.py, flash_fwd_combine.py; github.com/Dao-AILab/flash-attention/pull/1940",
    residency={"forward": SPLIT_FORWARD},
    execution={"forward": replace(IN_SECTIONS, spread=(split,))},
    searched=FLASH_ATTENTION_2.searched,
    tiles=shipped_tiles("flash-attention-4", "split_kv"),
    front_end=front_end("flash-attention-4"),
)
TRTLLM_GEN = replace(
    GENERATED,
    name="trtllm-gen-decode",
    title="attention of TensorRT-LLM and FlashInfer (trtllm-gen, closed, Blackwell), split-KV",
    residency={"forward": GENERATED_DECODE},
    execution={
        "forward": replace(
            PIPELINED,
            cite=f"{PIPELINED.cite}; github.com/NVIDIA/TensorRT-LLM at 01c84c67, fmhaKernels.h: the blocks of a "
            "cluster of up to 16 add up their parts in shared memory",
            spread=(split,),
            dependent=True,
            start_clocks=IN_SECTIONS.start_clocks,
        )
    },
    searched=FLASH_ATTENTION_2.searched,
    tiles=shipped_tiles("trtllm-gen-decode", "split_kv"),
    aliases=("trtllm-gen",),
    front_end=front_end("trtllm-gen-decode"),
)

_T_c = ceiling(N_k / B_c)
_many = Min(1, s - 1)

ALGORITHM = Algorithm(
    name="split_kv",
    title="Split-KV attention",
    cite="Dao, Haziza, Massa and Sizov, Flash-Decoding for long-context inference (PyTorch blog, 2023); each split as "
    "in FlashAttention-2, arXiv:2307.08691 (2023), Algorithm 1",
    declare=declare,
    options={"splits": 1, "lse": True},
    preference=2,
    triton_kernels={"decode": (), "decode_paged": (), "latent_decode": ()},
    as_written=("two_statistics", "drop_empty_splits", "combine_one_split"),
    requires=(
        Requirement.at_most(s, "splits", ceiling(N_k / B_c), "up to {most}, the tiles of {block_kv} keys in {kv_len}"),
    ),
    classes=frozenset({"exact", "row-atomic", "fixed-split"}),
    implementations=(
        FLASHMLA,
        CUTLASS_MLA,
        FLASH_ATTENTION_3,
        FLASH_ATTENTION_4,
        TRTLLM_GEN,
        FLASH_ATTENTION_2,
        FLASH_ATTENTION_2_VLLM,
        FLASHINFER_SPLIT,
        TRITON_MLA,
        AITER_MLA,
        AITER_GLUON,
        FLASH_ATTENTION_2_2023,
    ),
    execution={"forward": replace(PIPELINED, spread=(split,))},
    searched={"splits": SPLITS},
    published=(
        Published(
            N_q * d * ceiling(N_k / (B_c * ceiling(_T_c / s)))
            + N_k * (d + d_v) * ceiling(N_q / B_r)
            + 2 * _many * s * N_q * (d_v + 1)
            + N_q * (d_v + 1),
            "by hand: Q once a split that has keys, K and V once a query tile, the partial O and LSE of every split "
            "written and read, O and LSE once",
        ),
    ),
)
