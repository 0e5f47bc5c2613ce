"""Result of a plan: memory, speed, limiting resource, and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isclose
from typing import Any

from iomodel.common.display import Result, Table, trusted
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Deferred, nothing, plain
from iomodel.common.tabular import Tabular
from iomodel.planning.formatting import gigabytes, layout_text, money, rate, seconds
from iomodel.planning.intervals import tpot_interval, ttft_interval
from iomodel.planning.layout_search import LayoutRate
from iomodel.planning.memory_parts import memory_tables, token_rows
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.replica_figures import Figures
from iomodel.planning.sensitivity import Sensitivity
from iomodel.planning.service_memory import Fit
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.lora import Lora
from iomodel.planning.step.step import Layout, StepTime


@dataclass(frozen=True)
class Plan(Deferred, Result, Tabular):
    """A model planned on some devices; what the rates do not need is computed when it is first read.

    Attributes
    ----------
    model, hardware : str
        Served model, and device.
    count, replicas : int
        Number of devices, and of replicas.
    layout : Layout
        Parallel layout of a replica.
    prompt, output : int
        Tokens of a prompt, and of its output.
    memory : Fit
        Memory of the fullest device, and the requests that fit a replica.
    figures : Figures
        Figures of one replica with a full batch.
    prefill, decode : StepTime
        A prefill, and the decode step in the middle of the output, which verifies drafts if there are any.
    prefill_bound, decode_bound : str
        Limiting resource of each: ``weights``, ``KV cache``, ``matrix``, ``communication`` or another part.
    throughput_bound : str
        ``memory capacity`` if the batch is the largest that fits, and twice the batch would serve a tenth more; else
        the bound of the longer phase, prefill or decode.
    crossover_context : int or None
        Context from which attention takes longer than the matrix products in a decode step of the batch; None if there
        is none [tokens].
    price_per_hour : float or None
        Price of one device [1/h].
    batches : tuple of Figures
        Figures of the replica at other batches.
    sensitivities : tuple of Sensitivity
        Effect of one more unit of each resource, if requested.
    prefix_cache : PrefixCache or None
        Prefix cache of the engine, if any.
    speculation : Speculation or None
        Drafts, if any.
    lora : Lora or None
        Adapters of low rank, if any.
    page_size : int or None
        Tokens per page of the cache; None for single tokens.
    assumed, left_out : tuple of str
        Assumptions behind the figures, and effects that no figure on file times.
    engine : str or None
        Engine whose memory and steps are assumed, if any.
    clients : int or None
        Clients of the closed loop on all devices, if given.
    load : float or None
        Arrival rate that sets the number of devices, or the batch on given ones, if given [1/s].
    layouts : tuple of LayoutRate
        Layouts of the search that hold the model and keep the targets, the best first; empty for a given layout.
    better : LayoutRate or None
        A layout of the same devices with a rate more than a tenth above that of the given one, if there is one.
    ttft_uncached : float or None
        Time to the first token of a request on an idle replica, none of whose tokens are cached; None without a prefix
        cache [s].
    step_batch : int or None
        Largest batch whose decode step alone, without the prefills of others between two steps, keeps the target of a
        token; None without such a target [-].
    """

    derived = (
        "batch",
        "ttft",
        "tpot",
        "tpot_interval",
        "ttft_interval",
        "ttft_alone",
        "cycle_per_token",
        "requests_per_second",
        "tokens_per_second",
        "price_per_million_tokens",
        "price_per_million_output_tokens",
        "cost_per_million_tokens",
        "cost_per_million_output_tokens",
        "notes",
    )
    renamed = FrozenDict(
        cost_per_million_tokens=("price_per_million_tokens", ".price_per_million_tokens"),
        cost_per_million_output_tokens=("price_per_million_output_tokens", ".price_per_million_output_tokens"),
    )

    model: str
    hardware: str
    count: int
    replicas: int
    layout: Layout
    prompt: int
    output: int
    memory: Fit
    figures: Figures
    prefill: StepTime
    decode: StepTime
    prefill_bound: str
    decode_bound: str
    throughput_bound: str
    crossover_context: int | None
    price_per_hour: float | None
    batches: tuple[Figures, ...]
    sensitivities: tuple[Sensitivity, ...] = ()
    prefix_cache: PrefixCache | None = None
    speculation: Speculation | None = None
    lora: Lora | None = None
    page_size: int | None = None
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    engine: str | None = None
    clients: int | None = None
    load: float | None = None
    layouts: tuple[LayoutRate, ...] = ()
    better: LayoutRate | None = field(default_factory=nothing)
    ttft_uncached: float | None = field(default_factory=nothing)
    step_batch: int | None = field(default_factory=nothing)

    @property
    def batch(self) -> int:
        """Requests decoded together in a replica [-]."""
        return self.figures.batch

    @property
    def ttft(self) -> float:
        """Mean time to the first token in a closed loop of the clients, or of as many as the batch has requests [s]."""
        return self.figures.ttft

    @property
    def tpot(self) -> float | None:
        """Mean time per output token behind the first at the same load, (latency - TTFT) / (output - 1) [s].

        None without such tokens.
        """
        return self.figures.tpot

    @property
    def tpot_interval(self) -> tuple[float, float] | None:
        """10th to 90th percentile of the time per token among published working rows of the kind [s]."""
        return None if self.tpot is None else tpot_interval(self.prefill.model, self.batch, self.tpot)

    @property
    def ttft_interval(self) -> tuple[float, float] | None:
        """The same of the first token in a server [s]; None unless the clients are given."""
        return None if self.clients is None else ttft_interval(self.prefill.model, self.ttft)

    @property
    def ttft_alone(self) -> float:
        """Time to the first token of a request on an idle replica [s]."""
        return self.figures.ttft_alone

    @property
    def cycle_per_token(self) -> float:
        """Time in which every request of the batch ends once, over the tokens behind the first [s]."""
        return self.figures.cycle_per_token

    @property
    def requests_per_second(self) -> float:
        """Throughput of all replicas in requests [1/s]."""
        return self.replicas * self.figures.requests_per_second

    @property
    def tokens_per_second(self) -> float:
        """Throughput of all replicas in output tokens [1/s]."""
        return self.replicas * self.figures.tokens_per_second

    @property
    def price_per_million_output_tokens(self) -> float | None:
        """Price of all devices per output token, with prompts counted as free [per 10^6]."""
        return self._cost(self.tokens_per_second)

    @property
    def price_per_million_tokens(self) -> float | None:
        """Price of all devices per token of prompts and outputs [per 10^6]."""
        return self._cost(self.requests_per_second * (self.prompt + self.output))

    @property
    def joules_per_token(self) -> float | None:
        """Energy of all devices at their TDP per output token [J]; None without a TDP."""
        tdp = self.decode.hardware.power.tdp
        return None if tdp is None else self.count * tdp.value / self.tokens_per_second

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the figures of the model's file, and a layout that is better than a given one."""
        return (*_note(self), *self.prefill.model.notes)

    def _cost(self, rate: float) -> float | None:
        if self.price_per_hour is None:
            return None
        return self.price_per_hour * self.count / 3600 / rate * 1e6

    def sketch(self) -> str:
        """Draw the memory of the fullest device, and the resources that a token waits for."""
        from iomodel.common.sketch import BarRow, bars

        memory = self.memory
        parts = {"weights": memory.weights, "overhead": memory.overhead, "shared prefix": memory.shared_bytes}
        parts["caches of the batch"] = self.batch * memory.request_bytes // memory.groups
        known = {name: float(size) for name, size in parts.items() if size > 0}
        text = ", ".join(f"{name} {size / 1e9:,.1f} GB" for name, size in known.items())
        held = bars(
            [BarRow("memory of a device", known, f"of {memory.capacity / 1e9:,.0f} GB: {text}", float(memory.capacity))]
        )
        steps = {"first token (TTFT)": self.ttft}
        if self.tpot is not None:
            steps["each further token (TPOT)"] = self.tpot
        return held + bars([BarRow(name, {name: time}, f"{time * 1e3:,.1f} ms") for name, time in steps.items()])

    def records(self) -> Any:
        """Return a mapping per batch: times and rates of one replica."""
        return plain(self.batches)

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        return _tables(self)


