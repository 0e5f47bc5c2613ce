"""Conversion of a Hugging Face `config.json` to a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.config_layers import layers_of
from iomodel.models.families import ALIASES, FAMILIES, NESTED, UNKNOWN, UNKNOWN_SHAPES, WITHOUT_ATTENTION, Family
from iomodel.models.fields import Fields
from iomodel.models.spec import ModelSpec

DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
}
"""Weight types by their torch names."""

GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
KNOWN_EXPERTS = frozenset(
    {
        "num_local_experts",
        "num_experts",
        "n_routed_experts",
        "num_experts_per_tok",
        "experts_per_token",
        "num_experts_per_token",
        "n_shared_experts",
        "num_shared_experts",
        "moe_intermediate_size",
        "shared_expert_intermediate_size",
        "moe_layer_freq",
    }
)
"""Fields about experts that are read for every model type."""


def spec_of(data: Mapping[str, Any]) -> ModelSpec:
    """Build the model that a config describes.

    Raises
    ------
    InputError
        A field is missing, has the wrong type or range, or changes shapes in an unsupported way.

    >>> shape = dict(hidden_size=4096, num_attention_heads=32, intermediate_size=11008, vocab_size=32000)
    >>> spec_of({"model_type": "llama", "num_hidden_layers": 32, **shape}).parameters
    6738415616
    """
    outer = Fields(data)
    inner = next((name for name in NESTED if isinstance(data.get(name), dict)), None)
    text = data if inner is None else data[inner]
    prefix = "" if inner is None else f"{inner}."
    notes: list[str] = []
    kind, family = _family(Fields(text, prefix), outer, notes)
    fields = Fields(text, prefix, family.defaults)
    _refuse_unknown_shapes(fields)
    if kind not in FAMILIES:
        _refuse_unknown_experts(fields, kind)
    layers = layers_of(fields, kind, family, notes)
    name = (outer.text("_name_or_path") or kind if data.get("_name_or_path") else kind).rstrip("/").split("/")[-1]
    if inner is not None:
        notes.append("Only the language model is counted.")
    if fields.maybe("num_nextn_predict_layers", least=0):
        notes.append("The modules that predict further tokens are not counted.")
    return ModelSpec(
        name=name or kind,
        title=name or kind,
        hidden_size=fields.count("hidden_size"),
        vocab_size=fields.count("vocab_size"),
        tied_embeddings=fields.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", family.tied)),
        **_dtypes(fields, outer, any(layer.mlp.experts for layer in layers), notes),
        max_positions=fields.maybe("max_position_embeddings"),
        layers=layers,
        lm_head_bias=family.lm_head_bias,
        sources=({"kind": "file", "title": "config.json"},),
        notes=notes,
    )


def _family(fields: Fields, outer: Fields, notes: list[str]) -> tuple[str, Family]:
    """Read the model type and look up its family."""
    kind = fields.text("model_type") or outer.text("model_type")
    if kind is None:
        names = ", ".join(sorted(FAMILIES))
        raise InputError(f"{fields.path('model_type')}: not given, but required; allowed: {names}, or any other name")
    kind = ALIASES.get(kind, kind)
    if kind in FAMILIES:
        return kind, FAMILIES[kind]
    if any(part in kind.lower() for part in WITHOUT_ATTENTION):
        raise InputError(
            f"{fields.path('model_type')}: {shown(kind)} given; allowed: a model with softmax attention in every layer"
        )
    architectures = outer.listed("architectures")
    if architectures and not any(str(name).endswith(GENERATES) for name in architectures):
        raise InputError(
            f"architectures: {shown(architectures)} given for the unknown model_type {shown(kind)}; "
            f"allowed: a name that ends in {' or '.join(GENERATES)}"
        )
    notes.append(f"The model_type {shown(kind, 80)} is unknown; it is read as llama, with the fields present.")
    return kind, UNKNOWN


def _refuse_unknown_shapes(fields: Fields) -> None:
    for name in UNKNOWN_SHAPES:
        if fields.given(name):
            raise InputError(
                f"{fields.path(name)}: {shown(fields.given(name))} given; allowed: no such field, because layers "
                "of this kind are not supported"
            )


def _refuse_unknown_experts(fields: Fields, kind: str) -> None:
    """Reject unread fields about experts; ignoring them would turn a mixture of experts into a dense model."""
    for name in fields.names():
        value = fields.given(name)
        if re.search("expert|moe", name, re.IGNORECASE) and name not in KNOWN_EXPERTS:
            plain = isinstance(value, int) and not isinstance(value, bool)
            if (plain and value) or isinstance(value, list | dict):
                raise InputError(
                    f"{fields.path(name)}: {shown(value)} given for the unknown model_type {shown(kind)}; "
                    f"allowed fields about experts: {', '.join(sorted(KNOWN_EXPERTS))}"
                )


def _dtypes(fields: Fields, outer: Fields, experts: bool, notes: list[str]) -> dict[str, str]:
    """Read the types of the released weights."""
    name = fields.text("torch_dtype", "dtype") or outer.text("torch_dtype", "dtype")
    if name is None:
        notes.append("No torch_dtype is given; bf16 is assumed.")
    plain = "bf16" if name is None else DTYPES.get(name.removeprefix("torch."))
    if plain is None:
        raise InputError(f"torch_dtype: {shown(name)} given; allowed: {', '.join(DTYPES)}")
    holder = outer if outer.given("quantization_config") is not None else fields
    quantisation = holder.mapping("quantization_config")
    if quantisation is None:
        return {"dtype": plain}
    inside = Fields(quantisation, holder.path("quantization_config."))
    method, bits = inside.text("quant_method"), inside.maybe("bits")
    if method == "fp8":
        return {"dtype": "fp8"}
    if method == "mxfp4":
        return {"dtype": plain, "expert_dtype": "mxfp4"} if experts else {"dtype": "mxfp4"}
    if method in ("gptq", "awq") and bits in (4, 8):
        return {"dtype": f"int{bits}"}
    notes.append(
        f"The quantization_config of {shown(method, 40)} is not supported; the weights are assumed to be {plain}."
    )
    return {"dtype": plain}
