"""Model files: kinds of layers by name, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from iomodel.common.validation import Count
from iomodel.devices.quantity import Group
from iomodel.errors import InputError, UnknownNameError
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.spec import MOST_LAYERS, ModelFacts, ModelSpec

SCHEMA = 1
"""Schema version of the model files that this package reads."""

LONGEST = 64
"""Longest pattern of layers searched for when a model is written."""

KindName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class LayerGroup(Group):
    """Consecutive layers: a pattern of kinds, repeated."""

    count: Count = 1
    pattern: tuple[KindName, ...] = Field(min_length=1, max_length=MOST_LAYERS)


class ModelFile(ModelFacts):
    """The content of a model file: facts about a model, its kinds of layers, and their order.

    Parameters
    ----------
    schema : version of the layout, 1.
    kinds : kinds of decoder layers, keyed by names chosen in the file.
    layers : the layers from the first to the last, as patterns of kinds.
    """

    schema_version: Literal[1] = Field(alias="schema")
    kinds: dict[KindName, DecoderLayer] = Field(min_length=1, max_length=MOST_LAYERS)
    layers: tuple[LayerGroup, ...] = Field(min_length=1, max_length=MOST_LAYERS)

    @model_validator(mode="after")
    def _known_layers(self) -> Self:
        for place, group in enumerate(self.layers):
            for kind in group.pattern:
                if kind not in self.kinds:
                    raise UnknownNameError(f"layers.{place}.pattern", kind, self.kinds)
        number = sum(group.count * len(group.pattern) for group in self.layers)
        if number > MOST_LAYERS:
            raise InputError(f"layers: {number} layers given; allowed: up to {MOST_LAYERS}")
        return self

    def spec(self, name: str | None = None) -> ModelSpec:
        """Build the model that the file describes."""
        facts = {field: getattr(self, field) for field in ModelFacts.model_fields}
        order = [kind for group in self.layers for _ in range(group.count) for kind in group.pattern]
        return ModelSpec(**{**facts, "name": self.name or name}, layers=tuple(self.kinds[kind] for kind in order))

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data that reads back equal."""
        facts = {key: value for key, value in _set(self).items() if key not in ("schema_version", "kinds", "layers")}
        groups = [{"count": group.count, "pattern": list(group.pattern)} for group in self.layers]
        return {"schema": SCHEMA, **facts, "kinds": {k: _set(v) for k, v in self.kinds.items()}, "layers": groups}

    def to_yaml(self) -> str:
        """Format as YAML."""
        from iomodel.common.yaml_text import dump

        return dump(self.to_dict())

    @classmethod
    def file_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a model file, for editors: specs/model.schema.json."""
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **cls.model_json_schema()}


def _set(group: Group) -> dict[str, Any]:
    """Collect the fields of a group that differ from their defaults, as plain data."""
    data: dict[str, Any] = {}
    for name, field in type(group).model_fields.items():
        value = getattr(group, name)
        before = {other: getattr(group, other) for other in type(group).model_fields}
        if (
            name == "kind"
            or field.is_required()
            or value != field.get_default(call_default_factory=True, validated_data=before)
        ):
            data[name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Group):
        return _set(value)
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def file_of(spec: ModelSpec) -> ModelFile:
    """Build the file that describes a model, with kinds named after their distinguishing properties."""
    names: dict[DecoderLayer, str] = {}
    for layer in spec.counted:
        base = kind_name(layer)
        names[layer] = base if base not in names.values() else f"{base}-{len(names)}"
    facts = {field: getattr(spec, field) for field in ModelFacts.model_fields}
    groups = [{"count": n, "pattern": kinds} for kinds, n in grouped([names[layer] for layer in spec.layers])]
    return ModelFile(schema=SCHEMA, **facts, kinds={name: layer for layer, name in names.items()}, layers=groups)


def kind_name(layer: DecoderLayer) -> str:
    """Name a layer by its state, its reach and its experts."""
    parts = [] if layer.recurrent is None else [layer.recurrent.kind.replace("_", "-")]
    parts += [] if layer.attention is None else [reach_name(layer.attention)]
    experts = layer.mlp is not None and bool(layer.mlp.experts)
    if experts or not parts:
        parts.append("experts" if experts else "mlp" if layer.mlp else "empty")
    return "-".join(parts)


def reach_name(attention: AttentionLayer) -> str:
    """Name the reach of the attention of a layer.

    >>> reach_name(AttentionLayer(heads=8, head_dim=64, window=128))
    'window'
    """
    if attention.compression is not None:
        return "compressed"
    if attention.indexer is not None:
        return "sparse"
    if attention.latent:
        return "latent"
    return "window" if attention.window else "chunk" if attention.chunk else "global"


def grouped(kinds: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Split a list of kinds into repeated patterns, from the first layer to the last.

    >>> list(grouped("aabaabaabaa"))
    [(('a', 'a', 'b'), 3), (('a',), 2)]
    """
    start = 0
    while start < len(kinds):
        best, saved = (1, 1), -1
        for width in range(1, min(LONGEST, len(kinds) - start) + 1):
            pattern, times = kinds[start : start + width], 1
            while kinds[start + times * width : start + (times + 1) * width] == pattern:
                times += 1
            if (times - 1) * width > saved:
                best, saved = (width, times), (times - 1) * width
        width, times = best
        yield tuple(kinds[start : start + width]), times
        start += width * times
