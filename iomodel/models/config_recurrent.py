"""Recurrent layers of a config.json: gated delta rules, KDA, lightning attention, Mamba, short convolutions."""

from __future__ import annotations

from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields

KINDS = ("gated_deltanet", "kda", "lightning", "mamba1", "mamba2", "short_convolution")


def recurrent_of(fields: Fields, kind: str | None) -> dict[str, Any]:
    """Read the recurrent part of a layer, of the kind that the model type or the fields name."""
    kind = kind or _kind(fields)
    reader = {
        "gated_deltanet": _gated_deltanet,
        "kda": _kda,
        "lightning": _lightning,
        "mamba1": _mamba1,
        "mamba2": _mamba2,
        "short_convolution": _short_convolution,
    }[kind]
    return {"kind": kind, **reader(fields)}


def _kind(fields: Fields) -> str:
    """Name the kind of recurrence by the fields that only it has."""
    for name, kind in (
        ("linear_attn_config", "kda"),
        ("linear_num_heads", "kda"),
        ("linear_num_value_heads", "gated_deltanet"),
        ("attn_type_list", "lightning"),
        ("conv_L_cache", "short_convolution"),
        ("mamba_dt_rank", "mamba1"),
        ("mamba_num_heads", "mamba2"),
        ("mamba_n_heads", "mamba2"),
    ):
        if fields.given(name) is not None:
            return kind
    raise InputError(
        f"{fields.path('layer_types')}: a layer with linear attention given without the fields of one; allowed: those "
        "of a gated delta rule (linear_num_value_heads), KDA (linear_num_heads), lightning attention (attn_type_list), "
        "Mamba (mamba_num_heads, mamba_dt_rank) or a short convolution (conv_L_cache)"
    )


def _gated_deltanet(fields: Fields) -> dict[str, Any]:
    derived = fields.nullable("linear_num_key_heads"), fields.nullable("linear_num_value_heads")
    keys, values = (
        fields.count("num_attention_heads" if null else name)
        for null, name in zip(derived, ("linear_num_key_heads", "linear_num_value_heads"), strict=True)
    )
    if values % keys:
        raise InputError(
            f"{fields.path('linear_num_value_heads')}: {values} given; allowed: a multiple of linear_num_key_heads = "
            f"{keys}"
        )
    name = "linear_key_head_dim"
    wide = int(0.75 * fields.count("hidden_size") / keys) if fields.nullable(name) else fields.count(name)
    return {
        "key_heads": keys,
        "value_heads": values,
        "key_dim": wide,
        "value_dim": 2 * wide if fields.nullable("linear_value_head_dim") else fields.count("linear_value_head_dim"),
        "kernel": fields.count("linear_conv_kernel_dim"),
    }


def _kda(fields: Fields) -> dict[str, Any]:
    inner = fields.inside("linear_attn_config")
    if inner is not None:
        width = inner.count("head_dim")
        full = inner.flag("use_full_rank_gate")
        return {
            "heads": inner.count("num_heads"),
            "head_dim": width,
            "kernel": inner.count("short_conv_kernel_size"),
            "forget_rank": width,
            "gate_rank": None if full else width,
        }
    width = fields.maybe("linear_head_dim") or fields.count("linear_head_dim", "head_dim")
    low = fields.flag("linear_low_rank_gates")
    return {
        "heads": fields.maybe("linear_num_heads") or fields.count("linear_num_heads", "num_attention_heads"),
        "head_dim": width,
        "kernel": fields.count("linear_conv_kernel_dim", "short_conv_kernel_size"),
        "forget_rank": width if low else None,
        "gate_rank": width if low else None,
    }


def _lightning(fields: Fields) -> dict[str, Any]:
    heads = fields.count("num_attention_heads")
    width = fields.maybe("head_dim") or fields.count("hidden_size") // heads
    return {"heads": heads, "head_dim": width, "chunk": fields.maybe("block_size") or 256}


def _mamba2(fields: Fields) -> dict[str, Any]:
    heads = fields.maybe("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    if heads is None:
        heads = fields.count("mamba_num_heads")
    inner = fields.maybe("mamba_d_ssm") or _expanded(fields)
    head_field = fields.given("mamba_d_head")
    width = (
        None if head_field == "auto" else fields.maybe("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
    )
    if width is None:
        if inner is None or inner % heads:
            raise InputError(
                f"{fields.path('mamba_d_head')}: {shown(head_field)} given; allowed: the width of a head, or "
                "mamba_expand with a number of heads that divides mamba_expand * hidden_size"
            )
        width = inner // heads
    return {
        "heads": heads,
        "head_dim": width,
        "state_dim": fields.count("ssm_state_size", "mamba_d_state", "state_size"),
        "groups": fields.count("n_groups", "mamba_n_groups", "mamba_ngroups"),
        "kernel": fields.count("conv_kernel", "mamba_d_conv"),
        "conv_bias": fields.flag("use_conv_bias", fields.flag("mamba_conv_bias", True)),
        "proj_bias": fields.flag("mamba_proj_bias", fields.flag("add_bias_linear", fields.flag("use_bias"))),
        "gate_norm": fields.flag("mamba_rms_norm", True),
        "chunk": fields.maybe("mamba_chunk_size", "chunk_size") or 256,
    }


def _expanded(fields: Fields) -> int | None:
    expand = fields.given("mamba_expand")
    expand = fields.given("expand") if expand is None else expand
    if isinstance(expand, int | float) and not isinstance(expand, bool) and 0 < expand < 1e6:
        return int(expand * fields.count("hidden_size"))
    return None


def _mamba1(fields: Fields) -> dict[str, Any]:
    hidden = fields.count("hidden_size")
    name = fields.first("mamba_dt_rank", "time_step_rank")
    rank = None if name is None else fields.given(name)
    alone = fields.given("mamba_d_state") is None  # the fields of a model without attention, which has no norms inside
    return {
        "inner": (fields.maybe("intermediate_size") if alone else None) or _expanded(fields) or 2 * hidden,
        "state_dim": fields.count("mamba_d_state", "state_size"),
        "rank": -(-hidden // 16) if name is None or rank == "auto" else fields.count(name),
        "kernel": fields.count("mamba_d_conv", "conv_kernel"),
        "conv_bias": fields.flag("mamba_conv_bias", fields.flag("use_conv_bias", True)),
        "proj_bias": fields.flag("mamba_proj_bias", fields.flag("use_bias")),
        "inner_norms": not alone,
    }


def _short_convolution(fields: Fields) -> dict[str, Any]:
    return {
        "channels": fields.maybe("conv_dim") or fields.count("hidden_size"),
        "kernel": fields.count("conv_L_cache"),
        "bias": fields.flag("conv_bias"),
    }
