"""Decoder layers described by a config.json."""

from __future__ import annotations

from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.models.config_attention import attention_of, indexer_changes
from iomodel.models.config_fields import Fields
from iomodel.models.config_mlp import ROUTED, dense_of, experts_of, routed_experts
from iomodel.models.config_order import (
    KINDS,
    Reach,
    Slot,
    Width,
    blocks,
    check_length,
    entries,
    mixers,
    number_of,
    rotated,
    sparse,
    switches,
)
from iomodel.models.config_recurrent import recurrent_of
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.families import CSA, HCA, Family

BY_LAYER = (
    "intermediate_size",
    "moe_intermediate_size",
    "num_key_value_heads",
    "num_attention_heads",
    "head_dim",
    "sliding_window",
    "moe_topk",
    "num_shared_expert",
)
"""Fields that may hold a list with one entry for each layer."""

COMPRESSED = {0: "sliding_attention", 4: CSA, 128: HCA}
"""Kinds of layers by their entry in `compress_ratios`."""


def layers_of(fields: Fields, kind: str, family: Family, notes: list[str]) -> tuple[DecoderLayer, ...]:
    """Build every layer; equal layers are the same object."""
    number = number_of(fields)
    if kind == "zamba2":
        return _shared_blocks(fields, kind, family, number)
    known: dict[tuple[Slot, bool], DecoderLayer] = {}
    turned = rotated(fields, number) * (1 + family.two_in_one)
    layers = []
    for place, slot in enumerate(_slots(fields, kind, family, number, notes)):
        rope = turned[place] and (family.rope_everywhere or slot.reach != "full")
        key = slot, rope
        if key not in known:
            known[key] = _layer(fields.over(slot.changes), kind, family, slot, rope)
        layers.append(known[key])
    return tuple(layers)


def _slots(fields: Fields, kind: str, family: Family, number: int, notes: list[str]) -> list[Slot]:
    """List the layers to be built, in order."""
    if family.two_in_one:
        wide = FrozenDict(intermediate_size=fields.count("ffn_hidden_size"))
        return [Slot("attention", "full", width, "", wide) for _ in range(number) for width in ("experts", "dense")]
    single = blocks(fields, number) if family.single_blocks else None
    if single is not None:
        widths = {"moe": "experts", "mlp": "dense"}
        return [Slot(KINDS[name][0], "full", widths.get(name, "none"), name) for name in single]  # type: ignore[arg-type]
    if fields.given("block_configs") is not None:
        return [_searched(fields, block, place) for place, block in enumerate(_listed(fields, "block_configs", number))]
    order = _compressed(fields, number) or mixers(fields, kind, family, number, notes)
    routed = routed_experts(fields)
    placed = sparse(fields, number) if routed else [False] * number
    if not routed and "sparse" in (fields.listed("mlp_layer_types") or ()):
        raise InputError(
            f"{fields.path('mlp_layer_types')}: {shown(fields.given('mlp_layer_types'))} given without a number of "
            f"experts; allowed: with one of {', '.join(ROUTED)}"
        )
    dense: Width = "dense" if family.mlp else "none"
    hashed = _hashed(fields, number)
    changes = _changes(fields, family, number, [reach for _, reach, _ in order])
    return [
        Slot(mixer, reach, "experts" if placed[i] else dense, name, FrozenDict(changes[i]), i in hashed)
        for i, (mixer, reach, name) in enumerate(order)
    ]


def _listed(fields: Fields, name: str, number: int) -> list[Any]:
    listed = fields.listed(name) or []
    check_length(fields, name, len(listed) == number, number)
    return listed


