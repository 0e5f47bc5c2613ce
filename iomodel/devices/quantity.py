"""Figures of a device: values in base units with sources, and their kinds, each with a unit and bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core.core_schema import no_info_before_validator_function

from iomodel.common.units import UnitKind
from iomodel.common.validation import Model, no_endless
from iomodel.errors import shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.fields import FieldInfo
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

UNVERIFIED = "from-memory"
"""The source key of figures not checked against a document."""
USER = "user file"
"""The default source of a figure in a user's file."""

PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
Text = Annotated[str, Field(max_length=500, pattern=PRINTABLE)]
"""One line, without control characters."""
Number = Annotated[
    Annotated[int, Field(strict=True, ge=0, le=10**30)]
    | Annotated[float, Field(strict=True, ge=0, le=1e30, allow_inf_nan=False)],
    WithJsonSchema({"type": ["number", "string"], "minimum": 0}, mode="validation"),
]
"""A number in base units after parsing; a file may contain a string such as "228 KiB" instead."""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Sources = Annotated[
    tuple[Text, ...], BeforeValidator(_as_list, json_schema_input_type=Text | list[Text]), Field(min_length=1)
]
"""Keys of specs/sources.yaml, or free text in a user's own file; one string stands for a list of one."""


@dataclass(frozen=True)
class Better:
    """The direction in which a figure is better, all else equal; "none" has a reason.

    A better figure makes no call slower. The last direction in the metadata of a field holds.
    """

    direction: Literal["higher", "lower", "none"]
    reason: str = ""

    @classmethod
    def of(cls, field: FieldInfo) -> Iterator[tuple[str, str]]:
        """Yield the entries of a field in the schema; none for a field that is no figure."""
        metadata = [field.metadata, *(getattr(part, "__metadata__", ()) for part in get_args(field.annotation))]
        for better in [each for entries in metadata for each in entries if isinstance(each, cls)][-1:]:
            yield "better", better.direction
            if better.reason:
                yield "better_reason", better.reason


class Group(Model):
    """One mapping of a hardware file; an unknown key is rejected with the nearest known key."""

    model_config = ConfigDict(defer_build=True)  # a device builds one validator for all its groups

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if isinstance(data, Mapping):
            allowed = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in allowed and key not in cls.model_fields:
                    near = get_close_matches(str(shown(key)).strip("'"), allowed, n=1, cutoff=0.5)
                    hint = f"did you mean {near[0]!r}? " if near else ""
                    raise ValueError(f"unknown key {shown(key)}; {hint}allowed: {', '.join(allowed)}")
            no_endless(data)
        return data

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in _field_docs(cls).items():
            properties[name]["description"] = text
        for name, field in cls.model_fields.items():
            properties[field.alias or name].update(Better.of(field))
        return schema


def _field_docs(model: type) -> dict[str, str]:
    """Map the fields of a class to the docstrings below them, read from its source; none without the source."""
    import ast  # slow to load, and needed by the schema alone
    import inspect
    from itertools import pairwise

    try:
        source = ast.parse(inspect.getsource(model)).body[0]
    except (OSError, SyntaxError):
        return {}
    assert isinstance(source, ast.ClassDef)
    docs = {}
    for field, text in pairwise(source.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(doc))):
                docs[name] = inspect.cleandoc(doc)
    return docs


class Alternative(Group):
    """A figure from another source for the same quantity, in the same unit, that is not used."""

    value: Number
    source: Sources = (USER,)
    note: Text | None = None


class Quantity(Group):
    """One figure with its source.

    Parameters
    ----------
    value : number in base units [B, B/s, FLOP/s, OP/s, Hz, W, s, per clock, or a count].
    unit : the base unit, "" for a count.
    source : keys of specs/sources.yaml, or free text.
    note : method or caveat.
    spread : least and largest of the repeated measurements; `value` is their median [unit].
    alternatives : disagreeing figures from other sources.

    >>> Quantity(value=3352000000000, unit="B/s", source="datasheet")
    Quantity(3.352 TB/s, source='datasheet')
    """

    value: Number
    unit: str = ""
    source: Sources = (USER,)
    note: Text | None = None
    spread: tuple[Number, Number] | None = None
    alternatives: tuple[Alternative, ...] = ()

    @model_validator(mode="after")
    def _within_its_spread(self) -> Quantity:
        if self.spread is not None and not self.spread[0] <= self.value <= self.spread[1]:
            least, most = self.spread
            raise ValueError(
                f"spread: [{least}, {most}] given; allowed: least and largest, around value = {self.value}"
            )
        return self

    @property
    def verified(self) -> bool:
        """False if the figure was quoted from memory, without a source."""
        return set(self.source) != {UNVERIFIED}

    def __str__(self) -> str:
        return UnitKind(self.unit, 0, 0).show(self.value) + " (unverified)" * (not self.verified)

    def __repr__(self) -> str:
        return f"Quantity({self}, source={', '.join(self.source)!r})"


