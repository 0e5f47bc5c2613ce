"""MLP of one layer of a config.json: dense, or experts with a router."""

from __future__ import annotations

from typing import Any

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown
from iomodel.models.config_attention import switch
from iomodel.models.config_fields import Fields
from iomodel.models.families import Family

ROUTED = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts")
CHOSEN = (
    "num_experts_per_tok",
    "experts_per_token",
    "num_experts_per_token",
    "moe_topk",
    "moe_k",
    "top_k_experts",
    "moe_top_k",
)
SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)
EXPERT_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "intermediate_size")
ACTIVATION = ("hidden_activation", "mlp_hidden_act", "hidden_act", "activation_function")
BIASED = ("noaux_tc",)


def routed_experts(fields: Fields) -> int:
    """Read the number of routed experts, 0 for a dense model."""
    if fields.given("enable_moe_block") is False:
        return 0
    name = fields.first(*ROUTED)
    if name is not None and isinstance(fields.given(name), list):
        raise InputError(f"{fields.path(name)}: {shown(fields.given(name))} given; allowed: one number of experts")
    return fields.maybe(*ROUTED, least=0) or 0


def _common(fields: Fields, family: Family) -> dict[str, Any]:
    return {
        "gated": family.gated,
        "activation": fields.optional(fields.text, *ACTIVATION) or family.activation,
        "bias": switch(fields, family.mlp_bias, family.bias),
        **({"other_weights": family.mlp_vectors} if family.mlp_vectors else {}),
    }


def dense_of(fields: Fields, kind: str, family: Family, beside_experts: bool = False) -> dict[str, Any]:
    """Read the dense MLP of a layer."""
    return {**_common(fields, family), "intermediate_size": _width(fields, kind, beside_experts)}


def _width(fields: Fields, kind: str, beside_experts: bool) -> int:
    """Read the width of a dense MLP."""
    if kind == "falcon":
        return fields.maybe("ffn_hidden_size") or 4 * fields.count("hidden_size")
    alone = fields.maybe("shared_intermediate_size", least=0)
    if alone and not beside_experts:  # shared experts without routed ones
        return alone
    if beside_experts:
        return fields.count("dense_intermediate_size", "intermediate_size_mlp", "ffn_hidden_size", "intermediate_size")
    if fields.given("intermediate_size") is None and fields.given("expansion_ratio") is not None:
        return as_integer(fields.path("expansion_ratio"), fields.given("expansion_ratio")) * fields.count("hidden_size")
    if fields.nullable("intermediate_size"):
        return 4 * fields.count("hidden_size")
    wide = fields.maybe("block_ff_dim") or fields.count("intermediate_size_mlp", "intermediate_size", "n_inner")
    if fields.flag("block_auto_adjust_ff_dim"):
        wide = int(2 * wide / 3)
        scale = fields.real("block_ffn_dim_multiplier")
        wide = wide if scale is None else int(scale * wide)
        multiple = fields.count("block_multiple_of")
        wide = multiple * -(-wide // multiple)
    return wide


def experts_of(fields: Fields, kind: str, family: Family, routed: int, hashed: bool = False) -> dict[str, Any]:
    """Read the experts of a layer; `hashed` if a table of tokens routes instead of scores with a bias."""
    if not family.experts:
        name = fields.first(*ROUTED) or ""
        raise InputError(
            f"{fields.path(name)}: {routed} given; allowed: 0 or no such field, because {kind} has no experts"
        )
    width = fields.count(*EXPERT_WIDTH)
    common = fields.maybe(*SHARED, least=0)
    wide = fields.maybe(*SHARED_WIDTH, least=0) if family.shared_width else None
    if family.dense_beside or family.two_in_one:
        common, wide = 1, fields.count("intermediate_size")
    elif wide == 0:
        common, wide = 0, None
    elif common is None:
        common = family.shared_experts or int(bool(wide))
    if family.shared_width == "total" and wide and common:
        common = 1
    chosen = fields.count(*CHOSEN)
    if chosen > routed:
        name = fields.first(*CHOSEN) or CHOSEN[0]
        raise InputError(f"{fields.path(name)}: {chosen} given; allowed: from 1 to the number of experts, {routed}")
    latent = fields.maybe("moe_latent_size", "routed_expert_hidden_size", least=0) or 0
    biased = family.router_bias or fields.given("topk_method") in BIASED
    for name in ("use_routing_bias", "use_moe_router_bias", "moe_router_enable_expert_bias", "use_expert_bias"):
        biased = fields.flag(name, biased)
    return {
        **_common(fields, family),
        "experts": routed,
        "experts_per_token": chosen,
        "expert_intermediate_size": width,
        "shared_experts": common,
        "shared_intermediate_size": wide or width,
        "shared_gate": family.shared_gate and bool(common),
        "router_bias": biased and not hashed,
        "latent_size": latent,
        "latent_norm": bool(latent) and fields.flag("latent_moe_use_norm"),
        "idle_experts": fields.maybe("zero_expert_num", least=0) or 0,
        **({"other_weights": fields.count("hidden_size") + routed} if family.router_scale else {}),
    }