def _compressed(fields: Fields, number: int) -> list[tuple[Any, Reach, str]] | None:
    """List the kinds of layers of compressed attention; entries beyond the layers are those of further tokens."""
    listed = fields.listed("compress_ratios")
    if listed is None:
        return None
    check_length(fields, "compress_ratios", len(listed) >= number, number)
    for place, ratio in enumerate(listed):
        if isinstance(ratio, bool) or ratio not in COMPRESSED:
            raise InputError(f"{fields.path(f'compress_ratios.{place}')}: {shown(ratio)} given; allowed: 0, 4, 128")
    return [("attention", "window", COMPRESSED[ratio]) for ratio in listed[:number]]


def _hashed(fields: Fields, number: int) -> set[int]:
    """Return the layers that route by a table of tokens."""
    listed = entries(fields, "mlp_layer_types", number, ("dense", "sparse", "moe", "hash_moe"))
    if listed is not None:
        return {place for place, name in enumerate(listed) if name == "hash_moe"}
    return set(range(fields.maybe("num_hash_layers", least=0) or 0))


def _changes(fields: Fields, family: Family, number: int, reaches: list[Reach]) -> list[dict[str, Any]]:
    """List the fields of each layer that differ from those of the model."""
    changes: list[dict[str, Any]] = [{} for _ in range(number)]
    for name in BY_LAYER:
        if isinstance(fields.given(name), list):
            for place, value in enumerate(_listed(fields, name, number)):
                if isinstance(value, list | dict):
                    raise InputError(f"{fields.path(f'{name}.{place}')}: {shown(value)} given; allowed: a number")
                changes[place][name] = value
    for key, values in (fields.mapping("per_layer_config") or {}).items():
        place = int(key) if str(key).isdigit() and len(str(key)) < 6 else number
        if place >= number or not isinstance(values, dict):
            raise InputError(
                f"{fields.path('per_layer_config')}: {shown({key: values})} given; allowed: numbers, by layer and field"
            )
        for name, value in values.items():
            inner = Fields(values, fields.path(f"per_layer_config.{key}."))
            changes[place][str(name)] = None if value is None else inner.count(name, least=0)
    if fields.maybe("index_topk", least=0) and not family.tied_kv:
        for place, mode in enumerate(indexer_changes(fields, number)):
            changes[place]["indexer_types"] = mode
    _sparse_blocks(fields, number, changes)
    _sharing(fields, number, reaches, changes)
    return changes


def _sparse_blocks(fields: Fields, number: int, changes: list[dict[str, Any]]) -> None:
    """Add the fields of block-sparse attention to the layers that have it."""
    names = {
        "index_n_heads": "sparse_num_index_heads",
        "index_head_dim": "sparse_index_dim",
        "index_block_size": "sparse_block_size",
        "index_topk_blocks": "sparse_topk_blocks",
    }
    inner = fields.inside("sparse_attention_config")
    if inner is not None:
        if not inner.flag("use_sparse_attention", True):
            return
        values = {name: inner.count(legacy) for name, legacy in names.items()}
        placed = switches(inner, "sparse_attention_freq", number) or [1] * number
        for place in range(number):
            changes[place] |= values if placed[place] else {}
    elif fields.given("index_topk_blocks") is not None:
        for place, entry in enumerate(fields.listed("layer_types") or [""] * number):
            changes[place] |= {} if entry == "minimax_m3_sparse" else {"index_topk_blocks": None}


def _sharing(fields: Fields, number: int, reaches: list[Reach], changes: list[dict[str, Any]]) -> None:
    """Mark the last layers, which use K and V of the last layer of their reach that has its own."""
    shared = fields.maybe("num_kv_shared_layers", least=0) or 0
    first = number - shared
    for place in range(max(0, first), number):
        if reaches[place] not in reaches[: max(0, first)]:
            raise InputError(
                f"{fields.path('num_kv_shared_layers')}: {shared} given; allowed: fewer, so that layer {place} finds "
                "an earlier one of its kind with K and V"
            )
        changes[place]["own_kv"] = False
        if fields.flag("use_double_wide_mlp"):
            changes[place]["intermediate_size"] = 2 * fields.over(changes[place]).count("intermediate_size")


