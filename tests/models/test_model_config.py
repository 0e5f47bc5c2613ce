"""A Hugging Face config.json: read as it is, or refused in one line that names the field."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, IOModelError
from iomodel.errors import SpecError
from iomodel.models.families import FAMILIES, SHAPES
from iomodel.models.registry import model

LLAMA_3_8B = """{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256
}"""

LLAMA_3_70B = """{
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 8192,
  "initializer_range": 0.02, "intermediate_size": 28672, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 128256
}"""

DEEPSEEK_V3 = """{
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}, "bos_token_id": 0, "eos_token_id": 1,
  "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
  "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3",
  "quant_method": "fp8", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32,
  "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
  "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
  "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
  "transformers_version": "4.46.3", "use_cache": true, "v_head_dim": 128, "vocab_size": 129280
}"""

GEMMA_3_27B = """{
  "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eoi_token_index": 256000,
  "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256,
  "model_type": "gemma3", "text_config": {"head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
  "model_type": "gemma3_text", "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
  "query_pre_attn_scalar": 168, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
  "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "vision_config": {"hidden_size": 1152,
  "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16,
  "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}
}"""

REAL = {
    "llama-3-8b": LLAMA_3_8B,
    "llama-3-70b": LLAMA_3_70B,
    "deepseek-v3": DEEPSEEK_V3,
    "gemma-3-27b": GEMMA_3_27B,
}

SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
LATENT = {"kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 24}


def small(model_type="llama", **fields):
    return {name: value for name, value in {**SMALL, "model_type": model_type, **fields}.items() if value is not ...}


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_the_shipped_models(name, tmp_path):
    shipped = model(name)
    (tmp_path / "config.json").write_text(REAL[name], encoding="utf-8")
    read = model(tmp_path / "config.json")
    assert model(tmp_path) == model(str(tmp_path / "config.json")) == model(json.loads(REAL[name])) == read
    for field in ("layers", "hidden_size", "vocab_size", "tied_embeddings", "dtype", "max_positions"):
        assert getattr(read, field) == getattr(shipped, field), field
    assert (read.parameters, read.kv_bytes(9999)) == (shipped.parameters, shipped.kv_bytes(9999))
    assert pickle.loads(pickle.dumps(read)) == read


TOTALS = [  # shapes of public configs, and the published number of weights
    (6_921_720_704, small("falcon", hidden_size=4544, num_attention_heads=71, num_hidden_layers=32, vocab_size=65024)),
    (
        20_554_567_680,
        small(
            "gpt_neox",
            hidden_size=6144,
            intermediate_size=24576,
            num_attention_heads=64,
            num_key_value_heads=...,
            num_hidden_layers=44,
            vocab_size=50432,
        ),
    ),
    (
        2_779_683_840,
        small(
            "phi",
            hidden_size=2560,
            intermediate_size=10240,
            num_attention_heads=32,
            num_key_value_heads=None,
            num_hidden_layers=32,
            vocab_size=51200,
        ),
    ),
    (
        34_980_831_232,
        small(
            "cohere",
            hidden_size=8192,
            intermediate_size=22528,
            num_attention_heads=64,
            num_key_value_heads=64,
            num_hidden_layers=40,
            vocab_size=256000,
        ),
    ),
    (
        8_537_680_896,
        small(
            "gemma",
            hidden_size=3072,
            intermediate_size=24576,
            num_attention_heads=16,
            num_key_value_heads=16,
            num_hidden_layers=28,
            vocab_size=256000,
        ),
    ),
]


@pytest.mark.parametrize(("total", "config"), TOTALS, ids=lambda value: str(value)[:30])
def test_parameters_of_other_families(total, config):
    assert model(config).parameters == total


def test_the_gate_of_shared_experts_is_counted():
    """Qwen1.5-MoE-A2.7B: 14.3 B, of which 2.7 B are active; a row of weights for each layer is the gate."""
    config = small(
        "qwen2_moe",
        hidden_size=2048,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        vocab_size=151936,
        moe_intermediate_size=1408,
        num_experts=60,
        num_experts_per_tok=4,
        shared_expert_intermediate_size=5632,
    )
    found = model(config)
    assert found.layers[0].mlp.shared_gate
    assert (found.parameters / 1e9, found.active_parameters / 1e9) == pytest.approx((14.3, 2.69), rel=0.005)
    assert found.parameters - model({**config, "model_type": "somebodys"}).parameters == 24 * (2048 + 3 * 2048)


def windows(config):
    return [layer.attention.window for layer in model(config).layers]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (small("mistral", sliding_window=8), [8] * 6),
        (small("mistral", sliding_window=None), [None] * 6),
        (small("mistral"), [4096] * 6),
        (small("llama", sliding_window=8), [None] * 6),
        (small("qwen2", sliding_window=8, use_sliding_window=False, max_window_layers=2), [None] * 6),
        (small("qwen2", sliding_window=8, use_sliding_window=True, max_window_layers=2), [None] * 2 + [8] * 4),
        (small("qwen2", sliding_window=8), [None] * 6),
        (small("gemma2", sliding_window=8), [8, None] * 3),
        (small("gemma3_text", sliding_window=8), [8] * 5 + [None]),
        (small("gemma3_text", sliding_window=8, sliding_window_pattern=3), [8, 8, None] * 2),
        (small("cohere2", sliding_window=8), [8, 8, 8, None, 8, 8]),
        (
            small("cohere2", sliding_window=8, layer_types=["full_attention"] * 5 + ["sliding_attention"]),
            [None] * 5 + [8],
        ),
        (small("olmo3"), [4096, 4096, 4096, None, 4096, 4096]),
        (small("gpt_oss", **EXPERTS), [128, None] * 3),
        (small("somebodys", sliding_window=8), [8] * 6),
    ],
)
def test_windows_by_layer(config, expected):
    assert windows(config) == expected


def test_chunks_by_layer():
    config = small("llama4_text", num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=256)
    found = model({**config, "interleave_moe_layer_step": 2, "attention_chunk_size": 16})
    assert [layer.attention.chunk for layer in found.layers] == [16, 16, 16, None, 16, 16]
    assert [layer.attention.rope for layer in found.layers] == [True, True, True, False, True, True]
    assert [layer.mlp.experts for layer in found.layers] == [0, 4] * 3
    assert [layer.mlp.intermediate_size for layer in found.layers] == [256, 0] * 3
    assert found.layers[1].mlp.expert_intermediate_size == 128
    assert found.layers[1].mlp.shared_experts == 1
    listed = model({**config, "moe_layers": [0], "no_rope_layers": [0, 1, 1, 1, 1, 1], "attention_chunk_size": 16})
    assert [layer.mlp.experts for layer in listed.layers] == [4, 0, 0, 0, 0, 0]
    assert [layer.attention.chunk for layer in listed.layers] == [None, 16, 16, 16, 16, 16]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (small("qwen3_moe", **EXPERTS), [8] * 6),
        (small("qwen3_moe", **EXPERTS, decoder_sparse_step=2), [0, 8] * 3),
        (small("qwen3_moe", **EXPERTS, mlp_only_layers=[0, 5]), [0, 8, 8, 8, 8, 0]),
        (small("qwen3_moe", **EXPERTS, mlp_only_layers="0, 5"), [0, 8, 8, 8, 8, 0]),
        (small("qwen3_moe", **{**EXPERTS, "num_experts": 0}), [0] * 6),
        (small("mixtral", num_local_experts=8, num_experts_per_tok=2), [8] * 6),
        (small("deepseek_v2", n_routed_experts=8, num_experts_per_tok=2, first_k_dense_replace=2), [0, 0, 8, 8, 8, 8]),
        (small("deepseek_v2", n_routed_experts=8, num_experts_per_tok=2, moe_layer_freq=3), [8, 0, 0] * 2),
        (small("deepseek_v3", n_routed_experts=8, num_experts_per_tok=2), [0] * 3 + [8] * 3),
        (small("deepseek_v2", n_routed_experts=None), [0] * 6),
        (small("somebodys", **EXPERTS, first_k_dense_replace=1), [0] + [8] * 5),
    ],
)
def test_experts_by_layer(config, expected):
    assert [layer.mlp.experts for layer in model(config).layers] == expected


def test_a_latent():
    dense = {**LATENT, "n_routed_experts": 0}
    attention = model(small("deepseek_v2", **dense, q_lora_rank=48)).layers[0].attention
    assert attention.kv_elements_per_token == 40
    assert attention.projections(64) == (
        ("q_a", 64, 48),
        ("q_b", 48, 4 * 24),
        ("kv_a", 64, 40),
        ("kv_b", 32, 4 * (16 + 24)),
        ("o", 4 * 24, 64),
    )
    for without in (None, 0):
        assert model(small("deepseek_v2", **dense, q_lora_rank=without)).layers[0].attention.q_lora_rank is None


def test_biases_and_norms():
    def first(*kind, **fields):
        return model(small(*kind, **fields)).layers[0]

    assert first("qwen2").attention.qkv_bias
    assert not first("qwen2").attention.o_bias
    assert not first("llama").attention.qkv_bias
    assert first("llama", attention_bias=True).attention.o_bias
    assert first("llama", mlp_bias=True).mlp.bias
    assert first("gpt_oss", **EXPERTS).attention.sinks
    assert first("gpt_oss", **EXPERTS).mlp.router_bias
    assert first("qwen3").attention.qk_norm_weights == "head"
    assert first("olmo2").attention.qk_norm_weights == "all"
    assert first("gemma2").norms == first("glm4").norms == 4
    assert first("gemma2").attention.softcap == 50.0
    assert first("gemma2", attn_logit_softcapping=None).attention.softcap is None
    assert not first("starcoder2").mlp.gated
    assert first("falcon").attention.kv_heads == 1
    assert first("falcon", new_decoder_architecture=True, num_kv_heads=2).attention.kv_heads == 2
    assert first("qwen2_moe", **EXPERTS, shared_expert_intermediate_size=96).mlp.shared_intermediate_size == 96
    assert model(small("gemma")).tied_embeddings
    assert not model(small("gemma", tie_word_embeddings=False)).tied_embeddings


def test_left_out_heads_and_widths():
    assert model(small(num_key_value_heads=...)).layers[0].attention.kv_heads == 4
    assert model(small(num_key_value_heads=None)).layers[0].attention.kv_heads == 4
    assert model(small(head_dim=None)).layers[0].attention.head_dim == 16
    assert model(small(head_dim=48)).layers[0].attention.head_dim == 48


def test_types_of_the_weights():
    assert model(small(torch_dtype="float16")).dtype == "fp16"
    assert model(small(torch_dtype=..., dtype="torch.float32")).dtype == "fp32"
    unsaid = model(small(torch_dtype=..., max_position_embeddings=512))
    assert unsaid.dtype == "bf16"
    assert unsaid.notes == ("No torch_dtype is given; bf16 is assumed.",)
    assert model(small(quantization_config={"quant_method": "fp8"})).dtype == "fp8"
    assert model(small(quantization_config={"quant_method": "gptq", "bits": 4})).dtype == "int4"
    mixed = model(small("gpt_oss", **EXPERTS, quantization_config={"quant_method": "mxfp4"}))
    assert (mixed.dtype, mixed.expert_dtype) == ("bf16", "mxfp4")
    other = model(small(quantization_config={"quant_method": "compressed-tensors"}, max_position_embeddings=512))
    assert (other.dtype, len(other.notes)) == ("bf16", 1)


def test_a_type_that_is_not_known_is_said_to_be():
    found = model(small("somebodys"))
    assert found.notes == ("The model_type 'somebodys' is unknown; it is read as llama, with the fields present.",)
    assert found.layers == model(small("llama")).layers
    assert "somebodys" in str(found)


BAD = [
    (small(model_type=...), "model_type: not given, but required"),
    (small(model_type=5), "model_type: 5 given; allowed: a text"),
    (small("rwkv"), "model_type: 'rwkv' given; allowed: a type without RWKV, which is not supported"),
    (small("mamba2", num_heads=None), "mamba_num_heads: not given, but required"),
    (small(layer_types=["linear_attention"] * 6), "layer_types.0: 'linear_attention' given; allowed: full_attention"),
    (small(mlp_layer_types=["sparse"] * 6), "mlp_layer_types: ['sparse', "),
    (small("somebodys", hidden_act="relu2"), "hidden_act: 'relu2' given for the unknown model_type 'somebodys'"),
    (small("somebodys", attention_sparsity=4), "attention_sparsity: 4 given for the unknown model_type 'somebodys'"),
    (small("somebodys", sandwich=True), "sandwich: True given for the unknown model_type 'somebodys'; allowed: the"),
    (
        small("bert", architectures=["BertForMaskedLM"]),
        "model_type: 'bert' given, an encoder; allowed: the config.json",
    ),
    (small("exaone", hidden_size=...), "hidden_size: not given, but required; allowed: an integer from 1"),
    (small(hidden_size=None), "hidden_size: not given, but required"),
    (small(hidden_size="4096"), "hidden_size: '4096' given; allowed: an integer from 1"),
    (small(hidden_size=-1), "hidden_size: -1 given"),
    (small(hidden_size=0), "hidden_size: 0 given"),
    (small(hidden_size=True), "hidden_size: True given"),
    (small(hidden_size=64.0), "hidden_size: 64.0 given"),
    (small(hidden_size=10**19), "hidden_size: 10000000000000000000 given"),
    (small(hidden_size=65), "head_dim: not given, and hidden_size = 65 does not divide by num_attention_heads = 4"),
    (small(num_hidden_layers=10**6), "num_hidden_layers: 1000000 given; allowed: from 1 to 10000"),
    (
        small(num_key_value_heads=3),
        "num_key_value_heads: 3 given; allowed: a divisor of num_attention_heads = 4, such as 2",
    ),
    (small(intermediate_size=[1, 2]), "intermediate_size: 2 entries given; allowed: num_hidden_layers = 6"),
    (small(tie_word_embeddings="no"), "tie_word_embeddings: 'no' given; allowed: true or false"),
    (small(attention_bias=1), "attention_bias: 1 given; allowed: true or false"),
    (small(torch_dtype="int3"), "torch_dtype: 'int3' given; allowed: bfloat16"),
    (small(quantization_config=4), "quantization_config: 4 given; allowed: a mapping"),
    (small(quantization_config={"quant_method": "gptq", "bits": "4"}), "quantization_config.bits: '4' given"),
    (small(quantization_config={"quant_method": "gptq", "bits": 7}), "quantization_config.bits: 7 bits given"),
    (
        small(quantization_config={"quant_method": "modelopt", "quant_algo": "FP5"}),
        "quantization_config.quant_algo: 'FP5' given; allowed: FP8,",
    ),
    (
        small(quantization_config={"quant_method": "fp8", "modules_to_not_convert": [3]}),
        "quantization_config: 3 given in a list of modules",
    ),
    (
        small(num_local_experts=8),
        "num_local_experts: 8 given; allowed: 0 or no such field, because llama has no experts",
    ),
    (
        small("qwen3_moe", num_experts=8, moe_intermediate_size=4, num_experts_per_tok=None),
        "num_experts_per_tok: not given",
    ),
    (
        small("qwen3_moe", **{**EXPERTS, "num_experts_per_tok": 9}),
        "num_experts_per_tok: 9 given; allowed: from 1 to the",
    ),
    (small("qwen3_moe", **EXPERTS, mlp_only_layers=[-1]), "mlp_only_layers.0: -1 given"),
    (small("qwen3_moe", **EXPERTS, mlp_only_layers=3), "mlp_only_layers: 3 given; allowed: a list"),
    (small("qwen3_moe", **EXPERTS, mlp_only_layers="0, x"), "mlp_only_layers: '0, x' given; allowed: numbers between"),
    (small("deepseek_v2"), "num_experts_per_tok: not given, but required"),  # null is the default of the class
    (
        small("ernie4_5_moe", moe_num_experts=[64, 64]),
        "moe_num_experts: [64, 64] given; allowed: one number of experts",
    ),
    (small("mixtral", moe_layer_freq=[]), "moe_layer_freq: [] given; allowed: an integer from 1"),
    (small("mistral", sliding_window=-1), "sliding_window: -1 given"),
    (small("mistral", sliding_window=0), "sliding_window: 0 given"),
    (small("gemma2", attn_logit_softcapping=-5), "attn_logit_softcapping: -5 given; allowed: a number above 0"),
    (small("gemma2", attn_logit_softcapping="inf"), "attn_logit_softcapping: 'inf' given"),
    (small("olmo3", layer_types=["full_attention"]), "layer_types: 1 entries given; allowed: num_hidden_layers = 6"),
    (
        small("olmo3", layer_types=["full_attention"] * 5 + ["mamba"]),
        "layer_types.5: 'mamba' given; allowed: full_attention",
    ),
    (small("olmo3", layer_types=["full_attention"] * 5 + [[]]), "layer_types.5: [] given"),
    (small("llama", layer_types=["sliding_attention"] * 6), "sliding_window: not given, but required"),
    (small("llama4_text", num_experts_per_tok=1, no_rope_layers=[1]), "no_rope_layers: 1 entries given"),
    (small("llama4_text", num_experts_per_tok=1, no_rope_layers=[2] * 6), "no_rope_layers.0: 2 given; allowed: 0 or 1"),
    (small("deepseek_v3", v_head_dim=None), "v_head_dim: not given, but required"),
    (small("deepseek_v3", qk_rope_head_dim=None), "qk_rope_head_dim: not given, but required"),
    ({"model_type": "gemma3", "text_config": {"hidden_size": "big"}}, "text_config.hidden_size: 'big' given"),
    ({"model_type": "exaone"}, "num_hidden_layers: not given"),
    ({}, "model_type: not given, but required"),
]


@pytest.mark.parametrize(("config", "message"), BAD, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_bad_configs(config, message, tmp_path):
    with pytest.raises(InputError) as error:
        model(config)
    assert message in str(error.value)
    assert str(error.value).isprintable()
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config, default=str), encoding="utf-8")
    if ... not in config.values():
        with pytest.raises(InputError) as again:
            model(path)
        assert str(again.value) == f"{path}: {error.value}"


@pytest.mark.parametrize("field", SHAPES)
@pytest.mark.parametrize("kind", ["llama", "somebodys"])
def test_fields_that_change_what_layers_are(field, kind):
    with pytest.raises(InputError, match=f"{field}: 7 given; allowed: no such field"):
        model(small(kind, **{field: 7}))
    for harmless in (None, 0, False, []):
        model(small(kind, **{field: harmless}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: not valid JSON"),
        (b"[1]", "must be a mapping of keys to values, given [1]"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 1, "a": 2}', "key 'a' is given twice, as 1 and 2"),
        (b'{"hidden_size": 1' + b"0" * 5000 + b"}", "config.json: "),
        (b"\xff\xfe", "not a UTF-8 text file"),
        (b"[" * 100_000, "config.json: "),
        (b" " * (2**24 + 1), "larger than"),
    ],
)
def test_files_that_are_no_config(content, message, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(SpecError) as error:
        model(tmp_path / "config.json")
    assert message in str(error.value)
    assert str(error.value).isprintable()


def test_a_byte_order_mark_and_a_repeated_key(tmp_path):
    text = json.dumps(small())[:-1] + ', "vocab_size": 100}'
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert model(tmp_path).vocab_size == 100


plain = st.none() | st.booleans() | st.integers(-3, 10**4) | st.integers() | st.floats() | st.text(max_size=5)
nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2))
fields = st.sampled_from(
    sorted(
        {*SMALL, *EXPERTS, *LATENT, *json.loads(DEEPSEEK_V3), *json.loads(GEMMA_3_27B)["text_config"], *SHAPES}
        | {"layer_types", "no_rope_layers", "moe_layers", "mlp_only_layers", "alibi", "text_config", "dtype"}
    )
)


@given(
    kind=st.sampled_from([*FAMILIES, "somebodys"]),
    change=st.dictionaries(fields, nested, max_size=4),
    base=st.sampled_from([SMALL, {**SMALL, **EXPERTS}, {**SMALL, **LATENT}]),
)
def test_any_change_is_read_or_refused_in_one_line(kind, change, base):
    try:
        found = model({**base, "model_type": kind, **change})
    except IOModelError as error:
        message = str(error)
        assert message.isprintable()
        return
    assert model(found.to_dict()) == found
    assert found.parameters > 0


STATES = {
    "gated_deltanet": {"linear_num_key_heads": 2, "linear_num_value_heads": 4},
    "kda": {
        "linear_num_heads": 2,
        "linear_head_dim": 8,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "full_attention"] * 6,
        **LATENT,
    },
    "lightning": {"attn_type_list": [0, 1] * 6},
    "mamba1": {"mamba_d_state": 4, "mamba_d_conv": 4, "attn_layer_period": 2},
    "mamba2": {
        "mamba_num_heads": 4,
        "mamba_head_dim": 8,
        "ssm_state_size": 16,
        "n_groups": 2,
        "conv_kernel": 4,
        "layers_block_type": ["linear_attention"] * 12,
    },
    "short_convolution": {"conv_L_cache": 3, "full_attn_idxs": [0]},
}
NEEDED = {
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "deepseek_v4": {
        "q_lora_rank": 8,
        "o_groups": 1,
        "o_lora_rank": 8,
        "compress_ratios": [0, 4, 128] * 4,
        "index_head_dim": 1,
    },
    "glm5_next_text": {"index_head_dim": 8},
    "longcat_flash": {"ffn_hidden_size": 96},
    "mamba": {"state_size": 4, "conv_kernel": 4},
    "falcon_mamba": {"state_size": 4, "conv_kernel": 4},
}


def least(kind):
    """The fields of layers and experts that a family needs besides those of llama."""
    family = FAMILIES[kind]
    fields = {**EXPERTS, "num_experts": 8} if family.experts else {}
    return {**fields, **STATES.get(family.recurrent, {}), **NEEDED.get(kind, {})}


@given(st.sampled_from(sorted(FAMILIES)), st.integers(1, 12), st.integers(1, 8), st.integers(1, 4), st.integers(1, 64))
def test_every_family_reads_the_least_config(kind, number, kv_heads, group, width):
    extra = least(kind)
    if "layers_block_type" in extra:
        extra["layers_block_type"] = extra["layers_block_type"][:number]
    for name in ("attn_type_list", "layer_types", "compress_ratios"):
        if name in extra:
            extra[name] = extra[name][:number]
    if kind == "mimo_v2_flash":  # 8 by default
        extra["swa_num_key_value_heads"] = kv_heads
    found = model(
        small(
            kind,
            num_hidden_layers=number,
            num_attention_heads=kv_heads * group,
            num_key_value_heads=kv_heads,
            head_dim=width,
            **extra,
        )
    )
    assert len(found.layers) == number * (1 + FAMILIES[kind].two_in_one)
    attending = [layer.attention for layer in found.layers if layer.attention is not None]
    assert {attention.heads for attention in attending} <= {kv_heads * group}
    assert attending or found.state_bytes() > 0
    for attention in attending:
        assert attention.call(1, 1, 77).kv_len <= 77
    assert model(found.to_dict()) == found


@pytest.mark.parametrize(
    ("kind", "kv_heads"),
    [
        ("llama", 32),
        ("mistral", 8),
        ("gemma", 16),
        ("gemma2", 4),
        ("qwen3_moe", 4),
        ("glm4", 2),
        ("starcoder2", 2),
        ("gemma3_text", 4),
    ],
)
def test_key_heads_that_are_left_out_are_those_of_the_model_type(kind, kv_heads):
    left_out = {"num_attention_heads": 32, "head_dim": 8, "moe_intermediate_size": 4, "num_key_value_heads": ...}
    found = model(small(kind, **left_out))
    assert {layer.attention.kv_heads for layer in found.layers} == {kv_heads}
    told = model(small(kind, **left_out | {"num_key_value_heads": 1}))
    assert {layer.attention.kv_heads for layer in told.layers} == {1}


def test_experts_that_are_left_out_are_those_of_the_model_type():
    found = model(small("mixtral"))
    assert {(layer.mlp.experts, layer.mlp.experts_per_token) for layer in found.layers} == {(8, 2)}


@pytest.mark.parametrize(("period", "places"), [(4, [3, 7, 11]), (5, [4, 9]), (12, [11]), (1, [*range(12)])])
def test_the_last_layer_of_each_interval_has_full_attention(period, places):
    found = model(small("qwen3_next", num_hidden_layers=12, full_attention_interval=period, **least("qwen3_next")))
    assert [place for place, layer in enumerate(found.layers) if layer.attention is not None] == places


@pytest.mark.parametrize(
    ("offset", "places"), [({"attn_layer_offset": 0}, [0, 4, 8]), ({"attn_layer_offset": 3}, [3, 7, 11])]
)
def test_a_period_of_attention_starts_at_its_offset(offset, places):
    period = {**least("jamba"), "attn_layer_period": 4}
    found = model(small("jamba", num_hidden_layers=12, **{**period, **offset}))
    assert [place for place, layer in enumerate(found.layers) if layer.attention is not None] == places
