"""Kernels of one decoder layer on one rank with their times, in the launch order of a serving engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iomodel.errors import InfeasibleError
from iomodel.models.attention import AttentionLayer
from iomodel.models.layers import MLP, DecoderLayer
from iomodel.planning.step.attention import AttentionClock
from iomodel.planning.step.experts import TokensPerExpert, approximate_tokens_per_expert, busiest
from iomodel.planning.step.layout import Layout, LinearLayer, attention_linears, mlp_linears
from iomodel.planning.step.links import all_reduce, all_to_all
from iomodel.planning.step.result import Kind
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.span import Span
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear

Part = tuple[str, Kind, Span]


@dataclass(frozen=True)
class StepSetting:
    """Common settings of the kernels of all layers; `batch` is that of one group of ranks."""

    clock: LayerClock
    attention: AttentionClock
    layout: Layout
    hidden: int
    batch: int
    q_len: int
    kv_len: int
    dtype: str
    linear_dtype: str
    weight_dtype: str
    expert_dtype: str
    kv_dtype: str
    page_size: int | None
    routing: Sequence[int] | None

    @property
    def tokens(self) -> int:
        """Number of rows of the activations [rows]."""
        return self.batch * self.q_len

    def linear(self, rows: int, width_in: int, width_out: int, *, groups: int = 1, bias: bool = False) -> Linear:
        """Build a linear layer with quantised weights."""
        return Linear(
            rows=rows,
            in_features=width_in,
            out_features=width_out,
            groups=groups,
            bias=bias,
            dtype=self.linear_dtype,
            weight_dtype=self.weight_dtype,
            out_dtype=self.dtype,
        )

    def wide(self, rows: int, width_in: int, width_out: int) -> Linear:
        """Build a linear layer that is never quantised: a router, or the output layer."""
        return Linear(rows=rows, in_features=width_in, out_features=width_out, dtype=self.dtype)

    def product(self, name: str, *layers: Linear) -> Part:
        """Time linear layers as one part."""
        return name, "linear", self.clock.linear(*layers)

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time an elementwise kernel as one part."""
        tokens = self.tokens if rows is None else rows
        shape = Elementwise(rows=tokens, channels=channels, others=others, dtype=self.dtype, kv_dtype=self.kv_dtype)
        return name, "other", self.clock.elementwise(kernel, shape)

    def reduced(self, name: str) -> Iterator[Part]:
        """Time the sum of a row-parallel layer over its ranks."""
        if self.layout.tensor_parallel > 1:
            size = self.tokens * self.hidden * ELEMENT_SIZE[self.dtype]
            yield name, "communication", all_reduce(self.clock.device, self.layout.tensor_parallel, size)


def layer_parts(layer: DecoderLayer, at: StepSetting) -> Iterator[Part]:
    """List the kernels of a layer in order."""
    yield at.rowwise("norm", "add_norm", at.hidden)
    yield from _attention(layer.attention, at)
    yield from at.reduced("all-reduce")
    yield at.rowwise("norm", "add_norm", at.hidden)
    for _ in range(layer.norms - 2):
        yield at.rowwise("norm of an output", "norm", at.hidden)
    if layer.mlp.experts:
        yield from _experts(layer.mlp, at)
    else:
        yield from _dense(layer.mlp, at)
    yield from at.reduced("all-reduce")


