"""Attention of one layer of a config.json: heads, widths, windows, latents, indexers, compression."""

from __future__ import annotations

from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields
from iomodel.models.config_order import Slot, entries
from iomodel.models.families import CSA, HCA, Family

REACH_FIELDS = {"window": "sliding_window", "chunk": "attention_chunk_size"}
MULTI_QUERY = ("falcon", "gpt_bigcode")
"""Model types whose heads share one head of K and V by default."""
RATIOS = {CSA: 4, HCA: 128}
"""Tokens per entry of the compressed caches of DeepSeek-V4, by the kind of layer."""


def switch(fields: Fields, rule: bool | str, default: bool) -> bool:
    """Read a property that a family fixes, or a field decides."""
    return rule if isinstance(rule, bool) else fields.flag(rule, default)


def attention_of(fields: Fields, kind: str, family: Family, slot: Slot, rope: bool) -> dict[str, Any]:
    """Read the attention of one layer."""
    fields = _of_reach(fields, slot)
    heads = fields.count("num_attention_heads", "n_head", "num_heads")
    attention: dict[str, Any] = {
        "heads": heads,
        "qkv_bias": switch(fields, family.qkv_bias, family.bias),
        "o_bias": switch(fields, family.o_bias, family.bias),
        "rope": rope and not fields.optional(fields.flag, "alibi") and family.positions is None,
        "softcap": fields.real("attn_logit_softcapping"),
        "sinks": _sinks(fields, family, slot),
        **_norms(fields, family),
        **_gate(fields, family),
        **_widths(fields, kind, family, heads),
    }
    if slot.reach != "full":
        attention[slot.reach] = fields.count(REACH_FIELDS[slot.reach])
    if attention.get("tied_kv"):
        return attention | _compressed(fields, slot)
    return attention | _indexer(fields)


def _of_reach(fields: Fields, slot: Slot) -> Fields:
    """Replace fields by those that only layers with a window, or only layers without, use."""
    changes: dict[str, Any] = {}
    if slot.reach == "window":
        for name in ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim"):
            value = fields.given(f"swa_{name}")
            changes |= {} if value is None else {name: value}
        value = fields.given("num_sliding_attention_heads")
        changes |= {} if value is None else {"num_attention_heads": value}
    else:
        wide, heads = fields.maybe("global_head_dim"), fields.maybe("num_global_key_value_heads")
        if fields.given("per_layer_config") is not None:
            return fields
        changes |= {} if wide is None else {"head_dim": wide}
        tied = fields.flag("attention_k_eq_v")
        changes |= {"num_key_value_heads": heads} if heads is not None and tied else {}
    return fields.over(changes) if changes else fields


def _sinks(fields: Fields, family: Family, slot: Slot) -> bool:
    if family.sinks in (True, False):
        return bool(family.sinks)
    name = "add_swa_attention_sink_bias" if slot.reach == "window" else "add_full_attention_sink_bias"
    return fields.flag(name, slot.reach == "window")


def _norms(fields: Fields, family: Family) -> dict[str, Any]:
    name, weights = family.qk_norm_field, family.qk_norm
    if weights is None or (name is not None and not fields.flag(name, family.qk_norm_default)):
        return {}
    kind = fields.text("qk_norm_type")
    by_type = {"per_layer": "all", "per_head": "head"}
    if kind is not None and kind not in by_type:
        raise InputError(f"{fields.path('qk_norm_type')}: {shown(kind)} given; allowed: {', '.join(by_type)}")
    return {"qk_norm": True, "qk_norm_weights": by_type[kind] if kind else weights}


def _gate(fields: Fields, family: Family) -> dict[str, Any]:
    gate: str | None = family.out_gate
    fields_of_gates = {
        "attn_output_gate": "element",
        "mla_use_output_gate": "element",
        "attention_output_gate": "element",
        "use_head_wise_attn_gate": "head",
    }
    for name, value in fields_of_gates.items():
        if fields.given(name) is not None:
            gate = value if fields.flag(name) else None
    return {} if gate is None else {"out_gate": gate}


