"""Published config.json files: every parameter, byte of cache, index and state, and the weights as released.

`published.json` holds, for each checkpoint, the fields that decide shapes and types, their source, and figures counted
from the tensors of the model's own code. Lists are shortened: "names" expand the ranges in braces, "runs" repeat an
entry, "pattern" repeats several, and "by" lists the modules of each rule.
"""

import json
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from iomodel.models.config import spec_of
from iomodel.models.registry import model

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))

BELOW = {  # the share of the file that the model leaves out: scales of fp8 blocks, and fp32 weights of V4's streams
    "deepseek-ai/DeepSeek-V4-Flash": 0.006,
    "deepseek-ai/DeepSeek-V4-Pro": 0.004,
    "sgl-project/DeepSeek-V4-Flash-FP8": 0.002,
}
SHARED = "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
"""Its figure has shared experts in bf16, while its hf_quant_config.json lists them as NVFP4."""

SHIPPED = {  # the shipped models, by the config that is held to published figures
    "deepseek-v3.2": "nvidia/DeepSeek-V3.2-NVFP4",
    "deepseek-v4-flash": "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-v4-pro": "deepseek-ai/DeepSeek-V4-Pro",
    "gemma-3n-e4b": "google/gemma-3n-E4B",
    "gemma-4-26b-a4b": "nvidia/Gemma-4-26B-A4B-NVFP4",
    "glm-5": "zai-org/GLM-5",
    "glm-5.3": "zai-org/GLM-5.3",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "kimi-k3": "moonshotai/Kimi-K3",
    "ling-3.0-flash": "inclusionAI/Ling-3.0-Flash",
    "mimo-v2-flash": "XiaomiMiMo/MiMo-V2-Flash",
    "minimax-m1": "MiniMaxAI/MiniMax-M1-80k",
    "minimax-m2.7": "MiniMaxAI/MiniMax-M2.7",
    "minimax-m3": "MiniMaxAI/MiniMax-M3",
    "mistral-small-4": "mistralai/Mistral-Small-4-119B-2603",
    "nemotron-3-super": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
    "nemotron-3-ultra": "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
    "nemotron-h-56b": "nvidia/Nemotron-H-56B-Base-8K",
    "nemotron-super-49b": "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "phi-3.5-moe": "microsoft/Phi-3.5-MoE-instruct",
    "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3-vl-8b": "Qwen/Qwen3-VL-8B-Instruct",
    "qwen3.5-122b-a10b": "nvidia/Qwen3.5-122B-A10B-NVFP4",
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "qwen3.6-35b-a3b": "nvidia/Qwen3.6-35B-A3B-NVFP4",
}


