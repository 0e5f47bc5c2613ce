"""Conversion of a Hugging Face `config.json` to a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields, class_defaults
from iomodel.models.config_kinds import common_names, refuse_other_kinds
from iomodel.models.config_layers import layers_of, side_layer
from iomodel.models.config_quantisation import dtypes_of
from iomodel.models.decoder_layer import DecoderLayer, SideLayer
from iomodel.models.families import ALIASES, FAMILIES, NESTED, SHAPES, UNKNOWN, WITHOUT_LAYERS, Family, reads
from iomodel.models.spec import ModelSpec

GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
FURTHER = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
"""Fields with the number of modules that predict further tokens."""
MOST_FURTHER = 100
"""Most modules of a model that predict further tokens."""
MOST_NAMED = 8
"""Most defaults that a note names."""
HARMLESS = re.compile(
    r".*_token_ids?|.*_token_index|rope_.*|.*rope_theta|.*_eps|.*epsilon|.*dropout|initializer_.*|init_.*|max_.*|min_.*"
    r"|architectures|auto_map|transformers_version|model_type|torch_dtype|dtype|_name_or_path|_.*|use_cache|output_.*"
    r"|return_.*|.*_loss_coef|aux_loss.*|.*jitter.*|scoring_func|norm_topk_prob|n_group|topk_group|topk_method|ep_size"
    r"|routed_scaling_factor|pretraining_tp|.*rotary.*|.*_multipliers?|logit.*|quantization_config|.*_config|id2label"
    r"|label2id|num_logits_to_keep|bos_.*|eos_.*|pad_.*|vocab_size|num_nextn_predict_layers|mtp_.*|num_mtp_.*|tie_.*"
    r"|num_return_sequences|num_beams?|num_beam_groups|temperature|top_k|top_p|typical_p|.*length.*|remove_invalid_values"
    r"|hidden_act|hidden_activation|attention_softmax_in_fp32|scale_attn_weights|use_flash.*|attn_implementation|seq_aux"
    r"|chunk_size_feed_forward|tf_legacy_loss|torchscript|use_bfloat16|.*_limit|clip_qkv|partial_rotary_factor|router_.*"
    r"|fp32_.*|.*_in_fp32|no_repeat_ngram_size|encoder_no_repeat_ngram_size|diversity_penalty|repetition_penalty|use_rope"
)
"""Fields that change neither the weights nor the caches."""


def spec_of(data: Mapping[str, Any], quantisation: Mapping[str, Any] | None = None) -> ModelSpec:
    """Build the model that a config describes.

    Parameters
    ----------
    data : mapping
        Contents of config.json.
    quantisation : mapping, optional
        Contents of hf_quant_config.json, if the checkpoint has one.

    Raises
    ------
    InputError
        A field is missing, has the wrong type or range, or changes shapes in an unsupported way.

    >>> shape = dict(hidden_size=4096, num_attention_heads=32, intermediate_size=11008, vocab_size=32000)
    >>> spec_of({"model_type": "llama", "num_hidden_layers": 32, **shape}).parameters
    6738415616
    """
    refuse_other_kinds(data)
    outer = Fields(data)
    text, prefix = _language_model(data)
    notes: list[str] = []
    kind, family = _family(Fields(text, prefix, unread=outer.unread), outer, notes)
    own = Fields(text, prefix).text("model_type") or outer.text("model_type") or kind
    defaults = {**family.defaults, **class_defaults(own, f"{own}_text", kind, f"{kind}_text")}
    common, names = common_names(_with_shapes(text, prefix, family), family, defaults, notes)
    fields = Fields(common, prefix, defaults, unread=outer.unread, own=names)
    layers = layers_of(fields, kind, family, notes)
    named = outer.optional(outer.text, "_name_or_path") if data.get("_name_or_path") else None
    name = (named or kind).rstrip("/").split("/")[-1]
    if prefix:
        notes.append("Only the language model is counted.")
    if any(fields.given(field) not in (None, 0, False) for field in FURTHER):
        notes.append("The modules that predict further tokens are not counted.")
    hidden = fields.count("hidden_size", "n_embd", "d_model")
    facts: dict[str, Any] = {
        "hidden_size": hidden,
        "vocab_size": fields.count("vocab_size"),
        "tied_embeddings": _tied(fields, outer),
        "max_positions": fields.optional(fields.maybe, "max_position_embeddings", "model_max_length", "n_positions"),
        "lm_head_bias": family.lm_head_bias
        if isinstance(family.lm_head_bias, bool)
        else fields.flag(family.lm_head_bias),
        "further_layers": _further(fields, family, hidden, layers),
        **_outside(fields, family, hidden, len(layers)),
    }
    if kind not in FAMILIES:
        _refuse_unread(fields, kind)
    if fields.assumed:
        assumed = [f"{name} = {value}" for name, value in sorted(fields.assumed.items())]
        more = f" and {len(assumed) - MOST_NAMED} more" if len(assumed) > MOST_NAMED else ""
        notes.append(f"Left out, with the default of the model_type: {', '.join(assumed[:MOST_NAMED])}{more}.")
    layers, dtypes = dtypes_of(fields, outer, layers, quantisation, family.modules, notes)
    return ModelSpec(
        name=name or kind,
        title=name or kind,
        layers=layers,
        sources=({"kind": "file", "title": "config.json"},),
        notes=[*notes, *outer.unread],
        **facts,
        **dtypes,
    )


def _language_model(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Find the fields of the language model, and their path in the file."""
    prefix = ""
    for _ in range(2):
        inner = next((name for name in NESTED if isinstance(data.get(name), dict)), None)
        if inner is None:
            break
        data, prefix = data[inner], f"{prefix}{inner}."
    return data, prefix


