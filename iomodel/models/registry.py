"""Open language models: shipped in specs/models, or read from a user's file or a config.json."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from os.path import (  # false for a name that is too long or has a null byte, as those of Path are not
    exists,
    isdir,
    isfile,
)
from pathlib import Path
from typing import Any

from iomodel.common.keywords import strict
from iomodel.common.validation import as_mapping
from iomodel.common.yaml_files import (
    check_schema,
    names_file,
    place_of,
    read_bytes,
    read_shipped,
    read_user,
    spec_names,
    spelled_alike,
)
from iomodel.errors import InputError, SpecError, UnknownNameError, nearest_names, shown
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer, MLPLayer
from iomodel.models.file_types import ENDING, file_type, quantised
from iomodel.models.model_file import SCHEMA, ModelFile
from iomodel.models.spec import ModelSpec

__all__ = ["AttentionLayer", "DecoderLayer", "MLPLayer", "ModelSpec", "list_models", "model"]

ENDINGS = (".yaml", ".yml", ".json", ".gguf", ".safetensors")
HEADERS = (".gguf", ".safetensors", ".index.json")
"""Endings of files of weights, of which the header is read."""
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}(?::[\w.-]{1,32})?")
"""Names of models on a hub: an owner and a repository, and the file of a GGUF."""
LONGEST = 200
"""Longest name of a repository [characters]."""
SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?b(?![a-z])")
"""Sizes in names of models, such as 7b and 8x7b, in billions of parameters."""
VARIANTS = (
    r"instruct|chat|it|base|hf|gguf|thinking|dynamic|quantized|meta|exp|kv",  # training and files
    r"\d{4}|terminus",  # dates and later trainings of one shape
    r"v\d(?:\.\d)?",  # versions of one shape
)
"""Words in names of repositories that change no shape, those left out first before the others."""
WEIGHT_WORDS = {
    "nvfp4|fp4": "nvfp4",
    "mxfp4": "mxfp4",
    "fp8|float8": "fp8",
    "int8|w8a8|8bit": "int8",
    "bnb|nf4": "nf4",
    "w4a16": "int4-g128",
    "awq|gptq|autoround|int4|4bit": "uint4-g128",
    "bf16": "bf16",
    "fp16": "fp16",
}
"""Types of weights by the words for them in names of repositories, the first of several; groups are of 128 weights."""
SAME_SHAPE = {
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3",
    "deepseek-r1-distill-llama-8b": "llama-3.1-8b",
    "deepseek-r1-distill-llama-70b": "llama-3.3-70b",
    "deepseek-r1-distill-qwen-7b": "qwen2.5-7b",
    "deepseek-r1-distill-qwen-14b": "qwen2.5-14b",
    "deepseek-r1-distill-qwen-32b": "qwen2.5-32b",
    "qwq-32b": "qwen2.5-32b",
    "mistral-small-3.1-24b": "mistral-small-24b",
    "mistral-small-3.2-24b": "mistral-small-24b",
    "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
    "qwen3-coder-480b": "qwen3-480b-a35b",
    "qwen3-coder-480b-a35b": "qwen3-480b-a35b",
    "qwen3.5-27b": "qwen3.6-27b",
    "qwen3.8-27b": "qwen3.6-27b",
    "qwen3.5-35b-a3b": "qwen3.6-35b-a3b",
    "llama-4-scout-17b-16e": "llama-4-scout",
    "llama-4-maverick-17b-128e": "llama-4-maverick",
}
"""Models trained from another, by the shipped model of their shape (model cards of these repositories)."""
LISTING = "iomodel.list_models() or 'iomodel model'"
"""Listings of the names of models, for messages."""
DESCRIBING = ("config.json", "params.json", "model_index.json")
"""Files of a folder that describe its model, those of Mistral and of diffusers after that of transformers."""
LARGEST_JSON = 16 * 2**20
"""Size limit of a config, whose lists of quantised modules may be long [B]."""


@strict
def list_models(prefix: str = "") -> list[str]:
    """List the names of the shipped models, sorted; those of a family with a prefix, in letters of either case.

    >>> "llama-3-8b" in list_models(), list_models("gpt-oss")
    (True, ['gpt-oss-120b', 'gpt-oss-20b'])
    """
    return spec_names("models", prefix)


@strict
def model(name_or_path_or_dict: str | os.PathLike[str] | Mapping[str, Any]) -> ModelSpec:
    """Load a shipped model by name, or the model that a file or a mapping describes.

    Parameters
    ----------
    name_or_path_or_dict : a name of `list_models()`, in letters of either case and with any separators; the path of a
        model file (YAML), of a Hugging Face `config.json`, or of a folder that contains one; of a GGUF file, of which
        the header is read; of a safetensors file or its index beside a config.json: an os.PathLike, or a string that
        contains a path separator or ends in .yaml, .yml, .json, .gguf or .safetensors; or the content of a YAML file or
        a config, as a mapping.

    Raises
    ------
    UnknownNameError, SpecError, InputError
        The model does not exist; a file cannot be read or is invalid; a field of a config is missing or invalid.

    Examples
    --------
    >>> model("gpt-oss-20b").layers[0].attention.window
    128
    >>> shape = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
    ...          "intermediate_size": 1024, "vocab_size": 32000}
    >>> model(shape).layers[1].attention.head_dim
    64
    """
    source = name_or_path_or_dict
    if isinstance(source, str) and _is_name(source) and (released := _released(source)) is not None:
        return released
    if isinstance(source, Mapping):
        return _from_data(as_mapping("model", source, "the content of a config.json"), "")
    if isinstance(source, os.PathLike):
        return _from_file(source)
    if not isinstance(source, str):
        raise InputError(f"model: a name, the path of a file or a mapping is needed, given {shown(source)}")
    if names_file(source, ENDINGS):
        if not source.lower().endswith(ENDINGS) and not exists(source):  # noqa: PTH110
            if HUB_NAME.fullmatch(source):
                raise _on_hub(source)
            if nearest_names(source, list_models()):
                raise _unknown(source)
        return _from_file(source)
    if source.lower() in _names():
        return _shipped(source.lower())
    meant = spelled_alike(source, list_models())
    if len(meant) != 1:
        raise _unknown(source)
    return _shipped(meant[0])


def _is_name(source: str) -> bool:
    """Check for the name of a model or of a repository, which no file or folder has."""
    named = not source.lower().endswith(ENDINGS) and (not names_file(source, ENDINGS) or HUB_NAME.fullmatch(source))
    return bool(named) and not exists(source)  # noqa: PTH110


@lru_cache(maxsize=256)
def _released(source: str) -> ModelSpec | None:
    """Return the shipped model that the name of a repository means, in the type of weights that it states."""
    ending = ENDING.search(source)
    shape, dtype = known_as(source if ending is None else source[: ending.start()])
    if shape is None:
        return None
    spec = _shipped(shape)
    kind = None if ending is None else file_type(ending[1])
    if kind is not None:
        note = f"Weights in the file type {kind} of llama.cpp, by the name {source}."
        return quantised(spec, kind).model_copy(update={"notes": (*spec.notes, note)})
    if dtype is None or dtype in (spec.dtype, spec.expert_dtype or spec.dtype):
        return spec
    note = f"Weights in {dtype}, by the name {source}; {spec.label} is released in {spec.dtype}."
    return spec.model_copy(update={"dtype": dtype, "expert_dtype": None, "notes": (*spec.notes, note)})


def known_as(name: str) -> tuple[str | None, str | None]:
    """Find the shipped model that a name means for certain, and the type of weights that the name states.

    Words that change no shape are left out, as are an owner and the type.

    >>> known_as("nvidia/Llama-3.3-70B-Instruct-FP8"), known_as("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8")
    (('llama-3.3-70b', 'fp8'), ('qwen2.5-7b', 'int8'))
    >>> known_as("mistralai/Mixtral-8x7B-Instruct-v0.1"), known_as("gpt-5")
    (('mixtral-8x7b', None), (None, None))
    """
    if name.lower() in _names():
        return name.lower(), None
    if len(name) > LONGEST:
        return None, None
    words = re.split(r"[-_: ]|\.(?=\D)", name.rstrip("/").rpartition("/")[2].lower())
    typed = (dtype for known, dtype in WEIGHT_WORDS.items() if any(re.fullmatch(known, word) for word in words))
    left = re.compile("|".join(WEIGHT_WORDS))
    for further in ("", *VARIANTS):
        left = re.compile(f"{left.pattern}|{further}" if further else left.pattern)
        meant = spelled_alike("-".join(word for word in words if not left.fullmatch(word)), [*_names(), *SAME_SHAPE])
        if len(meant) == 1:
            return SAME_SHAPE.get(meant[0], meant[0]), next(typed, None)
    return None, None


def scheme(name: object) -> str | None:
    """Return the type of weights that a word for a scheme means, as in names of repositories; None for another word.

    A number of bits alone is no scheme.

    >>> scheme("AWQ"), scheme("w4a16"), scheme("bnb-4bit"), scheme("4bit"), scheme("exl2")
    ('uint4-g128', 'int4-g128', 'nf4', None, None)
    """
    words = re.split(r"[-_]", name.lower()) if isinstance(name, str) else []
    named = [word for word in words if not re.fullmatch(r"\d*bit", word)]
    found = [next((each for known, each in WEIGHT_WORDS.items() if re.fullmatch(known, word)), None) for word in named]
    return None if None in found else next(iter(found), None)


def _unknown(name: str) -> UnknownNameError:
    listing = f"{_listing(name)}; any other model is planned by the path of its config.json"
    place = place_of(name, "model")
    return UnknownNameError("model", name, list_models(), _likely(name), listing=listing, place=place)


def _likely(given: str) -> list[str]:
    """List the models that a name may mean: those of its family with its version and size, else those with its size.

    >>> _likely("llama-2-3b"), _likely("llama-2-9b"), _likely("Meta-Llama-3-8B")
    (['llama-3.2-3b'], [], ['llama-3-8b'])
    """
    kin, versions, sizes = _kin(given)
    sized = {name: own for name, (_, own, held) in kin.items() if sizes <= held}
    dated = [name for name, own in sized.items() if not (sizes and versions and own) or versions[0] == own[0]]
    return dated or [*sized]


def _kin(given: str) -> tuple[dict[str, tuple[list[str], list[str], set[str]]], list[str], set[str]]:
    """Split the names of the models of a family, and return the version and the sizes that a name states."""
    words, versions, sizes = _told(given)
    told = {name: _told(name) for name in list_models()}
    near = {name: each for name, each in told.items() if get_close_matches(each[0][0], words, n=1, cutoff=0.75)}
    return near, versions, sizes


def _listing(given: str) -> str:
    """Name the listings of models, and the models of the family and version of an unknown name.

    >>> _listing("llama-3.1-9b")
    "iomodel.list_models() or 'iomodel model', of this version llama-3.1-405b, llama-3.1-70b, llama-3.1-8b"
    """
    kin, versions, _ = _kin(given)
    same = [name for name, (_, own, _) in kin.items() if versions and own[:1] == versions[:1]]
    return f"{LISTING}, of this version {', '.join(same)}" if same else LISTING


def _told(name: str) -> tuple[list[str], list[str], set[str]]:
    """Split the name of a model into its words, the numbers of its version and its sizes."""
    rest, sizes = SIZE.sub("", name.lower()), SIZE.findall(name.lower())
    return re.findall(r"[^\W\d_]+", rest), re.findall(r"\d+(?:\.\d+)?", rest), set(sizes)


def _on_hub(name: str) -> UnknownNameError:
    """Build the error for the name of a model on a hub, of which nothing is fetched."""
    config = f"the path of the file behind https://huggingface.co/{name}/raw/main/config.json, which is not fetched"
    return UnknownNameError("model", name, list_models(), _likely(name), listing=f"{_listing(name)}, or {config}")


@cache
def _names() -> frozenset[str]:
    return frozenset(list_models())


@cache
def _shipped(name: str) -> ModelSpec:
    return _from_layout(read_shipped(f"models/{name}"), f"specs/models/{name}.yaml", name)


def _from_file(path: str | os.PathLike[str]) -> ModelSpec:
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise SpecError(f"{shown(path)}: cannot be read: not the path of a file") from None
    target = _in_folder(name) if isdir(name) else name  # noqa: PTH112
    if target.lower().endswith(HEADERS):
        return _of_header(target)
    if target.lower().endswith(".json"):
        content, where = read_bytes(target, LARGEST_JSON)
        return _with_stored(_from_data(parse_json(content, where), where, _quantisation(target)), target)
    return _from_layout(*read_user(target), None)


def _in_folder(folder: str) -> str:
    """Find the file of a folder that describes its model."""
    inside = (str(Path(folder) / file) for file in DESCRIBING)
    found = next((file for file in inside if isfile(file)), None)  # noqa: PTH113
    if found is None:
        raise SpecError(f"{folder}: a folder without config.json; allowed: the path of a config.json or a GGUF file")
    return found


def _of_header(path: str) -> ModelSpec:
    """Build the model of a GGUF file, or of the config beside a file of safetensors."""
    from iomodel.models.weight_files import read_weights

    file = read_weights(path)
    if path.lower().endswith(".gguf"):
        from iomodel.models.config import spec_of
        from iomodel.models.gguf import config_of, with_types

        try:
            return _noted(with_types(spec_of(config_of(file)), file), Path(path).name, file.bytes)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    config = str(Path(path).with_name("config.json"))
    if not isfile(config):  # noqa: PTH113
        raise SpecError(
            f"{path}: {file.text()}, without the number of heads; allowed: with the config.json of the model beside it"
        )
    content, where = read_bytes(config, LARGEST_JSON)
    return _noted(_from_data(parse_json(content, where), where, _quantisation(config)), Path(path).name, file.bytes)


def _with_stored(spec: ModelSpec, config: str) -> ModelSpec:
    """Note the size of the weights beside a config.json."""
    from iomodel.models.weight_files import weights_beside

    if Path(config).name != "config.json":
        return spec
    file = weights_beside(config)
    return spec if file is None else _noted(spec, "the safetensors files", file.bytes)


def _noted(spec: ModelSpec, where: str, stored: int) -> ModelSpec:
    """Note the size of the weights as stored beside the counted one."""
    note = f"Weights as stored in {where}: {stored:,} B; counted: {spec.weight_bytes():,} B."
    return spec.model_copy(update={"notes": (*spec.notes, note)})


def _quantisation(config: str) -> dict[str, Any] | None:
    """Read hf_quant_config.json beside a config, if there is one."""
    beside = str(Path(config).with_name("hf_quant_config.json"))
    if Path(config).name != "config.json" or not isfile(beside):  # noqa: PTH113
        return None
    content, where = read_bytes(beside, LARGEST_JSON)
    return parse_json(content, where)


def _from_data(data: dict[str, Any], where: str, quantisation: dict[str, Any] | None = None) -> ModelSpec:
    """Build a model from a mapping: a model file if it has a schema version, otherwise a config."""
    if not all(isinstance(name, str) for name in data):
        raise InputError(f"model: {shown(data)} given; allowed: a mapping with strings as keys")
    if "schema" in data:
        return _from_layout(data, where or "model", None)
    from iomodel.models.config import spec_of  # the families of config.json, which shipped models need not

    try:
        return spec_of(data, quantisation)
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


def _from_layout(data: dict[str, Any], where: str, name: str | None) -> ModelSpec:
    check_schema(data, where, SCHEMA)
    try:
        return ModelFile(**data).spec(name)
    except (InputError, UnknownNameError) as error:
        raise SpecError(f"{where}: {error}") from None


def parse_json(content: bytes, where: str) -> dict[str, Any]:
    """Parse the mapping in a JSON file; SpecError names the file and the fault.

    >>> parse_json(b'{"hidden_size": 4096}', "config.json")
    {'hidden_size': 4096}
    """

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in pairs:
            if key in merged and merged[key] != value:
                raise SpecError(f"{where}: key {shown(key)} is given twice, as {shown(merged[key])} and {shown(value)}")
            merged[key] = value
        return merged

    try:
        parsed = json.loads(content.decode("utf-8-sig"), object_pairs_hook=mapping)
    except SpecError:
        raise
    except UnicodeDecodeError as error:
        raise SpecError(f"{where}: not a UTF-8 text file (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise SpecError(f"{where}: line {error.lineno}: not valid JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # an integer with thousands of digits, or deeply nested brackets
        raise SpecError(f"{where}: {shown(str(error), 200)[1:-1]}") from None
    if not isinstance(parsed, dict):
        listed = b"sentence_transformers" in content
        beside = "; the model of sentence-transformers is in config.json beside it" if listed else ""
        raise SpecError(f"{where}: the file must be a mapping of keys to values, given {shown(parsed)}{beside}")
    return parsed
