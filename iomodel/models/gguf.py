"""Models from the headers of GGUF files: metadata as fields of a config, and the type of each matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.spec import ModelSpec
from iomodel.models.weight_files import StoredTensor, WeightFile

TYPES = {
    "llama": "llama", "llama4": "llama4_text", "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3",
    "gpt-oss": "gpt_oss", "olmo2": "olmo2", "starcoder2": "starcoder2", "command-r": "cohere", "cohere2": "cohere2",
    "granite": "granite", "glm4": "glm4", "stablelm": "stablelm", "smollm3": "smollm3", "seed_oss": "seed_oss",
    "mistral3": "ministral3", "olmoe": "olmoe", "ernie4_5": "ernie4_5", "hunyuan-dense": "hunyuan_v1_dense",
    "deepseek2": "deepseek_v3",
}  # fmt: skip
"""Types of models by the architecture that a GGUF file names (gguf-py/gguf/constants.py of llama.cpp)."""
FIELDS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "attention.q_lora_rank": "q_lora_rank",
    "attention.kv_lora_rank": "kv_lora_rank",
}
"""Fields of a config by the keys of the metadata behind the architecture."""
COPIES = {"num_experts": ("num_local_experts", "n_routed_experts")}
"""Further names of a field, which some types use."""
MATRICES: Mapping[str, tuple[str, ...]] = {
    "attn_q": ("q",),
    "attn_k": ("k",),
    "attn_v": ("v",),
    "attn_qkv": ("q", "k", "v"),
    "attn_output": ("o",),
    "attn_q_a": ("q_a",),
    "attn_q_b": ("q_b",),
    "attn_kv_a_mqa": ("kv_a",),
    "attn_kv_b": ("kv_b",),
    "ffn_gate": ("gate",),
    "ffn_up": ("up", "gate"),
    "ffn_down": ("down",),
    "ffn_gate_exps": ("expert gate",),
    "ffn_up_exps": ("expert up",),
    "ffn_down_exps": ("expert down",),
    "ffn_gate_shexp": ("shared gate",),
    "ffn_up_shexp": ("shared up",),
    "ffn_down_shexp": ("shared down",),
}
"""Matrices of a layer by the name of their tensor behind `blk.N.`; `ffn_up` of some types has the gate too."""


def config_of(file: WeightFile) -> dict[str, Any]:
    """Give the metadata of a GGUF file the names of a config.json.

    Raises
    ------
    InputError
        The file states no architecture, or one that is not known here, or has no layers.
    """
    kind = file.metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in TYPES:
        raise InputError(f"general.architecture: {shown(kind)} given; allowed: {', '.join(TYPES)}")
    if not any(tensor.name.startswith("blk.") for tensor in file.tensors):
        raise InputError(
            f"tensors: {len(file.tensors)} in the header, none of a layer, as in a file of a vocabulary; allowed: the "
            "file of a whole model, or the first of its parts"
        )
    stated = {name: file.metadata.get(f"{kind}.{key}") for key, name in FIELDS.items()}
    data = {name: value for name, value in stated.items() if value is not None}
    experts = bool(data.get("num_experts"))
    data["model_type"] = "mixtral" if kind == "llama" and experts else TYPES[kind]
    for name, copies in COPIES.items():
        data |= dict.fromkeys(copies, data[name]) if name in data else {}
    if kind == "deepseek2":
        data |= _latent(file, kind)
    shapes = {tensor.name: tensor.shape for tensor in file.tensors}
    table = shapes.get("token_embd.weight")
    vocabulary = table[1] if table is not None and len(table) == 2 else file.metadata.get(f"{kind}.vocab_size")
    data["vocab_size"] = vocabulary
    data["tie_word_embeddings"] = "output.weight" not in shapes
    data["attention_bias"] = "blk.0.attn_q.bias" in shapes
    data["torch_dtype"] = "bfloat16"
    named = file.metadata.get("general.basename") or file.metadata.get("general.name")
    return {**data, "_name_or_path": str(named or kind).strip().replace(" ", "-").replace("/", "-")[:80] or kind}


def _latent(file: WeightFile, kind: str) -> dict[str, Any]:
    """Read the widths of latent attention, which newer files state for the latent row and for a head."""
    meta = partial(_of, file.metadata, kind)
    rotary = meta("rope.dimension_count") or 0
    key = meta("attention.key_length_mla") or meta("attention.key_length") or 0
    return {
        "qk_rope_head_dim": rotary,
        "qk_nope_head_dim": key - rotary,
        "v_head_dim": meta("attention.value_length_mla") or meta("attention.value_length"),
        "num_key_value_heads": meta("attention.head_count"),
        "head_dim": None,
    }


def _of(metadata: Mapping[str, Any], kind: str, key: str) -> Any:
    value = metadata.get(f"{kind}.{key}")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def with_types(spec: ModelSpec, file: WeightFile) -> ModelSpec:
    """Return the model with the type of each matrix as the file has it."""
    return with_types_of(spec, *_types(file.tensors))


def with_types_of(spec: ModelSpec, of_layers: Mapping[tuple[int, str], str], outside: Mapping[str, str]) -> ModelSpec:
    """Return the model with types of its matrices, by their layer and name, and of the tables outside of layers."""
    matrices = [layer.linears(spec.hidden_size) for layer in spec.layers]
    sizes = Counter[str]()
    for place, listed in enumerate(matrices):
        for matrix in listed:
            sizes[of_layers.get((place, matrix.name), "bf16")] += matrix.elements
    most = sizes.most_common(1)[0][0] if sizes else "bf16"
    layers = tuple(
        _typed(layer, {m.name: dtype for m in listed if (dtype := of_layers.get((place, m.name), most)) != most})
        for place, (layer, listed) in enumerate(zip(spec.layers, matrices, strict=True))
    )
    table = outside.get("token_embd")
    head = outside.get("output", table)
    counted = spec.model_copy(
        update={"layers": layers, "dtype": most, "expert_dtype": None, "head_dtype": head, "embedding_dtype": table}
    )
    return ModelSpec(**{name: getattr(counted, name) for name in ModelSpec.model_fields})


def _types(tensors: tuple[StoredTensor, ...]) -> tuple[dict[tuple[int, str], str], dict[str, str]]:
    """List the types of the matrices of layers, and those of the tables outside of them."""
    of_layers: dict[tuple[int, str], str] = {}
    outside: dict[str, str] = {}
    for tensor in tensors:
        parts = tensor.name.split(".")
        if parts[-1] != "weight":
            continue
        if len(parts) == 4 and parts[0] == "blk" and parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 6:
            for name in MATRICES.get(parts[2], ()):
                of_layers.setdefault((int(parts[1]), name), tensor.dtype)
                if name == "gate" and parts[2] == "ffn_gate":
                    of_layers[int(parts[1]), name] = tensor.dtype
        elif len(parts) == 2:
            outside[parts[0]] = tensor.dtype
    return of_layers, outside


def _typed(layer: DecoderLayer, dtypes: Mapping[str, str]) -> DecoderLayer:
    return layer.model_copy(update={"dtypes": FrozenDict(dtypes)}) if dtypes or layer.dtypes else layer
