"""Kernels of one decoder layer on one rank with their times, in the launch order of a serving engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
from iomodel.planning.step.attention_parts import attention_parts
from iomodel.planning.step.expert_loads import (
    TokensPerExpert,
    approximate_experts_hit,
    approximate_skew,
    approximate_tokens_per_expert,
    busiest,
)
from iomodel.planning.step.layout import mlp_linears
from iomodel.planning.step.links import all_to_all, on_bus
from iomodel.planning.step.recurrent_parts import recurrent_parts
from iomodel.planning.step.setting import Part, StepSetting, stored
from iomodel.planning.step.streamed import streamed
from iomodel.timing.span import Span
from iomodel.workloads.call import ELEMENT_SIZE


def layer_parts(layer: DecoderLayer, at: StepSetting) -> Iterator[Part]:
    """List the kernels of a layer in order."""
    mixes = layer.attention is not None or layer.recurrent is not None
    if mixes:
        yield at.rowwise("norm", "add_norm", at.hidden)
    if layer.attention is not None:
        yield from attention_parts(layer, layer.attention, at)
    if layer.recurrent is not None:
        yield from recurrent_parts(layer, layer.recurrent, at)
    if mixes:
        yield from at.reduced("all-reduce")
    if layer.mlp is not None:
        yield at.rowwise("norm", "add_norm", at.hidden)
    for _ in range(layer.norms - mixes - (layer.mlp is not None)):
        yield at.rowwise("norm of an output", "norm", at.hidden)
    if layer.mlp is not None:
        yield from (_experts if layer.mlp.experts else _dense)(layer, layer.mlp, at)
        yield from at.reduced("all-reduce")
    for side in layer.side:
        linear = at.linear(at.tokens, side.in_features, side.out_features)
        # Streams between layers (mHC, AltUp) are read and written as a whole when they are mixed.
        mixed = {"stream mix": side.in_features, "altup router": side.in_features * side.out_features}.get(side.name)
        for _ in range(side.times):
            yield at.product(side.name, linear)
            if mixed is not None:
                yield at.rowwise("mix of the streams", "norm", mixed)


def _dense(layer: DecoderLayer, mlp: MLPLayer, at: StepSetting) -> Iterator[Part]:
    linears = {linear.name: linear for linear in mlp_linears(mlp, at.hidden, at.layout)}
    width = linears["up"].out_features
    yield from at.quantised_by_block("quantise for the MLP", at.type_of(layer, "up"), at.hidden)
    yield from _two_layers(at, mlp, "", at.tokens, [(at.tokens, 1)], at.hidden, width, at.type_of(layer, "up"))
    yield from at.adapted([linear for name, linear in linears.items() if name != "down"])
    yield from at.adapted([linears["down"]])


def _experts(layer: DecoderLayer, mlp: MLPLayer, at: StepSetting) -> Iterator[Part]:
    layout = at.layout
    yield at.product("router", at.wide(at.tokens, at.hidden, mlp.routes))
    yield at.rowwise("choose experts", "activation", mlp.routes)  # topk_softmax or moe_fused_gate
    yield at.rowwise("count tokens of experts", "activation", mlp.experts_per_token)
    row = mlp.latent_size or at.hidden
    for name, width_in, width_out in mlp.latent_projections(at.hidden)[:1]:
        yield at.product(name, at.linear(at.tokens, width_in, width_out, weight_dtype=at.type_of(layer, name)))
    tokens = at.tokens * layout.data_parallel
    expert_groups: TokensPerExpert
    skew = 1.0
    if at.routing is None:
        copies = layout.redundant_experts
        skew = approximate_skew(mlp.experts, tokens, layout.expert_parallel, copies)
        expert_groups = approximate_tokens_per_expert(
            mlp.experts + copies, mlp.experts_per_token, round(skew * tokens), layout.expert_parallel
        )
    else:
        expert_groups = busiest(at.routing, layout.expert_parallel, layout.redundant_experts)
    weights = at.type_of(layer, "expert up")
    yield from at.quantised("quantise for experts", weights, row)
    there, back = exchanges(mlp, at, weights, skew * row) if layout.data_parallel > 1 else (None, None)
    if there is not None:
        yield "all-to-all", "communication", there
    rows = sum(tokens_each * count for tokens_each, count in expert_groups)
    if rows:
        if at.serves:
            yield from ordered(mlp, at, rows, weights)
        width = mlp.expert_intermediate_size // layout.expert_width
        yield from _two_layers(at, mlp, "expert ", rows, expert_groups, row, width, weights)
    if back is not None:
        yield "all-to-all", "communication", back
    yield at.rowwise("add up experts", "combine_experts", row, mlp.experts_per_token)
    for name, width_in, width_out in mlp.latent_projections(at.hidden)[1:]:
        yield at.product(name, at.linear(at.tokens, width_in, width_out, weight_dtype=at.type_of(layer, name)))
    if mlp.shared_experts:
        # SGLang adds them to the routed experts (pull request 4918); vLLM and TensorRT-LLM use a second stream.
        yield from at.beside(_shared(layer, mlp, at))


def exchanges(mlp: MLPLayer, at: StepSetting, weights: str, row: float) -> tuple[Span, Span]:
    """Time the exchange of rows before the products of experts, and that of their results; `row` has as many elements.

    Between cards on a bus, engines send a token once to each rank that has one or more of its experts, in the type of
    the products. Over links the kernels of 2025 take the time of a row for each expert in 16 bits: DeepEP and
    TensorRT-LLM's send 130 to 430 GB/s of the rows without copies, and a dispatch in nvfp4 among eight B200 takes 3.3
    ms where one in bf16 takes 3.6 (aiconfigurator 0.12.0, moe_a2a_perf and trtllm_alltoall_perf, 16,384 tokens).
    """
    layout, device = at.layout, at.clock.device
    copies: float = mlp.experts_per_token
    sizes: list[float] = [ELEMENT_SIZE[at.dtype]] * 2
    if at.serves and on_bus(device):
        copies = approximate_experts_hit(layout.expert_parallel, 1, mlp.experts_per_token)
        sizes[0] = at.product_size(weights)
    elements = at.tokens / layout.tensor_parallel * copies * row
    there, back = (all_to_all(device, layout.ranks, round(elements * size), layout) for size in sizes)
    return there, back


def _shared(layer: DecoderLayer, mlp: MLPLayer, at: StepSetting) -> Iterator[Part]:
    """List the kernels of the experts that every token visits."""
    width = mlp.shared_experts * (-(-mlp.shared_intermediate_size // at.layout.tensor_parallel))
    dtype = at.type_of(layer, "shared up")
    yield from at.quantised_by_block("quantise for shared experts", dtype, at.hidden)
    yield from _two_layers(at, mlp, "shared ", at.tokens, [(at.tokens, 1)], at.hidden, width, dtype)
    if mlp.shared_gate:
        yield at.product("shared router", at.wide(at.tokens, at.hidden, 1))


def _two_layers(
    at: StepSetting,
    mlp: MLPLayer,
    prefix: str,
    rows: int,
    expert_groups: Sequence[tuple[int, int]],
    row: int,
    width: int,
    dtype: str,
) -> Iterator[Part]:
    """Time up and down projections, of one MLP or all experts of a rank, with the activation in between."""
    wide = 2 * width if mlp.gated else width
    up = [
        at.linear(tokens_each, row, wide, groups=count, bias=mlp.bias, weight_dtype=dtype)
        for tokens_each, count in expert_groups
    ]
    down = [
        at.linear(tokens_each, width, row, groups=count, bias=mlp.bias, weight_dtype=dtype)
        for tokens_each, count in expert_groups
    ]
    yield at.product(prefix + ("gate up" if mlp.gated else "up"), *up)
    if prefix != "expert " or not at.fuses_rows(dtype):
        activation = "gated_activation" if mlp.gated else "activation"
        between = [at.rowwise(f"{prefix}activation", activation, width, rows=rows)]
        between += at.quantised_by_block(f"quantise for {prefix}down", dtype, width, rows)
        yield from row_by_row(at, dtype, rows, between) if prefix == "expert " else between
    yield at.product(f"{prefix}down", *down)


def row_by_row(at: StepSetting, weights: str, rows: int, parts: Iterable[Part]) -> Iterator[Part]:
    """Give each kernel on rows of experts the time of its rows where blocks take them one by one."""
    least = rows * ROW if at.has_fused(weights) and not at.fuses_rows(weights) else 0.0
    for name, kind, span in parts:
        yield name, kind, replace(span, seconds=max(span.seconds, least))


CONVERTED_LAYER = 40e-6
"""Time of the small kernels that gather, scatter and quantise rows around experts whose weights are converted [s]:
decode steps of gpt-oss 120B under TensorRT-LLM on one to eight H200 take 30 to 50 us more for each layer, at 4 to 64
requests alike (the open rows of tests/measured/serving_more.csv); on a B200, which multiplies such weights, none."""
ROW = 2.5e-9
"""Time of a row in each kernel that copies, activates or quantises rows of experts in nvfp4 one by one [s]: what is
left of layers of 256 tokens and more on a GB200 besides their products, the working rows of tests/measured/experts.csv
under TensorRT-LLM's CUTLASS kernels, is 9 ns for each row, whatever its width."""
BLOCK = 4096
"""Bytes that a block of the copy moves [B]: 16 for each of 256 threads."""


