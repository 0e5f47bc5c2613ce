"""Decoder layers described by a config.json."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.families import Family
from iomodel.models.fields import Fields
from iomodel.models.layers import DecoderLayer
from iomodel.models.spec import MOST_LAYERS

REACHES = {"full_attention": "full", "sliding_attention": "window", "chunked_attention": "chunk"}
"""Allowed entries of `layer_types`."""


def layers_of(fields: Fields, kind: str, family: Family, notes: list[str]) -> tuple[DecoderLayer, ...]:
    """Build every layer; equal layers are the same object."""
    number = fields.count("num_hidden_layers")
    if number > MOST_LAYERS:
        raise InputError(f"{fields.path('num_hidden_layers')}: {number} given; allowed: from 1 to {MOST_LAYERS}")
    heads = _heads(fields, kind, family)
    rotated = _rotated(fields, number)
    dense, experts, sparse = _mlps(fields, family, kind, number)
    bias = {name: _switch(fields, getattr(family, name), family.bias) for name in ("qkv_bias", "o_bias", "mlp_bias")}
    norms = family.norms
    if kind == "falcon" and (fields.flag("new_decoder_architecture") or not fields.flag("parallel_attn", True)):
        norms = 2

    @cache
    def layer(reach: str, rope: bool, with_experts: bool) -> DecoderLayer:
        attention = {**heads, "qkv_bias": bias["qkv_bias"], "o_bias": bias["o_bias"], "rope": rope}
        if reach != "full":
            attention[reach] = fields.count({"window": "sliding_window", "chunk": "attention_chunk_size"}[reach])
        mlp = {**(experts if with_experts else dense), "bias": bias["mlp_bias"]}
        return DecoderLayer(attention=attention, mlp=mlp, norms=norms, norm_bias=family.norm_bias)

    reaches = _reaches(fields, kind, family, number, notes)
    everywhere = family.rope_everywhere and not fields.flag("alibi")
    return tuple(
        layer(reach, rotated(i) and (everywhere or reach != "full") and not fields.flag("alibi"), sparse(i))
        for i, reach in enumerate(reaches)
    )


def _switch(fields: Fields, rule: bool | str, default: bool) -> bool:
    return rule if isinstance(rule, bool) else fields.flag(rule, default)


def _heads(fields: Fields, kind: str, family: Family) -> dict[str, Any]:
    """Read heads, widths and the other properties shared by all layers."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    shared: dict[str, Any] = {"heads": heads, "sinks": family.sinks, "softcap": fields.real("attn_logit_softcapping")}
    switch = family.qk_norm_field
    if family.qk_norm is not None and (switch is None or fields.flag(switch, family.qk_norm_default)):
        shared |= {"qk_norm": True, "qk_norm_weights": family.qk_norm}
    if fields.given("kv_lora_rank") is not None:
        rope, plain = fields.count("qk_rope_head_dim"), fields.count("qk_nope_head_dim")
        return shared | {
            "head_dim": rope + plain,
            "value_dim": fields.count("v_head_dim"),
            "rope_dim": rope,
            "kv_lora_rank": fields.count("kv_lora_rank"),
            "q_lora_rank": fields.maybe("q_lora_rank", least=0) or None,
        }
    kv_heads = fields.maybe("num_key_value_heads", "num_kv_heads") or heads
    if kind == "falcon" and not fields.flag("new_decoder_architecture"):
        kv_heads = 1 if fields.flag("multi_query", True) else heads
    if heads % kv_heads:
        near = next(n for n in range(min(kv_heads, 10**6), 0, -1) if heads % n == 0)
        raise InputError(
            f"{fields.path('num_key_value_heads')}: {kv_heads} given; allowed: a divisor of num_attention_heads = "
            f"{heads}, such as {near}"
        )
    head_dim = fields.maybe("head_dim")
    if head_dim is None:
        if hidden % heads:
            raise InputError(
                f"{fields.path('head_dim')}: not given, and hidden_size = {hidden} does not divide by "
                f"num_attention_heads = {heads}; allowed: the width of a head"
            )
        head_dim = hidden // heads
    return shared | {"kv_heads": kv_heads, "head_dim": head_dim}


