"""The shapes of models: what is published of them, laws of the cache and the weights, files that read back the same."""

import json
import pickle
import re
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Attention, Documents, InputError, IOModelError, UnknownNameError, Window, hardware
from iomodel.errors import SpecError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
from iomodel.models.model_file import ModelFile, file_of, grouped
from iomodel.models.model_tables import every_model
from iomodel.models.registry import list_models, model
from iomodel.models.spec import ModelSpec
from iomodel.planning import engine_arguments
from tests.models.test_published_configs import SHIPPED
from tests.support.inside import WEIGHT_SIZE, as_service, main, parse

ROOT = Path(__file__).parents[2]
MODELS = every_model()

TOTALS = {  # by the config of each and its published number of weights, to the last one
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "gpt2": 124_439_808,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen3-14b": 14_768_307_200,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.3-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    "phi-4": 14_659_507_200,
    "deepseek-v3": 671_026_419_200,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "tinyllama-1.1b": 1_100_048_384,
    "yi-34b": 34_388_917_248,
    "kimi-linear-48b-a3b": 49_122_681_728,
    # arXiv:2408.00118, Table 2: the parameters without the embedding, here of 256,000 rows
    "gemma-2-2b": 2_024_517_888 + 256_000 * 2304,
    "gemma-2-9b": 8_324_201_984 + 256_000 * 3584,
    "gemma-2-27b": 26_047_480_320 + 256_000 * 4608,
}

ROUNDED = {  # as published, in billions: total and active
    "llama-4-maverick": (400.7, 17.2),
    "llama-4-scout": (107.8, 17.2),  # 109 with the part that sees
    "qwen2.5-72b": (72.7, 72.7),
    "qwen3-8b": (8.2, 8.2),
    "qwen3-0.6b": (0.6, 0.6),
    "qwen3-1.7b": (1.7, 1.7),
    "qwen3-4b": (4.0, 4.0),
    "qwen3.6-27b": (27, 27),
    "qwen3-32b": (32.8, 32.8),
    "qwen3-30b-a3b": (30.5, 3.3),
    "qwen3-235b-a22b": (235, 22),
    "qwen3-480b-a35b": (480, 35),
    "gpt-3": (175, 175),
    "mistral-7b-v0.1": (7.24, 7.24),
    "mistral-7b-v0.3": (7.25, 7.25),
    "mistral-nemo": (12.2, 12.2),
    "mistral-small-24b": (23.6, 23.6),
    "mixtral-8x7b": (46.7, 12.9),
    "mixtral-8x22b": (141, 39),
    "deepseek-v2": (236, 21),
    "deepseek-v2-lite": (15.7, 2.66),
    "kimi-k2": (1040, 32.6),
    "phi-4-mini": (3.84, 3.84),
    "olmo-2-7b": (7.3, 7.3),
    "olmo-2-13b": (13.7, 13.7),
}

CACHES = {  # by hand: layers x elements x 2 B
    "llama-3-8b": 32 * (8 * (128 + 128)) * 2,
    "llama-3-70b": 80 * 2048 * 2,
    "llama-3.1-405b": 126 * 2048 * 2,
    "gemma-3-27b": 62 * (16 * 256) * 2,
    "deepseek-v3": 61 * (512 + 64) * 2,
    "deepseek-v2-lite": 27 * 576 * 2,
    "gpt-oss-120b": 36 * (8 * 128) * 2,
    "llama-4-scout": 48 * 2048 * 2,
    "qwen2.5-7b": 28 * (4 * 256) * 2,
}


@pytest.mark.parametrize(("name", "total"), TOTALS.items())
def test_parameters_to_the_last_one(name, total):
    assert MODELS[name].parameters == total


@pytest.mark.parametrize(("name", "published"), ROUNDED.items())
def test_parameters_as_published(name, published):
    assert (MODELS[name].parameters / 1e9, MODELS[name].active_parameters / 1e9) == pytest.approx(published, rel=0.025)


