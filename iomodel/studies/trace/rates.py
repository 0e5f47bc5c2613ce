"""Time per byte and per FLOP on a device at its peaks: in clocks, or in seconds if the clock is unknown."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.devices.device import Hardware


@dataclass(frozen=True)
class TraceRates:
    """The rates of a device for a trace; without a device there are no times.

    Attributes
    ----------
    device : str
        The name of the device; empty without a device.
    unit : {"clk", "s"}
        The unit of all times.
    bytes_per, flops_per : float or None
        HBM bytes and FLOPs of the whole device per unit of time [B/clk], [FLOP/clk], or [B/s], [FLOP/s].
    sram : int or None
        On-chip memory that one thread block may use [B].
    """

    device: str = ""
    unit: str = "clk"
    bytes_per: float | None = None
    flops_per: float | None = None
    sram: int | None = None

    @property
    def of_byte(self) -> float | None:
        """The time of a byte."""
        return None if self.bytes_per is None else 1 / self.bytes_per

    @property
    def of_flop(self) -> float | None:
        """The time of a FLOP."""
        return None if self.flops_per is None else 1 / self.flops_per

    def hbm_time(self, hbm_bytes: int) -> float | None:
        """Compute the time of a traffic at the bandwidth."""
        return None if self.bytes_per is None else hbm_bytes / self.bytes_per

    def compute_time(self, flops: int) -> float | None:
        """Compute the time of FLOPs at the peak."""
        return None if self.flops_per is None else flops / self.flops_per


def rates_of(device: Hardware | None, dtype: str) -> TraceRates:
    """Return the rates of a device for products of this dtype."""
    if device is None:
        return TraceRates()
    bandwidth, peak = device.memory.hbm.bandwidth, getattr(device.compute.peak, dtype)
    clock = device.compute.clock.boost
    ticks = 1 if clock is None else clock.value
    return TraceRates(
        device.name,
        "s" if clock is None else "clk",
        None if bandwidth is None else bandwidth.value / ticks,
        None if peak is None else peak.value / ticks,
        device.sram_per_block,
    )
