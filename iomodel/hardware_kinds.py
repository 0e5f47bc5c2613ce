"""The kinds of figures in a hardware file: how each is read, its unit, its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from iomodel.quantity import Number, Quantity, Steps
from iomodel.units import Kind


def _read(raw: object, kind: Kind, key: str) -> dict[str, Any]:
    """Turns "228 KiB", 233472 or {value: 228, unit: KiB, ...} into a figure in base units."""
    if isinstance(raw, Quantity | Steps):
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


def _other(raw: object, kind: Kind, unit: object) -> object:
    if not isinstance(raw, Mapping) or "value" not in raw:
        return raw
    value = raw["value"]
    return {**raw, "value": kind.number(value, None if isinstance(value, str) else unit)}


def _one(kind: Kind) -> BeforeValidator:
    return BeforeValidator(lambda raw: _read(raw, kind, "value"), json_schema_input_type=Number | Quantity)


def _many(kind: Kind) -> BeforeValidator:
    return BeforeValidator(lambda raw: _read(raw, kind, "values"), json_schema_input_type=list[Number] | Steps)


_PART = Kind("B", 1, 2**30, whole=True, zero=True)
Capacity = Annotated[Quantity, _one(Kind("B", 1, 10**15, whole=True))]
Share = Annotated[Quantity, _one(Kind("B", 1, 2**30, whole=True))]
Reserve = Annotated[Quantity, _one(_PART)]
CarveOuts = Annotated[Steps, _many(_PART)]
Bandwidth = Annotated[Quantity, _one(Kind("B/s", 1e6, 1e15))]
Link = Annotated[Quantity, _one(Kind("B/s", 1e6, 1e15, zero=True))]
Rate = Annotated[Quantity, _one(Kind("FLOP/s", 1e6, 1e19))]
Ops = Annotated[Quantity, _one(Kind("OP/s", 1e6, 1e19))]
Clock = Annotated[Quantity, _one(Kind("Hz", 1e6, 1e11))]
Power = Annotated[Quantity, _one(Kind("W", 0.01, 1e6))]
Time = Annotated[Quantity, _one(Kind("s", 1e-12, 1))]
Duration = Annotated[Quantity, _one(Kind("s", 1e-9, 3600))]
Clocks = Annotated[Quantity, _one(Kind("clk", 1, 1e6))]
BytesPerClock = Annotated[Quantity, _one(Kind("B/clk", 1, 1e6))]
FlopPerClock = Annotated[Quantity, _one(Kind("FLOP/clk", 1, 1e9))]
OpsPerClock = Annotated[Quantity, _one(Kind("OP/clk", 1, 1e6))]
Amount = Annotated[Quantity, _one(Kind("", 1, 1e9, whole=True))]