def test_every_model_is_held_to_a_published_total():
    elsewhere = {"gemma-3-4b", "gemma-3-12b", "gemma-3-27b", "gpt-oss-20b", "gpt-oss-120b"}
    assert set(MODELS) == TOTALS.keys() | ROUNDED.keys() | SHIPPED.keys() | elsewhere


@pytest.mark.parametrize(("size", "millions"), [("4b", 3209), ("12b", 10759), ("27b", 25600)])
def test_gemma_3_without_its_embedding(size, millions):
    """As arXiv:2503.19786, Table 1, has it."""
    gemma = MODELS[f"gemma-3-{size}"]
    assert round((gemma.parameters - gemma.embedding_parameters) / 1e6) == millions


@pytest.mark.parametrize(
    ("name", "total", "active", "gib"), [("gpt-oss-120b", 116.83, 5.13, 60.8), ("gpt-oss-20b", 20.91, 3.61, 12.8)]
)
def test_gpt_oss_by_its_model_card(name, total, active, gib):
    """arXiv:2508.10925, Table 1: the input embedding is not active; the checkpoint has its experts in mxfp4."""
    found = MODELS[name]
    assert round(found.parameters / 1e9, 2) == total
    assert round((found.active_parameters - found.embedding_parameters) / 1e9, 2) == active
    assert round(found.weight_bytes() / 2**30, 1) == gib


def test_deepseek_v3_by_its_notes_on_the_weights():
    """671 B in all, 36.6 B active: with the output layer, without the embedding."""
    found = MODELS["deepseek-v3"]
    assert round(found.parameters / 1e9) == 671
    assert round((found.active_parameters - found.embedding_parameters) / 1e9, 1) == 36.6


@pytest.mark.parametrize(("name", "size"), CACHES.items())
def test_cache_for_a_token(name, size):
    assert MODELS[name].kv_bytes_per_token() == size
    assert MODELS[name].kv_bytes_per_token("fp8") * 2 == size
    assert MODELS[name].kv_bytes(1) == size


def test_the_well_known_caches():
    assert [MODELS[name].kv_bytes_per_token() for name in ("llama-3-8b", "llama-3-70b", "deepseek-v3")] == [
        131_072,
        327_680,
        70_272,
    ]


def test_windows_cap_the_cache():
    gemma = MODELS["gemma-3-27b"]
    local = [layer.attention.window == 1024 for layer in gemma.layers]
    assert local == [(place + 1) % 6 != 0 for place in range(62)]
    assert gemma.kv_bytes(131_072) == (10 * 131_072 + 52 * 1024) * 16 * 256 * 2
    assert gemma.kv_bytes(1000, "fp8", page_size=16) == 62 * 1008 * 16 * 256
    assert gemma.kv_bytes(5000, page_size=48) == (10 * 5040 + 52 * 1056) * 16 * 256 * 2
    assert MODELS["gpt-oss-20b"].kv_bytes(10_000) == 12 * (10_000 + 128) * 1024 * 2
    assert MODELS["llama-4-scout"].kv_bytes(100_000) == (12 * 100_000 + 36 * 8192) * 2048 * 2


def test_which_layers_have_what():
    kinds = [(layer.attention.chunk, layer.mlp.experts) for layer in MODELS["llama-4-maverick"].layers[:4]]
    assert kinds == [(8192, 0), (8192, 128), (8192, 0), (None, 128)]
    assert [bool(layer.mlp.experts) for layer in MODELS["deepseek-v3"].layers] == [False] * 3 + [True] * 58
    assert [layer.attention.window for layer in MODELS["gemma-2-9b"].layers[:3]] == [4096, None, 4096]
    assert {layer.attention.softcap for layer in MODELS["gemma-2-9b"].layers} == {50.0}
    assert all(layer.attention.sinks for layer in MODELS["gpt-oss-120b"].layers)


