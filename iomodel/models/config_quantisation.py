"""Types of the released weights: quantisation formats, their exclusion lists, and the type of the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.models.config_modules import PREFIXES, head_names, matrix_names
from iomodel.models.fields import Fields
from iomodel.models.layers import DecoderLayer
from iomodel.models.quantisation import Scheme, read_scheme

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
    scheme = read_scheme(fields, outer, beside, notes)
    if scheme is None:
        return layers, {"dtype": plain}
    facts = {} if scheme.kv_dtype is None else {"kv_dtype": scheme.kv_dtype}
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
    name = fields.text("torch_dtype", "dtype") or outer.text("torch_dtype", "dtype")
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
                    matrix_names(matrix.name, layer, place, paths, modules), "expert" if matrix.expert else "dense"
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
