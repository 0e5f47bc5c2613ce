"""Result of a plan with prefill and decode on separate devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, column, plain, printed
from iomodel.common.tabular import Tabular
from iomodel.planning.formatting import gigabytes, layout_text, money, rate, seconds
from iomodel.planning.layout_search import LayoutRate
from iomodel.planning.service_memory import Fit
from iomodel.planning.step.layout import Layout

POOL = ("hardware", "layout", "replicas", "devices", "batch", "seconds", "requests_per_second")
"""Columns of a pool, in their order."""


@dataclass(frozen=True)
class Pool(Record):
    """Replicas of one kind: those that prefill, or those that decode.

    Attributes
    ----------
    hardware : str
        The device.
    layout : Layout
        Parallel layout of a replica.
    memory : Fit
        Memory of the fullest device.
    batch : int
        Requests at once in a replica: 1 for a prefill [-].
    seconds : float
        Time of a prefill, or of a decode step averaged over the output [s].
    requests_per_second : float
        Requests that a replica takes [1/s].
    replicas : int
        Replicas that the load needs, or the most tokens per device without a load [-].
    price_per_hour : float or None
        Price of one device [1/h].
    """

    derived = ("devices",)

    hardware: str = field(metadata=column("device"))
    layout: Layout = field(metadata=column("layout", layout_text))
    memory: Fit
    batch: int = field(metadata=column(">batch", ",", extra=1))
    seconds: float = field(metadata=column(">time", seconds))
    requests_per_second: float = field(metadata=column(">requests/s of one", rate))
    replicas: int = field(metadata=column(">replicas", ","))
    price_per_hour: float | None

    @property
    @printed(column(">devices", ",", extra=2))
    def devices(self) -> int:
        """Devices of all replicas [-]."""
        return self.replicas * self.layout.devices


@dataclass(frozen=True)
class Disaggregation(Result, Tabular):
    """Prefill and decode on separate devices, with a transfer of the cache between them.

    Attributes
    ----------
    model : str
        Served model.
    prompt, output : int
        Tokens of a prompt, and of its output.
    link : float
        Bandwidth of one device to the other pool [B/s].
    prefill, decode : Pool
        The two pools.
    kv_bytes : int
        Cache and states of a prompt that cross the links, each byte once [B].
    device_bytes : int
        The part of the busiest device [B].
    transfer_seconds : float
        Time of the transfer of a request [s].
    ttft, tpot : float
        Time to the first token, without a queue; time per output token after it, the transfer included [s].
    load : float or None
        Arrival rate of requests [1/s].
    steady : LayoutRate or None
        The fewest devices of one pool that prefills and decodes the load, as :func:`iomodel.plan` counts them; None
        without a load, or for pools of two devices.
    notes : tuple of str
        Options of a command line without an effect.
    """

    derived = (
        *("requests_per_second", "tokens_per_second", "tokens_per_second_per_device", "price_per_million_tokens"),
        "cost_per_million_tokens",
    )
    renamed = FrozenDict(cost_per_million_tokens=("price_per_million_tokens", ".price_per_million_tokens"))

    model: str
    prompt: int
    output: int
    link: float
    prefill: Pool
    decode: Pool
    kv_bytes: int = field(metadata=column("cache of a prompt over the links", gigabytes))
    device_bytes: int = field(metadata=column("  of the busiest device", gigabytes))
    transfer_seconds: float = field(metadata=column("transfer", seconds))
    ttft: float = field(metadata=column("TTFT without a queue", seconds))
    tpot: float = field(metadata=column("TPOT with the transfer", seconds))
    load: float | None
    steady: LayoutRate | None = None
    notes: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """Devices of both pools [-]."""
        return self.prefill.devices + self.decode.devices

    @property
    @printed(column("requests/s", rate))
    def requests_per_second(self) -> float:
        """Requests that the slower of both pools takes [1/s]."""
        return min(pool.replicas * pool.requests_per_second for pool in (self.prefill, self.decode))

    @property
    @printed(column("output tokens/s", ",.0f"))
    def tokens_per_second(self) -> float:
        """Output tokens of all devices [1/s]."""
        return self.requests_per_second * self.output

    @property
    @printed(column("output tokens/s of a device", ",.0f"))
    def tokens_per_second_per_device(self) -> float:
        """Output tokens over all devices of both pools [1/s]."""
        return self.tokens_per_second / self.devices

    @property
    @printed(column("price per 10^6 output tokens, prompts free", money))
    def price_per_million_tokens(self) -> float | None:
        """Price of all devices per output token [per 10^6]; None without both prices."""
        prices = [(pool.price_per_hour, pool.devices) for pool in (self.prefill, self.decode)]
        if any(price is None for price, _ in prices):
            return None
        return sum((price or 0.0) * devices for price, devices in prices) / 3600 / self.tokens_per_second * 1e6

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per pool."""
        rows = []
        for name in ("prefill", "decode"):
            data = plain(getattr(self, name))
            rows.append({"pool": name, **data.pop("layout"), **{n: v for n, v in data.items() if n != "memory"}})
        return rows

    def tables(self) -> list[Table | str]:
        """Return the pools, and the figures of both together."""
        pools = {"prefill": self.prefill, "decode": self.decode}
        title = f"{self.model}: {self.prompt:,} + {self.output:,} tokens, links of {gigabytes(self.link)}/s"
        table = Table.of(title, Pool, pools.values(), names=POOL).with_names("", pools)
        return [table, Table.one("Both together", self), *self._one_pool(), *self.notes]

    def _one_pool(self) -> list[str]:
        """Say how many devices one pool needs, where that is another number."""
        one = self.steady
        if one is None or one.devices == self.devices:
            return []
        return [
            f"note: {one.devices:,} devices ({layout_text(one.layout)}) if one pool prefills and decodes, as in plan; "
            f"these {self.devices:,} are whole replicas of two pools, in which no prefill delays a token"
        ]
