"""The kernels of one decoder layer on one rank, each with its time: what a serving engine launches, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iomodel.decoder.attention import AttentionClock
from iomodel.decoder.experts import TokensPerExpert, approximate_tokens_per_expert, busiest
from iomodel.decoder.layout import Layout, LinearLayer, attention_linears, mlp_linears
from iomodel.decoder.links import all_reduce, all_to_all
from iomodel.decoder.result import Kind
from iomodel.errors import InfeasibleError
from iomodel.linear.layer import Linear
from iomodel.linear.span import Span
from iomodel.linear.time import LinearClock
from iomodel.models.attention import AttentionLayer
from iomodel.models.layers import MLP, DecoderLayer
from iomodel.workload import ELEMENT_SIZE

Part = tuple[str, Kind, Span]


@dataclass(frozen=True)
class Setting:
    """What the kernels of all layers have in common; `batch` is that of one group of ranks."""

    clock: LinearClock
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
        """Rows of the activations [rows]."""
        return self.batch * self.q_len

    def linear(self, rows: int, width_in: int, width_out: int, *, groups: int = 1, bias: bool = False) -> Linear:
        """A linear layer with quantised weights."""
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
        """A linear layer that is never quantised: routers, the output layer."""
        return Linear(rows=rows, in_features=width_in, out_features=width_out, dtype=self.dtype)

    def product(self, name: str, *layers: Linear) -> Part:
        """A linear layer as a part."""
        return name, "linear", self.clock.linear(*layers)

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """An elementwise kernel as a part."""
        tokens = self.tokens if rows is None else rows
        return name, "other", self.clock.pointwise(kernel, tokens, channels, others, self.dtype, self.kv_dtype)

    def reduced(self, name: str) -> Iterator[Part]:
        """The sum of a row-parallel layer over the ranks that share it."""
        if self.layout.tensor_parallel > 1:
            size = self.tokens * self.hidden * ELEMENT_SIZE[self.dtype]
            yield name, "communication", all_reduce(self.clock.device, self.layout.tensor_parallel, size)


def layer_parts(layer: DecoderLayer, at: Setting) -> Iterator[Part]:
    """The kernels of a layer, one after the other."""
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


def _attention(layer: AttentionLayer, at: Setting) -> Iterator[Part]:
    linears = {one.name: one for one in attention_linears(layer, at.hidden, at.layout)}
    first = [one for name, one in linears.items() if name in ("q", "k", "v", "q_a", "kv_a")]
    names = " ".join(one.name for one in first)
    outputs = sum(one.out_features for one in first)
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


def _single(at: Setting, one: LinearLayer, bias: bool = False) -> Part:
    return at.product(one.name, at.linear(at.tokens, one.in_features, one.out_features, bias=bias))


def _seconds(parts: Sequence[Part]) -> float:
    return sum(span.seconds for _, _, span in parts)


def _latent(layer: AttentionLayer, at: Setting, kv_b: LinearLayer, heads: int) -> list[Part]:
    """The faster form of MLA; a prefill may do without the absorbed one, where that has no room on the device."""
    expanded = list(_expanded(layer, at, kv_b))
    try:
        absorbed = list(_absorbed(layer, at, heads))
    except InfeasibleError as error:
        if at.q_len < at.kv_len:  # nobody decodes by expanding the whole cache
            text = f"attention on latents (MLA), which decoding needs: {error}"
            raise InfeasibleError(text, least=error.least, unit=error.unit) from None
        return expanded
    return min(expanded, absorbed, key=_seconds)


def _expanded(layer: AttentionLayer, at: Setting, kv_b: LinearLayer) -> Iterator[Part]:
    """MLA with keys and values expanded from the latents of all tokens."""
    rows = at.batch * at.kv_len
    yield at.product("kv_b", at.linear(rows, kv_b.in_features, kv_b.out_features))
    call = layer.call(at.batch, at.q_len, at.kv_len, at.dtype)  # type: ignore[arg-type]
    name, span = at.attention.fastest(call.shard(at.layout.tensor_parallel))
    yield f"attention ({name})", "attention", span


def _absorbed(layer: AttentionLayer, at: Setting, heads: int) -> Iterator[Part]:
    """MLA on the latents themselves: what expands them is multiplied to queries and outputs, head by head."""
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


def _dense(mlp: MLP, at: Setting) -> Iterator[Part]:
    linears = {one.name: one for one in mlp_linears(mlp, at.hidden, at.layout)}
    width = linears["up"].out_features
    yield from _two_layers(at, mlp, "", at.tokens, [(at.tokens, 1)], width, at.weight_dtype)


def _experts(mlp: MLP, at: Setting) -> Iterator[Part]:
    layout = at.layout
    yield at.product("router", at.wide(at.tokens, at.hidden, mlp.experts))
    tokens = at.tokens * layout.data_parallel
    met: TokensPerExpert
    if at.routing is None:
        met = approximate_tokens_per_expert(mlp.experts, mlp.experts_per_token, tokens, layout.expert_parallel)
    else:
        met = busiest(at.routing, layout.expert_parallel)
    exchanged = at.tokens * mlp.experts_per_token * at.hidden * ELEMENT_SIZE[at.dtype] // layout.tensor_parallel
    exchange = all_to_all(at.clock.device, layout.ranks, exchanged) if layout.data_parallel > 1 else None
    if exchange is not None:
        yield "all-to-all", "communication", exchange
    rows = sum(each * many for each, many in met)
    if rows:
        width = mlp.expert_intermediate_size // layout.expert_width
        yield from _two_layers(at, mlp, "expert ", rows, met, width, at.expert_dtype)
    if exchange is not None:
        yield "all-to-all", "communication", exchange
    yield at.rowwise("add up experts", "combine_experts", at.hidden, mlp.experts_per_token)
    if mlp.shared_experts:
        width = mlp.shared_experts * (-(-mlp.shared_intermediate_size // layout.tensor_parallel))
        yield from _two_layers(at, mlp, "shared ", at.tokens, [(at.tokens, 1)], width, at.expert_dtype)
        if mlp.shared_gate:
            yield at.product("shared router", at.wide(at.tokens, at.hidden, 1))


def _two_layers(
    at: Setting, mlp: MLP, prefix: str, rows: int, met: Sequence[tuple[int, int]], width: int, dtype: str
) -> Iterator[Part]:
    """Up and down, of one MLP or of all experts of a rank, with the activation between them."""
    update = {"weight_dtype": dtype}
    wide = 2 * width if mlp.gated else width
    up = [at.linear(each, at.hidden, wide, groups=many, bias=mlp.bias).model_copy(update=update) for each, many in met]
    down = [
        at.linear(each, width, at.hidden, groups=many, bias=mlp.bias).model_copy(update=update) for each, many in met
    ]
    yield at.product(prefix + ("gate up" if mlp.gated else "up"), *up)
    yield at.rowwise(f"{prefix}activation", "gated_activation" if mlp.gated else "activation", width, rows=rows)
    yield at.product(f"{prefix}down", *down)