@pytest.mark.parametrize("name", list_models())
def test_shipped_models(name):
    found = MODELS[name]
    assert found.name == name
    assert found.sources
    assert found.sources[0].url or found.sources[0].kind != "transcription"
    assert set(found.unverified) <= {"dtype", "max_positions", "router_bias"}, "shapes are read, not remembered"
    assert found.active_parameters <= found.parameters
    routed = any(layer.mlp is not None and layer.mlp.experts for layer in found.layers)
    assert (found.active_parameters < found.parameters) == routed
    assert str(found).startswith(found.title)
    assert repr(found) == f"ModelSpec({name!r}, {len(found.layers)} layers, {found.parameters:,} parameters)"
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize("name", list_models())
def test_shipped_models_read_back_the_same(name, tmp_path):
    found = MODELS[name]
    path = tmp_path / "own.yaml"
    path.write_text(found.to_yaml(), encoding="utf-8")
    assert model(path) == model(str(path)) == model(found.to_dict()) == found
    (tmp_path / "own.json").write_text(found.to_json(), encoding="utf-8")
    assert model(tmp_path / "own.json") == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(model(path)) == hash(found)


def test_the_json_schema_is_current():
    kept = json.loads((ROOT / "specs" / "model.schema.json").read_text(encoding="utf-8"))
    assert kept == ModelFile.file_schema(), "write ModelFile.file_schema() to specs/model.schema.json"
    check = pytest.importorskip("jsonschema").Draft202012Validator(kept)
    for path in sorted((ROOT / "specs" / "models").glob("*.yaml")):
        check.validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    with pytest.raises(Exception, match="is not valid under any of the given schemas"):
        check.validate({**MODELS["phi-4"].to_dict(), "kinds": {"a": {"attention": {}, "mlp": {}}}})


def test_weights_in_other_types():
    llama = MODELS["llama-3-8b"]
    assert llama.weight_bytes() == llama.weight_bytes("bf16") == 2 * llama.parameters
    assert llama.weight_bytes("fp32") == 4 * llama.parameters
    assert llama.weight_bytes("mxfp4") == llama.parameters * 17 // 32
    sizes = [llama.weight_bytes(name) for name in sorted(WEIGHT_SIZE, key=WEIGHT_SIZE.__getitem__)]
    assert sizes == sorted(sizes)
    with pytest.raises(UnknownNameError, match="dtype: 'fp4' is unknown"):
        llama.weight_bytes("fp4")
    with pytest.raises(UnknownNameError, match="kv_dtype: 'nf4' is unknown"):
        llama.kv_bytes(1, "nf4")
    with pytest.raises(InputError, match="context: -1 given"):
        llama.kv_bytes(-1)


def test_calls_of_a_layer():
    layer = MODELS["llama-3-8b"].layers[0].attention
    shape = {"heads": 32, "kv_heads": 8, "head_dim": 128, "mask": "causal"}
    assert layer.call(2, 512, 512) == Attention(batch=2, q_len=512, **shape)
    assert layer.call(1, 1, 900, "fp16", "fp8", 16) == Attention(
        q_len=1, kv_len=900, dtype="fp16", kv_dtype="fp8", page_size=16, **shape
    )
    local = MODELS["mistral-7b-v0.1"].layers[0].attention.call(1, 8192, 8192)
    assert local.mask == Window(left=4095, right=0)
    capped = MODELS["gpt-oss-20b"].layers[1].attention.call(1, 4, 4)
    assert (capped.sinks, capped.softcap, capped.mask) == (True, None, "causal")
    assert MODELS["gemma-2-9b"].layers[0].attention.call(1, 4, 4).softcap == 50.0


def test_calls_of_a_latent():
    layer = MODELS["deepseek-v3"].layers[0].attention
    prefill, decode = layer.call(1, 4096, 4096), layer.call(8, 1, 4096, absorbed=True)
    assert (prefill.heads, prefill.kv_heads, prefill.head_dim, prefill.value_dim) == (128, 128, 192, 128)
    assert not prefill.latent
    assert (decode.heads, decode.kv_heads, decode.head_dim, decode.value_dim) == (128, 1, 576, 512)
    assert decode.latent
    with pytest.raises(InputError, match="absorbed: True given"):
        MODELS["phi-4"].layers[0].attention.call(1, 1, 1, absorbed=True)


