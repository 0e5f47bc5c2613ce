"""A device with some figures changed: all figures of a resource together, so that nothing goes by the old ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iomodel.errors import SpecError
from iomodel.hardware import Hardware
from iomodel.quantity import Quantity

CAPACITY = ("memory.hbm.capacity", "memory.hbm.capacity_reported")
BANDWIDTH = ("memory.hbm.bandwidth", *(f"measured.hbm_{name}" for name in ("copy", "triad", "read", "write")))
UNITS = ("compute.units",)
PER_CLOCK = ("compute.fp16_per_clock_per_sm", "compute.mma.warp_fp16_per_clock_per_sm")


def matrix(device: Hardware) -> tuple[str, ...]:
    """The paths of every matrix rate: the peaks that are printed, those measured, and what one SM does in a clock."""
    peaks = tuple(path for path in device.quantities if path.startswith(("compute.peak.", "measured.gemm_")))
    return (*peaks, *PER_CLOCK)


def figure(device: Hardware, path: str, needed_for: str) -> float:
    """A figure of a device, or SpecError."""
    found = device.quantities.get(path)
    if not isinstance(found, Quantity):
        raise SpecError(f"{path}: {device.id or device.name} lacks it; {needed_for}")
    return found.value


def capacity(device: Hardware) -> int:
    """Bytes of the device's memory [B]: as its driver reports them where that is on file, else the nominal ones.

    >>> from iomodel.hardware import hardware
    >>> capacity(hardware("h100-sxm5"))
    85899345920
    """
    reported = device.memory.hbm.capacity_reported
    return int(figure(device, CAPACITY[0], "a plan needs it") if reported is None else reported.value)


def scaled(device: Hardware, paths: Iterable[str], factor: float) -> Hardware:
    """The device with so many times each of these figures that it has.

    >>> from iomodel.hardware import hardware
    >>> scaled(hardware("h100-sxm5"), BANDWIDTH, 2.0).memory.hbm.bandwidth.value
    6704000000000.0
    """
    known = device.quantities
    for path in paths:
        found = known.get(path)
        if isinstance(found, Quantity):
            device = _put(device, path.split("."), found.model_copy(update={"value": found.value * factor}))
    return device


def added(device: Hardware, paths: Iterable[str], amount: float) -> Hardware:
    """The device with so much more of each of these figures that it has."""
    known = device.quantities
    for path in paths:
        found = known.get(path)
        if isinstance(found, Quantity):
            device = _put(device, path.split("."), found.model_copy(update={"value": found.value + amount}))
    return device


def _put(group: Any, path: list[str], quantity: Quantity) -> Any:
    head, *rest = path
    return group.model_copy(update={head: _put(getattr(group, head), rest, quantity) if rest else quantity})
