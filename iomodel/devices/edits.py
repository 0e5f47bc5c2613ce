"""Devices with changed figures; all figures of a resource change together, so that none keeps its old value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from iomodel.common.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import SpecError

CAPACITY = ("memory.hbm.capacity", "memory.hbm.capacity_reported")
BANDWIDTH = ("memory.hbm.bandwidth", *(f"measured.hbm_{name}" for name in ("copy", "triad", "read", "write")))
UNITS = ("compute.units",)
RATES = ("compute.peak.", "measured.gemm_", "measured.best_gemm_")
"""Beginnings of the paths of matrix rates of the chip."""
PER_CLOCK = ("compute.fp16_per_clock_per_sm", "compute.mma.warp_fp16_per_clock_per_sm")


def matrix(device: Hardware) -> tuple[str, ...]:
    """List the paths of every matrix rate: stated peaks, measured rates, and the rates of one SM per clock."""
    return (*(path for path in device.quantities if path.startswith(RATES)), *PER_CLOCK)


def figure(device: Hardware, path: str, needed_for: str) -> float:
    """Look up a figure of a device, or raise SpecError."""
    quantity = device.quantities.get(path)
    if not isinstance(quantity, Quantity):
        raise SpecError(f"{path}: {device.id or device.name} lacks it; {needed_for}")
    return quantity.value


def _stated(device: Hardware) -> str:
    """Return how to state the memory of a machine that a GPU shares."""
    return f"; allowed: that of the machine behind the name, as '{device.id} 64GB' if it has 64 GB" if device.id else ""


@per_device
def capacity(device: Hardware) -> int:
    """Return the capacity of the device's memory [B]: as reported by the driver if on file, else nominal.

    >>> from iomodel.devices.device import hardware
    >>> capacity(hardware("h100-sxm5"))
    85899345920
    """
    reported = device.memory.hbm.capacity_reported
    return int(figure(device, CAPACITY[0], f"a plan needs it{_stated(device)}") if reported is None else reported.value)


def scaled(device: Hardware, paths: Iterable[str], factor: float) -> Hardware:
    """Multiply the given figures of a device, where present, by a factor.

    >>> from iomodel.devices.device import hardware
    >>> scaled(hardware("h100-sxm5"), BANDWIDTH, 2.0).memory.hbm.bandwidth.value
    6704000000000.0
    """
    return _changed(device, paths, lambda value: value * factor)


def added(device: Hardware, paths: Iterable[str], amount: float) -> Hardware:
    """Add an amount to the given figures of a device, where present."""
    return _changed(device, paths, lambda value: value + amount)


def _changed(device: Hardware, paths: Iterable[str], change: Callable[[float], float]) -> Hardware:
    known = device.quantities
    for path in paths:
        quantity = known.get(path)
        if isinstance(quantity, Quantity):
            device = _put(device, path.split("."), quantity.model_copy(update={"value": change(quantity.value)}))
    return device


def _put(group: Any, path: list[str], quantity: Quantity) -> Any:
    head, *rest = path
    return group.model_copy(update={head: _put(getattr(group, head), rest, quantity) if rest else quantity})
