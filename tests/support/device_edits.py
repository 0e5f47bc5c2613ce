"""Devices with some figures changed, for laws about better and worse ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity

OF_ONE_SM = ("compute.fp16_per_clock_per_sm", "compute.fp32_per_clock_per_sm")
"""Rates of one SM, without which the SMs share out the rates of the chip."""
MEASURED_TOGETHER = ("measured.exp", "measured.gemm_", "measured.best_gemm_")
OF_THE_CHIP = ("compute.peak.", "compute.exp", *MEASURED_TOGETHER)
"""Beginnings of the paths of rates of all SMs together."""


def edited(device: Hardware, changes: Mapping[str, float | None]) -> Hardware:
    """The device with figures at these paths; None takes one out."""
    for path, value in changes.items():
        device = _put(device, path.split("."), None if value is None else Quantity(value=value))
    return device


def scaled(device: Hardware, chosen: Callable[[str], bool], factor: float) -> Hardware:
    """The device with so many times each figure whose path is chosen; counts and sizes stay whole."""
    changes = {}
    for path, quantity in device.quantities.items():
        if isinstance(quantity, Quantity) and chosen(path):
            value = quantity.value * factor
            changes[path] = int(value) if isinstance(quantity.value, int) else value
    return edited(device, changes)


def _put(group: Any, path: list[str], quantity: Quantity | None) -> Any:
    head, *rest = path
    if isinstance(group, tuple):
        at = int(head)
        return (*group[:at], _put(group[at], rest, quantity), *group[at + 1 :])
    return group.model_copy(update={head: _put(getattr(group, head), rest, quantity) if rest else quantity})


@cache
def directions() -> dict[str, tuple[str, str]]:
    """The better direction of each figure in the schema of hardware files and the reason, by the path of the figure.

    A place in a list is written as "*".
    """
    schema = Hardware.file_schema()
    return {path: (field["better"], field.get("better_reason", "")) for path, field in _fields(schema, schema, "")}


def _fields(schema: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "better" in node or node.get("$ref", "").endswith(("/Quantity", "/SizeList")):
        yield path, node
        return
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    parts = {**node.get("properties", {}), **({"*": node["items"]} if "items" in node else {})}
    for name, part in parts.items():
        yield from _fields(schema, part, f"{path}.{name}".strip("."))
    for part in node.get("anyOf", ()):
        yield from _fields(schema, part, path)


def direction(path: str) -> str:
    """The better direction of a figure of a device: "higher", "lower" or "none"."""
    return directions()[".".join("*" if part.isdigit() else part for part in path.split("."))][0]


def directed(device: Hardware) -> list[str]:
    """The paths of the figures of a device that have a better direction."""
    return [path for path in device.quantities if direction(path) != "none"]


def bettered(device: Hardware, path: str, factor: float) -> Hardware:
    """The device with a figure that is so many times better, or worse where the factor is below 1.

    More SMs bring their rates along where the file has those of the chip alone. A peak brings along the best product of
    its type, whose share of the peak stands for other types too.
    """
    figure = device.quantities[path]
    assert isinstance(figure, Quantity)
    value = figure.value * (factor if direction(path) == "higher" else 1 / factor)
    if isinstance(figure.value, int):
        value = max(int(value), 1 if figure.value else 0)
    if path == "compute.units":  # what was measured on all SMs together, or is on file for them alone
        of_one_sm = all(each in device.quantities for each in OF_ONE_SM)
        together = MEASURED_TOGETHER if of_one_sm else OF_THE_CHIP
        device = scaled(device, lambda other: other.startswith(together), value / figure.value)
    if path.startswith("compute.peak."):
        best = path.replace("compute.peak.", "measured.best_gemm_")
        device = scaled(device, lambda other: other == best, value / figure.value)
    return edited(device, {path: value})