@given(chunk=st.integers(1, 9), q_len=st.integers(1, 30), kv_len=st.integers(1, 30))
def test_chunks_show_what_they_should(chunk, q_len, kv_len):
    layer = AttentionLayer(heads=1, head_dim=8, chunk=chunk)
    last = kv_len % chunk or chunk
    if last < q_len != kv_len and kv_len > chunk:
        with pytest.raises(InputError, match=f"q_len: {q_len} given for kv_len = {kv_len} .* up to {last}, "):
            layer.call(1, q_len, kv_len)
        return
    call = layer.call(1, q_len, kv_len)
    queries = range(kv_len - q_len, kv_len)
    seen = sum(1 for i in queries for j in range(i + 1) if i // chunk == j // chunk)
    if isinstance(call.mask, Documents):
        assert int(call.mask.seen(q_len, kv_len).sum()) == seen
    else:
        assert call.mask == "causal"
        assert call.kv_len <= chunk, "no key of another chunk is read"
        assert sum(max(0, call.kv_len - q_len + i + 1) for i in range(q_len)) == seen


@given(window=st.integers(1, 40), context=st.integers(1, 100))
def test_a_window_caches_what_the_next_query_sees(window, context):
    layer = AttentionLayer(heads=2, kv_heads=1, head_dim=8, window=window)
    left = layer.call(1, 1, context).mask.left
    assert layer.cached_tokens(context) == sum(1 for key in range(context) if key >= context - 1 - left)


def test_more_chunks_than_can_be_listed():
    with pytest.raises(InputError, match="q_len: 10000000000 given"):
        AttentionLayer(heads=1, head_dim=8, chunk=2).call(1, 10**10, 10**10)
    assert AttentionLayer(heads=1, head_dim=8, chunk=2).call(1, 1, 10**17).kv_len == 2


BAD_PARTS = [
    (
        AttentionLayer,
        {"heads": 32, "kv_heads": 5, "head_dim": 8},
        "kv_heads: 5 given; allowed: a divisor of heads = 32",
    ),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "window": 4, "chunk": 4}, "chunk: 4 given with window = 4"),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "rope_dim": 4}, "rope_dim: 4 given without kv_lora_rank"),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "kv_lora_rank": 4}, "rope_dim: None given with kv_lora_rank = 4"),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "kv_lora_rank": 4, "rope_dim": 8}, "allowed: an integer from 0"),
    (
        AttentionLayer,
        {"heads": 2, "kv_heads": 1, "head_dim": 8, "kv_lora_rank": 4, "rope_dim": 2},
        "kv_heads: 1 given with kv_lora_rank",
    ),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "window": 0}, "window"),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "softcap": -1.0}, "softcap"),
    (AttentionLayer, {"heads": 2, "head_dim": 8, "sink": True}, "unknown key 'sink'; did you mean 'sinks'?"),
    (MLPLayer, {}, "intermediate_size: 0 given"),
    (MLPLayer, {"intermediate_size": 4, "experts": 2}, "intermediate_size: 4 given with experts = 2"),
    (MLPLayer, {"experts": 2, "experts_per_token": 3, "expert_intermediate_size": 4}, "experts_per_token: 3 given"),
    (MLPLayer, {"experts": 2, "experts_per_token": 1}, "expert_intermediate_size: 0 given"),
    (MLPLayer, {"intermediate_size": 4, "shared_experts": 1}, "shared_experts: 1 given with experts = 0"),
]


@pytest.mark.parametrize(("kind", "fields", "message"), BAD_PARTS)
def test_parts_that_do_not_go_together(kind, fields, message):
    with pytest.raises(InputError) as error:
        kind(**fields)
    assert message in str(error.value)


