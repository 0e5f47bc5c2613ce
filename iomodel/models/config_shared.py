"""Layers of a config.json that share the weights of few blocks of attention and MLP: Zamba2."""

from __future__ import annotations

from typing import Any

from iomodel.errors import InputError
from iomodel.models.config_mlp import dense_of
from iomodel.models.config_order import entries
from iomodel.models.config_recurrent import recurrent_of
from iomodel.models.families import Family
from iomodel.models.fields import Fields
from iomodel.models.layers import DecoderLayer

KINDS = ("mamba", "linear_attention", "hybrid")


def shared_blocks(fields: Fields, kind: str, family: Family, number: int) -> tuple[DecoderLayer, ...]:
    """Build layers with a state, some of which pass through a shared block before, with adapters of their own."""
    names = entries(fields, "layers_block_type", number, KINDS)
    if names is None:
        hybrid = fields.positions("hybrid_layer_ids")
        if hybrid is None:
            raise InputError(
                f"{fields.path('layers_block_type')}: not given, but required; allowed: {', '.join(KINDS)}"
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
        {"name": "back", "in_features": hidden, "out_features": hidden},
        {"name": "adapter in", "in_features": hidden, "out_features": rank},
        {"name": "adapter out", "in_features": rank, "out_features": 2 * inner},
    ]
    if fields.flag("use_shared_attention_adapter"):
        side += [
            {"name": "attention adapter in", "in_features": wide, "out_features": rank, "times": 3},
            {"name": "attention adapter out", "in_features": rank, "out_features": wide, "times": 3},
        ]
    attention = {
        "heads": heads,
        "kv_heads": fields.maybe("num_key_value_heads") or heads,
        "head_dim": fields.maybe("attention_head_dim") or wide // heads,
        "input_width": wide,
        "rope": fields.flag("use_mem_rope"),
        "other_weights": wide + hidden,  # the norms of the block, stored with it
    }
    return DecoderLayer(attention=attention, recurrent=recurrent, mlp=mlp, norms=1, reused=reused, side=side)
