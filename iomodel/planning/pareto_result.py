"""Result of a search over deployments: the Pareto front, the dominated points, and the cheapest point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from iomodel.common.display import WARNING, Mark, Result, Table, figure, shared_notes
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column, plain, printed
from iomodel.common.tabular import Tabular
from iomodel.planning.formatting import layout_text, money, seconds
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora

ROWS = 24
"""Most points of the front in the table."""
REASONS = 5
"""Most skipped layouts listed."""


@dataclass(frozen=True)
class ParetoPoint(Record):
    """One device, layout, types and batch, with the figures of a full replica.

    Attributes
    ----------
    device : str
        The device.
    layout : Layout
        Parallel layout of a replica.
    devices : int
        Devices of a replica [-].
    weight_dtype, kv_dtype : str
        Types of the weights and of the cache.
    batch, fits : int
        Requests decoded together, and those that fit the memory [-].
    ttft, tpot : float
        Time to the first token without queueing, and time per output token with the prefills in between [s].
    requests_per_second, tokens_per_second : float
        Requests, and output tokens, of a replica [1/s].
    price_per_hour : float or None
        Price of one device [1/h].
    watts : float or None
        Power of one device: its TDP at the stated utilisation [W].
    """

    derived = (
        "tokens_per_second_per_device",
        "tokens_per_second_per_user",
        "price_per_million_tokens",
        "joules_per_token",
    )

    device: str = field(metadata=column("device"))
    layout: Layout = field(metadata=column("layout", layout_text))
    devices: int
    weight_dtype: str = field(metadata=column("weights"))
    kv_dtype: str = field(metadata=column("cache", extra=3))
    batch: int = field(metadata=column(">batch", ","))
    fits: int
    ttft: float = field(metadata=column(">TTFT", seconds, extra=4))
    tpot: float = field(metadata=column(">TPOT", seconds))
    requests_per_second: float
    tokens_per_second: float
    price_per_hour: float | None = None
    watts: float | None = None

    @property
    @printed(column(">/s/user", figure))
    def tokens_per_second_per_user(self) -> float:
        """Output tokens of one request [1/s]."""
        return 1 / self.tpot

    @property
    @printed(column(">/s/device", ",.0f"))
    def tokens_per_second_per_device(self) -> float:
        """Output tokens of one device [1/s]."""
        return self.tokens_per_second / self.devices

    @property
    @printed(column(">price/10^6", money, extra=1))
    def price_per_million_tokens(self) -> float | None:
        """Price of the devices per output token, with prompts counted as free [per 10^6]; None without a price."""
        if self.price_per_hour is None:
            return None
        return self.price_per_hour / 3600 / self.tokens_per_second_per_device * 1e6

    @property
    @printed(column(">J/token", lambda energy: figure(energy, 3), extra=2))
    def joules_per_token(self) -> float | None:
        """Energy of the devices per output token: TDP at the stated utilisation [J]; None without a TDP."""
        return None if self.watts is None else self.watts / self.tokens_per_second_per_device

    @property
    def where(self) -> str:
        """Name the device, the layout and the batch."""
        return f"{self.device}, {layout_text(self.layout)}, batch {self.batch:,}"


@dataclass(frozen=True)
class Pareto(Result, Tabular):
    """Deployments of a model that no other one beats in both throughput and speed.

    Attributes
    ----------
    model : str
        Served model.
    prompt, output : int
        Tokens of a prompt, and of its output.
    front : tuple of ParetoPoint
        Points that no other has both more tokens/s per device and more per user, by tokens/s per user, descending.
    dominated : tuple of ParetoPoint
        All other points.
    ttft, tpot : float or None
        Targets of the times [s].
    percentile : str or None
        Percentile of a simulation that has to keep the targets; None for the times of a plan.
    cheapest : ParetoPoint or None
        Cheapest point that keeps the targets: with the least price per token, or, without prices, the most tokens/s per
        device. None without targets.
    power_utilization : float
        Share of the TDP that counts as drawn [-].
    skipped : tuple of str
        Devices, layouts and types without a point, with reasons.
    prefix_cache : PrefixCache or None
        Prefix cache of the engine, if any.
    speculation : Speculation or None
        Drafts, if any.
    lora : Lora or None
        Adapters of low rank, if any.
    assumed : mapping of str to tuple of str
        Assumptions behind the figures of each device.
    left_out : mapping of str to tuple of str
        Effects that no figure on file of a device times.
    load : float or None
        Arrival rate of requests that the cheapest point serves [1/s].
    """

    model: str
    prompt: int
    output: int
    front: tuple[ParetoPoint, ...]
    dominated: tuple[ParetoPoint, ...]
    ttft: float | None
    tpot: float | None
    percentile: str | None
    cheapest: ParetoPoint | None
    power_utilization: float
    skipped: tuple[str, ...]
    prefix_cache: PrefixCache | None = None
    speculation: Speculation | None = None
    lora: Lora | None = None
    assumed: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenDict)
    load: float | None = None

    @property
    def devices(self) -> int | None:
        """Devices of whole replicas of the cheapest point that serve the load [-]; None without a load."""
        best = self.cheapest
        if best is None or self.load is None:
            return None
        return ceil(self.load / best.requests_per_second) * best.devices

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per point, those of the front first."""
        return [
            {**data.pop("layout"), **data, "front": front}
            for points, front in ((self.front, True), (self.dominated, False))
            for data in map(plain, points)
        ]

    def tables(self) -> list[Table | str]:
        """Return the front, and the cheapest point that keeps the targets."""
        title = f"{self.model}: {self.prompt:,} + {self.output:,} tokens, output tokens/s; {len(self.front)} points of "
        step = -(-len(self.front) // ROWS)
        lines: list[Table | str] = [
            self._table(f"{title}{len(self.front) + len(self.dominated):,}", self.front[::step])
        ]
        if self.cheapest is not None:
            targets = [
                f"{name} {seconds(value)}"
                for name, value in (("TTFT", self.ttft), ("TPOT", self.tpot))
                if value is not None
            ]
            kind = "mean" if self.percentile is None else self.percentile
            within = f" within {', '.join(targets)} ({kind})" if targets else ""
            served = "" if self.load is None else f", {self.load:g} requests/s on {self.devices:,} devices"
            lines.append(self._table(f"Cheapest{within}{served}", [self.cheapest]))
        if any(point.watts is not None for point in self.front):
            lines.append(Mark(f"assumed: energy at {100 * self.power_utilization:g} % of the TDP", WARNING))
        lines += [*shared_notes("left out", self.left_out), *shared_notes("assumed", self.assumed)]
        more = [f"skipped: {len(self.skipped) - REASONS:,} more"] if len(self.skipped) > REASONS else []
        return [*lines, *(f"skipped: {line}" for line in self.skipped[:REASONS]), *more]

    def _table(self, title: str, points: Sequence[ParetoPoint]) -> Table:
        return Table.of(title, ParetoPoint, points).with_omissions(self.left_out, [point.device for point in points])


def divided(points: Iterable[ParetoPoint]) -> tuple[tuple[ParetoPoint, ...], tuple[ParetoPoint, ...]]:
    """Divide points into the front, fastest for a user first, and the dominated ones, in the same order."""
    ordered = sorted(points, key=lambda point: (-point.tokens_per_second_per_user, -point.tokens_per_second_per_device))
    front: list[ParetoPoint] = []
    dominated: list[ParetoPoint] = []
    most = 0.0
    for point in ordered:
        better = point.tokens_per_second_per_device > most
        (front if better else dominated).append(point)
        most = max(most, point.tokens_per_second_per_device)
    return tuple(front), tuple(dominated)