def _tied(fields: Fields, outer: Fields) -> bool:
    for place, name in ((fields, "tie_word_embeddings"), (fields, "tie_embedding"), (outer, "tie_word_embeddings")):
        if place.stated(name):
            return place.flag(name)
    return fields.flag("tie_word_embeddings")


def _family(fields: Fields, outer: Fields, notes: list[str]) -> tuple[str, Family]:
    """Look up the family of the model type, or of the class that the config names for an unknown type."""
    kind = fields.text("model_type") or outer.text("model_type")
    if kind is None:
        names = ", ".join(sorted(FAMILIES))
        raise InputError(f"{fields.path('model_type')}: not given, but required; allowed: {names}, or any other name")
    known = _known(kind)
    if known is not None:
        return known, FAMILIES[known]
    if kind in WITHOUT_LAYERS:
        raise InputError(
            f"{fields.path('model_type')}: {shown(kind)} given; allowed: a type without {WITHOUT_LAYERS[kind]}, "
            "which is not supported"
        )
    architectures = _architectures(fields) or _architectures(outer)
    for name in architectures or ():
        known = _known(_snake(str(name)))
        if known is not None:
            notes.append(f"The model_type {shown(kind, 80)} is unknown; it is read as {known}, by its architecture.")
            return known, FAMILIES[known]
    if architectures and not any(str(name).endswith(GENERATES) for name in architectures):
        raise InputError(
            f"architectures: {shown(architectures)} given for the unknown model_type {shown(kind)}, whose classes "
            f"generate no text; allowed: a name that ends in {' or '.join(GENERATES)}"
        )
    notes.append(f"The model_type {shown(kind, 80)} is unknown; it is read as llama, with the fields present.")
    return kind, UNKNOWN


def _architectures(fields: Fields) -> list[Any] | None:
    """Read the names of classes, of which a text is one."""
    given = fields.given("architectures")
    return [given] if isinstance(given, str) else fields.optional(fields.listed, "architectures")


def _known(kind: str) -> str | None:
    """Find the family of a model type, with or without the suffix of a language model inside another model."""
    for name in (kind, kind.removesuffix("_text"), f"{kind}_text"):
        name = ALIASES.get(name, name)
        if name in FAMILIES:
            return name
    return None


def _snake(architecture: str) -> str:
    """Derive the model type from the name of a class.

    >>> _snake("DeepseekV4ForCausalLM"), _snake("Qwen3MoeForCausalLM")
    ('deepseek_v4', 'qwen3_moe')
    """
    for ending in GENERATES:
        architecture = architecture.removesuffix(ending)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", architecture).lower()


