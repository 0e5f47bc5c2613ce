"""Result of a step through a model: seconds, bytes and FLOPs by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from iomodel.common.display import Result, Table, assumed, microseconds, per
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, cells, column, columns_of
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.models.spec import ModelSpec
from iomodel.planning.step.layout import Layout
from iomodel.timing.span import Span

Kind = Literal["attention", "linear", "other", "communication"]
OUTPUT = ("norm of the last layer", "output", "gather logits")
"""Parts behind the last layer, which compute logits."""


@dataclass(frozen=True)
class StepPart(Record):
    """One kernel or collective of a step, with its number of repetitions.

    Attributes
    ----------
    name, kind : str
        Name; and "attention", "linear", "other" or "communication".
    times : int
        Number of repetitions over all layers [-].
    seconds : float
        Time of all repetitions [s].
    hbm_bytes, requested_bytes : int
        DRAM traffic behind the time; bytes requested by the thread blocks, counted exactly [B].
    flops : int
        Useful FLOPs of matrix products, recurrences and indexers [FLOP].
    limited_by : str
        Limiting resource.
    tiles : tuple of (name, size)
        Tiles of the kernel, if any.
    sent_bytes : int
        What a rank sends to others in a collective; 0 for messages that attention hides [B].
    """

    derived = ("bound",)
    renamed = FrozenDict(bound=("limited_by", ".limited_by"))

    name: str = field(metadata=column("part"))
    kind: Kind = field(metadata=column("kind"))
    times: int = field(metadata=column(">times"))
    seconds: float = field(metadata=column(">time [us]", microseconds))
    hbm_bytes: int = field(metadata=column(">HBM [MB]", per(1e6, 1)))
    requested_bytes: int
    flops: int = field(metadata=column(">GFLOP", per(1e9, 1)))
    limited_by: str = field(metadata=column("limited by"))
    tiles: tuple[tuple[str, int], ...] = ()
    sent_bytes: int = field(default=0, metadata=column(">sent [MB]", per(1e6, 1)))


def part_of(name: str, kind: Kind, times: int, span: Span) -> StepPart:
    """Build the part for a span repeated `times` times."""
    bound = max(span.breakdown, key=lambda entry: entry[1])[0] if span.breakdown else "launch"
    return StepPart(
        name,
        kind,
        times,
        times * span.seconds,
        times * span.hbm_bytes,
        times * span.requested_bytes,
        times * span.flops,
        bound,
        span.tiles,
        times * span.sent_bytes,
    )


@dataclass(frozen=True)
class StepTime(Result, Tabular):
    """One forward step through all layers of a model, on each of the ranks that share it.

    Bytes and FLOPs are those of one rank of each pipeline stage, summed over the stages.

    Attributes
    ----------
    batch, q_len, kv_len : int
        Sequences on all ranks [-]; new tokens per sequence [tokens]; keys per sequence [rows].
    prompt_tokens : int
        Tokens of a prompt that are processed beside them [tokens].
    seconds : float
        Latency of a step, from the first layer to the last [s].
    stage_seconds : float
        Time of the longest pipeline stage, the interval between steps of a full pipeline [s].
    parts : tuple of StepPart
        Parts of the step; their times sum to `seconds`.
    experts_hit : float or None
        Experts of a layer that the tokens of the step visit, as many as uniform routing leads to expect where none is
        given [-]; None without experts.
    assumed : tuple of str
        Why a layout of several devices was taken, where none was given.
    """

    derived = (
        "attention_seconds",
        "linear_seconds",
        "other_seconds",
        "communication_seconds",
        "hbm_bytes",
        "requested_bytes",
        "flops",
        "limited_by",
        "tokens_per_second",
        "bound",
    )
    renamed = FrozenDict(bound=("limited_by", ".limited_by"))

    model: ModelSpec
    hardware: Hardware
    layout: Layout
    batch: int
    q_len: int
    kv_len: int
    dtype: str
    linear_dtype: str
    weight_dtype: str
    kv_dtype: str
    seconds: float
    stage_seconds: float
    parts: tuple[StepPart, ...]
    prompt_tokens: int = 0
    experts_hit: float | None = None
    assumed: tuple[str, ...] = ()

    def _of(self, kind: Kind) -> float:
        return sum(part.seconds for part in self.parts if part.kind == kind)

    @property
    def attention_seconds(self) -> float:
        """Time of attention without its projections [s]."""
        return self._of("attention")

    @property
    def linear_seconds(self) -> float:
        """Time of matrix products with weights [s]."""
        return self._of("linear")

    @property
    def other_seconds(self) -> float:
        """Time of norms, rotary embedding, cache, activations, embeddings [s]."""
        return self._of("other")

    @property
    def communication_seconds(self) -> float:
        """Time of collectives between ranks, and of transfers between stages [s]."""
        return self._of("communication")

    @property
    def output_seconds(self) -> float:
        """Time of the output layer and its norm, and of the messages with its logits [s]."""
        return sum(part.seconds for part in self.parts if part.name in OUTPUT)

    @property
    def kernels(self) -> int:
        """Number of kernels and collectives [-]."""
        return sum(part.times for part in self.parts)

    @property
    def hbm_bytes(self) -> int:
        """DRAM traffic behind the time [B]."""
        return sum(part.hbm_bytes for part in self.parts)

    @property
    def requested_bytes(self) -> int:
        """Bytes requested by the thread blocks, counted exactly at their tiles [B]."""
        return sum(part.requested_bytes for part in self.parts)

    @property
    def flops(self) -> int:
        """Useful FLOPs of matrix products [FLOP]."""
        return sum(part.flops for part in self.parts)

    @property
    def sent_bytes(self) -> int:
        """Bytes that one rank of each stage sends to others [B]."""
        return sum(part.sent_bytes for part in self.parts)

    @property
    def mfu(self) -> float:
        """FLOPs of a rank over the time of a stage, as a share of the peak of the products [-]."""
        peak = rates(self.hardware, self.linear_dtype).peak
        return self.flops / self.layout.pipeline_parallel / self.stage_seconds / peak

    @property
    def bounds(self) -> dict[str, float]:
        """Time of the parts limited by each resource, the longest first [s]."""
        seconds_by_bound: dict[str, float] = {}
        for part in self.parts:
            seconds_by_bound[part.limited_by] = seconds_by_bound.get(part.limited_by, 0.0) + part.seconds
        return dict(sorted(seconds_by_bound.items(), key=lambda entry: -entry[1]))

    @property
    def limited_by(self) -> str:
        """Resource that limits most of the time."""
        return next(iter(self.bounds))

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all ranks per second with a full pipeline [tokens/s]."""
        return (self.batch * self.q_len + self.prompt_tokens) / self.stage_seconds

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per part of the step."""
        return [{n: v for n, v in part.to_dict().items() if n != "tiles"} for part in self.parts]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        title = (
            f"{self.model.title} on {self.layout.devices} x {self.hardware.name}: {self.batch} sequences, "
            f"{self.q_len} new tokens, {self.kv_len} keys"
        )
        title += f"; {self.prompt_tokens:,} tokens of a prompt" if self.prompt_tokens else ""
        columns = [each for each in columns_of(StepPart) if self.sent_bytes or each[0] != "sent_bytes"]
        table = Table.of(title, StepPart, self.parts, names=[name for name, _ in columns])
        drawn: list[Table | str] = [table.with_rows([("all", "", "", *cells(self, columns[3:]))])]
        drawn.append(f"MFU: {100 * self.mfu:.2g} % of the {self.linear_dtype} peak")
        if self.experts_hit is not None:
            drawn.append(f"experts of a layer that its tokens visit: {self.experts_hit:,.1f}")
        return [*drawn, *assumed(self.assumed)]


STREAMS = {"linear": "weights", "attention": "KV cache", "other": "activations"}
"""Data streamed by an HBM-bound part, by kind."""
NAMES = {"l2": "L2", "llc": "last-level cache", "exp": "exponentials", "fp32": "fp32 work"}


def bound_of(step: StepTime) -> str:
    """Name the cause with the largest share of a step's time.

    >>> from iomodel.planning.step.step import step
    >>> bound_of(step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=1024))
    'weights'
    """
    causes: dict[str, float] = {}
    for part in step.parts:
        causes[cause_of(part)] = causes.get(cause_of(part), 0.0) + part.seconds
    return max(causes, key=causes.__getitem__)


def cause_of(part: StepPart) -> str:
    """Name the cause that limits one part."""
    if part.kind == "communication":
        return "communication"
    if part.limited_by == "hbm":
        return STREAMS[part.kind]
    return NAMES.get(part.limited_by, part.limited_by)
