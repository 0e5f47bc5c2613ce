"""Kinds of files that a config.json may be, and the names of its fields: those of its type, and those in sections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.config_fields import all_defaults
from iomodel.models.config_mlp import CHOSEN, EXPERT_WIDTH, ROUTED, SHARED, SHARED_WIDTH
from iomodel.models.families import ENCODERS, Family

DECODER = "allowed: the config.json of a decoder that generates text"
SECTION = re.compile(r"(?:.*_)?(?:attn|attention|ffn|mlp|moe|experts?|router|ssm)(?:_.*)?")
"""Sections whose fields may stand for those of the model."""
READ_AS_SECTIONS = ("linear_attn_config", "sparse_attention_config", "per_layer_config", "ssm_cfg")
"""Sections that the readers of layers read themselves."""


def refuse_other_kinds(data: Mapping[str, Any]) -> None:
    """Refuse a file of a model that is no decoder of text, with the name of its kind.

    Raises
    ------
    InputError
        The file describes an encoder, an encoder-decoder, a diffusion model, an adapter or a vision model, or holds
        settings of a tokenizer or of a library.

    >>> refuse_other_kinds({"model_type": "bert", "architectures": ["BertModel"]})
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: model_type: 'bert' given, an encoder; allowed: the config.json of a decoder that ...
    """
    for field, kind in _signs(data):
        value = data.get(field)
        given = (
            f"{field}: {shown(value)} given"
            if value is not None
            else f"model_type: {shown(data.get('model_type'))} given"
        )
        raise InputError(f"{given}, {kind}; {DECODER}")


def _signs(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the fields that tell another kind of model, each with the name of the kind."""
    kind = data.get("model_type")
    names = data.get("architectures")
    classes = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    library = data.get("__version__")
    signs = {
        "_class_name": ("a part of a diffusion model", "_diffusers_version" in data or "_class_name" in data),
        "peft_type": ("an adapter; its base model is planned with lora=iomodel.Lora(...)", "peft_type" in data),
        "__version__": (
            "settings of sentence-transformers; the model is in config.json beside them",
            isinstance(library, dict) and "sentence_transformers" in library,
        ),
        "word_embedding_dimension": ("a pooling layer of sentence-transformers", "word_embedding_dimension" in data),
        "do_lower_case": (
            "settings of sentence-transformers; the model is in config.json beside them",
            "max_seq_length" in data and "do_lower_case" in data and kind is None,
        ),
        "_from_model_config": (
            "settings of generation; the model is in config.json beside them",
            "_from_model_config" in data and kind is None,
        ),
        "tokenizer_class": ("settings of a tokenizer", "tokenizer_class" in data and kind is None),
        "is_encoder_decoder": ("an encoder-decoder", data.get("is_encoder_decoder") is True),
        "decoder_layers": ("an encoder-decoder", "encoder_layers" in data and "decoder_layers" in data),
        "num_decoder_layers": ("an encoder-decoder", "num_decoder_layers" in data and "d_kv" in data),
        "add_cross_attention": ("a decoder with cross attention", data.get("add_cross_attention") is True),
        "cross_attention_layers": ("a decoder with cross attention", _crosses(data)),
        "model_type": ("an encoder", isinstance(kind, str) and kind in ENCODERS and data.get("is_decoder") is not True),
        "patch_size": ("a model of images", "patch_size" in data and "vocab_size" not in data and not _nested(data)),
        "architectures": (
            "an encoder",
            bool(classes) and all(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in classes),
        ),
    }
    return [(field, name) for field, (name, holds) in signs.items() if holds]


def _crosses(data: Mapping[str, Any]) -> bool:
    inner = data.get("text_config")
    return any(
        isinstance(part.get("cross_attention_layers"), list) and part["cross_attention_layers"]
        for part in (data, inner)
        if isinstance(part, dict)
    )


def _nested(data: Mapping[str, Any]) -> bool:
    return any(isinstance(value, dict) and "hidden_size" in value for value in data.values())


LARGEST = 1 << 30
"""Widths and factors from here on are no model's."""
PARAMS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden_dim": "intermediate_size",
    "vocab_size": "vocab_size",
    "sliding_window": "sliding_window",
    "max_seq_len": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
}
"""Common names of the fields of the params.json of Mistral and Meta."""


def of_params(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the content of a params.json the names of a config.json; anything else is returned unchanged.

    Meta's states the width of the MLP by its rule (FeedForward of llama/model.py), Mistral's as a number.

    >>> of_params({"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 100})["model_type"]
    'mistral'
    >>> meta = {"dim": 8192, "n_layers": 80, "n_heads": 64, "multiple_of": 4096, "ffn_dim_multiplier": 1.3}
    >>> of_params(meta)["intermediate_size"]
    28672
    """
    if "model_type" in data or not {"dim", "n_layers", "n_heads"} <= data.keys():
        return data
    moe = data.get("moe")
    routed = moe if isinstance(moe, dict) else {}
    experts = {"num_local_experts": routed.get("num_experts"), "num_experts_per_tok": routed.get("num_experts_per_tok")}
    named = {PARAMS.get(name, name): value for name, value in data.items() if name != "moe"}
    width = _width_of_meta(data)
    return {
        "torch_dtype": "bfloat16",
        "sliding_window": None,
        **({} if width is None else {"intermediate_size": width}),
        **named,
        **(experts if moe else {}),
        "model_type": "mixtral" if moe else "mistral" if width is None else "llama",
    }


def _width_of_meta(data: Mapping[str, Any]) -> int | None:
    """Compute the width of the MLP of Meta's params.json; None where it is stated or the rule cannot be applied."""
    width, multiple, factor = data.get("dim"), data.get("multiple_of"), data.get("ffn_dim_multiplier", 1.0)
    if "hidden_dim" in data or not isinstance(width, int) or not isinstance(multiple, int):
        return None
    if not 0 < width < LARGEST or not 0 < multiple < LARGEST:
        return None
    if not isinstance(factor, int | float) or not 0 < factor < LARGEST:
        return None
    unrounded = int(factor * (8 * width // 3))
    return multiple * -(-unrounded // multiple)


def common_names(
    text: Mapping[str, Any], family: Family, defaults: Mapping[str, Any], notes: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Give fields their common names: those that a type names otherwise, and those in a section.

    A value in a section counts where the model has none beside the section.

    Returns
    -------
    fields : dict
        Fields by their common names, with all others.
    names : dict
        Names in the file by common names.
    """
    fields, names = dict(text), dict[str, str]()
    for own, common in family.names.items():
        section, _, inner = own.rpartition(".")
        holder = text.get(section) if section else text
        names.setdefault(common, own)
        if isinstance(holder, dict) and holder.get(inner) is not None and text.get(common) is None:
            fields[common], names[common] = holder[inner], own
    found, read = [], {*READ_AS_SECTIONS, *(own.partition(".")[0] for own in family.names)}
    for section, values in text.items():
        if not isinstance(values, dict) or section in read or not SECTION.fullmatch(str(section)):
            continue
        for inner, value in values.items():
            if inner in _SHAPES | defaults.keys() and isinstance(value, int) and fields.get(inner) is None:
                fields[inner], names[inner] = value, f"{section}.{inner}"
                found.append(names[inner])
    if found:
        notes.append(f"Read in sections of the file: {', '.join(found)}.")
    return fields, names


_SHAPES = frozenset(
    (*ROUTED, *CHOSEN, *SHARED, *SHARED_WIDTH, *EXPERT_WIDTH, "num_key_value_heads", "head_dim", *all_defaults())
)
"""Fields that are read in sections."""