def _reaches(fields: Fields, kind: str, family: Family, number: int, notes: list[str]) -> list[str]:
    """List the reach of each layer: "full", "window" or "chunk"."""
    listed = fields.listed("layer_types")
    if listed is not None:
        if len(listed) != number:
            raise InputError(
                f"{fields.path('layer_types')}: {len(listed)} entries given; allowed: num_hidden_layers = {number}"
            )
        for place, name in enumerate(listed):
            if not isinstance(name, str) or name not in REACHES:
                raise InputError(
                    f"{fields.path(f'layer_types.{place}')}: {shown(name)} given; allowed: {', '.join(REACHES)}"
                )
        return [REACHES[name] for name in listed]
    if kind == "llama4_text":
        chunked = fields.given("attention_chunk_size") is not None
        interval = fields.count("no_rope_layer_interval")
        rotated = fields.listed("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(number)]
        return ["chunk" if chunked and _entry(fields, rotated, number, i) else "full" for i in range(number)]
    if fields.given("sliding_window") is None or not fields.flag("use_sliding_window", True):
        return ["full"] * number
    if family.windows == "none":
        notes.append(f"The sliding_window is not used by the model_type {kind}.")
        return ["full"] * number
    if family.windows == "all":
        return ["window"] * number
    if family.windows == "late":
        first = fields.maybe("max_window_layers", least=0)
        return ["window" if i >= (number if first is None else first) else "full" for i in range(number)]
    every = fields.maybe("sliding_window_pattern", "_sliding_window_pattern") or family.windows
    return ["full" if (i + 1) % every == 0 else "window" for i in range(number)]


def _entry(fields: Fields, rotated: list[Any], number: int, place: int) -> bool:
    """Read one entry of `no_rope_layers`: 1 for a layer with RoPE."""
    if len(rotated) != number:
        raise InputError(
            f"{fields.path('no_rope_layers')}: {len(rotated)} entries given; allowed: num_hidden_layers = {number}"
        )
    if rotated[place] not in (0, 1) or isinstance(rotated[place], float):
        raise InputError(
            f"{fields.path(f'no_rope_layers.{place}')}: {shown(rotated[place])} given; allowed: 0 or 1, 1 for RoPE"
        )
    return bool(rotated[place])


def _rotated(fields: Fields, number: int) -> Callable[[int], bool]:
    """Return a predicate on the layer number, true for layers with RoPE."""
    listed = fields.listed("no_rope_layers")
    return lambda i: _entry(fields, listed, number, i) if listed else True


def _mlps(
    fields: Fields, family: Family, kind: str, number: int
) -> tuple[dict[str, Any], dict[str, Any], Callable[[int], bool]]:
    """Read the dense MLP, the experts, and a predicate for the layers with experts."""
    shared = {"gated": family.gated, "activation": fields.text("hidden_activation", "hidden_act") or family.activation}
    routed = fields.maybe("num_local_experts", "num_experts", "n_routed_experts", least=0) or 0
    if routed and not family.experts:
        name = fields.first("num_local_experts", "num_experts", "n_routed_experts") or ""
        raise InputError(
            f"{fields.path(name)}: {routed} given; allowed: 0 or no such field, because {kind} has no experts"
        )
    if not routed:
        return {**shared, "intermediate_size": _width(fields, kind)}, {}, lambda _: False
    sparse = _sparse(fields)
    placed = [sparse(i) for i in range(number)]
    width = fields.count("moe_intermediate_size", "intermediate_size")
    common = fields.maybe("n_shared_experts", "num_shared_experts", least=0) or family.shared_experts
    wide = fields.maybe("shared_expert_intermediate_size", least=0)
    chosen = fields.count("num_experts_per_tok", "experts_per_token", "num_experts_per_token")
    experts = {
        **shared,
        "experts": routed,
        "experts_per_token": chosen,
        "expert_intermediate_size": width,
        "shared_experts": common or int(bool(wide)),
        "shared_intermediate_size": wide or width,
        "shared_gate": family.shared_gate and bool(common or wide),
        "router_bias": family.router_bias or fields.given("topk_method") == "noaux_tc",
    }
    if chosen > routed:
        raise InputError(
            f"{fields.path('num_experts_per_tok')}: {chosen} given; allowed: from 1 to the number of experts, {routed}"
        )
    dense = {} if all(placed) else {**shared, "intermediate_size": _width(fields, kind)}
    return dense, experts, placed.__getitem__


def _width(fields: Fields, kind: str) -> int:
    """Read the width of a dense MLP."""
    if kind == "falcon":
        return fields.maybe("ffn_hidden_size") or 4 * fields.count("hidden_size")
    return fields.count("intermediate_size_mlp", "intermediate_size")


def _sparse(fields: Fields) -> Callable[[int], bool]:
    """Return a predicate for the layers with experts; fields that are absent impose no restriction."""
    listed = fields.positions("moe_layers")
    if listed is not None:
        return listed.__contains__
    first = fields.maybe("first_k_dense_replace", least=0) or 0
    every = fields.maybe("moe_layer_freq") or 1
    steps = [fields.maybe(name) or 1 for name in ("decoder_sparse_step", "interleave_moe_layer_step")]
    never = fields.positions("mlp_only_layers") or frozenset()
    return lambda i: i >= first and i % every == 0 and i not in never and all((i + 1) % step == 0 for step in steps)