def numbers(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def expanded_name(text):
    parts = re.split(r"\{([\d,-]+)\}", text)
    choices = [[part] if place % 2 == 0 else [str(n) for n in numbers(part)] for place, part in enumerate(parts)]
    return ["".join(choice) for choice in product(*choices)]


def expanded(data):
    if isinstance(data, list):
        return [expanded(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"names"}:
        return [name for text in data["names"] for name in expanded_name(text)]
    if data.keys() == {"runs"}:
        return [entry for entry, times in data["runs"] for _ in range(times)]
    if data.keys() == {"pattern", "times", "rest"}:
        return data["pattern"] * data["times"] + data["rest"]
    if data.keys() == {"by"}:
        return {name: rule for rule, texts in data["by"] for text in expanded(texts) for name in expanded_name(text)}
    return {key: expanded(value) for key, value in data.items()}


@cache
def read(name):
    entry = PUBLISHED[name]
    return spec_of(expanded(entry["config"]), expanded(entry.get("quantization")))


def corrections(spec):
    """Count the biases that correct scores of routers, which are not parameters of the models that were counted."""
    if spec.name == "gpt_oss":
        return 0
    return sum(times * layer.mlp.routes * layer.mlp.router_bias for layer, times in spec.counted.items() if layer.mlp)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name):
    spec, figures = read(name), PUBLISHED[name]["figures"]
    bias = corrections(spec)
    if "total_parameters" in figures:
        assert spec.parameters - bias == figures["total_parameters"]
        assert spec.active_parameters - bias == figures["active_parameters"]
    if "kv_bytes_per_token" in figures:
        assert spec.kv_bytes_per_token() == figures["kv_bytes_per_token"]
    assert {tokens: spec.kv_bytes(int(tokens)) for tokens in figures["kv_bytes"]} == figures["kv_bytes"]
    if "index_bytes_per_token" in figures:
        assert spec.index_bytes_per_token() == figures["index_bytes_per_token"]
        assert spec.index_bytes(8192) == 8192 * figures["index_bytes_per_token"]
    for tokens, size in figures.get("index_bytes", {}).items():
        assert spec.index_bytes(int(tokens)) == size
    if "state_bytes" in figures:
        assert spec.state_bytes() == figures["state_bytes"]
    assert model(spec.to_dict()) == spec


@pytest.mark.parametrize("name", [name for name in PUBLISHED if "weight_bytes" in PUBLISHED[name]["figures"]])
def test_published_weights(name):
    spec = read(name)
    size = PUBLISHED[name]["figures"]["weight_bytes"] + 2 * corrections(spec)
    if name == SHARED:
        experts = next(layer.mlp for layer in spec.layers if layer.mlp)
        shared = sum(a * b for _, a, b in experts.shared_projections(spec.hidden_size))
        size -= 23 * shared * 23 // 16  # two bytes less nine sixteenths of one, in each of 23 layers
    below = BELOW.get(name, 0.0003 if spec.dtype == "fp8" else 1e-6)
    assert (1 - below) * size <= spec.weight_bytes() <= size


@pytest.mark.parametrize(("name", "key"), SHIPPED.items())
def test_shipped_models_have_the_published_layers(name, key):
    shipped, published = model(name), read(key)
    shapes = [layer.model_copy(update={"dtypes": {}}) for layer in published.layers]
    assert [layer.model_copy(update={"dtypes": {}}) for layer in shipped.layers] == shapes
    facts = ("hidden_size", "vocab_size", "tied_embeddings", "max_positions", "side", "other_weights", "parameters")
    assert all(getattr(shipped, fact) == getattr(published, fact) for fact in facts)
    if "NVFP4" not in key:
        assert shipped.weight_bytes() == published.weight_bytes()


def test_the_recommended_type_of_the_cache():
    recommended = {name for name in PUBLISHED if read(name).kv_dtype == "fp8"}
    assert recommended == {name for name in PUBLISHED if "NVFP4" in name or name == "nvidia/Llama-3.1-70B-Instruct-FP8"}


def test_modules_that_predict_further_tokens():
    """Sizes of files: DeepSeek-V3 15.4 GB with an embedding and an output layer again; GLM-5.2 in fp8 9.3 GiB."""
    deepseek, glm = read("deepseek-ai/DeepSeek-V3"), read("zai-org/GLM-5.3-FP8")
    tables = 2 * 2 * deepseek.embedding_parameters
    assert (deepseek.further_parameters + tables) / 1e9 == pytest.approx(15.4, rel=0.01)
    assert glm.further_parameters / 2**30 == pytest.approx(9.3, rel=0.01)
    assert [layer.attention.head_dim for layer in read("Qwen/Qwen3.5-397B-A17B").further_layers] == [256]
    assert read("Qwen/Qwen3-8B").further_layers == ()


def test_types_of_single_matrices():
    mixed = read("nvidia/Qwen3.6-35B-A3B-NVFP4")
    assert (mixed.dtype, mixed.expert_dtype, mixed.head_dtype) == ("fp8", "nvfp4", "nvfp4")
    assert dict(mixed.layers[0].dtypes) == {"state b": "bf16", "state a": "bf16"}
    first = read("nvidia/GLM-5.2-NVFP4").layers[2]
    assert (first.mlp.experts, dict(first.dtypes)) == (0, {})
    assert dict(read("nvidia/GLM-5.2-NVFP4").layers[3].dtypes) == {
        f"shared {name}": "bf16" for name in ("gate", "up", "down")
    }


def test_a_published_field_that_a_reader_ignores_would_be_seen():
    """Each figure depends on the fields: dropping the fields of one mechanism changes it, or is refused."""
    config = expanded(PUBLISHED["nvidia/GLM-5.2-NVFP4"]["config"])
    shared = spec_of({**config, "indexer_types": ["full"] * 78})
    assert shared.index_bytes_per_token() == 78 * 128 * 2
    gemma = expanded(PUBLISHED["google/gemma-3n-E4B"]["config"])
    own = spec_of({**gemma, "num_kv_shared_layers": 0})
    assert own.kv_bytes_per_token() == 35 * 2 * 2 * 256 * 2