def _further(fields: Fields, family: Family, hidden: int, layers: tuple[DecoderLayer, ...]) -> tuple[DecoderLayer, ...]:
    """Build the modules that predict further tokens: layers like the last with attention, after two joined rows."""
    number = fields.optional(partial(fields.maybe, least=0), *FURTHER[:2]) or 0
    last = next((layer for layer in reversed(layers) if layer.attention is not None), None)
    if not family.further or not number or last is None:
        return ()
    join = SideLayer(name="join", in_features=2 * hidden, out_features=hidden)
    module = last.model_copy(update={"norms": last.norms + 3, "side": (*last.side, join)})
    return (module,) * min(number, MOST_FURTHER)


def _outside(fields: Fields, family: Family, hidden: int, number: int) -> dict[str, Any]:
    """Read tables and linear layers outside the decoder layers."""
    side: list[dict[str, Any]] = []
    weights = 0
    narrow = fields.maybe("hidden_size_per_layer_input", least=0) or 0
    if narrow:
        rows = fields.count("vocab_size_per_layer_input", "vocab_size")
        wide = narrow * number
        side += [side_layer("layer table", rows, wide, lookup=True), side_layer("layer inputs", hidden, wide)]
        weights += narrow
    projected = fields.maybe("word_embed_proj_dim")
    if projected not in (None, hidden):
        raise InputError(
            f"{fields.path('word_embed_proj_dim')}: {projected} given; allowed: hidden_size = {hidden}, because "
            "projections of embeddings are not supported"
        )
    if family.positions is not None:
        rows = fields.count("max_position_embeddings") + family.positions
        side.append(side_layer("position table", rows, hidden, lookup=True))
    if family.embedding_norm:
        weights += hidden * (1 + family.norm_bias)
    streams = fields.maybe("altup_num_inputs")
    if streams is not None and streams > 1:
        side.append(side_layer("altup", hidden, hidden, 2 * (streams - 1)))
    streams = fields.maybe("hc_mult")
    if streams is not None and family.stream_head:
        side.append(side_layer("stream head", streams * hidden, streams))
        weights += streams + 1
    return {"side": side, "other_weights": weights}


def _with_shapes(text: Mapping[str, Any], prefix: str, family: Family) -> dict[str, Any]:
    """Take fields about layers that the model does not have as null, and reject those that its type does not read."""
    for name in SHAPES:
        if text.get(name) and not reads(family, name):
            raise InputError(
                f"{prefix}{name}: {shown(text[name])} given; allowed: no such field, because layers of this kind are "
                "not supported for this model_type"
            )
    return {name: value if value or name not in SHAPES else None for name, value in text.items()}


SUMS = {
    "qk_head_dim": ("qk_nope_head_dim", "qk_rope_head_dim"),
    "q_head_dim": ("qk_nope_head_dim", "qk_rope_head_dim"),
    "qk_dim": ("qk_nope_head_dim", "qk_rope_head_dim"),
}
"""Fields that repeat the sum of two others."""
PRODUCTS = {
    "attention_dim": ("num_attention_heads", "head_dim"),
    "q_dim": ("num_attention_heads", "head_dim"),
    "kv_dim": ("num_key_value_heads", "head_dim"),
}
"""Fields that repeat the product of two others."""


def _implied(fields: Fields, name: str, value: Any) -> bool:
    """Check whether a field repeats the sum or the product of two others."""
    pairs = ((SUMS, sum), (PRODUCTS, prod))
    return any(
        value == compute(fields.given(part) or 0 for part in table[name]) for table, compute in pairs if name in table
    )


def _refuse_unread(fields: Fields, kind: str) -> None:
    """Reject unread fields of an unknown model type: ignoring them would read other layers as those of Llama."""
    activation = fields.text("hidden_act", "hidden_activation")
    if activation not in (None, "silu", "swish"):
        raise InputError(
            f"{fields.path('hidden_act')}: {shown(activation)} given for the unknown model_type {shown(kind)}; "
            "allowed: 'silu', because it is unknown whether the MLP has a gate"
        )
    for name in fields.names():
        value = fields.given(name) if name not in fields.read else None
        if isinstance(value, float) or not value or HARMLESS.fullmatch(name) or _implied(fields, name, value):
            continue
        raise InputError(
            f"{fields.path(name)}: {shown(value)} given for the unknown model_type {shown(kind)}; allowed: the fields "
            "of llama and of experts, because this one may change the layers"
        )
