"""The answer of an estimate: seconds, what binds, what crosses the bus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.cost import Cost
from iomodel.hardware import Hardware
from iomodel.parameters import Parameters
from iomodel.rates import Rates
from iomodel.show import Shown, table
from iomodel.timing import KernelTime
from iomodel.workload import Attention, VarlenAttention


@dataclass(frozen=True)
class Estimate(Shown):
    """How long a call takes, and why.

    Attributes
    ----------
    seconds : float
        Time of the call [s].
    bound : str
        The entry of `breakdown` that takes longest.
    breakdown : mapping of str to float
        What each resource would need by itself, and what trips, tails and launches add [s]. They overlap, so they do
        not add up to `seconds`.
    dram_bytes : tuple of int
        The least and the most DRAM traffic that the L2 may leave [B].
    lock_step_bytes : int or None
        What it leaves if all blocks of a wave step together [B]; None under a mask, where they do not, and where the
        device's file says nothing of its L2.
    compulsory_bytes, requested_bytes : int
        Each input and output once; what the thread blocks ask for [B].
    flops_per_second, mfu : float
        FLOPs of visible pairs over the time [FLOP/s], and their share of the datasheet's peak [-].
    intensity, ridge : float
        FLOPs of visible pairs over the most DRAM traffic; the peak over the memory bandwidth [FLOP/B].
    kernels : tuple of KernelTime
        The same for each kernel.
    left_out : tuple of str
        What the device's file has no figure for, and the time no part of.
    """

    algorithm: str
    workload: Attention | VarlenAttention
    hardware: Hardware
    tiles: Mapping[str, int]
    cost: Cost
    seconds: float
    bound: str
    breakdown: Mapping[str, float]
    dram_bytes: tuple[int, int]
    lock_step_bytes: int | None
    compulsory_bytes: int
    requested_bytes: int
    kernels: tuple[KernelTime, ...]
    rates: Rates
    parameters: Parameters
    left_out: tuple[str, ...]

    @property
    def flops_per_second(self) -> float:
        """FLOPs of the visible pairs over the time [FLOP/s]."""
        return self.cost.useful_flops / self.seconds

    @property
    def mfu(self) -> float:
        """Share of the matrix peak that the visible pairs make use of [-]."""
        return self.flops_per_second / self.rates.peak

    @property
    def intensity(self) -> float:
        """Arithmetic intensity against the most DRAM traffic [FLOP/B]."""
        return self.cost.useful_flops / self.dram_bytes[1]

    @property
    def ridge(self) -> float:
        """Intensity from which the matrix units bind rather than the memory [FLOP/B]."""
        return self.rates.peak / self.rates.hbm_peak

    @property
    def distance_to_ridge(self) -> float:
        """Intensity over the ridge point: below 1 the memory would bind a kernel that loses nothing [-]."""
        return self.intensity / self.ridge

    @property
    def floor(self) -> float:
        """What no kernel can beat: compulsory traffic at full bandwidth, visible pairs at the matrix peak [s]."""
        return max(self.compulsory_bytes / self.rates.hbm_peak, self.cost.useful_flops / self.rates.peak)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "workload": self.workload.to_dict(),
            "hardware": self.hardware.id or self.hardware.name,
            "tiles": dict(self.tiles),
            "seconds": self.seconds,
            "bound": self.bound,
            "breakdown": dict(self.breakdown),
            "dram_bytes": list(self.dram_bytes),
            "lock_step_bytes": self.lock_step_bytes,
            "compulsory_bytes": self.compulsory_bytes,
            "requested_bytes": self.requested_bytes,
            "flops_per_second": self.flops_per_second,
            "mfu": self.mfu,
            "intensity": self.intensity,
            "ridge": self.ridge,
            "distance_to_ridge": self.distance_to_ridge,
            "floor": self.floor,
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "parameters": self.parameters.to_dict(),
            "left_out": list(self.left_out),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        tiles = ", ".join(f"{name} = {size}" for name, size in self.tiles.items()) or "no tiles"
        low, high = self.dram_bytes
        rows = [
            ("time", f"{self.seconds * 1e6:,.1f}", "us"),
            ("bound by", self.bound, ""),
            *((f"  {name}", f"{value * 1e6:,.1f}", "us") for name, value in self.breakdown.items()),
            ("achieved (visible pairs)", f"{self.flops_per_second / 1e12:,.1f}", "TFLOP/s"),
            ("MFU", f"{100 * self.mfu:,.1f}", "%"),
            ("compulsory traffic", f"{self.compulsory_bytes:,}", "B"),
            ("DRAM traffic, at least", f"{low:,}", "B"),
            ("DRAM traffic, at most", f"{high:,}", "B"),
            *(
                []
                if self.lock_step_bytes is None
                else [("DRAM traffic in lock step", f"{self.lock_step_bytes:,}", "B")]
            ),
            ("requests (tiled count)", f"{self.requested_bytes:,}", "B"),
            ("intensity", f"{self.intensity:,.1f}", "FLOP/B"),
            ("ridge point", f"{self.ridge:,.1f}", "FLOP/B"),
            *((f"left out: {text}", "", "") for text in self.left_out),
        ]
        title = f"{self.algorithm} on {self.hardware.name}: {tiles}"
        return table(title, ("", ">value", "unit"), rows)
