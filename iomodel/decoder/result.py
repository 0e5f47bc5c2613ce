"""The answer of a step through a model: seconds, bytes and FLOPs by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from iomodel.decoder.layout import Layout
from iomodel.hardware import Hardware
from iomodel.linear.span import Span
from iomodel.show import Shown, table

if TYPE_CHECKING:
    from iomodel.model import ModelSpec

Kind = Literal["attention", "linear", "other", "communication"]


@dataclass(frozen=True)
class StepPart:
    """One kernel or collective of a step, as often as it runs.

    Attributes
    ----------
    name, kind : str
        What it is; "attention", "linear", "other" or "communication".
    times : int
        How often it runs, over all layers [-].
    seconds : float
        All of them together [s].
    hbm_bytes, requested_bytes : int
        DRAM traffic that the time reckons with; what the thread blocks ask for, counted exactly [B].
    flops : int
        Useful FLOPs of matrix products [FLOP].
    bound : str
        The resource that it needs longest.
    tiles : tuple of (name, size)
        The tiles of its kernel, where it has any.
    """

    name: str
    kind: Kind
    times: int
    seconds: float
    hbm_bytes: int
    requested_bytes: int
    flops: int
    bound: str
    tiles: tuple[tuple[str, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {**self.__dict__, "tiles": dict(self.tiles)}


def part_of(name: str, kind: Kind, times: int, span: Span) -> StepPart:
    """A span that runs so often."""
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
    )


@dataclass(frozen=True)
class StepTime(Shown):
    """One forward step through all layers of a model, on each of the ranks that share it.

    Bytes and FLOPs are those of one rank of each pipeline stage, added up over the stages.

    Attributes
    ----------
    batch, q_len, kv_len : int
        Sequences of all ranks [-]; new tokens of each [tokens]; keys of each in all [rows].
    seconds : float
        From the first layer to the last, the latency of a step [s].
    stage_seconds : float
        The longest pipeline stage: a step leaves the pipeline so often if it is kept full [s].
    parts : tuple of StepPart
        What it is made of; they add up to `seconds`.
    """

    model: ModelSpec
    hardware: Hardware
    layout: Layout
    batch: int
    q_len: int
    kv_len: int
    dtype: str
    weight_dtype: str
    kv_dtype: str
    seconds: float
    stage_seconds: float
    parts: tuple[StepPart, ...]

    def _of(self, kind: Kind) -> float:
        return sum(part.seconds for part in self.parts if part.kind == kind)

    @property
    def attention_seconds(self) -> float:
        """Attention itself, without its projections [s]."""
        return self._of("attention")

    @property
    def linear_seconds(self) -> float:
        """Matrix products with weights [s]."""
        return self._of("linear")

    @property
    def other_seconds(self) -> float:
        """Norms, rotation, cache, activations, embeddings [s]."""
        return self._of("other")

    @property
    def communication_seconds(self) -> float:
        """Collectives between ranks, and from stage to stage [s]."""
        return self._of("communication")

    @property
    def hbm_bytes(self) -> int:
        """DRAM traffic that the time reckons with [B]."""
        return sum(part.hbm_bytes for part in self.parts)

    @property
    def requested_bytes(self) -> int:
        """What the thread blocks ask for, counted exactly at their tiles [B]."""
        return sum(part.requested_bytes for part in self.parts)

    @property
    def flops(self) -> int:
        """Useful FLOPs of matrix products [FLOP]."""
        return sum(part.flops for part in self.parts)

    @property
    def bounds(self) -> dict[str, float]:
        """Seconds of the parts that each resource binds, the longest first [s]."""
        found: dict[str, float] = {}
        for part in self.parts:
            found[part.bound] = found.get(part.bound, 0.0) + part.seconds
        return dict(sorted(found.items(), key=lambda entry: -entry[1]))

    @property
    def bound(self) -> str:
        """The resource that binds for most of the time."""
        return next(iter(self.bounds))

    @property
    def tokens_per_second(self) -> float:
        """New tokens of all ranks, if the pipeline is kept full [tokens/s]."""
        return self.batch * self.q_len / self.stage_seconds

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        names = ("batch", "q_len", "kv_len", "dtype", "weight_dtype", "kv_dtype", "seconds", "stage_seconds")
        sums = ("attention", "linear", "other", "communication")
        return {
            "model": self.model.name or self.model.title,
            "hardware": self.hardware.id or self.hardware.name,
            "layout": self.layout.to_dict(),
            **{name: getattr(self, name) for name in names},
            **{f"{name}_seconds": getattr(self, f"{name}_seconds") for name in sums},
            "hbm_bytes": self.hbm_bytes,
            "requested_bytes": self.requested_bytes,
            "flops": self.flops,
            "bound": self.bound,
            "tokens_per_second": self.tokens_per_second,
            "parts": [part.to_dict() for part in self.parts],
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        rows: list[tuple[str, ...]] = [
            (part.name, part.kind, f"{part.times}", *_numbers(part.seconds, part.hbm_bytes, part.flops), part.bound)
            for part in self.parts
        ]
        rows.append(("all", "", "", *_numbers(self.seconds, self.hbm_bytes, self.flops), self.bound))
        title = (
            f"{self.model.title} on {self.layout.devices} x {self.hardware.name}: {self.batch} sequences, "
            f"{self.q_len} new tokens, {self.kv_len} keys"
        )
        return table(title, ("part", "kind", ">times", ">time [us]", ">HBM [MB]", ">GFLOP", "bound"), rows)


def _numbers(seconds: float, size: int, flops: int) -> tuple[str, str, str]:
    return f"{seconds * 1e6:,.1f}", f"{size / 1e6:,.1f}", f"{flops / 1e9:,.1f}"