LEAST = {
    "schema": 1,
    "title": "mine",
    "hidden_size": 64,
    "vocab_size": 100,
    "kinds": {"a": {"attention": {"heads": 4, "head_dim": 16}, "mlp": {"intermediate_size": 128}}},
    "layers": [{"count": 2, "pattern": ["a"]}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema: 2 is not supported"),
        ({"hidden_size": "64"}, "hidden_size: '64' given; allowed: an integer"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hiden_size": 1}, "unknown key 'hiden_size'; did you mean 'hidden_size'?"),
        ({"dtype": "fp4"}, "dtype: 'fp4' is unknown; did you mean 'nvfp4' or 'mxfp4'?"),
        ({"layers": [{"pattern": ["b"]}]}, "layers.0.pattern: 'b' is unknown"),
        ({"layers": [{"count": 10**12, "pattern": ["a"]}]}, "layers: 1000000000000 layers given; allowed: up to 10000"),
        ({"layers": []}, "layers"),
        ({"kinds": {"A B": LEAST["kinds"]["a"]}}, "kinds.A B"),
        (
            {"kinds": {"a": {**LEAST["kinds"]["a"], "attention": {"heads": 4, "head_dim": 0}}}},
            "kinds.a.attention.head_dim",
        ),
        (
            {"kinds": {"a": {**LEAST["kinds"]["a"], "attention": {"heads": 4, "kv_heads": 3, "head_dim": 1}}}},
            "kv_heads: 3",
        ),
        ({"sources": [{"kind": "rumour", "title": "x"}]}, "sources.0.kind"),
        ({"title": "a\nb"}, "title"),
    ],
)
def test_files_that_are_refused(change, message, tmp_path):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**LEAST, **change}))
    with pytest.raises(SpecError) as error:
        model(tmp_path / "mine.yaml")
    assert message in str(error.value)
    assert str(tmp_path / "mine.yaml") in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(("given_name", "name"), [("Llama3 8B", "llama-3-8b"), ("qwen-2.5-7b", "qwen2.5-7b")])
def test_a_name_with_other_separators_is_the_listed_name(given_name, name):
    assert model(given_name) is model(name)


@pytest.mark.parametrize(
    ("repository", "name", "dtype"),
    [
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", "fp8"),
        ("nvidia/Llama-3.1-405B-Instruct-FP4", "llama-3.1-405b", "nvfp4"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "llama-3.1-8b", "uint4-g128"),
        ("RedHatAI/Qwen2.5-72B-Instruct-quantized.w8a8", "qwen2.5-72b", "int8"),
        ("unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "llama-3.2-1b", "nf4"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", None),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-v3", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.3-70b", None),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", None),
        ("openai/gpt-oss-120b", "gpt-oss-120b", None),
        ("deepseek-r1", "deepseek-v3", None),
        ("Qwen/Qwen3.8-27B-FP8", "qwen3.6-27b", "fp8"),
        ("Qwen3.5-27B", "qwen3.6-27b", None),
        ("Qwen/Qwen3.5-35B-A3B", "qwen3.6-35b-a3b", None),
    ],
)
def test_the_name_of_a_repository_states_the_type_of_its_weights(repository, name, dtype):
    spec, shape = model(repository), model(name)
    assert spec.layers == shape.layers
    assert spec.dtype == (dtype or shape.dtype)
    assert (spec is shape) == (dtype is None)
    assert all(f"Weights in {dtype}" in spec.notes[-1] for _ in [dtype] if dtype)
    line = engine_arguments(f"vllm serve {repository}")
    assert model(line["model"]) == spec


@pytest.mark.parametrize("name", ["./llama-3-8b", "/x/llama-3-8b-fp8", "llama-3-8b.json", "a/Mistral-7B-v0.2"])
def test_a_path_or_another_version_is_no_name_of_a_shipped_model(name):
    with pytest.raises(IOModelError):
        model(name)


