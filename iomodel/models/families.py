"""Families of model types: the meaning of config.json fields, and orders of layers where no field gives one.

Taken from the `configuration_*.py` and `modeling_*.py` of Hugging Face transformers, where a model type is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

CSA, HCA = "compressed_sparse_attention", "heavily_compressed_attention"
"""Kinds of layers of DeepSeek-V4."""
Windows = Literal["none", "all", "late", "chunks"] | int
"""Layers with the sliding window in the absence of `layer_types`: none; all; those from `max_window_layers` on;
chunks instead, in layers with RoPE; all but every n-th."""


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
    lm_head_bias : the output layer adds a bias, or the name of the field that decides.
    windows : layers with the sliding window.
    rope_everywhere : global layers use RoPE too.
    experts : the MLP may consist of experts.
    shared_experts, shared_gate, router_bias : properties of the experts.
    sinks : the attention has sinks; "fields" if fields say so by reach.
    out_gate : gate on the output of attention, if no field says otherwise.
    tied_kv : one cached row is both K and V (DeepSeek-V4).
    mixer : every layer has "attention", has a "recurrent" state instead, or has "both"; fields decide by layer.
    recurrent : kind of layers with linear attention or a state; None if the fields tell.
    order : kinds of the first layers, and those that the further ones repeat, where no field gives an order.
    shared_width : fields about the width of shared experts state that of "one", of the "total", or "" are ignored.
    dense_beside : layers with experts have a dense MLP too.
    router_scale : the router scales its input and its experts by weights.
    further : modules that predict further tokens are layers like the last one with attention, beside a product that
        joins two rows, and three norms.
    single_blocks : a layer is one block: attention, a state, or an MLP (Nemotron-H).
    stream_head : streams between layers (mHC) are mixed once more before the output.
    inner_norms : the outputs of attention and of the activation are normalised with weights.
    two_in_one : a layer is two of attention and MLP, the first of which has experts beside its MLP (LongCat).
    shapes : fields of `SHAPES` that the family reads, besides those of its recurrent layers.
    mlp, mlp_vectors : layers have an MLP; further weights of one.
    modules : names of the modules of a layer in a checkpoint, by part, where they are uncommon.
    defaults : values of fields that files omit and configuration classes derive, or read with a default elsewhere.
    names : common names of fields by those that the type has for them; a dot leads into a section.
    positions : a table has a learned row for each position, and this many more; None without one.
    embedding_norm : rows of the embedding are normalised.
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
    lm_head_bias: bool | str = False
    windows: Windows = "none"
    rope_everywhere: bool = True
    experts: bool = False
    shared_experts: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    sinks: bool | Literal["fields"] = False
    out_gate: Literal["element", "head"] | None = None
    tied_kv: bool = False
    mixer: Literal["attention", "recurrent", "both"] = "attention"
    recurrent: str | None = None
    order: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    shared_width: Literal["one", "total", ""] = "one"
    dense_beside: bool = False
    router_scale: bool = False
    inner_norms: bool = False
    further: bool = False
    single_blocks: bool = False
    stream_head: bool = False
    shapes: frozenset[str] = frozenset()
    two_in_one: bool = False
    mlp: bool = True
    mlp_vectors: int = 0
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    positions: int | None = None
    embedding_norm: bool = False


_GPT2 = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_positions": "max_position_embeddings",
}
"""Common names of the fields of GPT-2 and its relatives."""
_MPT = {
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "max_seq_len": "max_position_embeddings",
    "attn_config.kv_n_heads": "num_key_value_heads",
    "attn_config.alibi": "alibi",
}
"""Common names of the fields of MPT and DBRX."""

_plain = Family(qkv_bias=False, o_bias=False)
_llama = Family(mlp_bias="mlp_bias")
_mistral = replace(_plain, windows="all")
_qwen2 = Family(qkv_bias=True, o_bias=False, windows="late")
_qwen3 = Family(qk_norm="head", windows="late")
_gemma = Family(activation="gelu_pytorch_tanh")
_gemma2 = replace(_gemma, norms=4, windows=2)
_gemma3 = replace(_gemma2, qk_norm="head", windows=6)
_gpt_oss = Family(bias=True, mlp_bias=True, router_bias=True, experts=True, sinks=True, windows=2)
_deepseek_v2 = Family(experts=True)
_deepseek_v3 = replace(_deepseek_v2, router_bias=True, further=True)
_cohere = Family(norms=1, qk_norm="all", qk_norm_field="use_qk_norm")
_glm = Family(o_bias=False)
_neox = Family(True, True, True, norm_bias=True, gated=False, activation="gelu")
_phi = replace(_neox, norms=1, lm_head_bias=True, activation="gelu_new")
_falcon = Family("bias", "bias", "bias", norms=1, norm_bias=True, gated=False, activation="gelu")

_gpt2 = replace(
    _neox, positions=0, activation="gelu_new", names=_GPT2, defaults={"tie_word_embeddings": True, "expansion_ratio": 4}
)
_gptj = replace(
    _neox,
    qkv_bias=False,
    o_bias=False,
    norms=1,
    lm_head_bias=True,
    activation="gelu_new",
    names=_GPT2,
    defaults={"expansion_ratio": 4},
)

_dsa = replace(_deepseek_v2, router_bias=True, further=True, shapes=frozenset({"index_topk"}))
_hybrid = replace(_plain, recurrent="mamba2", qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias")
_gated_delta = replace(
    _qwen3,
    windows="none",
    out_gate="element",
    further=True,
    recurrent="gated_deltanet",
    experts=True,
    shared_gate=True,
    defaults={"full_attention_interval": 4},
)
_minimax = replace(_plain, experts=True, recurrent="lightning", order=((), ("full_attention", "linear_attention")))
_gemma4 = replace(
    _gemma3,
    dense_beside=True,
    router_scale=True,
    experts=True,
    shapes=frozenset(
        {
            "num_kv_shared_layers",
            "hidden_size_per_layer_input",
            "global_head_dim",
            "num_global_key_value_heads",
            "attention_k_eq_v",
        }
    ),
    modules={"experts": ("experts", "moe.experts"), "shared": ("mlp",)},
)

_hunyuan = replace(_llama, qk_norm="head", mlp_bias=False, qk_norm_field="use_qk_norm", qk_norm_default=True)
_ernie = Family("use_bias", "use_bias", "use_bias")
_lfm2 = replace(_plain, recurrent="short_convolution", qk_norm="head", order=((), ("full_attention",)))
_mamba = replace(_plain, mixer="recurrent", recurrent="mamba2", mlp=False)
_THREE_LINEAR = (*("linear_attention",) * 3, "full_attention")
_FIVE_WINDOWS = (*("sliding_attention",) * 5, "full_attention")
_olmoe = Family(qk_norm="all", experts=True)

UNKNOWN = replace(_llama, windows="all", experts=True, qk_norm="head", qk_norm_field="use_qk_norm")
"""Family of an unknown model type: Llama, with the windows and experts that its fields name."""

FAMILIES: dict[str, Family] = {
    "llama": _llama,
    "granite": _llama,
    "smollm3": _llama,
    "mistral": _mistral,
    "ministral": _mistral,
    "mixtral": replace(_plain, windows="all", experts=True),
    "qwen2": _qwen2,
    "qwen2_moe": replace(_qwen2, experts=True, shared_gate=True),
    "qwen3": _qwen3,
    "qwen3_moe": replace(_qwen3, experts=True),
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "phi": _phi,
    "phi3": replace(_plain, windows="all"),
    "cohere": _cohere,
    "cohere2": replace(_cohere, qk_norm=None, windows=4, rope_everywhere=False),
    "olmo": replace(_llama, norms=0, mlp_bias=False),
    "olmo2": Family(qk_norm="all"),
    "olmo3": Family(qk_norm="all", windows=4),
    "olmoe": _olmoe,
    "glm": _glm,
    "glm4": replace(_glm, norms=4),
    "glm4v": replace(_glm, norms=4, qkv_bias=True),
    "glm4_moe": replace(
        _glm, further=True, experts=True, router_bias=True, qk_norm="head", qk_norm_field="use_qk_norm"
    ),
    "llama4_text": Family(
        qk_norm="none",
        qk_norm_field="use_qk_norm",
        qk_norm_default=True,
        experts=True,
        shared_experts=1,
        rope_everywhere=False,
        windows="chunks",
    ),
    "minimax": replace(_minimax, qkv_bias=False),
    "minimax_m2": replace(
        _minimax, recurrent=None, order=((), ()), qk_norm="all", router_bias=True, shapes=frozenset({"attn_type_list"})
    ),
    "minimax_m3": replace(
        _minimax,
        recurrent=None,
        order=((), ()),
        qk_norm="head",
        router_bias=True,
        shapes=frozenset({"attn_type_list", "sparse_attention_config", "index_topk_blocks"}),
    ),
    "qwen3_next": _gated_delta,
    "qwen3_5_text": replace(_gated_delta, experts=False),
    "qwen3_5_moe_text": _gated_delta,
    "olmo_hybrid": replace(_gated_delta, qk_norm="all", experts=False, out_gate=None, further=False),
    "mimo_v2_flash": replace(
        _plain,
        qkv_bias="attention_bias",
        experts=True,
        router_bias=True,
        sinks="fields",
        order=(("full_attention", *_FIVE_WINDOWS[1:]), _FIVE_WINDOWS),
        defaults={"swa_num_key_value_heads": 8, "first_k_dense_replace": 1},
    ),
    "deepseek_v32": _dsa,
    "glm_moe_dsa": _dsa,
    "glm5_next_text": replace(
        _dsa,
        recurrent="kda",
        order=((), _THREE_LINEAR),
        defaults={"linear_low_rank_gates": True, "first_k_dense_replace": 3},
    ),
    "longcat_flash": replace(_plain, experts=True, router_bias=True, two_in_one=True),
    "zamba2": replace(_plain, recurrent="mamba2", mlp=False, activation="gelu"),
    "glm4_moe_lite": replace(_dsa, defaults={"first_k_dense_replace": 1}),
    "mistral4": _deepseek_v2,
    "deepseek_v4": replace(
        _plain,
        experts=True,
        router_bias=True,
        tied_kv=True,
        stream_head=True,
        sinks=True,
        order=((HCA, HCA), (HCA, CSA)),
        shapes=frozenset({"index_topk", "compress_ratios"}),
        defaults={"num_hash_layers": 3},
    ),
    "kimi_linear": replace(
        _dsa,
        recurrent="kda",
        order=(("linear_attention",), _THREE_LINEAR),
        defaults={"linear_low_rank_gates": True, "first_k_dense_replace": 1},
    ),
    "bailing_hybrid": replace(_dsa, recurrent="kda", out_gate="head"),
    "gemma3n_text": replace(
        _gemma3, shapes=frozenset({"num_kv_shared_layers", "hidden_size_per_layer_input"}), windows=5
    ),
    "gemma4_text": replace(_gemma4, defaults={"global_head_dim": 512}),
    "nemotron_h": replace(
        _hybrid,
        gated=False,
        activation="relu2",
        experts=True,
        router_bias=True,
        single_blocks=True,
        modules={
            "attention": ("mixer",),
            "recurrent": ("mixer",),
            "mlp": ("mixer",),
            "experts": ("mixer.experts",),
            "shared": ("mixer.shared_experts",),
            "latent": ("mixer",),
        },
    ),
    "nemotron_nas": replace(_llama, shapes=frozenset({"block_configs"})),
    "falcon_h1": replace(_hybrid, mixer="both"),
    "bamba": _hybrid,
    "jamba": replace(_plain, recurrent="mamba1", experts=True),
    "granitemoehybrid": replace(_hybrid, experts=True),
    "lfm2": _lfm2,
    "lfm2_moe": replace(_lfm2, experts=True, router_bias=True),
    "lfm3": replace(
        _lfm2, norms=4, out_gate="head", order=(("conv",), ("conv", "full_attention", "conv", "sliding_attention"))
    ),
    "mamba": replace(_mamba, recurrent="mamba1"),
    "falcon_mamba": replace(_mamba, recurrent="mamba1"),
    "mamba2": _mamba,
    "afmoe": replace(_plain, norms=4, qk_norm="head", out_gate="element", experts=True, router_bias=True, windows=4),
    "apertus": replace(_llama, gated=False, activation="xielu", qk_norm="head", mlp_vectors=2),
    "arcee": replace(_llama, gated=False, activation="relu2"),
    "nemotron": replace(_llama, gated=False, activation="relu2", norm_bias=True),
    "nanochat": replace(_llama, gated=False, activation="relu2", qk_norm="none", norms=0),
    "cohere2_moe": replace(_cohere, qk_norm=None, windows=4, rope_everywhere=False, experts=True),
    "exaone": _plain,
    "exaone4": replace(_plain, qk_norm="head", windows=4, rope_everywhere=False),
    "exaone_moe": replace(_plain, qk_norm="head", windows=4, rope_everywhere=False, experts=True, router_bias=True),
    "stablelm": replace(_llama, qkv_bias="use_qkv_bias", o_bias=False, norm_bias=True, mlp_bias=False),
    "minicpm": _plain,
    "minicpm3": _plain,
    "youtu": _plain,
    "hunyuan_v1_dense": _hunyuan,
    "hunyuan_v1_moe": replace(_hunyuan, experts=True, shared_experts=1),
    "hy_v3": replace(_plain, qk_norm="head", experts=True, router_bias=True, defaults={"first_k_dense_replace": 1}),
    "seed_oss": replace(_llama, o_bias="attention_out_bias"),
    "dots1": replace(_llama, qk_norm="head", mlp_bias=False, experts=True, router_bias=True),
    "ernie4_5": _ernie,
    "ernie4_5_moe": replace(_ernie, experts=True, router_bias=True),
    "helium": _llama,
    "solar_open": replace(_llama, experts=True, router_bias=True),
    "vaultgemma": replace(_gemma2, norms=2),
    "granitemoe": replace(_llama, mlp_bias=False, experts=True),
    "granitemoeshared": replace(_llama, mlp_bias=False, experts=True),
    "flex_olmo": _olmoe,
    "ministral3": _mistral,
    "internlm3": _llama,
    "bitnet": replace(_plain, activation="relu2", inner_norms=True),
    "phimoe": replace(_llama, experts=True, norm_bias=True, lm_head_bias="lm_head_bias"),
    "step3p7_text": replace(_llama, experts=True, qk_norm="head", out_gate="head", router_bias=True),
    "starcoder2": replace(
        _ernie, bias=True, norm_bias=True, gated=False, activation="gelu_pytorch_tanh", windows="all"
    ),
    "gpt_neox": _neox,
    "falcon": _falcon,
    "dbrx": replace(
        _plain,
        experts=True,
        names={
            **_MPT,
            "ffn_config.ffn_hidden_size": "intermediate_size",
            "ffn_config.moe_num_experts": "num_local_experts",
            "ffn_config.moe_top_k": "num_experts_per_tok",
        },
    ),
    "mpt": replace(
        _plain,
        gated=False,
        activation="gelu",
        names=_MPT,
        defaults={"tie_word_embeddings": True, "expansion_ratio": 4, "alibi": True},
    ),
    "bloom": replace(
        _neox,
        embedding_norm=True,
        names={**_GPT2, "n_embed": "hidden_size", "seq_length": "max_position_embeddings"},
        defaults={"tie_word_embeddings": True, "expansion_ratio": 4, "alibi": True},
    ),
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt2,
    "gptj": _gptj,
    "codegen": _gptj,
    "opt": replace(
        _gpt2,
        positions=2,
        activation="relu",
        names={"ffn_dim": "intermediate_size"},
        defaults={"tie_word_embeddings": True},
    ),
    "chatglm": replace(
        _plain,
        qkv_bias="add_qkv_bias",
        o_bias="add_bias_linear",
        mlp_bias="add_bias_linear",
        names={
            "num_layers": "num_hidden_layers",
            "ffn_hidden_size": "intermediate_size",
            "padded_vocab_size": "vocab_size",
            "seq_length": "max_position_embeddings",
        },
    ),
    "baichuan": _plain,
    "internlm2": Family("bias", "bias"),
}

ALIASES = {
    "kimi_k2": "deepseek_v3",
    "kimi_k25": "deepseek_v3",
    "exaone4_5": "exaone4",
    "mistral3": "mistral",
    "glm4v_moe": "glm4_moe",
    "glm46v": "glm4v",
    "qwen3_omni_moe": "qwen3_moe",
    "lfm2_vl": "lfm2",
    "lfm3_vl": "lfm3",
    "yi": "llama",
    "internlm": "llama",
    "hunyuan_vl": "hunyuan_v1_dense",
    "minimax_m1": "minimax",
    "minimax_text_01": "minimax",
    "minimax_m3_vl": "minimax_m3",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "deci": "nemotron_nas",
    "decilm": "nemotron_nas",
    "nemotron-nas": "nemotron_nas",
}
"""Model types that share the language model of another type."""

NESTED = ("text_config", "language_config", "llm_config", "thinker_config")
"""Fields in which a multimodal model keeps the config of its language model."""

ENCODERS = frozenset(
    (
        *("albert", "bert", "big_bird", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "esm"),
        *("eurobert", "longformer", "luke", "megatron-bert", "modernbert", "mpnet", "new", "nomic_bert", "roberta"),
        *("nystromformer", "roformer", "squeezebert", "xlm-roberta", "xlm-roberta-xl", "xlnet"),
    )
)
"""Model types that are encoders of text."""

WITHOUT_LAYERS = {
    "rwkv": "RWKV",
    "xlstm": "xLSTM",
    "retnet": "retention",
    "hyena": "Hyena",
    "recurrent_gemma": "gated linear recurrences (RG-LRU)",
    "jetmoe": "experts of the projections of attention",
    "zamba": "blocks whose weights several layers share",
}
"""Model types with layers that are not supported, and the names of these layers."""

LINEAR = frozenset(
    {
        "linear_attn_config",
        "linear_num_value_heads",
        "full_attention_interval",
        "ssm_state_size",
        "state_size",
        "mamba_d_state",
        "conv_L_cache",
        "hybrid_override_pattern",
        "layers_block_type",
        "attn_layer_period",
        "attn_layer_indices",
        "attn_type_list",
    }
)
"""Fields of layers with a recurrent state, and of their order."""

SHAPES = (
    *sorted(LINEAR),
    "is_encoder_decoder",
    "add_cross_attention",
    "cross_attention_layers",
    "num_kv_shared_layers",
    "hidden_size_per_layer_input",
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "index_topk",
    "index_topk_blocks",
    "sparse_attention_config",
    "compress_ratios",
    "ssm_cfg",
    "block_configs",
)
"""Fields that change the layers or their caches; refused where the model type does not read them."""


def reads(family: Family, name: str) -> bool:
    """Check whether a family reads a field that changes layers."""
    recurrent = family.recurrent is not None or family.mixer != "attention"
    return name in family.shapes or (recurrent and name in LINEAR)
