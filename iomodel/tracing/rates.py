"""How long a byte and a FLOP take on a device, at its peaks: clocks, or seconds where no clock is known."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.hardware import Hardware


@dataclass(frozen=True)
class Rates:
    """A device as a trace needs it; without one there are no times.

    Attributes
    ----------
    device : str
        What the device is called; empty without one.
    unit : {"clk", "s"}
        Of all times.
    bytes_per, flops_per : float or None
        Bytes through HBM and FLOPs in a unit of time, of the whole device [B/clk], [FLOP/clk], or [B/s], [FLOP/s].
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
        """Time of a byte."""
        return None if self.bytes_per is None else 1 / self.bytes_per

    @property
    def of_flop(self) -> float | None:
        """Time of a FLOP."""
        return None if self.flops_per is None else 1 / self.flops_per

    def hbm_time(self, hbm_bytes: int) -> float | None:
        """What a traffic takes at the bandwidth."""
        return None if self.bytes_per is None else hbm_bytes / self.bytes_per

    def compute_time(self, flops: int) -> float | None:
        """What the FLOPs take at the peak."""
        return None if self.flops_per is None else flops / self.flops_per


def rates_of(device: Hardware | None, dtype: str) -> Rates:
    """The rates of a device for products of this dtype."""
    if device is None:
        return Rates()
    bandwidth, peak = device.memory.hbm.bandwidth, getattr(device.compute.peak, dtype)
    clock = device.compute.clock.boost
    ticks = 1 if clock is None else clock.value
    return Rates(
        device.name,
        "s" if clock is None else "clk",
        None if bandwidth is None else bandwidth.value / ticks,
        None if peak is None else peak.value / ticks,
        device.sram_per_block,
    )