@pytest.mark.parametrize("name", ["llama-2-34b", "qwen2.5-20b", "qwen2-57b", "meta-llama/Llama-2-34b-hf"])
def test_a_model_of_another_family_or_size_is_not_suggested(name):
    with pytest.raises(UnknownNameError, match=r"is unknown; allowed: .*config\.json") as refused:
        model(name)
    assert "did you mean" not in str(refused.value)


def test_names_that_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="model: 'llama-3-8' is unknown; did you mean 'llama-3-8b'"):
        model("llama-3-8")
    for wrong in (None, 5, b"phi-4", ["phi-4"]):
        with pytest.raises(InputError, match="model: a name, the path of a file or a mapping is needed"):
            model(wrong)
    with pytest.raises(SpecError, match="cannot be read"):
        model("no/such/config.json")
    with pytest.raises(SpecError, match=r"a folder without config\.json"):
        model(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        model("a/\0")
    with pytest.raises(InputError, match="with strings as keys"):
        model({1: 2})
    with pytest.raises(InputError, match="with strings as keys"):
        model({"schema": 1, 1: 2})


counts = st.integers(1, 10**6)
attentions = st.builds(
    lambda group, kv, dim, value, reach, size, flags, norm, rank: AttentionLayer(
        heads=group * kv if rank is None else kv,
        kv_heads=kv,
        head_dim=dim + 1,
        value_dim=value,
        **({reach: size} if reach else {}),
        **dict(zip(("sinks", "qkv_bias", "o_bias", "qk_norm", "rope"), flags, strict=True)),
        **({"qk_norm_weights": norm} if flags[3] else {}),
        **({} if rank is None else {"kv_lora_rank": rank, "rope_dim": dim, "q_lora_rank": size}),
    ),
    counts,
    counts,
    counts,
    counts,
    st.sampled_from([None, "window", "chunk"]),
    counts,
    st.tuples(*[st.booleans()] * 5),
    st.sampled_from(["head", "all", "none"]),
    st.none() | counts,
)
dense = st.builds(
    MLPLayer, intermediate_size=counts, gated=st.booleans(), bias=st.booleans(), activation=st.just("gelu")
)
sparse = st.builds(
    lambda top, more, width, shared, wide: MLPLayer(
        experts=top + more,
        experts_per_token=top,
        expert_intermediate_size=width,
        shared_experts=shared,
        shared_intermediate_size=wide,
    ),
    counts,
    counts,
    counts,
    st.integers(0, 4),
    counts,
)
layers = st.builds(DecoderLayer, attention=attentions, mlp=dense | sparse, norms=st.integers(0, 4))
text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"))
specs = st.builds(
    lambda kinds, order, title, hidden, vocab, tied, dtype, expert: ModelSpec(
        title=title,
        hidden_size=hidden,
        vocab_size=vocab,
        tied_embeddings=tied,
        dtype=dtype,
        expert_dtype=expert,
        layers=tuple(kinds[place % len(kinds)] for place in order),
    ),
    st.lists(layers, min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=40),
    text.filter(lambda t: 1 <= len(t) <= 200),
    counts,
    counts,
    st.booleans(),
    st.sampled_from(sorted(WEIGHT_SIZE)),
    st.none() | st.sampled_from(sorted(WEIGHT_SIZE)),
)


@given(spec=specs)
def test_any_model_reads_back_the_same(spec):
    again = ModelFile(**parse(spec.to_yaml().encode(), "x")).spec()
    assert again == spec
    assert ModelFile(**json.loads(spec.to_json())).spec() == spec
    assert (again.parameters, again.weight_bytes()) == (spec.parameters, spec.weight_bytes())
    assert file_of(spec).to_dict() == spec.to_dict()


@given(spec=specs, context=st.integers(0, 10**6), page=st.integers(1, 300))
def test_laws_of_any_model(spec, context, page):
    hidden = spec.hidden_size
    by_layer = sum(layer.parameters(hidden) for layer in spec.layers)
    outside = spec.parameters - by_layer
    tables = (1 if spec.tied_embeddings else 2) * spec.vocab_size * hidden
    assert outside - tables == hidden * (spec.layers[-1].norms > 0)
    assert spec.active_parameters <= spec.parameters
    for layer in spec.layers:
        matrices = sum(rows * columns for _, rows, columns in layer.attention.projections(hidden))
        assert layer.attention.matrices(hidden) == matrices
    assert spec.kv_bytes(0) == 0
    assert spec.kv_bytes(context) <= spec.kv_bytes(context + 1) <= spec.kv_bytes(context) + spec.kv_bytes_per_token()
    assert (
        spec.kv_bytes(context)
        <= spec.kv_bytes(context, page_size=page)
        <= spec.kv_bytes(context + page - 1, page_size=page)
    )
    assert spec.kv_bytes(context, page_size=1) == spec.kv_bytes(context)
    assert spec.kv_bytes(context, "fp32") == 4 * spec.kv_bytes(context, "int8")
    assert all(isinstance(n, int) for n in (spec.parameters, spec.weight_bytes(), spec.kv_bytes(context)))


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=60))
def test_groups_hold_every_layer_in_order(kinds):
    groups = list(grouped(kinds))
    assert [kind for pattern, times in groups for _ in range(times) for kind in pattern] == kinds