class SizeList(Group):
    """The sizes that a setting can take, such as the shared-memory carve-outs, with their source.

    >>> str(SizeList(values=[0, 8192, 16384], unit="B"))
    '0, 8, 16 KiB'
    """

    values: tuple[Number, ...] = Field(min_length=1, max_length=64)
    unit: str = ""
    source: Sources = (USER,)
    note: Text | None = None

    @property
    def verified(self) -> bool:
        """False if the figures were quoted from memory, without a source."""
        return set(self.source) != {UNVERIFIED}

    def __str__(self) -> str:
        if self.unit == "B" and all(value % 1024 == 0 for value in self.values):
            text = ", ".join(f"{value // 1024}" for value in self.values) + " KiB"
        else:
            text = f"{', '.join(map(str, self.values))} {self.unit}".strip()
        return text + " (unverified)" * (not self.verified)


def _read(raw: object, kind: UnitKind, key: str) -> dict[str, Any]:
    """Parse "228 KiB", 233472 or {value: 228, unit: KiB, ...} into a figure in base units."""
    if isinstance(raw, Quantity | SizeList):
        raw = raw.model_dump(exclude_none=True)
    data: dict[str, Any] = dict(raw) if isinstance(raw, Mapping) else {key: raw}
    unit = data.pop("unit", None)
    unit = None if unit == "" else unit
    if key in data:
        many = key == "values" and isinstance(data[key], list | tuple)
        data[key] = [kind.number(v, unit) for v in data[key]] if many else kind.number(data[key], unit)
    if isinstance(data.get("spread"), list | tuple):
        data["spread"] = [kind.number(v, None if isinstance(v, str) else unit) for v in data["spread"]]
    if isinstance(data.get("alternatives"), list | tuple):
        data["alternatives"] = [_other(item, kind, unit) for item in data["alternatives"]]
    return {**data, "unit": kind.unit}


def _other(raw: object, kind: UnitKind, unit: object) -> object:
    if not isinstance(raw, Mapping) or "value" not in raw:
        return raw
    value = raw["value"]
    return {**raw, "value": kind.number(value, None if isinstance(value, str) else unit)}


@dataclass(frozen=True)
class _Figure:
    """A reader of figures of a kind, in place of a BeforeValidator: Pydantic inspects each of those at length."""

    kind: UnitKind
    key: str = "value"

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(lambda raw: _read(raw, self.kind, self.key), handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if handler.mode != "validation":
            return handler(schema)
        plain: JsonSchemaValue = {"type": ["number", "string"], "minimum": 0}
        return {"anyOf": [{"type": "array", "items": plain} if self.key == "values" else plain, handler(schema)]}


HIGHER, LOWER = Better("higher"), Better("lower")
INSTRUCTION = Better("none", "a size of the instruction, which kernels divide their tiles by")

_PART = UnitKind("B", 1, 2**30, whole=True, zero=True)
Capacity = Annotated[Quantity, _Figure(UnitKind("B", 1, 10**15, whole=True)), HIGHER]
Share = Annotated[Quantity, _Figure(UnitKind("B", 1, 2**30, whole=True)), HIGHER]
Reserve = Annotated[Quantity, _Figure(_PART), LOWER]
CarveOuts = Annotated[SizeList, _Figure(_PART, "values"), Better("none", "a list of sizes")]
Bandwidth = Annotated[Quantity, _Figure(UnitKind("B/s", 1e6, 1e15)), HIGHER]
Link = Annotated[Quantity, _Figure(UnitKind("B/s", 1e6, 1e15, zero=True)), HIGHER]
Rate = Annotated[Quantity, _Figure(UnitKind("FLOP/s", 1e6, 1e19)), HIGHER]
Ops = Annotated[Quantity, _Figure(UnitKind("OP/s", 1e6, 1e19)), HIGHER]
Clock = Annotated[Quantity, _Figure(UnitKind("Hz", 1e6, 1e11)), HIGHER]
Power = Annotated[Quantity, _Figure(UnitKind("W", 0.01, 1e6)), Better("none", "times follow from the clocks")]
Time = Annotated[Quantity, _Figure(UnitKind("s", 1e-12, 1)), LOWER]
Duration = Annotated[Quantity, _Figure(UnitKind("s", 1e-9, 3600)), LOWER]
Clocks = Annotated[Quantity, _Figure(UnitKind("clk", 1, 1e6)), LOWER]
BytesPerClock = Annotated[Quantity, _Figure(UnitKind("B/clk", 1, 1e6)), HIGHER]
FlopPerClock = Annotated[Quantity, _Figure(UnitKind("FLOP/clk", 1, 1e9)), HIGHER]
OpsPerClock = Annotated[Quantity, _Figure(UnitKind("OP/clk", 1, 1e6)), HIGHER]
Amount = Annotated[Quantity, _Figure(UnitKind("", 1, 1e9, whole=True)), HIGHER]
