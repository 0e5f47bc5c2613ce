"""Families of model types: the meaning of config.json fields and the defaults of omitted ones.

Taken from the `configuration_*.py` and `modeling_*.py` of Hugging Face transformers, where a model type is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Windows = Literal["none", "all", "late"] | int
"""Layers with the sliding window in the absence of `layer_types`: none; all; those from `max_window_layers` on;
all but every n-th."""


@dataclass(frozen=True)
class Family:
    """Layer properties of one model type.

    Attributes
    ----------
    qkv_bias, o_bias, mlp_bias : True if the projections add a bias, or the name of the field that decides.
    bias : default of such a field.
    qk_norm : rows of Q and K are normalised, with weights of a "head", of "all" heads, or with "none".
    qk_norm_field : the field that enables the normalisation; its default is `qk_norm_default`.
    norms, norm_bias : number of normalisations of a whole row with weights; True if they add a bias (LayerNorm).
    gated, activation : properties of the MLP.
    tied, lm_head_bias : properties of the output layer.
    windows : layers with the sliding window.
    rope_everywhere : global layers use RoPE too.
    experts : the MLP may consist of experts.
    shared_experts, shared_gate, router_bias : properties of the experts.
    sinks : the attention has sinks.
    defaults : values of fields that files omit.
    """

    qkv_bias: bool | str = "attention_bias"
    o_bias: bool | str = "attention_bias"
    mlp_bias: bool | str = False
    bias: bool = False
    qk_norm: Literal["head", "all", "none"] | None = None
    qk_norm_field: str | None = None
    qk_norm_default: bool = False
    norms: int = 2
    norm_bias: bool = False
    gated: bool = True
    activation: str = "silu"
    tied: bool = False
    lm_head_bias: bool = False
    windows: Windows = "none"
    rope_everywhere: bool = True
    experts: bool = False
    shared_experts: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    sinks: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


_plain = Family(qkv_bias=False, o_bias=False)
_llama = Family(mlp_bias="mlp_bias")
_mistral = replace(_plain, windows="all", defaults={"sliding_window": 4096, "num_key_value_heads": 8})
_qwen2 = Family(qkv_bias=True, o_bias=False, windows="late", defaults={"use_sliding_window": False})
_qwen3 = Family(qk_norm="head", windows="late", defaults={"use_sliding_window": False})
_gemma = Family(tied=True, activation="gelu_pytorch_tanh", defaults={"head_dim": 256, "num_key_value_heads": 16})
_gemma2 = replace(
    _gemma,
    norms=4,
    windows=2,
    defaults={"head_dim": 256, "num_key_value_heads": 4, "sliding_window": 4096, "attn_logit_softcapping": 50.0},
)
_gemma3 = replace(
    _gemma2,
    qk_norm="head",
    windows=6,
    defaults={
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
)
_gpt_oss = Family(
    bias=True,
    mlp_bias=True,
    router_bias=True,
    experts=True,
    sinks=True,
    windows=2,
    defaults={
        "head_dim": 64,
        "num_key_value_heads": 8,
        "sliding_window": 128,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
    },
)
_deepseek_v2 = Family(experts=True)
V3 = {"first_k_dense_replace": 3, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8}
_deepseek_v3 = replace(_deepseek_v2, router_bias=True, defaults=V3)
_cohere = Family(norms=1, tied=True, qk_norm="all", qk_norm_field="use_qk_norm")
_glm = Family(o_bias=False, defaults={"num_key_value_heads": 2})
_starcoder2 = Family(
    "use_bias",
    "use_bias",
    "use_bias",
    bias=True,
    norm_bias=True,
    gated=False,
    activation="gelu_pytorch_tanh",
    tied=True,
    windows="all",
    defaults={"num_key_value_heads": 2},
)
_neox = Family(True, True, True, norm_bias=True, gated=False, activation="gelu")
_phi = replace(_neox, norms=1, lm_head_bias=True, activation="gelu_new")
_falcon = Family("bias", "bias", "bias", norms=1, norm_bias=True, gated=False, activation="gelu", tied=True)

UNKNOWN = replace(_llama, windows="all", experts=True, qk_norm="head", qk_norm_field="use_qk_norm")
"""Family of an unknown model type: Llama, with the windows and experts that its fields name."""

FAMILIES: dict[str, Family] = {
    "llama": _llama,
    "granite": _llama,
    "smollm3": replace(_llama, defaults={"num_key_value_heads": 4}),
    "mistral": _mistral,
    "ministral": _mistral,
    "mixtral": replace(
        _plain,
        windows="all",
        experts=True,
        defaults={"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    ),
    "qwen2": _qwen2,
    "qwen2_moe": replace(
        _qwen2,
        experts=True,
        shared_gate=True,
        defaults={"use_sliding_window": False, "num_experts": 60, "num_experts_per_tok": 4},
    ),
    "qwen3": _qwen3,
    "qwen3_moe": replace(
        _qwen3,
        experts=True,
        defaults={
            "use_sliding_window": False,
            "num_key_value_heads": 4,
            "num_experts": 128,
            "num_experts_per_tok": 8,
        },
    ),
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "phi": _phi,
    "phi3": replace(_plain, windows="all"),
    "cohere": _cohere,
    "cohere2": replace(_cohere, qk_norm=None, windows=4, rope_everywhere=False, defaults={"sliding_window": 4096}),
    "olmo": replace(_llama, norms=0, mlp_bias=False),
    "olmo2": Family(qk_norm="all"),
    "olmo3": Family(qk_norm="all", windows=4, defaults={"sliding_window": 4096}),
    "olmoe": Family(qk_norm="all", experts=True, defaults={"num_experts": 64, "num_experts_per_tok": 8}),
    "glm": _glm,
    "glm4": replace(_glm, norms=4),
    "glm4_moe": replace(
        _glm,
        experts=True,
        router_bias=True,
        qk_norm="head",
        qk_norm_field="use_qk_norm",
        defaults={
            "first_k_dense_replace": 1,
            "num_key_value_heads": 8,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
        },
    ),
    "llama4_text": Family(
        qk_norm="none",
        qk_norm_field="use_qk_norm",
        qk_norm_default=True,
        experts=True,
        shared_experts=1,
        rope_everywhere=False,
        defaults={
            "attention_chunk_size": 8192,
            "no_rope_layer_interval": 4,
            "interleave_moe_layer_step": 1,
            "num_key_value_heads": 8,
            "num_local_experts": 16,
            "num_experts_per_tok": 1,
        },
    ),
    "starcoder2": _starcoder2,
    "gpt_neox": _neox,
    "falcon": _falcon,
}

ALIASES = {
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "kimi_k2": "deepseek_v3",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
"""Model types that share the language model of another type."""

NESTED = ("text_config", "language_config", "llm_config")
"""Fields in which a multimodal model keeps the config of its language model."""

WITHOUT_ATTENTION = (
    "mamba",
    "rwkv",
    "jamba",
    "bamba",
    "hybrid",
    "recurrent_gemma",
    "falcon_h1",
    "qwen3_next",
    "qwen3_5",
    "lfm2",
    "kimi_linear",
    "nemotron_h",
    "minimax",
    "plamo2",
    "retnet",
    "hyena",
)
"""Substrings of model types with layers without softmax attention."""

UNKNOWN_SHAPES = (
    "is_encoder_decoder",
    "add_cross_attention",
    "cross_attention_layers",
    "num_kv_shared_layers",
    "hidden_size_per_layer_input",
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "index_topk",
    "compress_ratios",
    "linear_attn_config",
    "linear_num_value_heads",
    "full_attention_interval",
    "ssm_cfg",
    "ssm_state_size",
    "state_size",
    "mamba_d_state",
    "conv_L_cache",
    "hybrid_override_pattern",
    "layers_block_type",
    "attn_layer_period",
    "attn_layer_indices",
    "attn_type_list",
    "block_configs",
)
"""Fields that change the layers or their caches in unsupported ways."""