def _note(plan: Plan) -> tuple[str, ...]:
    other = plan.better
    if other is None:
        return ()
    gain = other.tokens_per_second / plan.tokens_per_second - 1
    where = f"{other.replicas:,} x {layout_text(other.layout)}" if other.replicas > 1 else layout_text(other.layout)
    return (f"{where} has {gain:.0%} more tokens/s on the same devices".replace("%", " %"),)


Row = tuple[str, str]
BATCH = ("batch", "tpot", "step", "tokens_per_second", "requests_per_second")
"""Columns of the batches, in their order."""


def _tables(plan: Plan) -> list[Table | str]:
    """Build the tables of a plan: the plan, its batches, and its sensitivities."""
    drawn: list[Table | str] = [Table(_title(plan), ("", ">value"), [*_memory(plan), *_times(plan), *_rates(plan)])]
    if len(plan.batches) > 1:
        drawn.append(Table.of("One replica at other batches", Figures, plan.batches, names=BATCH))
    if len(plan.layouts) > 1:
        drawn.append(Table.of("Layouts on these devices", LayoutRate, plan.layouts))
    if plan.sensitivities:
        table = Table.of("Effect of more resources", Sensitivity, plan.sensitivities)
        drawn.append(table.with_names("one more per device", [effect.title for effect in plan.sensitivities]))
    drawn += memory_tables(plan.memory)
    return [*drawn, *trusted(plan.left_out, plan.assumed), *(f"note: {note}" for note in plan.notes)]


