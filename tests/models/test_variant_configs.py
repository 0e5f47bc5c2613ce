"""Variants of config.json: names of a type's own, sections, fields of an unexpected type, and files of other models."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, UnknownNameError
from iomodel.errors import SpecError
from iomodel.models.config import spec_of
from iomodel.models.config_attention import indexer_changes
from iomodel.models.config_fields import Fields
from iomodel.models.registry import model
from tests.models.test_model_config import EXPERTS, LATENT, small
from tests.models.test_published_configs import PUBLISHED, expanded

OLDER = {  # parameters as the models on the Hugging Face hub have them
    "bloom": (176_247_271_424, {"n_layer": 70, "n_head": 112, "hidden_size": 14336, "vocab_size": 250880}),
    "bloom-7b1": (7_069_016_064, {"n_layer": 30, "num_attention_heads": 32, "n_embed": 4096, "vocab_size": 250880}),
    "gpt2": (124_439_808, {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "vocab_size": 50257}),
    "gpt2-xl": (1_557_611_200, {"n_layer": 48, "n_head": 25, "n_embd": 1600, "n_positions": 1024, "vocab_size": 50257}),
    "gpt_bigcode": (
        15_517_456_384,
        {"n_layer": 40, "n_head": 48, "n_embd": 6144, "n_inner": 24576, "n_positions": 8192, "vocab_size": 49152},
    ),
    "gptj": (6_050_882_784, {"n_layer": 28, "n_head": 16, "n_embd": 4096, "n_positions": 2048, "vocab_size": 50400}),
    "opt": (
        6_658_473_984,
        {
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "hidden_size": 4096,
            "ffn_dim": 16384,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 4096,
        },
    ),
    "mpt": (
        6_649_286_656,
        {
            "d_model": 4096,
            "n_heads": 32,
            "n_layers": 32,
            "max_seq_len": 2048,
            "vocab_size": 50432,
            "expansion_ratio": 4,
            "attn_config": {"alibi": True},
        },
    ),
    "dbrx": (
        131_596_523_520,
        {
            "d_model": 6144,
            "n_heads": 48,
            "n_layers": 40,
            "max_seq_len": 32768,
            "vocab_size": 100352,
            "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
    ),
    "chatglm": (
        6_243_584_000,
        {
            "hidden_size": 4096,
            "num_layers": 28,
            "num_attention_heads": 32,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "ffn_hidden_size": 13696,
            "kv_channels": 128,
            "padded_vocab_size": 65024,
            "add_qkv_bias": True,
        },
    ),
    "baichuan": (
        7_505_973_248,
        small(
            "baichuan",
            hidden_size=4096,
            intermediate_size=11008,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=None,
            vocab_size=125696,
        ),
    ),
    "internlm2": (
        7_737_708_544,
        small(
            "internlm2",
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            vocab_size=92544,
            bias=False,
        ),
    ),
}


@pytest.mark.parametrize("name", OLDER)
def test_types_with_names_of_their_own(name):
    total, fields = OLDER[name]
    kind = name.split("-")[0]
    spec = model({"torch_dtype": "float16", **fields, "model_type": kind})
    assert spec.parameters == total
    assert spec.notes == ()
    assert model(spec.to_dict()) == spec


def test_a_missing_field_has_the_name_of_its_type():
    fields = {name: value for name, value in OLDER["dbrx"][1].items() if name != "n_heads"}
    with pytest.raises(InputError, match=r"^n_heads: not given, but required"):
        model({"model_type": "dbrx", **fields})
    with pytest.raises(InputError, match=r"^attn_config\.kv_n_heads: 5 given"):
        model({"model_type": "dbrx", **OLDER["dbrx"][1], "attn_config": {"kv_n_heads": 5}})


def test_dbrx_and_gptq_in_eight_bits_as_stored():
    """131.6 billion weights in bf16; 72.7 billion in 8 bits, with 16 bits of scale and 8 of zero for 128."""
    assert model({"model_type": "dbrx", **OLDER["dbrx"][1]}).weight_bytes() == 263_193_047_040
    qwen = small(
        "qwen2",
        hidden_size=8192,
        intermediate_size=29568,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        vocab_size=152064,
        tie_word_embeddings=False,
        torch_dtype="float16",
        quantization_config={"quant_method": "gptq", "bits": 8, "group_size": 128},
    )
    assert model(qwen).weight_bytes() == pytest.approx(76_845_367_296, rel=1e-6)


@pytest.mark.parametrize(("bits", "zeros"), [(2, False), (3, True), (4, True), (4, False), (8, True), (8, False)])
@pytest.mark.parametrize("group", [32, 64, 128, -1])
def test_integers_by_bits_group_and_zero_points(bits, zeros, group):
    """A group holds its integers and a scale of 16 bits; asymmetric ones a zero point as wide as a weight."""
    weights = {"num_bits": bits, "type": "int", "group_size": group, "symmetric": not zeros}
    scheme = {
        "quant_method": "compressed-tensors",
        "config_groups": {"a": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    spec = model(small(intermediate_size=256, quantization_config=scheme))
    matrices = sum(layer.attention.matrices(64) + layer.mlp.matrices(64) for layer in spec.layers)
    each = 16 + bits * zeros if group > 0 else 0
    assert spec.weight_bytes() - 2 * (spec.parameters - matrices) == (matrices * (bits * abs(group) + each)) // (
        8 * abs(group)
    )


def test_fp8_that_modelopt_quantised_further():
    """Experts have the type that ModelOpt lists; what it left out keeps the fp8 of the release."""
    entry = {f"layers.{place}.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16} for place in range(6)}
    scheme = {"quant_method": "fp8", "quant_algo": "MIXED_PRECISION", "quantized_layers": entry}
    config = small("deepseek_v3", **EXPERTS, **LATENT, n_shared_experts=1, expert_dtype="fp4")
    spec = model(
        {**config, "quantization_config": {**scheme, "ignore": ["*.attn.*", "*.ffn.shared_experts.*", "head"]}}
    )
    layer = spec.layers[-1]
    types = {matrix.name: layer.dtype_of(matrix, spec.dtype, spec.expert_dtype) for matrix in layer.linears(64)}
    assert {kind for name, kind in types.items() if name.startswith("expert ")} == {"nvfp4"}
    assert {kind for name, kind in types.items() if not name.startswith("expert ")} == {"fp8"}


@pytest.mark.parametrize(
    "change",
    [
        {"kv_cache_scheme": "FP8"},
        {"kv_cache_scheme": {"num_bits": 8, "type": "float"}},
        {"kv_cache_quant_algo": "fp8"},
    ],
)
def test_a_recommended_cache_is_a_name_or_a_scheme(change):
    scheme = {"quant_algo": "FP8", "ignore": "lm_head", **change}
    assert model(small(quantization_config=scheme)).kv_dtype == "fp8"


VALUES = st.sampled_from([7, 1.5, "FP8", "", True, ["a"], {"a": 1}, None])
OPTIONAL = ("_name_or_path", "max_position_embeddings", "torch_dtype", "hidden_act", "architectures", "alibi")


@given(st.sampled_from(OPTIONAL), VALUES)
def test_an_optional_field_of_any_type_stops_no_file(name, value):
    if name == "torch_dtype" and isinstance(value, str) and value:
        value = 3
    spec = spec_of(small(**{name: value}))
    assert spec.parameters == spec_of(small()).parameters


@given(st.sampled_from(["kv_cache_scheme", "kv_cache_quant_algo"]), VALUES)
def test_a_recommendation_of_any_type_stops_no_file(name, value):
    plain = {"quant_method": "fp8", "ignored_layers": None}
    spec = spec_of(small(quantization_config={**plain, name: value}))
    assert spec.weight_bytes() == spec_of(small(quantization_config=plain)).weight_bytes()


SMALLER = [name for name in PUBLISHED if len(json.dumps(PUBLISHED[name])) < 4000]


@given(st.sampled_from(SMALLER), st.data())
def test_a_damaged_published_file_is_read_or_refused_in_one_line(name, data):
    """Any field of any published file may have any type, or be gone."""
    config = expanded(PUBLISHED[name]["config"])
    holder = config
    for _ in range(2):
        inner = [key for key, value in holder.items() if isinstance(value, dict) and value]
        if inner and data.draw(st.booleans()):
            holder = holder[data.draw(st.sampled_from(inner))]
    key = data.draw(st.sampled_from(sorted(holder)))
    if data.draw(st.booleans()):
        holder[key] = data.draw(VALUES)
    else:
        del holder[key]
    try:
        spec = spec_of(config, expanded(PUBLISHED[name].get("quantization")))
    except InputError as error:
        text = str(error)
    else:
        text = f"allowed: {spec.parameters}"
    assert "allowed:" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 768}, "an encoder"),
        ({"model_type": "t5", "is_encoder_decoder": True, "d_model": 512}, "an encoder-decoder"),
        ({"model_type": "whisper", "encoder_layers": 6, "decoder_layers": 6}, "an encoder-decoder"),
        ({"model_type": "m", "num_decoder_layers": 6, "d_kv": 64}, "an encoder-decoder"),
        ({"_class_name": "FluxTransformer2DModel", "_diffusers_version": "0.30"}, "diffusion"),
        ({"model_type": "mllama", "text_config": {"cross_attention_layers": [3, 8]}}, "cross attention"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "cross attention"),
        ({"model_type": "vit", "patch_size": 16, "hidden_size": 768}, "a model of images"),
        ({"peft_type": "LORA", "r": 8}, "an adapter"),
        ({"__version__": {"sentence_transformers": "3.0"}}, "sentence-transformers"),
        ({"tokenizer_class": "LlamaTokenizer"}, "a tokenizer"),
        ({"model_type": "new_one", "architectures": ["NewForMaskedLM"]}, "an encoder"),
    ],
)
def test_other_kinds_of_models_are_refused_by_their_kind(config, kind):
    with pytest.raises(InputError, match=kind) as error:
        model(config)
    assert "\n" not in str(error.value)


def test_a_field_that_repeats_two_others_is_no_new_one():
    known = small("somebodys", **LATENT)
    assert model({**known, "qk_head_dim": 24}).layers[0].attention.head_dim == 24
    with pytest.raises(InputError, match="qk_head_dim: 25 given"):
        model({**known, "qk_head_dim": 25})


def test_values_of_a_section_count_before_defaults():
    config = small("mixtral", num_key_value_heads=..., attn_config={"num_key_value_heads": 1}, num_local_experts=...)
    spec = model({**config, "moe_config": {"num_local_experts": 4, "num_experts_per_tok": 3}})
    assert (spec.layers[0].attention.kv_heads, spec.layers[0].mlp.experts) == (1, 4)
    assert spec.layers[0].mlp.experts_per_token == 3
    assert any("moe_config.num_local_experts" in note for note in spec.notes)


MISTRAL = {
    "dim": 4096,
    "n_layers": 32,
    "head_dim": 128,
    "hidden_dim": 14336,
    "n_heads": 32,
    "n_kv_heads": 8,
    "norm_eps": 1e-05,
    "vocab_size": 32768,
    "rope_theta": 1000000.0,
}
"""params.json of Mistral 7B v0.3."""


def test_params_of_mistral_are_the_shipped_models(tmp_path):
    shipped = model("mistral-7b-v0.3")
    path = tmp_path / "params.json"
    path.write_text(json.dumps(MISTRAL), encoding="utf-8")
    read = model(path)
    assert (read.parameters, read.kv_bytes(9999)) == (shipped.parameters, shipped.kv_bytes(9999))
    experts = model({**MISTRAL, "vocab_size": 32000, "moe": {"num_experts": 8, "num_experts_per_tok": 2}})
    mixtral = model("mixtral-8x7b")
    assert (experts.parameters, experts.active_parameters) == (mixtral.parameters, mixtral.active_parameters)
    with pytest.raises(InputError, match="num_hidden_layers: 0 given"):
        model({**MISTRAL, "n_layers": 0})


@pytest.mark.parametrize("name", ["intermediate_size", "num_attention_heads"])
@pytest.mark.parametrize("entry", [[], [3], {}])
def test_an_entry_of_a_layer_that_is_no_number_is_refused(name, entry):
    config = small("llama")
    with pytest.raises(InputError, match=rf"{name}\.0: .* given; allowed: a number"):
        model({**config, name: [entry] * config["num_hidden_layers"]})


def test_a_folder_is_read_by_the_file_that_describes_its_model(tmp_path):
    """Folders as diffusers and sentence-transformers write them, and that of Mistral."""
    with pytest.raises(SpecError, match=r"a folder without config\.json; allowed: the path of a config\.json"):
        model(tmp_path)
    (tmp_path / "params.json").write_text(json.dumps(MISTRAL), encoding="utf-8")
    assert model(tmp_path) == model(tmp_path / "params.json")
    texts = {
        "diffusers/model_index.json": (
            {"_class_name": "StableDiffusion3Pipeline", "vae": ["diffusers", "AutoencoderKL"]}, "diffusion"),
        "diffusers/transformer/config.json": ({"_class_name": "SD3Transformer2DModel", "patch_size": 2}, "diffusion"),
        "st/config.json": ({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384}, "an encoder"),
        "st/1_Pooling/config.json": ({"word_embedding_dimension": 384, "pooling_mode_cls_token": False}, "a pooling"),
        "st/sentence_bert_config.json": ({"max_seq_length": 256, "do_lower_case": False}, "settings of sentence-tr"),
        "st/modules.json": ([{"idx": 0, "type": "sentence_transformers.models.Transformer"}], "in config.json beside"),
        "st/generation_config.json": ({"_from_model_config": True, "bos_token_id": 1}, "settings of generation"),
    }  # fmt: skip
    for name, (content, kind) in texts.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
        for path in {file, file.parent if file.name in ("config.json", "model_index.json") else file}:
            with pytest.raises((InputError, SpecError), match=kind) as error:
                model(path)
            assert "\n" not in str(error.value)
            assert len(str(error.value)) < 300


@pytest.mark.parametrize("name", ["Qwen/Qwen3-Coder-Next", "nobody/nothing-like-it"])
def test_the_name_of_a_hub_is_not_fetched(name):
    with pytest.raises(UnknownNameError, match=f"https://huggingface.co/{name}/raw/main/config.json") as error:
        model(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("blocks", "block"), [(16, 64), (8, 128), (3, 32)])
def test_an_indexer_of_blocks_keeps_the_keys_of_all_blocks_that_it_chooses(blocks, block, tmp_path):
    config = {
        "model_type": "minimax_m3", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 512, "vocab_size": 1000, "index_n_heads": 2,
        "index_head_dim": 32, "index_topk_blocks": blocks, "index_block_size": block,
        "layer_types": ["full_attention", "minimax_m3_sparse"],
    }  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    dense, sparse = (layer.attention for layer in model(file).layers)
    assert dense.indexer is None
    assert (sparse.indexer.topk, sparse.indexer.block) == (blocks * block, block)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
@pytest.mark.parametrize("first", [None, 1, 2, 4])
def test_indexers_that_choose_follow_the_first_ones_at_equal_distances(every, first):
    """All of the first layers choose keys; from the last of these on, each that chooses serves as many layers."""
    given = {"index_topk_freq": every} | ({} if first is None else {"index_skip_topk_offset": first})
    full = [place for place, mode in enumerate(indexer_changes(Fields(given), 40)) if mode == "full"]
    ahead = 2 if first is None else first
    assert full[:ahead] == list(range(ahead))
    assert {after - before for before, after in pairwise(full[ahead - 1 :])} == {every}
