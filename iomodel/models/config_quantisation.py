"""Types of the released weights: of every matrix, by its names in a checkpoint, and of the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.quantisation import Scheme, read_scheme

PREFIXES = (
    "model.layers",
    "language_model.model.layers",
    "model.language_model.layers",
    "language_model.layers",
    "backbone.layers",
    "transformer.h",
    "layers",
)
"""Paths of the list of layers."""

MODULES: Mapping[str, tuple[str, ...]] = {
    "attention": ("self_attn", "attn", "attention"),
    "recurrent": ("linear_attn", "mamba", "conv", "self_attn"),
    "mlp": ("mlp", "feed_forward", "ffn"),
    "experts": ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "ffn.experts", "moe"),
    "shared": (
        "mlp.shared_experts",
        "mlp.shared_expert",
        "feed_forward.shared_expert",
        "ffn.shared_experts",
        "block_sparse_moe.shared_experts",
        "share_expert",
        "shared_mlp",
    ),
    "latent": ("mlp", "block_sparse_moe"),
}
"""Modules of a layer, by its parts; a family may name others."""

ATTENTION: Mapping[str, tuple[str, ...]] = {
    "q": ("q_proj", "qkv_proj", "query_key_value", "wq"),
    "k": ("k_proj", "qkv_proj", "query_key_value", "wk"),
    "v": ("v_proj", "qkv_proj", "query_key_value", "wv"),
    "o": ("o_proj", "out_proj", "dense", "wo"),
    "q_a": ("q_a_proj", "wq_a"),
    "q_b": ("q_b_proj", "wq_b"),
    "kv_a": ("kv_a_proj_with_mqa", "wkv_a"),
    "kv_b": ("kv_b_proj", "wkv_b"),
    "kv": ("kv_proj", "wkv"),
    "o_a": ("o_a_proj", "wo_a"),
    "o_b": ("o_b_proj", "wo_b"),
    "out gate": ("q_proj", "g_proj", "gate_proj"),
    "index q": ("indexer.wq_b", "indexer.q_proj", "compressor.indexer.q_b_proj"),
    "index k": ("indexer.wk", "indexer.k_proj", "compressor.indexer.kv_proj"),
    "index gate": ("indexer.gate", "compressor.indexer.gate_proj"),
    "index weights": ("indexer.weights_proj", "indexers_proj", "compressor.indexer.scorer.weights_proj"),
    "compress kv": ("compressor.kv_proj", "compressor.wkv"),
    "compress gate": ("compressor.gate_proj", "compressor.wgate"),
}
RECURRENT: Mapping[str, tuple[str, ...]] = {
    "qkv": ("in_proj_qkv", "in_proj_qkvz", "qkv_proj"),
    "z": ("in_proj_z", "in_proj_qkvz"),
    "b": ("in_proj_b", "in_proj_ba", "b_proj"),
    "a": ("in_proj_a", "in_proj_ba", "a_proj"),
    "q": ("q_proj",),
    "k": ("k_proj",),
    "v": ("v_proj",),
    "f": ("f_proj",),
    "f_a": ("f_a_proj",),
    "f_b": ("f_b_proj",),
    "g": ("g_proj", "output_gate"),
    "g_a": ("g_a_proj",),
    "g_b": ("g_b_proj",),
    "in": ("in_proj",),
    "x": ("x_proj",),
    "dt": ("dt_proj",),
    "out": ("out_proj", "o_proj"),
}
MLP: Mapping[str, tuple[str, ...]] = {
    "gate": ("gate_proj", "gate_up_proj", "w1"),
    "up": ("up_proj", "gate_up_proj", "w3"),
    "down": ("down_proj", "w2"),
}
LATENT: Mapping[str, tuple[str, ...]] = {
    "latent in": ("fc1_latent_proj", "routed_expert_down_proj"),
    "latent out": ("fc2_latent_proj", "routed_expert_up_proj"),
}
SIDE: Mapping[str, tuple[str, ...]] = {
    "input gate": ("per_layer_input_gate",),
    "input up": ("per_layer_projection",),
    "laurel left": ("laurel.linear_left",),
    "laurel right": ("laurel.linear_right",),
    "altup router": ("altup.modality_router",),
}


def head_names() -> tuple[str, ...]:
    """List the names of the output layer."""
    return "lm_head", "language_model.lm_head", "model.lm_head", "output_layer", "head"


def matrix_names(
    name: str, layer: DecoderLayer, place: int, paths: tuple[str, ...], modules: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """List the possible module names of one matrix of a layer, with the layers at any of some paths."""
    inner = _inside(name, layer.attention is not None, tuple((part, modules[part]) for part in sorted(modules)))
    return tuple(f"{prefix}.{place}.{module}" for prefix in paths for module in inner)


@lru_cache(maxsize=1024)
def _inside(name: str, attends: bool, modules: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, ...]:
    return tuple(_inner(name, attends, {**MODULES, **dict(modules)}))


def _inner(name: str, attends: bool, modules: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Iterate over the possible names of a matrix within its layer."""
    if name.startswith("state "):
        yield from _joined(modules["recurrent"], RECURRENT[name.removeprefix("state ")])
    elif name.startswith("expert "):
        for module in modules["experts"]:
            yield module
            yield from _joined((f"{module}.0", module), MLP[name.removeprefix("expert ")])
    elif name.startswith("shared "):
        yield from _joined(modules["shared"], MLP[name.removeprefix("shared ")])
    elif name in LATENT:
        yield from _joined(modules["latent"], LATENT[name])
    elif name in MLP:
        yield from _joined(modules["mlp"], MLP[name])
    elif name in ATTENTION and attends:
        yield from _joined(modules["attention"], ATTENTION[name])
    else:
        yield from SIDE.get(name, (name.replace(" ", "_"),))