def _attention(layer: AttentionLayer, at: StepSetting) -> Iterator[Part]:
    linears = {linear.name: linear for linear in attention_linears(layer, at.hidden, at.layout)}
    first = [linear for name, linear in linears.items() if name in ("q", "k", "v", "q_a", "kv_a")]
    names = " ".join(linear.name for linear in first)
    outputs = sum(linear.out_features for linear in first)
    yield at.product(names, at.linear(at.tokens, at.hidden, outputs, bias=layer.qkv_bias))
    ranks = at.layout.tensor_parallel
    heads = layer.heads // ranks
    if layer.kv_lora_rank is not None and layer.rope_dim is not None:
        yield at.rowwise("norm of the latent", "norm", layer.kv_lora_rank)
        if layer.q_lora_rank is not None:
            yield at.rowwise("norm of the latent of q", "norm", layer.q_lora_rank)
            yield _single(at, linears["q_b"])
        yield at.rowwise("rotary", "rotary", (heads + 1) * layer.rope_dim, layer.rope_dim)
        yield at.rowwise("append to the cache", "append_latent", layer.kv_lora_rank + layer.rope_dim)
        yield from _latent(layer, at, linears["kv_b"], heads)
    else:
        kv_heads = max(1, layer.kv_heads // ranks)
        both = (heads + kv_heads) * layer.head_dim
        if layer.qk_norm:
            yield at.rowwise("norm of q and k", "norm", both)
        if layer.rope:
            yield at.rowwise("rotary", "rotary", both, layer.head_dim)
        yield at.rowwise("append to the cache", "append", kv_heads * layer.head_dim, kv_heads * layer.value_dim)
        call = layer.call(at.batch, at.q_len, at.kv_len, at.dtype, at.kv_dtype, at.page_size)  # type: ignore[arg-type]
        name, span = at.attention.fastest(call.shard(ranks))
        yield f"attention ({name})", "attention", span
    yield _single(at, linears["o"], layer.o_bias)


def _single(at: StepSetting, linear: LinearLayer, bias: bool = False) -> Part:
    return at.product(linear.name, at.linear(at.tokens, linear.in_features, linear.out_features, bias=bias))


def _seconds(parts: Sequence[Part]) -> float:
    return sum(span.seconds for _, _, span in parts)


def _latent(layer: AttentionLayer, at: StepSetting, kv_b: LinearLayer, heads: int) -> list[Part]:
    """Choose the faster form of MLA; a prefill falls back to the expanded form if the absorbed one does not fit."""
    expanded = list(_expanded(layer, at, kv_b))
    try:
        absorbed = list(_absorbed(layer, at, heads))
    except InfeasibleError as error:
        if at.q_len < at.kv_len:  # decoding never expands the entire cache
            message = f"attention on latents (MLA), which decoding needs: {error}"
            raise InfeasibleError(message, least=error.least, unit=error.unit) from None
        return expanded
    return min(expanded, absorbed, key=_seconds)


def _expanded(layer: AttentionLayer, at: StepSetting, kv_b: LinearLayer) -> Iterator[Part]:
    """List the kernels of MLA with keys and values expanded from the latents of all tokens."""
    rows = at.batch * at.kv_len
    yield at.product("kv_b", at.linear(rows, kv_b.in_features, kv_b.out_features))
    call = layer.call(at.batch, at.q_len, at.kv_len, at.dtype)  # type: ignore[arg-type]
    name, span = at.attention.fastest(call.shard(at.layout.tensor_parallel))
    yield f"attention ({name})", "attention", span


def _absorbed(layer: AttentionLayer, at: StepSetting, heads: int) -> Iterator[Part]:
    """List the kernels of MLA on the latents; the expansion is absorbed into queries and outputs, per head."""
    assert layer.kv_lora_rank is not None
    assert layer.rope_dim is not None
    latent = layer.kv_lora_rank
    yield at.product(
        "kv_b of keys, absorbed", at.linear(at.tokens, layer.head_dim - layer.rope_dim, latent, groups=heads)
    )
    call = layer.call(at.batch, at.q_len, at.kv_len, at.dtype, at.kv_dtype, at.page_size, absorbed=True)  # type: ignore[arg-type]
    name, span = at.attention.fastest(call.shard(at.layout.tensor_parallel))
    yield f"attention ({name}, absorbed)", "attention", span
    yield at.product("kv_b of values, absorbed", at.linear(at.tokens, latent, layer.value_dim, groups=heads))


def _dense(mlp: MLP, at: StepSetting) -> Iterator[Part]:
    linears = {linear.name: linear for linear in mlp_linears(mlp, at.hidden, at.layout)}
    width = linears["up"].out_features
    yield from _two_layers(at, mlp, "", at.tokens, [(at.tokens, 1)], width, at.weight_dtype)


def _experts(mlp: MLP, at: StepSetting) -> Iterator[Part]:
    layout = at.layout
    yield at.product("router", at.wide(at.tokens, at.hidden, mlp.experts))
    tokens = at.tokens * layout.data_parallel
    expert_groups: TokensPerExpert
    if at.routing is None:
        expert_groups = approximate_tokens_per_expert(
            mlp.experts, mlp.experts_per_token, tokens, layout.expert_parallel
        )
    else:
        expert_groups = busiest(at.routing, layout.expert_parallel)
    exchanged = at.tokens * mlp.experts_per_token * at.hidden * ELEMENT_SIZE[at.dtype] // layout.tensor_parallel
    exchange = all_to_all(at.clock.device, layout.ranks, exchanged) if layout.data_parallel > 1 else None
    if exchange is not None:
        yield "all-to-all", "communication", exchange
    rows = sum(tokens_each * count for tokens_each, count in expert_groups)
    if rows:
        width = mlp.expert_intermediate_size // layout.expert_width
        yield from _two_layers(at, mlp, "expert ", rows, expert_groups, width, at.expert_dtype)
    if exchange is not None:
        yield "all-to-all", "communication", exchange
    yield at.rowwise("add up experts", "combine_experts", at.hidden, mlp.experts_per_token)
    if mlp.shared_experts:
        width = mlp.shared_experts * (-(-mlp.shared_intermediate_size // layout.tensor_parallel))
        yield from _two_layers(at, mlp, "shared ", at.tokens, [(at.tokens, 1)], width, at.expert_dtype)
        if mlp.shared_gate:
            yield at.product("shared router", at.wide(at.tokens, at.hidden, 1))


def _two_layers(
    at: StepSetting, mlp: MLP, prefix: str, rows: int, expert_groups: Sequence[tuple[int, int]], width: int, dtype: str
) -> Iterator[Part]:
    """Time up and down projections, of one MLP or all experts of a rank, with the activation in between."""
    update = {"weight_dtype": dtype}
    wide = 2 * width if mlp.gated else width
    up = [
        at.linear(tokens_each, at.hidden, wide, groups=count, bias=mlp.bias).model_copy(update=update)
        for tokens_each, count in expert_groups
    ]
    down = [
        at.linear(tokens_each, width, at.hidden, groups=count, bias=mlp.bias).model_copy(update=update)
        for tokens_each, count in expert_groups
    ]
    yield at.product(prefix + ("gate up" if mlp.gated else "up"), *up)
    yield at.rowwise(f"{prefix}activation", "gated_activation" if mlp.gated else "activation", width, rows=rows)
    yield at.product(f"{prefix}down", *down)