def _title(plan: Plan) -> str:
    layout = layout_text(plan.layout)
    replicas = layout if plan.replicas == 1 else f"{plan.replicas} replicas of {layout}"
    return f"{plan.model} on {plan.count} x {plan.hardware} ({replicas}): {plan.prompt:,} + {plan.output:,} tokens"


def _memory(plan: Plan) -> list[Row]:
    fit = plan.memory
    return [
        ("memory per device", gigabytes(fit.capacity)),
        ("  usable", gigabytes(fit.usable)),
        (_weights(plan), gigabytes(fit.weights)),
        ("  overhead", gigabytes(fit.overhead)),
        *_shared(plan),
        ("  left for the KV cache", gigabytes(fit.left)),
        (_token(fit.cache_ranks), f"{fit.token_bytes // fit.cache_ranks:,} B"),
        ("KV cache per request, on one device", f"{fit.request_bytes:,} B"),
        *token_rows(fit, plan.prompt + plan.output),
        ("requests that fit a replica", f"{fit.fits:,}"),
        *_most(plan),
    ]


def _most(plan: Plan) -> list[Row]:
    """State the requests of all replicas, and the layout of these devices that holds more; none of a given batch."""
    held = plan.replicas * plan.memory.fits
    if plan.batch != plan.memory.fits or plan.count == 1:
        return []
    same = (other for other in plan.layouts if other.devices == plan.count)
    most = max(same, key=lambda other: other.replicas * other.batch, default=None)
    rows = [("requests that fit in all", f"{held:,}")] if plan.replicas > 1 else []
    if most is not None and (more := most.replicas * most.batch) > held:
        rows.append((f"  the most on these devices, in {layout_text(most.layout)}", f"{more:,}"))
    return rows


def _token(ranks: int) -> str:
    return "KV cache per token, on one device" + (f", as {ranks} divide the tokens" if ranks > 1 else "")