def _joined(modules: tuple[str, ...], names: tuple[str, ...]) -> Iterator[str]:
    for module in modules:
        for name in names:
            yield f"{module}.{name}"


DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
}
"""Weight types by their torch names."""

Layers = tuple[DecoderLayer, ...]


def dtypes_of(
    fields: Fields,
    outer: Fields,
    layers: Layers,
    beside: Mapping[str, Any] | None,
    modules: Mapping[str, tuple[str, ...]],
    notes: list[str],
) -> tuple[Layers, dict[str, str]]:
    """Read the types of the released weights: of the model, and of matrices that differ from it."""
    plain = _plain(fields, outer, notes)
    stated = fields.optional(fields.text, "mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    states = {"state_dtype": DTYPES[stated]} if stated in DTYPES else {}
    scheme = read_scheme(fields, outer, beside, notes)
    if scheme is None:
        return layers, {"dtype": plain, **states}
    facts = states if scheme.kv_dtype is None else {"kv_dtype": scheme.kv_dtype, **states}
    if scheme.unsupported is not None:
        notes.append(
            f"The quantization_config of {shown(scheme.unsupported, 40)} is not supported; the weights are assumed to "
            f"be {plain}."
        )
        return layers, {"dtype": plain, **facts}
    head = scheme.of(head_names(), "head") or None
    types = _types(layers, fields.count("hidden_size", "n_embd", "d_model"), scheme, modules, plain)
    dtype, expert = _most(types, layers, expert=False), _most(types, layers, expert=True)
    dtype = dtype or expert or plain
    facts |= {"dtype": dtype} | ({} if expert in (None, dtype) else {"expert_dtype": str(expert)})
    facts |= {} if head is None else {"head_dtype": head}
    built: dict[tuple[DecoderLayer, tuple[tuple[str, str], ...]], DecoderLayer] = {}
    typed = []
    for layer, layer_types in zip(layers, types, strict=True):
        experts = {matrix.name for matrix in layer.linears(1) if matrix.expert}
        other = {
            name: kind
            for name, kind in layer_types.items()
            if kind != (expert if name in experts and expert else dtype)
        }
        key = layer, tuple(sorted(other.items()))
        if key not in built:
            built[key] = layer.model_copy(update={"dtypes": FrozenDict(other)}) if other else layer
        typed.append(built[key])
    return tuple(typed), facts


def _plain(fields: Fields, outer: Fields, notes: list[str]) -> str:
    """Read the type of weights that are not quantised."""
    name = next(
        (known for each in (fields, outer) if (known := each.optional(each.text, "torch_dtype", "dtype"))), None
    )
    if name is None:
        notes.append("No torch_dtype is given; bf16 is assumed.")
    plain = "bf16" if name is None else DTYPES.get(name.removeprefix("torch."))
    if plain is None:
        raise InputError(f"torch_dtype: {shown(name)} given; allowed: {', '.join(DTYPES)}")
    return plain


def _types(
    layers: Layers, hidden: int, scheme: Scheme, modules: Mapping[str, tuple[str, ...]], plain: str
) -> list[dict[str, str]]:
    """List the type of every matrix of every layer."""
    known: dict[tuple[int, bool], dict[str, str]] = {}
    uniform = scheme.uniform
    paths = tuple(path for path in PREFIXES if scheme.mentions(path)) or PREFIXES[:1]
    listed = []
    for place, layer in enumerate(layers):
        key = id(layer), uniform
        if not uniform or key not in known:
            known[key] = {
                matrix.name: scheme.of(
                    matrix_names(matrix.name, layer, place, paths, modules),
                    "expert" if matrix.name.startswith("expert ") else "dense",
                )
                or plain
                for matrix in layer.linears(hidden)
            }
        listed.append(known[key])
    return listed


def _most(types: list[dict[str, str]], layers: Layers, expert: bool) -> str | None:
    """Find the type of most matrices, of experts or of the others."""
    counts: Counter[str] = Counter()
    for layer_types, layer in zip(types, layers, strict=True):
        for matrix in layer.linears(1):
            if matrix.expert == expert:
                counts[layer_types[matrix.name]] += 1
    return counts.most_common(1)[0][0] if counts else None
