"""Effect of one more unit of each resource, from plans of edited devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from iomodel.common.results import Record, column
from iomodel.devices.device import Hardware
from iomodel.devices.edits import BANDWIDTH, CAPACITY, UNITS, added, capacity, figure, matrix, scaled
from iomodel.errors import SpecError
from iomodel.planning.replica_figures import figures
from iomodel.planning.service import Service

STEP = 0.1
"""Relative increase of a figure: enough for several waves of thread blocks, and several more requests."""


def _change(seconds: float) -> str:
    return f"{1e6 * seconds:+,.3g} us"


@dataclass(frozen=True)
class Sensitivity(Record):
    """Effect of one more unit of a resource on every device, averaged over an increase of a tenth.

    Attributes
    ----------
    resource, unit : str
        Increased resource, and its unit.
    added : float
        Increase behind the finite difference [unit].
    ttft, tpot : float
        Change of the times [s / unit]; negative if the resource helps.
    tokens_per_second : float
        Change of the output tokens of all replicas [1/s / unit].
    fits : float
        Change of the requests that fit a replica [1 / unit].
    """

    resource: str
    unit: str
    added: float
    ttft: float = field(metadata=column(">TTFT", _change))
    tpot: float = field(metadata=column(">TPOT", _change))
    tokens_per_second: float = field(metadata=column(">tokens/s", "+,.3g"))
    fits: float = field(metadata=column(">requests that fit", "+,.3g"))

    @property
    def title(self) -> str:
        """Name one unit of the resource."""
        return "SM" if self.unit == "SM" else f"{self.unit} of {self.resource}"


def sensitivities(service: Service, device: Hardware, batch: int | None, replicas: int) -> tuple[Sensitivity, ...]:
    """Compute the effect of one more GB/s, GB, SM and TFLOP/s; by default at the largest batch that fits."""
    peak = f"compute.peak.{service.types.get('dtype') or service.model.dtype}"
    edits: list[tuple[str, str, Callable[[], tuple[Hardware, float]]]] = [
        ("HBM bandwidth", "GB/s", lambda: _faster(device, BANDWIDTH, BANDWIDTH[0], 1e9)),
        ("HBM capacity", "GB", lambda: _more_memory(device)),
        ("SMs", "SM", lambda: _more_units(device)),
        ("matrix peak", "TFLOP/s", lambda: _faster(device, matrix(device), peak, 1e12)),
    ]
    before = _reached(service, device, device, batch)
    results = []
    for resource, unit, edit in edits:
        try:
            better, amount = edit()
        except SpecError:  # a figure that the device lacks cannot be increased
            continue
        timed = device if resource == "HBM capacity" else better  # capacity makes no step faster
        after = _reached(service, better, timed, batch)
        ttft, tpot, tokens, fits = ((b - a) / amount for a, b in zip(before, after, strict=True))
        results.append(Sensitivity(resource, unit, amount, ttft, tpot, tokens * replicas, fits))
    return tuple(results)


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
    fits = service.memory(device).fits
    reached = figures(service, timed, fits if batch is None else batch)
    return reached.ttft, reached.tpot or 0.0, reached.tokens_per_second, float(fits)