def _shared(plan: Plan) -> list[Row]:
    cache = plan.prefix_cache
    if cache is None:
        return []
    device, host, disk = cache.tiers(plan.prompt, plan.page_size)
    cached = f"{device:,}" if not host + disk else f"{device:,} + {host:,} on the host + {disk:,} on disk"
    return [(f"  shared prefix; prompts find {cached} tokens cached", gigabytes(plan.memory.shared_bytes))]


def _weights(plan: Plan) -> str:
    lora = plan.lora
    if lora is None:
        return "  weights"
    return f"  weights, with adapters of rank {lora.rank:,}: {lora.adapters:,}"


def _drafts(plan: Plan) -> list[Row]:
    drafts = plan.speculation
    if drafts is None:
        return []
    return [(f"tokens of a step, of 1 and {drafts.tokens} drafts", f"{drafts.tokens_per_step:.3g}")]


def _interval(ends: tuple[float, float] | None) -> list[Row]:
    return [] if ends is None else [("  80 % of published rows", " to ".join(map(seconds, ends)))]


def _clients(plan: Plan) -> str:
    count = plan.batch * plan.replicas if plan.clients is None else plan.clients
    if plan.load is not None and isclose(plan.load, plan.requests_per_second):
        return f"{plan.load:g} requests/s, {count:,} in flight"
    return f"{count:,} client{'s' if count > 1 else ''} in a closed loop"


def _times(plan: Plan) -> list[Row]:
    reached = plan.figures
    per_token = "decode step" if plan.speculation is None else "decode step per token"
    together = -(-reached.batch // plan.layout.pipeline_parallel)  # requests of one pass of a stage
    context = _tokens(plan.crossover_context)
    return [
        ("batch per replica", f"{reached.batch:,}"),
        (f"TTFT of one request alone, bound by {plan.prefill_bound}", seconds(reached.ttft_alone)),
        *([] if plan.ttft_uncached is None else [("  of one without cached tokens", seconds(plan.ttft_uncached))]),
        (f"TTFT with {_clients(plan)}", seconds(reached.ttft)),
        *_interval(plan.ttft_interval),
        *_drafts(plan),
        (f"{per_token}, bound by {plan.decode_bound}", seconds(reached.step)),
        *_shares(plan.decode),
        *([] if plan.step_batch is None else [("  within the target alone up to a batch of", f"{plan.step_batch:,}")]),
        (f"TPOT with {_clients(plan)}", "-" if reached.tpot is None else seconds(reached.tpot)),
        *_interval(plan.tpot_interval),
        (f"attention overtakes the products in time, decode step at batch {together:,}", context),
        ("attention overtakes the products in FLOPs, prefill", _tokens(plan.prefill.model.attention_overtakes)),
    ]


def _shares(step: StepTime) -> list[Row]:
    """Return the share of communication in a step, of ranks that share it."""
    share = step.communication_seconds / step.seconds
    return [("  of it communication", f"{share:.1%}".replace("%", " %"))] if share else []


def _tokens(context: int | None) -> str:
    return "never" if context is None else f"{context:,} tokens"


def _rates(plan: Plan) -> list[Row]:
    rows = [
        ("output tokens/s per replica", f"{plan.figures.tokens_per_second:,.0f}"),
        (f"output tokens/s in total, bound by {plan.throughput_bound}", f"{plan.tokens_per_second:,.0f}"),
        ("requests/s in total", rate(plan.requests_per_second)),
    ]
    both, output = plan.price_per_million_tokens, plan.price_per_million_output_tokens
    if both is not None and output is not None:
        rows.append(("price per 10^6 tokens, prompts and outputs", money(both)))
        rows.append(("price per 10^6 output tokens, prompts free", money(output)))
    if plan.joules_per_token is not None:
        rows.append(("energy per output token, at the TDP", f"{plan.joules_per_token:,.3g} J"))
    return rows
