"""Result of a fleet search: the best option, the runners-up, and the reasons of the rejected ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import Result, Table, shared_notes
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column, columns_in
from iomodel.common.tabular import Tabular
from iomodel.planning.fleet_queue import Operating
from iomodel.planning.formatting import layout_text, money, seconds
from iomodel.planning.layout_search import LayoutRate
from iomodel.planning.step.layout import Layout

RUNNERS = 8
"""Options listed in the table, the best first."""


@dataclass(frozen=True)
class FleetOption(Record):
    """One device and layout that meets the targets.

    Attributes
    ----------
    device : str
        The device.
    layout : Layout
        Parallel layout of a replica.
    replicas, devices : int
        Number of replicas that the load needs, and of their devices.
    price_per_hour : float or None
        Price of all devices, if the price of the device was given [1/h].
    most : float
        Highest load of one replica within the targets [1/s].
    operating : Operating
        One replica at its share of the load.
    fits : int
        Requests that fit the memory of a replica [-].
    """

    device: str = field(metadata=column("device"))
    layout: Layout = field(metadata=column("layout", layout_text))
    replicas: int = field(metadata=column(">replicas", ","))
    devices: int = field(metadata=column(">devices", ","))
    price_per_hour: float | None = field(metadata=column(">price/h", money, extra=1))
    most: float
    operating: Operating = field(metadata=columns_in(Operating))
    fits: int = field(metadata=column(">fit", ",", extra=2))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, the figures of a replica beside the rest."""
        data = super().to_dict()
        figures = {**data["operating"], "load_per_replica": self.operating.load, "most_per_replica": self.most}
        return {**figures, **data}


@dataclass(frozen=True)
class Refusal(Record):
    """One device and layout that misses the targets, with the reason.

    Attributes
    ----------
    device : str
        The device.
    layout : Layout
        Parallel layout of a replica.
    reason : str
        Exceeded target or limit, with the amount.
    ttft, tpot : float or None
        Least times, of a single request [s]; None if the model does not fit.
    missing : int
        Memory that one request lacks on each device [B]; 0 if it fits.
    needed : int
        Devices that the load would need, if too many; else 0 [-].
    """

    device: str = field(metadata=column("device"))
    layout: Layout = field(metadata=column("layout", layout_text))
    reason: str = field(metadata=column("reason"))
    ttft: float | None = None
    tpot: float | None = None
    missing: int = 0
    needed: int = 0


@dataclass(frozen=True)
class Fleet(Result, Tabular):
    """The smallest or cheapest fleet that meets the targets.

    Attributes
    ----------
    model, objective : str
        Served model, and minimised quantity: ``devices`` or ``cost``.
    load, ttft, tpot : float
        The load [1/s] and the targets of the mean times [s].
    prompt, output : int
        Tokens of a prompt, and of its output.
    best : FleetOption
        Best option.
    runners_up : tuple of FleetOption
        Other options that meet the targets, the best first.
    refused : tuple of Refusal
        Devices and layouts that miss the targets, with reasons.
    assumed : mapping of str to tuple of str
        Assumptions behind the figures of each device.
    left_out : mapping of str to tuple of str
        Effects that no figure on file of a device times.
    steady : LayoutRate or None
        The fewest of the best device if requests arrive evenly, as :func:`iomodel.plan` counts them; None where no
        batch keeps the targets.
    """

    model: str
    objective: str
    load: float
    ttft: float
    tpot: float
    prompt: int
    output: int
    best: FleetOption
    runners_up: tuple[FleetOption, ...]
    refused: tuple[Refusal, ...]
    assumed: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)
    steady: LayoutRate | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per device and layout that meets the targets, the best first."""
        options = [option.to_dict() for option in (self.best, *self.runners_up)]
        return [{**option.pop("layout"), **{n: v for n, v in option.items() if n != "operating"}} for option in options]

    def tables(self) -> list[Table | str]:
        """Return the options that meet the targets, and the reasons against the others."""
        options = [self.best, *self.runners_up]
        title = (
            f"{self.model}: {self.load:g} requests/s of {self.prompt:,} + {self.output:,} tokens, TTFT within "
            f"{seconds(self.ttft)}, TPOT within {seconds(self.tpot)}, least {self.objective}"
        )
        shown = options[:RUNNERS]
        table = Table.of(title, FleetOption, shown).with_omissions(self.left_out, [option.device for option in shown])
        trusted = [*self._at_even_arrivals(), *shared_notes("left out", self.left_out)]
        trusted += shared_notes("assumed", self.assumed)
        if not self.refused:
            return [table, *trusted]
        return [table, Table.of("targets missed", Refusal, self.refused), *trusted]

    def _at_even_arrivals(self) -> list[str]:
        """Say how many devices even arrivals need, where random ones need others, or why a plan has another layout."""
        even = self.steady
        if even is None or (even.devices, even.layout) == (self.best.devices, self.best.layout):
            return []
        if even.devices == self.best.devices:
            return [
                f"note: of as many devices, plan takes the smaller replica ({layout_text(even.layout)}), a fleet the "
                "one with the least TPOT"
            ]
        return [
            f"note: {even.devices:,} devices ({layout_text(even.layout)}) if requests arrive evenly, as in plan and "
            f"pareto; random arrivals queue, and need room for {self.best.operating.in_flight:,.0f} in flight and more"
        ]
