"""Forward and backward passes of a micro-batch: the same kernels at two settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware
from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
from iomodel.planning.step.layer_parts import layer_parts
from iomodel.planning.step.links import all_gather, passed_on
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.span import Span
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear

Launched = Mapping[str, tuple[str, ...]]
EXCHANGE = "all-to-all"
"""Name of the parts in which ranks exchange the rows of experts."""
SUSTAINED = {"sm_80": {"bf16": 0.79}, "sm_90": {"bf16": 0.72, "fp8": 0.68}}
SUSTAINED |= {"sm_100": {"bf16": 0.62}, "sm_103": {"bf16": 0.59}}
"""Share of the matrix peak that long products of random numbers reach, by architecture [-]: power lowers the clock.
Medians of products with at least 2048 rows and 8192 channels, with bf16 weights of random numbers, in TensorRT-LLM and
SGLang on A100, on H100 and H200, on B200 and GB200, and on B300; in fp8 in TensorRT-LLM, which scales whole tensors as
Transformer Engine does, without the quantisation of rows (aiconfigurator 0.12.0, gemm_perf)."""
EXPERTS = FrozenDict({"bf16": 0.45, "fp16": 0.45, "fp8": 0.4, "int8": 0.4, "fp4": 0.35})
"""The same for the products of experts [-]: the median of all kernels but Triton's in three engines with 16,384 tokens
of DeepSeek-V3, Llama 4 and Qwen3 on H200, B200 and GB200 (the same tables, moe_perf); those of frameworks of training
are in no table."""
BY_SEQUENCE = ("add_norm", "norm", "embedding")
"""Kernels outside the tensor-parallel regions, whose rows sequence parallelism divides."""
UNFUSED = {"add_norm": ("gated_activation", "norm")}
"""Kernels of PyTorch for a fused one: a sum of two rows, which streams as much as a gated activation, and a norm."""
UNFUSED_BACKWARD = {"add_norm": ("gated_activation", "norm", "gated_activation")}
"""The same in backward passes: the gradient of a row from two rows, the sums of the gradients of gamma and beta, which
read both again, and the sum of the gradient with that of the residual."""
OPERATORS = {
    "gated_activation": ("activation", "gated_activation"),
    "rotary": ("gated_activation", "add_norm", "gated_activation"),
}
"""Operators of PyTorch for kernels that libraries have, each by a kernel that streams as much: SiLU, and its product;
rows in fp32, their complex products, and rows in 16 bits."""
OPERATORS_BACKWARD = {"gated_activation": ("gated_activation",) * 3, "rotary": OPERATORS["rotary"]}
"""The same in backward passes."""
RMS = ("gated_activation", "add_norm", "activation", "add_norm", "gated_activation", "activation")
"""The operators of an RMS norm, which has no kernel of its own in eager PyTorch: the row in fp32, its squares, their
mean, the scaled row, that row in 16 bits, its product with the weights: 36 bytes an element (torchtitan, `RMSNorm` of
torchtitan/models/norms.py at the release of its published rates)."""
RMS_BACKWARD = (*("gated_activation",) * 2, *("add_norm",) * 5, *("activation",) * 6)
"""The same in backward passes: 76 bytes an element."""
RING = "keys and values of other ranks"
"""Name of the parts in which ranks that divide a sequence exchange keys and values."""
SAVED = {"o": 1.0, "gate up": 0.5, "up": 0.0}
"""Shares of products that run again where PyTorch keeps every second one, in the order of q, k, v, o, gate, up and
down; of the first three k alone (`_save_list` of torchtitan/parallelisms/parallelize_llama.py).
"""
HAS_BACKWARD = ("gated_activation", "activation", "rotary")
"""Kernels with a declared backward pass; that of a norm streams four rows, as the norm with its sum does."""


@dataclass(frozen=True)
class Forward(StepSetting):
    """Settings of the forward kernels of a micro-batch, with sequence parallelism.

    `fused` is True if a norm adds the residual, and products their biases' gradients; else each is a kernel. With
    `operators` each operator of PyTorch is one, of which an RMS norm, `rms`, has several. `sequence_ranks` divide each
    sequence. `nodes_per_token` is the most nodes whose experts a token visits, if rows cross the network once for each.
    """

    absorbs: ClassVar[bool] = False
    serves: ClassVar[bool] = False
    fused: bool = True
    nodes_per_token: int | None = None
    operators: bool = False
    rms: bool = False
    sequence_ranks: int = 1

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time an elementwise kernel on the rows of this rank, as the kernels that the framework launches for it."""
        count = self.rows_of(kernel, rows)
        parts = [
            StepSetting.rowwise(self, name, launched, channels, others, count) for launched in self.launched(kernel)
        ]
        return name, parts[0][1], parts[0][2] if len(parts) == 1 else joined([span for _, _, span in parts])

    def exchanged(self, parts: list[Part], mlp: MLPLayer) -> Iterator[Part]:
        """Replace the exchange of rows by one that sends them once to each node, in fp8 to the experts at fp8."""
        layout, sizes = self.layout, [1 if self.linear_dtype == "fp8" else 2, 2]
        for part in parts:
            if part[0] != EXCHANGE or self.nodes_per_token is None:
                yield part
                continue
            row = sizes.pop(0) * self.tokens * (mlp.latent_size or self.hidden) // layout.tensor_parallel
            nodes = layout.nodes(layout.ranks)
            beside = layout.ranks // nodes
            inside = row * mlp.experts_per_token * (beside - 1) // beside
            between = row * min(nodes, self.nodes_per_token, mlp.experts_per_token) * (nodes - 1) // nodes
            yield *part[:2], passed_on(self.clock.device, inside, between, layout)

    def permuted(self, mlp: MLPLayer) -> Part:
        """Time the copy that puts the rows of tokens into the order of experts, as Megatron-LM's permutation does."""
        rows = self.tokens * mlp.experts_per_token // self.layout.tensor_parallel
        return StepSetting.rowwise(
            self, "rows in the order of experts", "norm", mlp.latent_size or self.hidden, rows=rows
        )

    def launched(self, kernel: str) -> tuple[str, ...]:
        """List the kernels that stand for one of the step."""
        return self.unfused(kernel, UNFUSED, OPERATORS, RMS)

    def unfused(self, kernel: str, kernels: Launched, operators: Launched, norm: tuple[str, ...]) -> tuple[str, ...]:
        """List the kernels, or the operators, for a fused one."""
        if self.fused:
            return (kernel,)
        listed = {**kernels, **(operators if self.operators else {})}.get(kernel, (kernel,))
        split = self.operators and self.rms
        return tuple(one for part in listed for one in (norm if split and part == "norm" else (part,)))

    def rows_of(self, kernel: str, rows: int | None) -> int:
        """Return the rows of a kernel on one rank [rows]."""
        tokens = self.tokens if rows is None else rows
        return -(-tokens // self.layout.tensor_parallel) if kernel in BY_SEQUENCE else tokens


@dataclass(frozen=True)
class Backward(Forward):
    """Settings of the backward kernels of the same micro-batch."""

    def product(self, name: str, *layers: Linear) -> Part:
        """Time the gradients of the rows and of the weights of linear layers as one part."""
        gradients = []
        for layer in layers:
            rows, wide, narrow = layer.rows, layer.out_features, layer.in_features
            for shape in ((rows, wide, narrow), (narrow, rows, wide)):
                wide_type = layer.dtype == self.dtype and layer.groups == 1  # as the output layer is at any precision
                gradient = self.wide(*shape) if wide_type else self.linear(*shape, groups=layer.groups)
                gradients.append(super().product(name, gradient)[2])
            if layer.bias and not self.fused:
                half = -(-wide // 2)  # a sum over rows reads what a norm of half as many channels reads and writes
                gradients.append(StepSetting.rowwise(self, name, "norm", half, rows=rows)[2])
        return name, "linear", joined(gradients)

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time the backward pass of an elementwise kernel."""
        if kernel == "combine_experts":  # reads a row and writes those of the experts: as many rows as it reads forward
            return StepSetting.rowwise(self, name, kernel, channels, others, rows)
        if not self.fused and self.operators and kernel in OPERATORS_BACKWARD:
            return super().rowwise(name, kernel, channels, others, rows)
        if kernel not in HAS_BACKWARD:
            return super().rowwise(name, "embedding" if kernel == "embedding" else "add_norm", channels, others, rows)
        shape = Elementwise(
            rows=self.rows_of(kernel, rows), channels=channels, others=others, dtype=self.dtype, direction="backward"
        )
        return name, "other", self.clock.elementwise(kernel, shape)

    def launched(self, kernel: str) -> tuple[str, ...]:
        """List the kernels that stand for the backward pass of one of the step."""
        return self.unfused(kernel, UNFUSED_BACKWARD, OPERATORS_BACKWARD, RMS_BACKWARD)

    def joined_gradients(self, layer: DecoderLayer) -> Iterator[Part]:
        """Time the copy that joins the gradients of q, k and v, which one product made."""
        attention = layer.attention
        if attention is not None:
            heads = attention.heads + 2 * max(attention.kv_heads, self.layout.tensor_parallel)
            width = -(-heads * attention.head_dim // self.layout.tensor_parallel)
            yield StepSetting.rowwise(self, "join the gradients of q, k and v", "norm", width)


@per_device
def training_clock(device: Hardware, parameters: Parameters = DEFAULT) -> LayerClock:
    """Return the timer of a device with the rates of long products that it sustains."""
    shares = FrozenDict(SUSTAINED.get(device.architecture or "", {}))
    return LayerClock(device, parameters, shares, EXPERTS, engines=True)


def joined(spans: Sequence[Span]) -> Span:
    """Combine spans in sequence into one.

    >>> joined([Span(1.0, 2, 3, 4, (("hbm", 1.0),)), Span(1.0, 2, 3, 4, (("hbm", 1.0),))])
    Span(seconds=2.0, hbm_bytes=4, requested_bytes=6, flops=8, breakdown=(('hbm', 2.0),), tiles=(), sent_bytes=0)
    """
    times: dict[str, float] = {}
    for span in spans:
        for name, seconds in span.breakdown:
            times[name] = times.get(name, 0.0) + seconds
    return Span(
        sum(span.seconds for span in spans),
        sum(span.hbm_bytes for span in spans),
        sum(span.requested_bytes for span in spans),
        sum(span.flops for span in spans),
        tuple(times.items()),
    )


def pass_of_layer(layer: DecoderLayer, at: Forward) -> list[Part]:
    """List the kernels of a layer in training, which has no cache."""
    parts = [part for part in layer_parts(layer, at) if part[0] != "append to the cache"]
    if at.sequence_ranks > 1:
        parts = [*_of_sequence(layer, at, parts)]
    if layer.mlp is not None and layer.mlp.experts:
        parts = [*at.exchanged(parts, layer.mlp), at.permuted(layer.mlp)]
    return [*parts, *at.joined_gradients(layer)] if isinstance(at, Backward) else parts


def _of_sequence(layer: DecoderLayer, at: Forward, parts: list[Part]) -> Iterator[Part]:
    """Replace attention by a share of that of the whole sequence, whose ranks exchange keys and values.

    Ranks hold pieces from both ends of the sequence, so that each sees as many pairs (Megatron-LM and torchtitan divide
    it so). Backward passes exchange keys and values again, and their gradients.
    """
    ranks, attention = at.sequence_ranks, layer.attention
    whole = replace(at, q_len=at.q_len * ranks, kv_len=at.kv_len * ranks, sequence_ranks=1)
    spans = iter([span for _, kind, span in layer_parts(layer, whole) if kind == "attention"])
    for name, kind, span in parts:
        yield (name, kind, scaled(next(spans), 1 / ranks) if kind == "attention" else span)
    if attention is not None:
        heads = -(-attention.kv_heads // at.layout.tensor_parallel)
        size = at.tokens * heads * (attention.head_dim + attention.value_dim) * ELEMENT_SIZE[at.dtype]
        gathered = all_gather(at.clock.device, ranks, size, at.layout)
        yield RING, "communication", scaled(gathered, 2.0) if isinstance(at, Backward) else gathered


def recomputed(parts: list[Part], recompute: str, layer: DecoderLayer) -> list[Part]:
    """List the kernels of a layer that backward passes run again.

    PyTorch's checkpoint without reentry stops as soon as it has computed all that was kept (`torch.utils.checkpoint`,
    `set_checkpoint_early_stop`): the last product and what follows it do not run. Where every second product is kept,
    with attention and sums over ranks, the others run, and all elementwise kernels.
    """
    if recompute == "none":
        return []
    if recompute == "full":
        return list(parts)
    if recompute == "attention":
        return [part for part in parts if part[1] == "attention" or part[0] == RING]
    last = max(place for place, part in enumerate(parts) if part[1] == "linear")
    if recompute == "early-stop":
        return parts[:last]
    attention = layer.attention
    heads = 1 if attention is None else attention.heads + 2 * attention.kv_heads
    shares = {**SAVED, "q k v": (0 if attention is None else attention.kv_heads) / heads}
    return [
        (name, kind, scaled(span, shares.get(name, 1.0)) if kind == "linear" else span)
        for name, kind, span in parts[:last]
        if kind not in ("attention", "communication")
    ]


def scaled(span: Span, share: float) -> Span:
    """Return a share of a span.

    >>> scaled(Span(2.0, 4, 4, 8, (("hbm", 2.0),)), 0.5).seconds
    1.0
    """
    return Span(
        share * span.seconds,
        round(share * span.hbm_bytes),
        round(share * span.requested_bytes),
        round(share * span.flops),
        tuple((name, share * time) for name, time in span.breakdown),
    )


def loss_parts(vocabulary: int, at: Forward) -> Iterator[Part]:
    """List the last norm, the output layer on every token, and the loss, on one rank."""
    width = -(-vocabulary // at.layout.tensor_parallel)
    yield at.rowwise("norm of the last layer", "add_norm", at.hidden)
    yield at.product("output", at.wide(at.tokens, at.hidden, width))
    yield at.rowwise("loss", "activation", width)