def _widths(fields: Fields, kind: str, family: Family, heads: int) -> dict[str, Any]:
    """Read the widths of a head, and the number of heads of K and V."""
    if family.tied_kv:
        return {
            "kv_heads": fields.count("num_key_value_heads"),
            "head_dim": fields.count("head_dim"),
            "tied_kv": True,
            "q_lora_rank": fields.count("q_lora_rank"),
            "o_groups": fields.count("o_groups"),
            "o_lora_rank": fields.count("o_lora_rank"),
        }
    if fields.given("kv_lora_rank") is not None:
        rope, plain = fields.count("qk_rope_head_dim", least=0), fields.count("qk_nope_head_dim")
        return {
            "head_dim": rope + plain,
            "value_dim": fields.count("hidden_size") // heads
            if fields.nullable("v_head_dim")
            else fields.count("v_head_dim"),
            "rope_dim": rope,
            "kv_lora_rank": fields.count("kv_lora_rank"),
            "q_lora_rank": fields.maybe("q_lora_rank", least=0) or None,
        }
    kv_heads = fields.maybe("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "num_attention_groups")
    kv_heads = kv_heads or heads
    if kind in MULTI_QUERY and not fields.flag("new_decoder_architecture"):
        kv_heads = 1 if fields.flag("multi_query", True) else heads
    if fields.given("multi_query_attention") is False:
        kv_heads = heads
    if heads % kv_heads:
        near = next(n for n in range(min(kv_heads, 10**6), 0, -1) if heads % n == 0)
        raise InputError(
            f"{fields.path('num_key_value_heads')}: {kv_heads} given; allowed: a divisor of num_attention_heads = "
            f"{heads}, such as {near}"
        )
    head_dim = fields.maybe("head_dim", "attention_head_dim", "kv_channels")
    if head_dim is None:
        hidden = fields.count("hidden_size", "n_embd", "d_model")
        if hidden % heads:
            raise InputError(
                f"{fields.path('head_dim')}: not given, and hidden_size = {hidden} does not divide by "
                f"num_attention_heads = {heads}; allowed: the width of a head"
            )
        head_dim = hidden // heads
    widths = {"kv_heads": kv_heads, "head_dim": head_dim}
    value_dim = fields.maybe("v_head_dim")
    return widths if value_dim is None else {**widths, "value_dim": value_dim}


def _index_heads(fields: Fields) -> dict[str, Any]:
    return {"heads": fields.count("index_n_heads"), "head_dim": fields.count("index_head_dim")}


def _indexer(fields: Fields) -> dict[str, Any]:
    """Read the indexer of a layer, if it has one."""
    kept = fields.maybe("index_topk", least=0)
    if kept:
        return {
            "indexer": {
                **_index_heads(fields),
                "topk": kept,
                "keys": fields.given("indexer_types") != "shared",
                "pool": fields.maybe("index_kpool") or 1,
            }
        }
    blocks = fields.maybe("index_topk_blocks")
    if blocks is None:
        return {}
    block = fields.count("index_block_size")
    return {
        "indexer": {
            **_index_heads(fields),
            "topk": blocks * block,
            "block": block,
            "latent_query": False,
            "weighted": False,
        }
    }


def _compressed(fields: Fields, slot: Slot) -> dict[str, Any]:
    """Read the compressor of a layer, and the indexer of its entries."""
    if slot.name not in RATIOS:
        return {}
    rates = fields.mapping("compress_rates") or {}
    ratio = Fields({**RATIOS, **rates}, fields.path("compress_rates.")).count(slot.name)
    if slot.name == HCA:
        return {"compression": {"ratio": ratio}}
    entries_kept = fields.count("index_topk")
    return {
        "compression": {"ratio": ratio, "overlap": 2},
        "indexer": {**_index_heads(fields), "topk": ratio * entries_kept, "block": ratio, "pool": ratio, "overlap": 2},
    }


def indexer_changes(fields: Fields, number: int) -> list[str]:
    """List the mode of the indexer of each layer: "full", or "shared" with the last full one."""
    listed = entries(fields, "indexer_types", number, ("full", "shared"))
    if listed is not None:
        return listed
    letters = {"F": "full", "S": "shared"}
    pattern = fields.text("index_topk_pattern", longest=number)
    if pattern is not None:
        if len(pattern) != number or not set(pattern) <= set(letters):
            raise InputError(
                f"{fields.path('index_topk_pattern')}: {shown(pattern)} given; allowed: F or S for each of "
                f"{number} layers"
            )
        return [letters[letter] for letter in pattern]
    every = fields.maybe("index_topk_freq") or 1
    offset = fields.maybe("index_skip_topk_offset", least=0)
    skipped = 2 if offset is None else offset
    return ["full" if max(i - skipped + 1, 0) % every == 0 else "shared" for i in range(number)]
