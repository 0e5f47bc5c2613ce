"""The answer of a fleet search: what to run, what comes next, and why the rest does not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iomodel.decoder.layout import Layout
from iomodel.planning.fleet_queue import Operating
from iomodel.planning.text import layout_dict, layout_text, money, seconds
from iomodel.show import Shown, table

RUNNERS = 8
"""Ways that the table lists, the best first."""


@dataclass(frozen=True)
class Way:
    """One device and layout that meets the targets.

    Attributes
    ----------
    device : str
        The device.
    layout : Layout
        How a replica shares out the model.
    replicas, devices : int
        How many replicas the load needs, and how many devices they are.
    price_per_hour : float or None
        Of all devices, where the device's price was given [1/h].
    most : float
        Load that one replica takes at most within the targets [1/s].
    operating : Operating
        One replica at its share of the load.
    fits : int
        Requests that fit the memory of a replica [-].
    """

    device: str
    layout: Layout
    replicas: int
    devices: int
    price_per_hour: float | None
    most: float
    operating: Operating
    fits: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        plain = {**self.__dict__, **self.operating.__dict__, "layout": layout_dict(self.layout)}
        plain["load_per_replica"] = plain.pop("load")
        plain["most_per_replica"] = plain.pop("most")
        return {name: value for name, value in plain.items() if name != "operating"}


@dataclass(frozen=True)
class Refusal:
    """One device and layout that does not meet the targets, and why.

    Attributes
    ----------
    device : str
        The device.
    layout : Layout
        How a replica shares out the model.
    reason : str
        What is exceeded, and by how much.
    ttft, tpot : float or None
        The least it reaches, of a request that is alone [s]; None where the model does not fit.
    missing : int
        Memory that one request lacks on each device [B]; 0 where one fits.
    needed : int
        Devices that the load would need, where they are too many; else 0 [-].
    """

    device: str
    layout: Layout
    reason: str
    ttft: float | None = None
    tpot: float | None = None
    missing: int = 0
    needed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {**self.__dict__, "layout": layout_dict(self.layout)}


@dataclass(frozen=True)
class Fleet(Shown):
    """The smallest or cheapest fleet that meets the targets.

    Attributes
    ----------
    model, objective : str
        What is served, and what was made least: ``devices`` or ``cost``.
    load, ttft, tpot : float
        The load [1/s] and the targets of the mean times [s].
    prompt, output : int
        Tokens of a request, and of its answer.
    best : Way
        What to run.
    runners_up : tuple of Way
        What else meets the targets, the best first.
    refused : tuple of Refusal
        What does not, and why.
    """

    model: str
    objective: str
    load: float
    ttft: float
    tpot: float
    prompt: int
    output: int
    best: Way
    runners_up: tuple[Way, ...]
    refused: tuple[Refusal, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            **{name: value for name, value in self.__dict__.items() if not isinstance(value, tuple)},
            "best": self.best.to_dict(),
            "runners_up": [way.to_dict() for way in self.runners_up],
            "refused": [refusal.to_dict() for refusal in self.refused],
        }

    def __rich__(self) -> Any:
        """Return tables for the terminal: the ways that do, and why others do not."""
        from rich.console import Group

        ways = [self.best, *self.runners_up]
        title = (
            f"{self.model}: {self.load:g} requests/s of {self.prompt:,} + {self.output:,} tokens, TTFT within "
            f"{seconds(self.ttft)}, TPOT within {seconds(self.tpot)}, least {self.objective}"
        )
        columns = ("device", "layout", ">replicas", ">devices", ">price/h", ">TTFT", ">TPOT", ">in flight", ">fit")
        found = table(title, columns, [_row(way) for way in ways[:RUNNERS]])
        if not self.refused:
            return found
        why = table("does not do", ("device", "layout", "why"), [_why(refusal) for refusal in self.refused])
        return Group(found, why)


def _row(way: Way) -> tuple[str, ...]:
    at = way.operating
    price = "" if way.price_per_hour is None else money(way.price_per_hour)
    counts = (f"{way.replicas:,}", f"{way.devices:,}", price)
    times = (seconds(at.ttft), seconds(at.tpot), f"{at.in_flight:,.1f}", f"{way.fits:,}")
    return way.device, layout_text(way.layout), *counts, *times


def _why(refusal: Refusal) -> tuple[str, ...]:
    return refusal.device, layout_text(refusal.layout), refusal.reason
