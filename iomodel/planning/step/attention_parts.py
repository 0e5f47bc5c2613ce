"""Kernels of the attention of one decoder layer on one rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iomodel.errors import InfeasibleError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.planning.step.divided_cache import divided_latents, divided_parts, gathered_latents, is_chunk
from iomodel.planning.step.layout import LinearLayer, attention_linears
from iomodel.planning.step.lora import ADAPTED
from iomodel.planning.step.setting import Part, StepSetting, seconds_of
from iomodel.planning.step.sparse_parts import selected_parts, selecting_parts
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE

FIRST = ("q", "k", "v", "q_a", "kv_a", "kv", "out gate")
"""Projections of the row between layers, in one kernel."""


def attention_parts(layer: DecoderLayer, attention: AttentionLayer, at: StepSetting) -> Iterator[Part]:
    """List the kernels of attention, from the projections to the output."""
    linears = {linear.name: linear for linear in attention_linears(attention, at.hidden, at.layout)}
    first = [linear for name, linear in linears.items() if name in FIRST]
    outputs = sum(linear.out_features for linear in first)
    shape = at.linear(
        at.tokens,
        attention.input_width or at.hidden,
        outputs,
        bias=attention.qkv_bias,
        weight_dtype=at.type_of(layer, first[0].name),
    )
    name = " ".join(linear.name for linear in first)
    yield from at.quantised_by_block(
        f"quantise the rows of {name}", at.type_of(layer, first[0].name), shape.in_features
    )
    yield at.product(name, shape)
    yield from at.adapted([linear for linear in first if linear.name in ADAPTED])
    heads = attention.heads // at.layout.tensor_parallel
    if attention.latent:
        yield from _before_latent(layer, attention, linears, at, heads)
    else:
        yield from _before(layer, attention, linears, at, heads)
    yield from selecting_parts(layer, attention, linears, at)
    if attention.indexer is not None or attention.tied_kv:
        yield from selected_parts(attention, at, heads)
    elif attention.latent:
        yield from _latent(attention, at, linears["kv_b"], heads)
    elif _divided(at):
        yield from divided_parts(attention, at, heads)
    elif at.layout.context_parallel > 1:
        from iomodel.planning.step.rank_attention import context_parts  # imports sympy, which other layouts do without

        yield from context_parts(attention, at)
    else:
        types: tuple[Any, Any, Any] = at.attention_dtype, at.kv_dtype, at.page_size
        # Kernels skip the keys before a window; its place in their tiles would make some contexts cheaper than shorter.
        for queries, keys in attention.pieces(at.q_len, attention.visible_keys(at.q_len, at.kv_len)):
            call = attention.call(at.batch, queries, keys, *types)
            yield from _cascade(attention, call.shard(at.layout.tensor_parallel), at, heads)
    yield from _after(layer, attention, linears, at, heads)


def _before_latent(
    layer: DecoderLayer, attention: AttentionLayer, linears: dict[str, LinearLayer], at: StepSetting, heads: int
) -> Iterator[Part]:
    """List the kernels between the first projection and attention on latents."""
    assert attention.kv_lora_rank is not None
    assert attention.rope_dim is not None
    yield at.rowwise("norm of the latent", "norm", attention.kv_lora_rank)
    if attention.q_lora_rank is not None:
        yield at.rowwise("norm of the latent of q", "norm", attention.q_lora_rank)
        yield from at.quantised_by_block("quantise the rows of q_b", at.type_of(layer, "q_b"), attention.q_lora_rank)
        yield at.single(layer, linears["q_b"])
    if attention.rope_dim:
        yield at.rowwise("rotary", "rotary", (heads + 1) * attention.rope_dim, attention.rope_dim)
    yield at.rowwise("append to the cache", "append_latent", attention.kv_lora_rank + attention.rope_dim)


def _before(
    layer: DecoderLayer, attention: AttentionLayer, linears: dict[str, LinearLayer], at: StepSetting, heads: int
) -> Iterator[Part]:
    """List the kernels between the first projection and attention on K and V."""
    if attention.q_lora_rank is not None:
        yield at.rowwise("norm of the latent of q", "norm", attention.q_lora_rank)
        yield from at.quantised_by_block("quantise the rows of q_b", at.type_of(layer, "q_b"), attention.q_lora_rank)
        yield at.single(layer, linears["q_b"])
    kv_heads = max(1, attention.kv_heads // at.layout.tensor_parallel)
    both = (heads + kv_heads * attention.own_kv) * attention.head_dim
    if attention.qk_norm:
        yield at.rowwise("norm of q and k", "norm", both)
    if attention.rope:
        yield at.rotated(heads, both, attention.head_dim)
    if attention.tied_kv:
        yield at.rowwise("append to the cache", "append_latent", kv_heads * attention.head_dim)
    elif attention.own_kv:
        yield at.rowwise("append to the cache", "append", kv_heads * attention.head_dim, kv_heads * attention.value_dim)


def _after(
    layer: DecoderLayer, attention: AttentionLayer, linears: dict[str, LinearLayer], at: StepSetting, heads: int
) -> Iterator[Part]:
    """List the kernels after attention: the gate, and the output projection."""
    if attention.out_gate is not None:
        kernel = "gated_activation" if attention.out_gate == "element" else "activation"
        yield at.rowwise("gate of the output", kernel, heads * attention.value_dim)
    if "o" in linears:
        yield from at.quantised("quantise the rows of o", at.type_of(layer, "o"), linears["o"].in_features)
        yield at.single(layer, linears["o"], attention.o_bias)
        yield from at.adapted([linears["o"]])
        return
    groups = max(1, (attention.o_groups or 1) // at.layout.tensor_parallel)
    wide = linears["o_a"]
    each = wide.out_features // groups
    dtype = at.type_of(layer, "o_a")
    yield at.product("o_a", at.linear(at.tokens, wide.in_features, each, groups=groups, weight_dtype=dtype))
    yield at.single(layer, linears["o_b"], attention.o_bias)


def _cascade(attention: AttentionLayer, call: Attention, at: StepSetting, heads: int) -> Sequence[Part]:
    """Choose between one kernel that reads all keys of each sequence, and one that reads shared keys once.

    The queries of all sequences see the shared keys as one sequence; a second kernel reads the other keys of each, and
    a third one adds up both outputs, scaled by their log-sum-exps of fp32.
    """
    alone = [at.attended(call)]
    shared = at.shared_keys
    if not shared or at.batch == 1 or attention.window is not None or attention.chunk is not None:
        return alone
    every = call.model_copy(update={"batch": 1, "q_len": call.batch * call.q_len, "kv_len": shared, "mask": "full"})
    own = call.model_copy(update={"kv_len": call.kv_len - shared})
    parts = [at.attended(every, ", shared keys"), at.attended(own, ", own keys")]
    statistics = -(-4 // ELEMENT_SIZE[at.dtype])
    parts.append(at.rowwise("merge of attention", "combine_experts", heads * (attention.value_dim + statistics), 2))
    return min(alone, parts, key=seconds_of)


def _divided(at: StepSetting) -> bool:
    """Check that attention sees cached tokens that are divided among ranks."""
    return at.layout.decode_context_parallel > 1 and at.q_len < at.kv_len


def _latent(layer: AttentionLayer, at: StepSetting, kv_b: LinearLayer, heads: int) -> list[Part]:
    """Choose the faster form of MLA; a prefill falls back to the expanded form if the absorbed one does not fit.

    A decode step on a divided cache attends to the latents of its rank.
    """
    if _divided(at):
        if not is_chunk(at):
            return list(_absorbed(layer, at, heads))
        return [gathered_latents(layer, at), *_undivided(layer, at, kv_b, heads)]
    return _undivided(layer, at, kv_b, heads)


def _undivided(layer: AttentionLayer, at: StepSetting, kv_b: LinearLayer, heads: int) -> list[Part]:
    """Choose the faster form of MLA on latents that are all on a rank; decoding attends to them, as engines do."""
    expanded = _expanded(layer, at, kv_b)
    if not at.absorbs:
        return list(expanded)
    try:
        absorbed = list(_absorbed(layer, at, heads))
    except InfeasibleError as error:
        if at.q_len < at.kv_len:  # decoding never expands the entire cache
            message = f"attention on latents (MLA), which decoding needs: {error}"
            raise InfeasibleError(message, least=error.least, unit=error.unit) from None
        return list(expanded)
    if at.q_len < at.kv_len and not is_chunk(at):
        return absorbed
    first = next(expanded)
    if seconds_of([first]) >= seconds_of(absorbed):
        return absorbed
    return min([first, *expanded], absorbed, key=seconds_of)


def _expanded(layer: AttentionLayer, at: StepSetting, kv_b: LinearLayer) -> Iterator[Part]:
    """List the kernels of MLA with keys and values expanded from the latents of all tokens.

    Engines copy the rotary part of a key, which all heads share, beside the other part of each head
    (`_concat_k_nope_k_pe` of vLLM, `concat_mla_k` of SGLang).
    """
    rows = at.batch * at.kv_len
    yield at.product("kv_b", at.linear(rows, kv_b.in_features, kv_b.out_features))
    if at.serves and layer.rope_dim:
        mean = layer.head_dim - layer.rope_dim // 2  # of the channels read and written
        heads = layer.heads // at.layout.tensor_parallel
        yield at.rowwise("join keys and rotary parts", "norm", heads * mean, rows=rows)
    call = layer.call(at.batch, at.q_len, at.kv_len, at.dtype)  # type: ignore[arg-type]
    yield at.attended(call.shard(at.layout.tensor_parallel))


def _absorbed(layer: AttentionLayer, at: StepSetting, heads: int) -> Iterator[Part]:
    """List the kernels of MLA on the latents; the expansion is absorbed into queries and outputs, per head."""
    assert layer.kv_lora_rank is not None
    assert layer.rope_dim is not None
    latent = layer.kv_lora_rank
    yield at.product(
        "kv_b of keys, absorbed", at.linear(at.tokens, layer.head_dim - layer.rope_dim, latent, groups=heads)
    )
    if _divided(at) and not is_chunk(at):
        yield from divided_latents(layer, at, heads)
    else:
        call = layer.call(at.batch, at.q_len, at.kv_len, at.latent_dtype, at.kv_dtype, at.page_size, absorbed=True)  # type: ignore[arg-type]
        yield at.attended(call.shard(at.layout.tensor_parallel), ", absorbed")
    yield at.product("kv_b of values, absorbed", at.linear(at.tokens, latent, layer.value_dim, groups=heads))
