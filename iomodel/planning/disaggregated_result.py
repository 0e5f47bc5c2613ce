"""Result of a plan with prefill and decode on separate devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iomodel.common.display import Result, Table, figure
from iomodel.common.results import Record, plain
from iomodel.common.tabular import Tabular
from iomodel.planning.formatting import gigabytes, layout_text, money, seconds
from iomodel.planning.service_memory import Fit
from iomodel.planning.step.layout import Layout


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
        Replicas that the load needs; 1 without a load [-].
    price_per_hour : float or None
        Price of one device [1/h].
    """

    derived = ("devices",)

    hardware: str
    layout: Layout
    memory: Fit
    batch: int
    seconds: float
    requests_per_second: float
    replicas: int
    price_per_hour: float | None

    @property
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
    """

    derived = ("requests_per_second", "tokens_per_second", "tokens_per_second_per_device", "cost_per_million_tokens")

    model: str
    prompt: int
    output: int
    link: float
    prefill: Pool
    decode: Pool
    kv_bytes: int
    device_bytes: int
    transfer_seconds: float
    ttft: float
    tpot: float
    load: float | None

    @property
    def requests_per_second(self) -> float:
        """Requests that the slower of both pools takes [1/s]."""
        return min(pool.replicas * pool.requests_per_second for pool in (self.prefill, self.decode))

    @property
    def tokens_per_second(self) -> float:
        """Output tokens of all devices [1/s]."""
        return self.requests_per_second * self.output

    @property
    def tokens_per_second_per_device(self) -> float:
        """Output tokens over all devices of both pools [1/s]."""
        return self.tokens_per_second / (self.prefill.devices + self.decode.devices)

    @property
    def cost_per_million_tokens(self) -> float | None:
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
        columns = ("", "device", "layout", ">replicas", ">devices", ">batch", ">time", ">requests/s of one")
        pools = [
            (name, pool.hardware, layout_text(pool.layout), f"{pool.replicas:,}", f"{pool.devices:,}",
             f"{pool.batch:,}", seconds(pool.seconds), figure(pool.requests_per_second, 3))
            for name, pool in (("prefill", self.prefill), ("decode", self.decode))
        ]  # fmt: skip
        rows = [
            ("cache of a prompt over the links", gigabytes(self.kv_bytes)),
            ("  of the busiest device", gigabytes(self.device_bytes)),
            ("transfer", seconds(self.transfer_seconds)),
            ("TTFT without a queue", seconds(self.ttft)),
            ("TPOT with the transfer", seconds(self.tpot)),
            ("requests/s", figure(self.requests_per_second, 3)),
            ("output tokens/s", f"{self.tokens_per_second:,.0f}"),
            ("output tokens/s of a device", f"{self.tokens_per_second_per_device:,.0f}"),
        ]
        cost = self.cost_per_million_tokens
        rows += [] if cost is None else [("price per 10^6 output tokens, prompts free", money(cost))]
        title = f"{self.model}: {self.prompt:,} + {self.output:,} tokens, links of {gigabytes(self.link)}/s"
        return [Table(title, columns, pools, extra=("batch", "devices")), Table("Both together", ("", ">value"), rows)]