def ordered(mlp: MLPLayer, at: StepSetting, rows: int, weights: str) -> Iterator[Part]:
    """Time the kernels between the choice of experts and their products, which have `rows` rows on a rank.

    Two kernels count and sort the tokens of experts (moe_align_block_size of vLLM and SGLang; buildExpertMaps of
    TensorRT-LLM has one up to 256 tokens and three for more), one sets the offsets of the grouped products, and one
    copies the rows (expandInputRows of cpp/tensorrt_llm/kernels/cutlass_kernels/moe_gemm/moe_kernels.cu, which
    FlashInfer has too). Without the second, the third and the fourth, layers of Qwen3 235B and DeepSeek-V3 on one of
    eight H100, H200 and B200 took 10 to 60 us longer than predicted with 64 to 512 tokens (CUTLASS kernels of
    TensorRT-LLM in bf16 and fp8, aiconfigurator 0.12.0, moe_perf).

    A rank of several groups received each of its rows; one of a single group copies those of its tokens. Kernels that
    fuse the work on rows gather them for their first product.
    """
    tokens = min(rows, at.tokens) if at.layout.data_parallel == 1 else rows
    if at.converts(stored(weights)[0]) and not at.in_triton(stored(weights)[0]):
        launches = (("launch", CONVERTED_LAYER),)
        yield "kernels around experts of converted weights", "other", Span(CONVERTED_LAYER, 0, 0, 0, launches)
    yield at.rowwise("sort tokens by expert", "activation", mlp.experts_per_token)
    yield at.rowwise("offsets of experts", "activation", 1, rows=mlp.experts)
    row = (mlp.latent_size or at.hidden) * at.product_size(weights)
    sizes = {"tokens": ceil(tokens * row), "rows": ceil(rows * row)}
    name = "rows in the order of experts"
    if not at.fuses_rows(weights):
        copied = streamed(at, name, sizes, 0, ceil(sizes["rows"] / BLOCK), matrix=False)
        yield from row_by_row(at, weights, rows, [(name, "other", copied)])
