"""Protocols of the estimates read by pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.plots import words
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention


class Estimated(Protocol):
    """An estimate of the time of an algorithm on a device, as made by `iomodel.estimate`."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""

    @property
    def workload(self) -> Attention | VarlenAttention:
        """Attention call."""

    @property
    def hardware(self) -> Hardware:
        """Device."""

    @property
    def tiles(self) -> Mapping[str, int]:
        """Tiles [rows]."""

    @property
    def seconds(self) -> float:
        """Total time [s]."""

    @property
    def bound(self) -> str:
        """Limiting resource."""

    @property
    def breakdown(self) -> Mapping[str, float]:
        """Time of each resource [s]."""

    @property
    def dram_bytes(self) -> tuple[float, float]:
        """Least and most traffic that reaches HBM [B]."""

    @property
    def flops_per_second(self) -> float:
        """Useful FLOPs over the total time [FLOP/s]."""

    @property
    def intensity(self) -> float:
        """Useful FLOPs over the HBM traffic behind the time [FLOP/B]."""

    @property
    def kernels(self) -> Sequence[TimedKernel]:
        """Kernels of the call."""


class TimedKernel(Protocol):
    """One kernel of an estimate."""

    @property
    def streamed_bytes(self) -> int:
        """HBM traffic behind the time [B]."""

    @property
    def seconds(self) -> float:
        """Time of the kernel [s]."""

    @property
    def breakdown(self) -> Mapping[str, float]:
        """Time of each resource, and of steps, tail and launch [s]."""


_NEEDED = ("algorithm", "workload", "hardware", "tiles", "seconds", "bound", "breakdown", "dram_bytes", "kernels")


def is_estimate(value: Any) -> bool:
    """Check that a value has the attributes of an estimate used by pictures."""
    return all(hasattr(value, name) for name in _NEEDED)


def estimates(value: Any) -> list[Estimated]:
    """Convert one or several estimates to a list; raise InputError for anything else, or for an empty list."""
    drawn = [value] if is_estimate(value) else list(value) if isinstance(value, list | tuple) else []
    wrong = next((candidate for candidate in drawn if not is_estimate(candidate)), None if drawn else value)
    if wrong is not None or not drawn:
        raise InputError(f"estimates: {shown(wrong)} given; allowed: an iomodel.estimate(...), or a list of them")
    return drawn


def name_of(estimate: Estimated) -> str:
    """Label an estimate by the algorithm and its tiles."""
    return " ".join(filter(None, [estimate.algorithm, words.tiles(estimate.tiles)]))
