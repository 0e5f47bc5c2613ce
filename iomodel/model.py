"""The shapes of open language models: shipped in specs/models, or read from a file of one's own or config.json."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from iomodel.errors import InputError, SpecError, UnknownNameError, shown
from iomodel.models.attention import AttentionLayer
from iomodel.models.config import spec_of
from iomodel.models.file import SCHEMA, ModelFile
from iomodel.models.json import parse_json
from iomodel.models.layers import MLP, DecoderLayer
from iomodel.models.spec import ModelSpec
from iomodel.specfile import parse, read_bytes, read_shipped, spec_names
from iomodel.validation import as_mapping

__all__ = ["MLP", "AttentionLayer", "DecoderLayer", "ModelSpec", "list_models", "model"]

ENDINGS = (".yaml", ".yml", ".json")


def list_models() -> list[str]:
    """The names of the models shipped, sorted.

    >>> "llama-3-8b" in list_models()
    True
    """
    return spec_names("models")


def model(name_or_path_or_dict: str | os.PathLike[str] | Mapping[str, Any]) -> ModelSpec:
    """A shipped model by name, or the one that a file or a mapping describes.

    Parameters
    ----------
    name_or_path_or_dict : a name of `list_models()`; the path of a model file (YAML) or of a Hugging Face
        `config.json`, or of the folder that holds one: an os.PathLike, or a text that holds a path separator or
        ends in .yaml, .yml or .json; or what such a file holds, as a mapping.

    Raises
    ------
    UnknownNameError, SpecError, InputError
        No such model; a file cannot be read or is refused; a field of a config is missing or not understood.

    Examples
    --------
    >>> model("gpt-oss-20b").layers[0].attention.window
    128
    >>> shape = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
    ...          "intermediate_size": 1024, "vocab_size": 32000}
    >>> model(shape).layers[1].attention.head_dim
    64
    """
    given = name_or_path_or_dict
    if isinstance(given, Mapping):
        return _from_data(as_mapping("model", given, "what a config.json holds"), "")
    if isinstance(given, os.PathLike):
        return _from_file(given)
    if not isinstance(given, str):
        raise InputError(f"model: a name, the path of a file or a mapping is needed, given {shown(given)}")
    separators = {"/", os.sep, os.altsep} - {None}
    if given.lower().endswith(ENDINGS) or any(str(mark) in given for mark in separators):
        return _from_file(given)
    if given not in _names():
        raise UnknownNameError("model", given, list_models())
    return _shipped(given)


@cache
def _names() -> frozenset[str]:
    return frozenset(list_models())


@cache
def _shipped(name: str) -> ModelSpec:
    return _from_layout(read_shipped(f"models/{name}"), f"specs/models/{name}.yaml", name)


def _from_file(path: str | os.PathLike[str]) -> ModelSpec:
    try:
        name = os.fsdecode(path)
    except Exception:  # a path that does not say what it is
        raise SpecError(f"{shown(path)}: cannot be read: no path of a file") from None
    try:
        inside = Path(name) / "config.json"
        target = str(inside) if inside.is_file() else name
    except (OSError, ValueError):  # a name too long, a null byte
        target = name
    content, where = read_bytes(target)
    if target.lower().endswith(".json"):
        return _from_data(parse_json(content, where), where)
    return _from_layout(parse(content, where), where, None)


def _from_data(data: dict[str, Any], where: str) -> ModelSpec:
    """A mapping: of our layout if it names its version, or a config."""
    if not all(isinstance(name, str) for name in data):
        raise InputError(f"model: {shown(data)} given; allowed: a mapping whose keys are text")
    if "schema" in data:
        return _from_layout(data, where or "model", None)
    try:
        return spec_of(data)
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


def _from_layout(data: dict[str, Any], where: str, name: str | None) -> ModelSpec:
    version = data.get("schema")
    if isinstance(version, bool) or version != SCHEMA:
        given = "missing" if "schema" not in data else f"{shown(version)} is not supported"
        raise SpecError(f"{where}: schema: {given}; this iomodel reads schema {SCHEMA}, write 'schema: {SCHEMA}'")
    try:
        return ModelFile(**data).spec(name)
    except (InputError, UnknownNameError) as error:
        raise SpecError(f"{where}: {error}") from None
