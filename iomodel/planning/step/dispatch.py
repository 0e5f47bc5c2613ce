"""Kernels that put the rows of tokens into the order of their experts, as serving engines launch them.

Two kernels count and sort the tokens of experts (moe_align_block_size of vLLM and SGLang; buildExpertMaps of
TensorRT-LLM has one up to 256 tokens and three for more), one sets the offsets of the grouped products, and one copies
the rows (expandInputRows of cpp/tensorrt_llm/kernels/cutlass_kernels/moe_gemm/moe_kernels.cu, which FlashInfer has
too). Without the second, the third and the fourth, layers of Qwen3 235B and DeepSeek-V3 on one of eight H100, H200 and
B200 took 10 to 60 us longer than predicted with 64 to 512 tokens (CUTLASS kernels of TensorRT-LLM in bf16 and fp8,
aiconfigurator 0.12.0, moe_perf).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from iomodel.models.layers import MLP
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.planning.step.streamed import streamed

BLOCK = 4096
"""Bytes that a block of the copy moves [B]: 16 for each of 256 threads."""


def ordered(mlp: MLP, at: StepSetting, rows: int, weights: str) -> Iterator[Part]:
    """Time the kernels between the choice of experts and their products, which have `rows` rows on a rank.

    A rank of several groups received each of its rows; one of a single group copies those of its tokens.
    """
    tokens = min(rows, at.tokens) if at.layout.data_parallel == 1 else rows
    yield at.rowwise("sort tokens by expert", "activation", mlp.experts_per_token)
    yield at.rowwise("offsets of experts", "activation", 1, rows=mlp.experts)
    row = (mlp.latent_size or at.hidden) * at.product_size(weights)
    sizes = {"tokens": ceil(tokens * row), "rows": ceil(rows * row)}
    name = "rows in the order of experts"
    yield name, "other", streamed(at, name, sizes, 0, ceil(sizes["rows"] / BLOCK), matrix=False)
