"""What pictures read of an estimate of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.plots import words
from iomodel.workload import Attention, VarlenAttention


class Estimated(Protocol):
    """An estimate of the time that an algorithm takes on a device, as `iomodel.estimate` makes it."""

    @property
    def algorithm(self) -> str:
        """The algorithm's name."""

    @property
    def workload(self) -> Attention | VarlenAttention:
        """The attention call."""

    @property
    def hardware(self) -> Hardware:
        """The device."""

    @property
    def tiles(self) -> Mapping[str, int]:
        """The tiles [rows]."""

    @property
    def seconds(self) -> float:
        """The whole time [s]."""

    @property
    def bound(self) -> str:
        """The resource that binds."""

    @property
    def breakdown(self) -> Mapping[str, float]:
        """The time of each resource [s]."""

    @property
    def dram_bytes(self) -> tuple[float, float]:
        """The least and the most traffic that reaches HBM [B]."""

    @property
    def flops_per_second(self) -> float:
        """Useful FLOPs over the whole time [FLOP/s]."""

    @property
    def intensity(self) -> float:
        """Useful FLOPs over the most traffic [FLOP/B]."""

    @property
    def kernels(self) -> Sequence[Timed]:
        """The kernels of the call."""


class Timed(Protocol):
    """A kernel of an estimate."""

    @property
    def streamed_bytes(self) -> int:
        """HBM traffic that its time reckons with [B]."""


_NEEDED = ("algorithm", "workload", "hardware", "tiles", "seconds", "bound", "breakdown", "dram_bytes", "kernels")


def is_estimate(value: Any) -> bool:
    """Whether a value has what pictures read of an estimate."""
    return all(hasattr(value, name) for name in _NEEDED)


def estimates(value: Any) -> list[Estimated]:
    """One estimate or several, as a list; InputError for anything else, or for none."""
    found = [value] if is_estimate(value) else list(value) if isinstance(value, list | tuple) else []
    wrong = next((one for one in found if not is_estimate(one)), None if found else value)
    if wrong is not None or not found:
        raise InputError(f"estimates: {shown(wrong)} given; allowed: an iomodel.estimate(...), or a list of such")
    return found


def name_of(estimate: Estimated) -> str:
    """An estimate in a legend: the algorithm and its tiles."""
    return " ".join(filter(None, [estimate.algorithm, words.tiles(estimate.tiles)]))
