"""Result of a simulation: percentiles of latencies, throughput, utilisation, and assumptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from iomodel.common.display import Result, Table, trusted
from iomodel.common.results import Record, column, plain
from iomodel.common.tabular import Tabular
from iomodel.planning.formatting import gigabytes, layout_text, rate, seconds
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service_memory import Fit
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora

LATENCIES = ("ttft", "tpot", "latency")


@dataclass(frozen=True)
class Percentiles(Record):
    """Distribution of a time over the requests.

    Attributes
    ----------
    mean, p50, p90, p99, largest : float
        Mean, percentiles with linear interpolation between requests, and the largest [s].
    """

    mean: float = field(metadata=column(">mean", seconds))
    p50: float = field(metadata=column(">p50", seconds))
    p90: float = field(metadata=column(">p90", seconds))
    p99: float = field(metadata=column(">p99", seconds))
    largest: float = field(metadata=column(">largest", seconds))


@dataclass(frozen=True)
class Simulation(Result, Tabular):
    """One serving engine simulated step by step.

    Attributes
    ----------
    model, hardware : str
        Served model, and device.
    layout : Layout
        Parallel layout of the engine.
    policy : str
        ``prefill-first`` or ``chunked``.
    token_budget : int
        Tokens of a step.
    batch : int
        Most requests in the engine at once: the limit given, or as many of the smallest as fit [-].
    host_seconds : float
        Host time of each step [s].
    requests, prompt_tokens, output_tokens : int
        Simulated requests, and the tokens of all their prompts and outputs.
    concurrency, load : int and float, or None
        Clients of a closed loop [-], or the rate of Poisson arrivals [1/s]; both None for the arrivals of a trace.
    seed : int
        Seed of the random arrivals and lengths.
    memory : Fit
        Memory of a device; `request_bytes` and `fits` are those of the largest request.
    ttft, tpot, latency : Percentiles
        Time to the first token, including queueing; time per output token after it, over the requests with more than
        one; time from arrival to the last token [s].
    seconds, busy_seconds : float
        Time from the start to the last token, and the part of it in steps [s].
    steps, decode_steps, decodings : int
        Steps of the engine, those among them that decode, and the requests of all of these, each counted in each [-].
    largest_batch : int
        Most requests that decoded together [-].
    largest_bytes : int
        Most memory reserved for requests on a device [B].
    assumed : tuple of str
        Assumptions behind the figures.
    notes : tuple of str
        Warnings about the figures of the model's file.
    prefix_cache : PrefixCache or None
        Prefix cache of the engine, if any.
    speculation : Speculation or None
        Drafts that decode steps verify, if any.
    lora : Lora or None
        Adapters of low rank, if any.
    left_out : tuple of str
        Effects that no figure on file of the device times.
    """

    derived = ("requests_per_second", "tokens_per_second", "utilization", "mean_batch")

    model: str
    hardware: str
    layout: Layout
    policy: str
    token_budget: int
    batch: int
    host_seconds: float
    requests: int
    prompt_tokens: int
    output_tokens: int
    concurrency: int | None
    load: float | None
    seed: int
    memory: Fit
    ttft: Percentiles
    tpot: Percentiles
    latency: Percentiles
    seconds: float
    busy_seconds: float
    steps: int
    decode_steps: int
    decodings: int
    largest_batch: int
    largest_bytes: int
    assumed: tuple[str, ...]
    notes: tuple[str, ...]
    prefix_cache: PrefixCache | None = None
    speculation: Speculation | None = None
    lora: Lora | None = None
    left_out: tuple[str, ...] = ()

    @property
    def requests_per_second(self) -> float:
        """Requests over the whole time [1/s]."""
        return self.requests / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Output tokens over the whole time [1/s]."""
        return self.output_tokens / self.seconds

    @property
    def utilization(self) -> float:
        """Share of the time in steps [-]."""
        return self.busy_seconds / self.seconds

    @property
    def mean_batch(self) -> float:
        """Mean number of requests in a step that decodes [-]; 0 without such steps."""
        return self.decodings / self.decode_steps if self.decode_steps else 0.0

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per latency: its name, mean and percentiles."""
        return [{"time": name, **plain(getattr(self, name))} for name in LATENCIES]

    def tables(self) -> list[Table | str]:
        """Return the latencies and the figures of the engine."""
        times = {"TTFT": self.ttft, "TPOT": self.tpot, "end to end": self.latency}
        where = f"{self.model} on {self.hardware} ({layout_text(self.layout)})"
        title = f"{where}: {self.requests:,} requests, {self._source()}"
        rows = [
            ("time to the last token", seconds(self.seconds)),
            ("output tokens/s", f"{self.tokens_per_second:,.0f}"),
            ("requests/s", rate(self.requests_per_second)),
            ("utilisation", f"{100 * self.utilization:.1f} %"),
            ("largest batch, of at most", f"{self.largest_batch:,} of {self.batch:,}"),
            ("mean batch of decode steps", f"{self.mean_batch:,.1f}"),
            *self._drafted(),
            ("memory reserved at most, of", f"{gigabytes(self.largest_bytes)} of {gigabytes(self.memory.left)}"),
        ]
        engine = Table(f"The engine, {self.policy}", ("", ">value"), rows)
        lines = [*trusted(self.left_out, self.assumed), *(f"note: {line}" for line in self.notes)]
        return [Table.of(title, Percentiles, times.values()).with_names("", times), engine, *lines]

    def _drafted(self) -> list[tuple[str, str]]:
        if self.speculation is None or not self.decodings:
            return []
        tokens = (self.output_tokens - self.requests) / self.decodings
        return [(f"tokens of a request in a decode step, of {1 + self.speculation.tokens}", f"{tokens:.2f}")]

    def _source(self) -> str:
        if self.concurrency is not None:
            return f"{self.concurrency:,} at a time"
        return "arrivals of a trace" if self.load is None else f"{self.load:g} per second"