def test_groups_are_short():
    assert [len(MODELS[name].to_dict()["layers"]) for name in ("gemma-3-27b", "gpt-oss-120b", "llama-4-scout")] == [
        2,
        1,
        1,
    ]


def run(capsys, line):
    code = main(shlex.split(line))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("plain_terminal")
def test_the_command_line(capsys, tmp_path):
    code, out, err = run(capsys, "model")
    assert (code, err) == (0, "")
    assert all(re.search(rf"^ +{re.escape(name)} ", out, re.MULTILINE) for name in list_models()), "no name is cut"
    code, out, err = run(capsys, "model gemma-3-27b --context 131072 --kv-dtype fp8")
    assert (code, err) == (0, "")
    assert f"{MODELS['gemma-3-27b'].kv_bytes(131072, 'fp8'):,}" in out
    code, out, err = run(capsys, "model phi-4 --json")
    plain = json.loads(out)
    assert plain.pop("figures")["parameters"] == MODELS["phi-4"].parameters
    assert model(plain) == model(MODELS["phi-4"].to_dict())
    assert json.loads(run(capsys, "model --json")[1])["phi-4"]["layers"] == 40


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model llama9", "model: 'llama9' is unknown; did you mean"),
        ("model no/config.json", "cannot be read"),
        ("model phi-4 --context 8ki", "context: '8ki' given"),
        ("model phi-4 --context -1", "context: -1 given"),
        ("model phi-4 --kv-dtype fp4", "kv_dtype: 'fp4' is unknown"),
    ],
)
def test_bad_input_on_the_command_line(capsys, line, message):
    code, out, err = run(capsys, line)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("plain_terminal")
def test_the_page_lists_every_model(capsys):
    """By name; the rows that it shows are those that the command prints, in their order."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    shown = re.search(r"^```console\n\$ iomodel model\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown is not None
    rows = [line.rstrip() for line in shown[1].splitlines() if line != "..."]
    printed = iter([line.rstrip() for line in run(capsys, "model")[1].splitlines()])
    assert len(rows) > 6
    assert all(row in printed for row in rows)
    assert "```{names} models\n" in page


def test_one_figure_for_the_cache_of_a_token(capsys):
    """What the page prints for a token is what a plan counts for it, keys of indexers included."""
    assert main(["model", "deepseek-v3.2"]) == 0
    printed = capsys.readouterr().out
    spec = MODELS["deepseek-v3.2"]
    both = spec.kv_bytes_per_token() + spec.index_bytes_per_token()
    assert f"{both:,}" in printed
    fit = as_service("deepseek-v3.2", 1000, 10, kv_dtype="bf16", engine=None).memory(hardware("b300"))
    assert fit.token_bytes == both
