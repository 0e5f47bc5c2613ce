"""What one more of each resource buys: the plan of an edited device less that of the device, for each unit added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iomodel.errors import SpecError
from iomodel.hardware import Hardware
from iomodel.planning.edits import BANDWIDTH, CAPACITY, UNITS, added, capacity, figure, matrix, scaled
from iomodel.planning.figures import figures
from iomodel.planning.memory import fit
from iomodel.planning.service import Service

STEP = 0.1
"""The share by which a figure is raised: enough for several waves of thread blocks, and several requests more."""


@dataclass(frozen=True)
class Sensitivity:
    """What one more unit of a resource, on every device, changes: in the mean over a tenth more of it.

    Attributes
    ----------
    resource, unit : str
        What there is more of, and one of what.
    added : float
        How much was added for the difference, which is then divided by it [unit].
    ttft, tpot : float
        Change of the times [s / unit]: negative where it helps.
    tokens_per_second : float
        Change of the output tokens of all replicas [1/s / unit].
    fits : float
        Change of the requests that fit a replica [1 / unit].
    """

    resource: str
    unit: str
    added: float
    ttft: float
    tpot: float
    tokens_per_second: float
    fits: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return dict(self.__dict__)


def sensitivities(service: Service, device: Hardware, batch: int | None, replicas: int) -> tuple[Sensitivity, ...]:
    """What one more GB/s, GB, SM and TFLOP/s buys; without a batch, the largest that fits each device."""
    peak = f"compute.peak.{service.types.get('dtype') or service.model.dtype}"
    ways: list[tuple[str, str, Callable[[], tuple[Hardware, float]]]] = [
        ("HBM bandwidth", "GB/s", lambda: _faster(device, BANDWIDTH, BANDWIDTH[0], 1e9)),
        ("HBM capacity", "GB", lambda: _more_memory(device)),
        ("SMs", "SM", lambda: _more_units(device)),
        ("matrix peak", "TFLOP/s", lambda: _faster(device, matrix(device), peak, 1e12)),
    ]
    before = _reached(service, device, device, batch)
    found = []
    for resource, unit, edit in ways:
        try:
            better, amount = edit()
        except SpecError:  # a device without the figure has no more of it either
            continue
        timed = device if resource == "HBM capacity" else better  # capacity makes no step faster
        after = _reached(service, better, timed, batch)
        ttft, tpot, tokens, fits = ((b - a) / amount for a, b in zip(before, after, strict=True))
        found.append(Sensitivity(resource, unit, amount, ttft, tpot, tokens * replicas, fits))
    return tuple(found)


def _faster(device: Hardware, paths: tuple[str, ...], main: str, unit: float) -> tuple[Hardware, float]:
    value = figure(device, main, "a sensitivity needs it")
    return scaled(device, paths, 1 + STEP), STEP * value / unit


def _more_memory(device: Hardware) -> tuple[Hardware, float]:
    amount = int(STEP * capacity(device))
    return added(device, CAPACITY, amount), amount / 1e9


def _more_units(device: Hardware) -> tuple[Hardware, float]:
    amount = max(1, round(STEP * figure(device, UNITS[0], "a sensitivity needs it")))
    return added(device, UNITS, amount), float(amount)


def _reached(
    service: Service, device: Hardware, timed: Hardware, batch: int | None
) -> tuple[float, float, float, float]:
    fits = fit(service, device).fits
    found = figures(service, timed, fits if batch is None else batch)
    return found.ttft, found.tpot, found.tokens_per_second, float(fits)
