"""Devices with some figures changed, for laws about better and worse ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity


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
    return group.model_copy(update={head: _put(getattr(group, head), rest, quantity) if rest else quantity})
