"""Headers of GGUF and safetensors files: exact bytes, shapes of the model, and damaged files refused."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import Attention, InputError, cost, model, plan
from iomodel.errors import IOModelError, SpecError, UnknownNameError
from iomodel.models.weight_files import read_weights, weights_beside
from tests.fuzz.law import answered
from tests.support.damage import damaged
from tests.support.inside import PAIRED, WEIGHT_SIZE


def text(words):
    encoded = words.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def entry(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    return text(key) + struct.pack("<II", 4, value)


def gguf(metadata, tensors, version=3):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(entry(*item) for item in metadata.items())
    for name, shape, kind in tensors:
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, 0)
    return head


LLAMA = {
    "general.architecture": "llama", "general.name": "Meta Llama 3.1 8B Instruct", "llama.block_count": 32,
    "llama.context_length": 131072, "llama.embedding_length": 4096, "llama.feed_forward_length": 14336,
    "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.rope.dimension_count": 128,
    "tokenizer.ggml.tokens": ["a"] * 1000,
}  # fmt: skip
Q4_K, Q6_K, FP32 = 12, 14, 0


def llama_tensors():
    """Tensors of the Q4_K_M files of Llama 3.1 8B: V and the down projection of some layers have more bits."""
    yield "token_embd.weight", (4096, 128256), Q4_K
    yield "output_norm.weight", (4096,), FP32
    yield "output.weight", (4096, 128256), Q6_K
    yield "rope_freqs.weight", (64,), FP32
    for place in range(32):
        more = Q6_K if place < 4 or place >= 28 or (place - 4) % 3 == 2 else Q4_K
        shapes = {"attn_norm": ((4096,), FP32), "ffn_norm": ((4096,), FP32), "attn_q": ((4096, 4096), Q4_K),
                  "attn_k": ((4096, 1024), Q4_K), "attn_v": ((4096, 1024), more), "attn_output": ((4096, 4096), Q4_K),
                  "ffn_gate": ((4096, 14336), Q4_K), "ffn_up": ((4096, 14336), Q4_K),
                  "ffn_down": ((14336, 4096), more)}  # fmt: skip
        yield from ((f"blk.{place}.{name}.weight", *described) for name, described in shapes.items())


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    file = tmp_path_factory.mktemp("gguf") / "llama-3.1-8b-q4_k_m.gguf"
    file.write_bytes(gguf(LLAMA, list(llama_tensors())))
    return file


def test_a_gguf_file_is_the_model_with_the_types_of_its_matrices(published):
    spec, dense = model(published), model("llama-3.1-8b")
    assert spec.parameters == dense.parameters
    assert spec.kv_bytes(1000) == dense.kv_bytes(1000)
    # https://huggingface.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF states 4.92 GB, of which the header is 7.8 MB
    assert read_weights(str(published)).bytes == 4_912_898_304
    assert spec.weight_bytes() == pytest.approx(4_912_898_304, rel=2e-4)  # norms are counted in bf16, stored in fp32
    assert (spec.dtype, spec.head_dtype, spec.embedding_dtype) == ("q4_K", "q6_K", "q4_K")
    assert dict(spec.layers[0].dtypes) == {"v": "q6_K", "down": "q6_K"}
    assert "4,912,898,304 B" in spec.notes[-1]


def test_experts_and_tied_tables_of_gguf(tmp_path):
    metadata = {
        "general.architecture": "qwen3moe", "qwen3moe.block_count": 1, "qwen3moe.embedding_length": 256,
        "qwen3moe.feed_forward_length": 512, "qwen3moe.attention.head_count": 4, "qwen3moe.attention.head_count_kv": 2,
        "qwen3moe.attention.key_length": 64, "qwen3moe.expert_count": 8, "qwen3moe.expert_used_count": 2,
        "qwen3moe.expert_feed_forward_length": 128, "qwen3moe.context_length": 4096,
    }  # fmt: skip
    shapes = {"attn_q": (256, 256), "attn_k": (256, 128), "attn_v": (256, 128), "attn_output": (256, 256),
              "ffn_gate_exps": (256, 128, 8), "ffn_up_exps": (256, 128, 8), "ffn_down_exps": (128, 256, 8)}  # fmt: skip
    tensors = [(f"blk.0.{name}.weight", shape, 8) for name, shape in shapes.items()]
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf(metadata, [("token_embd.weight", (256, 1000), 8), *tensors], version=2))
    spec = model(file)
    assert (spec.layers[0].mlp.experts, spec.tied_embeddings, spec.dtype) == (8, True, "q8_0")
    vectors = spec.layers[0].vectors(256) + 256
    assert spec.weight_bytes() == read_weights(str(file)).bytes + 2 * vectors
    elements = sum(matrix.elements for matrix in spec.layers[0].linears(256)) + 256_000
    assert read_weights(str(file)).bytes == elements * WEIGHT_SIZE["q8_0"]


FILES = Path(__file__).parent / "files"


def test_the_params_of_mistral_and_meta_state_the_parameters_of_their_weights():
    """Of Devstral the index beside them states the bytes; Meta counts 8.03 billion parameters."""
    devstral, index = (FILES / f"devstral{name}" for name in ("-params.json", ".safetensors.index.json"))
    stored = json.loads(index.read_text())["metadata"]
    assert model(devstral).parameters == stored["total_parameters"]
    assert model(devstral).weight_bytes() == stored["total_size"] == read_weights(str(index)).bytes
    assert model(FILES / "llama-3.1-8b-params.json").parameters == model("llama-3.1-8b").parameters == 8_030_261_248
    with pytest.raises(InputError, match="vocab_size: -1 given"):  # it is that of the tokenizer
        model(FILES / "llama-2-70b-params.json")


def test_a_vocabulary_in_gguf_is_no_model():
    for name in ("llama-spm", "phi-3"):
        with pytest.raises(InputError, match="0 in the header, none of a layer, as in a file of a vocabulary"):
            model(FILES / f"ggml-vocab-{name}.gguf")
    llama = read_weights(str(FILES / "ggml-vocab-llama-spm.gguf")).metadata
    assert (llama["llama.block_count"], llama["llama.attention.head_count"]) == (32, 32)


def test_small_models_in_gguf_are_counted_as_stored():
    """The first has 292,800 parameters and 163,840 B of cache for 256 tokens (its readers in public code)."""
    stories, random = (FILES / f"{name}.gguf" for name in ("stories260K", "llama-2-tiny-random"))
    assert (model(stories).parameters, 256 * model(stories).kv_bytes_per_token()) == (292_800, 163_840)
    assert model(stories).weight_bytes() == read_weights(str(stories)).bytes == 4 * 292_800
    norms = 3 * 8 * 2  # in fp32, where matrices are in fp16
    assert model(random).weight_bytes() == read_weights(str(random)).bytes - norms == 2 * 513_048


def test_parts_of_diffusers_and_encoders_are_refused_with_the_reason():
    reasons = {"sd3.5-model_index": "diffusion", "sdxl-model_index": "diffusion", "sdxl-unet-config": "diffusion",
               "bge-config": "an encoder", "bge-modules": "in config.json beside it"}  # fmt: skip
    for name, reason in reasons.items():
        with pytest.raises(IOModelError, match=reason):
            model(FILES / f"{name}.json")


CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 100,
    "intermediate_size": 128, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


def safetensors(spec):
    """The header of a file of all weights of a model, as one tensor, and one more of another type."""
    size = spec.weight_bytes()
    tensors = {
        "model.weight": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]},
        "scale": {"dtype": "F32", "shape": [1, 3], "data_offsets": [size, size + 12]},
        "__metadata__": {"format": "pt"},
    }
    header = json.dumps(tensors).encode()
    return struct.pack("<Q", len(header)) + header


def test_safetensors_and_an_index_state_the_bytes_as_stored(tmp_path):
    spec = model(CONFIG)
    (tmp_path / "model.safetensors").write_bytes(safetensors(spec))
    with pytest.raises(SpecError, match=r"in 2 tensors \(BF16 .*, F32 12 B\), without the number of heads; allowed"):
        model(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    stored = spec.weight_bytes() + 12
    for path in (tmp_path, tmp_path / "model.safetensors", tmp_path / "config.json"):
        assert f"{stored:,} B; counted: {stored - 12:,} B" in model(path).notes[-1]
    index = {"metadata": {"total_size": 12345}, "weight_map": {"model.weight": "model-00001-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "12,345 B" in model(tmp_path).notes[-1]
    assert weights_beside(str(tmp_path / "config.json")).names == ("model.weight",)
    assert model(tmp_path).layers == spec.layers


@pytest.mark.parametrize("dtype", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0"])
def test_a_cache_in_blocks_takes_what_a_row_of_weights_takes(dtype):
    llama = model("llama-3-8b")
    assert llama.kv_bytes_per_token(dtype) == llama.kv_bytes_per_token("bf16") // 2 * WEIGHT_SIZE[dtype]


@given(st.sampled_from(PAIRED), st.sampled_from(PAIRED))
def test_a_cache_in_two_types_takes_half_of_each(keys, values):
    llama = model("llama-3-8b")
    pair = f"{keys}/{values}" if keys != values else keys
    assert 2 * llama.kv_bytes_per_token(pair) == llama.kv_bytes_per_token(keys) + llama.kv_bytes_per_token(values)
    call = {"q_len": 1, "kv_len": 4096, "heads": 8, "kv_heads": 2, "head_dim": 128}
    pass_bytes = [
        cost("flash2", Attention(**call, kv_dtype=each), {"block_q": 16, "block_kv": 64}).hbm_bytes
        for each in (pair, keys, values)
    ]
    assert 2 * pass_bytes[0] == pass_bytes[1] + pass_bytes[2]


def test_two_types_need_rows_of_one_width():
    with pytest.raises(InputError, match="q8_0/q4_0 given for rows of K and of V that differ; allowed: one type"):
        Attention(q_len=1, head_dim=128, value_dim=64, kv_dtype="q8_0/q4_0")
    with pytest.raises(InputError, match="head_dim: 40 given with kv_dtype = fp16/q4_0; allowed: a multiple of 32"):
        Attention(q_len=1, head_dim=40, kv_dtype="fp16/q4_0")
    with pytest.raises(InputError, match="'q8_0/q4_0' given for deepseek-v3, whose rows of K and of V differ"):
        plan("deepseek-v3", "b200", tp=8, prompt=2048, output=256, kv_dtype="q8_0/q4_0")
    with pytest.raises(
        InputError, match="'bf16/fp8' given; allowed: one type, or two different ones of fp32, fp16, bf16, q8_0"
    ):
        plan("llama-3.1-8b", "h100-sxm", prompt=2048, output=256, kv_dtype="bf16/fp8")
    for wrong in ("q8_0/int4", "q8_0/q8_0", "q8_0/", "/"):
        with pytest.raises(UnknownNameError, match="kv_dtype"):
            model("llama-3-8b").kv_bytes_per_token(wrong)


# What is refused

TEXTS = struct.pack("<IIQ", 9, 8, 1 << 60)
"""The start of a list of 2^60 texts."""
DAMAGED = {
    "an unknown architecture": (gguf({"general.architecture": "clip"}, []), InputError, "'clip' given; allowed: llama"),
    "none": (gguf({}, []), InputError, "general.architecture: None given"),
    "version 1": (gguf(LLAMA, [], version=1), SpecError, "version 1, 0 tensors given"),
    "cut": (gguf(LLAMA, list(llama_tensors()))[:900], SpecError, "cut short"),
    "many texts": (gguf({}, [])[:-8] + struct.pack("<Q", 1) + text("x") + TEXTS, SpecError, "cut short"),
    "a type": (gguf(LLAMA, [("token_embd.weight", (1, 1), 99)]), SpecError, "type 99 given; allowed: q4_0"),
    "axes": (gguf(LLAMA, [("x", (1,) * 9, 0)]), SpecError, "9 axes given"),
    "no fields": (gguf({"general.architecture": "llama"}, [("blk.0.x", (1, 1), 0)]), InputError, "not given"),
    "no layers": (gguf(LLAMA, [("token_embd.weight", (4096, 9), 0)]), InputError, "1 in the header, none of a layer"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_gguf_file_is_refused_in_one_line(case, tmp_path):
    content, kind, message = DAMAGED[case]
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    with pytest.raises(kind, match=message) as caught:
        model(file)
    assert "\n" not in str(caught.value)


def test_damaged_safetensors_are_refused_in_one_line(tmp_path):
    file = tmp_path / "x.safetensors"
    sizes = '{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}}'
    for header, message in ((b"", "no header"), (sizes.encode(), "9 B given"), (b"[]", "a mapping of tensors")):
        file.write_bytes(struct.pack("<Q", len(header)) + header if header else b"")
        with pytest.raises(SpecError, match=message):
            model(file)
    file.write_bytes(struct.pack("<Q", 1000) + b"{}")
    with pytest.raises(SpecError, match="1,000 B stated, 2 B found; the file is cut short"):
        model(file)
    file = tmp_path / "x.index.json"
    file.write_text('{"weight_map": {}, "metadata": {"total_size": "x"}}', encoding="utf-8")
    with pytest.raises(SpecError, match="total_size"):
        model(file)


@given(data=st.data())
def test_a_damaged_header_is_read_or_refused_in_one_line(data, tmp_path_factory):
    small = [item for item in llama_tensors() if ".0." in item[0] or "blk" not in item[0]]
    whole = data.draw(st.sampled_from([gguf({**LLAMA, "llama.block_count": 1}, small), safetensors(model(CONFIG))]))
    file = tmp_path_factory.getbasetemp() / ("x.gguf" if whole[:4] == b"GGUF" else "x.safetensors")
    file.write_bytes(damaged(data, whole, 12, [b"\xff" * 8, b"\x00" * 8, b"9" * 30]))
    assert answered(lambda: model(file)) in ("answered", "refused")


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize(("rope", "plain", "value"), [(64, 128, 128), (32, 96, 64), (64, 64, 192)])
def test_latents_of_a_gguf_file_are_those_of_a_config(rope, plain, value, newer, tmp_path):
    """A key has its part with positions and its part without; newer files state the latent row beside it."""
    fields = {
        "hidden_size": ("embedding_length", 512), "num_hidden_layers": ("block_count", 2),
        "intermediate_size": ("feed_forward_length", 1024), "num_attention_heads": ("attention.head_count", 8),
        "kv_lora_rank": ("attention.kv_lora_rank", 256), "q_lora_rank": ("attention.q_lora_rank", 384),
        "qk_rope_head_dim": ("rope.dimension_count", rope), "n_routed_experts": ("expert_count", 16),
        "num_experts_per_tok": ("expert_used_count", 4), "moe_intermediate_size": ("expert_feed_forward_length", 128),
        "n_shared_experts": ("expert_shared_count", 1), "first_k_dense_replace": ("leading_dense_block_count", 1),
        "max_position_embeddings": ("context_length", 4096),
    }  # fmt: skip
    stated = {f"deepseek2.{key}": number for key, number in fields.values()}
    more = "_mla" if newer else ""
    stated |= {f"deepseek2.attention.key_length{more}": rope + plain, f"deepseek2.attention.value_length{more}": value}
    stated |= {"deepseek2.attention.key_length": 256 + rope, "deepseek2.attention.value_length": 256} if newer else {}
    file, config = tmp_path / "tiny.gguf", tmp_path / "config.json"
    tables = [(f"{name}.weight", (512, 1000), 30) for name in ("token_embd", "output", "blk.0.attn_norm")]
    file.write_bytes(gguf({"general.architecture": "deepseek2", **stated}, tables))
    own = {name: number for name, (_, number) in fields.items()} | {"qk_nope_head_dim": plain, "v_head_dim": value}
    config.write_text(json.dumps({"model_type": "deepseek_v3", "vocab_size": 1000, **own}))
    read, written = model(file), model(config)
    assert [layer.attention for layer in read.layers] == [layer.attention for layer in written.layers]
    assert (read.parameters, read.kv_bytes(1000)) == (written.parameters, written.kv_bytes(1000))


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12])
@pytest.mark.parametrize("many", [3, 70_000])
def test_what_follows_a_list_of_numbers_is_read(number, many, tmp_path):
    """Scores of a vocabulary are numbers of any width, and too many to keep."""
    size = struct.calcsize("<" + {**dict(enumerate("BbHhIif?")), 10: "Q", 11: "q", 12: "d"}[number])
    scores = text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, number, many) + bytes(size * many)
    plain = gguf(LLAMA, list(llama_tensors())[:9])
    at = len(b"GGUF") + struct.calcsize("<IQQ")
    counted = plain[: at - 8] + struct.pack("<Q", len(LLAMA) + 1) + scores + plain[at:]
    found = []
    for name, content in (("plain", plain), ("scored", counted)):
        (tmp_path / name).write_bytes(content)
        found.append(read_weights(str(tmp_path / name)))
    assert found[0].tensors == found[1].tensors
    assert found[0].metadata.items() <= found[1].metadata.items()
