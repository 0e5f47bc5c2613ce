"""Kinds of figures in a hardware file: parsing, unit and bounds of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic_core.core_schema import no_info_before_validator_function

from iomodel.devices.quantity import Quantity, SizeList
from iomodel.devices.units import UnitKind

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


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


_PART = UnitKind("B", 1, 2**30, whole=True, zero=True)
Capacity = Annotated[Quantity, _Figure(UnitKind("B", 1, 10**15, whole=True))]
Share = Annotated[Quantity, _Figure(UnitKind("B", 1, 2**30, whole=True))]
Reserve = Annotated[Quantity, _Figure(_PART)]
CarveOuts = Annotated[SizeList, _Figure(_PART, "values")]
Bandwidth = Annotated[Quantity, _Figure(UnitKind("B/s", 1e6, 1e15))]
Link = Annotated[Quantity, _Figure(UnitKind("B/s", 1e6, 1e15, zero=True))]
Rate = Annotated[Quantity, _Figure(UnitKind("FLOP/s", 1e6, 1e19))]
Ops = Annotated[Quantity, _Figure(UnitKind("OP/s", 1e6, 1e19))]
Clock = Annotated[Quantity, _Figure(UnitKind("Hz", 1e6, 1e11))]
Power = Annotated[Quantity, _Figure(UnitKind("W", 0.01, 1e6))]
Time = Annotated[Quantity, _Figure(UnitKind("s", 1e-12, 1))]
Duration = Annotated[Quantity, _Figure(UnitKind("s", 1e-9, 3600))]
Clocks = Annotated[Quantity, _Figure(UnitKind("clk", 1, 1e6))]
BytesPerClock = Annotated[Quantity, _Figure(UnitKind("B/clk", 1, 1e6))]
FlopPerClock = Annotated[Quantity, _Figure(UnitKind("FLOP/clk", 1, 1e9))]
OpsPerClock = Annotated[Quantity, _Figure(UnitKind("OP/clk", 1, 1e6))]
Amount = Annotated[Quantity, _Figure(UnitKind("", 1, 1e9, whole=True))]