def _searched(fields: Fields, block: Any, place: int) -> Slot:
    """Read a block that an architecture search chose: attention and MLP, each possibly left out."""
    if not isinstance(block, dict):
        raise InputError(f"{fields.path(f'block_configs.{place}')}: {shown(block)} given; allowed: a mapping")
    outer = Fields(block, fields.path(f"block_configs.{place}."))
    changes: dict[str, Any] = {}
    parts = {}
    for name in ("attention", "ffn"):
        part = outer.inside(name) or Fields({}, outer.path(f"{name}."))
        for unread in ("replace_with_linear", "sparsify", "num_sink_tokens", "parallel_blocks", "hidden_act"):
            if part.given(unread):
                raise InputError(
                    f"{part.path(unread)}: {shown(part.given(unread))} given; allowed: no such field, because blocks "
                    "of this kind are not supported"
                )
        parts[name] = part
    attention, ffn = parts["attention"], parts["ffn"]
    attending, wide = not attention.flag("no_op"), not ffn.flag("no_op")
    reach: Reach = "full"
    if attending:
        heads = fields.count("num_attention_heads")
        if attention.given("num_key_value_heads") is not None:
            changes["num_key_value_heads"] = attention.count("num_key_value_heads")
        else:
            changes["num_key_value_heads"] = max(1, heads // attention.count("n_heads_in_group"))
        window = attention.maybe("window_length")
        if window is not None:
            reach, changes["sliding_window"] = "window", window
    if wide:
        changes["intermediate_size"] = ffn.maybe("intermediate_size") or _multiplied(fields, ffn)
    if ffn.mapping("moe"):
        raise InputError(f"{ffn.path('moe')}: given; allowed: no such field, because such experts are not supported")
    return Slot("attention" if attending else "none", reach, "dense" if wide else "none", "", FrozenDict(changes))


def _multiplied(fields: Fields, ffn: Fields) -> int:
    """Compute the width of an MLP from a multiple of the row: two thirds, rounded up to a multiple of 256."""
    scale = ffn.real("ffn_mult")
    if scale is None:
        raise InputError(f"{ffn.path('ffn_mult')}: not given, but required; allowed: a number above 0")
    return 256 * -(-int(2 * scale * fields.count("hidden_size") / 3) // 256)


def _layer(fields: Fields, kind: str, family: Family, slot: Slot, rope: bool) -> DecoderLayer:
    """Build one layer."""
    parts: dict[str, Any] = {}
    if slot.mixer in ("attention", "both"):
        attention = attention_of(fields, kind, family, slot, rope)
        if fields.given("own_kv") is False:
            attention["own_kv"] = False
        elif fields.flag("attention_k_eq_v") and slot.reach == "full":
            attention["v_proj"] = False
        parts["attention"] = attention
    if slot.mixer in ("recurrent", "both"):
        parts["recurrent"] = recurrent_of(fields, family.recurrent)
    routed = routed_experts(fields)
    if slot.width == "experts":
        parts["mlp"] = experts_of(fields, kind, family, routed, slot.hashed)
    elif slot.width == "dense":
        parts["mlp"] = dense_of(fields, kind, family, bool(routed) and not family.dense_beside)
    norms = family.norms
    if kind == "falcon" and (fields.flag("new_decoder_architecture") or not fields.flag("parallel_attn", True)):
        norms = 2
    if slot.width == "none" or slot.mixer == "none":
        norms = sum(part in parts for part in ("attention", "recurrent", "mlp")) and (
            norms if len(parts) > 1 else max(1, norms // 2)
        )
    if family.dense_beside and slot.width == "experts":
        norms += 3
    beside = _beside(fields)
    if family.inner_norms:
        beside["other_weights"] += fields.count("hidden_size") + fields.count("intermediate_size")
    return DecoderLayer(**parts, norms=norms, norm_bias=family.norm_bias, **beside)


def side_layer(name: str, width_in: int, width_out: int, times: int = 1, lookup: bool = False) -> dict[str, Any]:
    """Collect the fields of a linear layer beside attention and MLP."""
    return {"name": name, "in_features": width_in, "out_features": width_out, "times": times, "lookup": lookup}


def _beside(fields: Fields) -> dict[str, Any]:
    """Read linear layers and weights beside attention and MLP."""
    hidden = fields.count("hidden_size", "n_embd", "d_model")
    side: list[dict[str, Any]] = []
    weights = 0
    narrow = fields.maybe("hidden_size_per_layer_input", least=0) or 0
    if narrow:
        side += [side_layer("input gate", hidden, narrow), side_layer("input up", narrow, hidden)]
        weights += hidden
    rank = fields.maybe("laurel_rank")
    if rank is not None:
        side += [side_layer("laurel left", hidden, rank), side_layer("laurel right", rank, hidden)]
        weights += hidden
    streams = fields.maybe("altup_num_inputs")
    if streams is not None:
        side.append(side_layer("altup router", hidden, streams))
        weights += 2 * hidden + streams**2 + streams**3
    streams = fields.maybe("hc_mult")
    if streams is not None:
        mixed = (2 + streams) * streams
        side.append(side_layer("stream mix", streams * hidden, mixed, 2))
        weights += 2 * (mixed + 3)
    return {"side": side, "other_weights": weights}


SHARING = ("mamba", "linear_attention", "hybrid")
"""Kinds of layers of Zamba2, of which the hybrid ones share few blocks of attention and MLP."""


def _shared_blocks(fields: Fields, kind: str, family: Family, number: int) -> tuple[DecoderLayer, ...]:
    """Build layers with a state, some of which pass through a shared block before, with adapters of their own."""
    names = entries(fields, "layers_block_type", number, SHARING)
    if names is None:
        hybrid = fields.positions("hybrid_layer_ids")
        if hybrid is None:
            raise InputError(
                f"{fields.path('layers_block_type')}: not given, but required; allowed: {', '.join(SHARING)}"
            )
        names = ["hybrid" if place in hybrid else "mamba" for place in range(number)]
    recurrent = recurrent_of(fields, family.recurrent)
    plain = DecoderLayer(recurrent=recurrent, norms=1)
    blocks = fields.maybe("num_mem_blocks") or 1
    first, again = (_hybrid(fields, kind, family, recurrent, reused) for reused in (False, True))
    layers, passed = [], 0
    for name in names:
        layers.append(plain if name != "hybrid" else first if passed < blocks else again)
        passed += name == "hybrid"
    return tuple(layers)


def _hybrid(fields: Fields, kind: str, family: Family, recurrent: dict[str, Any], reused: bool) -> DecoderLayer:
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    wide = fields.maybe("attention_hidden_size") or 2 * hidden
    mlp = {**dense_of(fields, kind, family), "bias": fields.flag("add_bias_linear")}
    rank = fields.maybe("adapter_rank") or 128
    inner = mlp["intermediate_size"]
    side = [
        side_layer("back", hidden, hidden),
        side_layer("adapter in", hidden, rank),
        side_layer("adapter out", rank, 2 * inner),
    ]
    if fields.flag("use_shared_attention_adapter"):
        side += [side_layer("attention adapter in", wide, rank, 3), side_layer("attention adapter out", rank, wide, 3)]
    attention = {
        "heads": heads,
        "kv_heads": fields.maybe("num_key_value_heads") or heads,
        "head_dim": fields.maybe("attention_head_dim") or wide // heads,
        "input_width": wide,
        "rope": fields.flag("use_mem_rope"),
        "other_weights": wide + hidden,  # the norms of the block, stored with it
    }
    return DecoderLayer(attention=attention, recurrent=recurrent, mlp=mlp, norms=1, reused=reused, side=side)
