"""How fast a device is at each resource: what was measured where it was, else what the datasheet says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.errors import SpecError
from iomodel.hardware import Hardware
from iomodel.per_device import per_device
from iomodel.quantity import Quantity


@dataclass(frozen=True)
class Rates:
    """Rates of the whole chip; a figure that nobody has is None.

    Attributes
    ----------
    matrix, warp_matrix : float
        Matrix units by the fastest instruction, and by that of one warp [FLOP/s].
    peak : float
        The datasheet's matrix peak of the dtype, a floor of time together with `hbm_peak` [FLOP/s].
    hbm, hbm_peak, l2, shared : float or None
        Bandwidths [B/s].
    exp, fp32 : float or None
        Special-function results, fp32 operations [1/s].
    units : int or None
        SMs [-].
    clock : float or None
        Clock of an SM: of the matrix units, of the chip, or that at which the matrix peak is counted [Hz].
    l2_capacity : int or None
        What the L2 holds [B].
    launch : float or None
        From one kernel to the next [s].
    grown : float
        The SMs there are over those of which the printed peaks are [-]; what one SM does stays the same.
    """

    dtype: str
    matrix: float
    warp_matrix: float
    peak: float
    hbm: float
    hbm_peak: float
    l2: float | None
    shared: float | None
    exp: float | None
    fp32: float | None
    units: int | None
    clock: float | None
    l2_capacity: int | None
    launch: float | None
    grown: float = 1.0

    @property
    def left_out(self) -> tuple[str, ...]:
        """What cannot be timed for want of a figure."""
        missing = {
            "l2": (self.l2, "the time of L2 requests (no L2 bandwidth on file)"),
            "l2 capacity": (self.l2_capacity, "reuse in the L2 (no L2 capacity on file)"),
            "shared": (self.shared, "shared memory (no bandwidth or clock on file)"),
            "exp": (self.exp, "exponentials (no rate on file)"),
            "fp32": (self.fp32, "fp32 work (no fp32 peak on file)"),
            "units": (self.units, "waves and tails (no number of SMs on file)"),
            "clock": (self.clock, "the cost of a trip and of a block (no clock on file)"),
        }
        return tuple(text for value, text in missing.values() if value is None)


@per_device
def rates(device: Hardware, dtype: str) -> Rates:
    """The rates of a device for a dtype.

    Raises
    ------
    SpecError
        The device has no matrix peak of this dtype, or no memory bandwidth.

    >>> from iomodel.hardware import hardware
    >>> rates(hardware("h100-sxm5"), "bf16").exp  # 132 SMs, 16 a clock, 1.83 GHz
    3864960000000.0
    """
    have = {path: float(q.value) for path, q in device.quantities.items() if isinstance(q, Quantity)}
    label = device.id or device.name

    def needed(path: str, text: str) -> float:
        if path not in have:
            raise SpecError(f"{path}: {label} lacks it; {text}")
        return have[path]

    def product(*paths: str) -> float | None:
        found = [have.get(path) for path in paths]
        result = 1.0
        for value in found:
            if value is None:
                return None
            result *= value
        return result

    known = ", ".join(path.rsplit(".", 1)[1] for path in have if path.startswith("compute.peak."))
    peak = needed(f"compute.peak.{dtype}", f"a time needs the matrix peak of the dtype; on file: {known or 'none'}")
    bandwidth = needed("memory.hbm.bandwidth", "a time needs the bandwidth of the memory")
    clock = have.get("compute.clock.tensor", have.get("compute.clock.boost"))
    if clock is None and all(path in have for path in (*_PEAK, "compute.units")):
        clock = have[_PEAK[0]] / have[_PEAK[1]] / have["compute.units"]  # at which the peak is counted
    if clock is not None:
        have["clock"] = clock
    matrix = min(peak, have.get(f"measured.gemm_{dtype}", peak))
    full, warp = (have.get(f"compute.{name}") for name in _INSTRUCTIONS)
    share = 1.0 if full is None or warp is None else min(1.0, warp / full)
    seen = next((have[path] for path in _BANDWIDTHS if path in have), bandwidth)
    fp32 = have.get("compute.peak.fp32")
    units = have.get("compute.units")
    launch = have.get("measured.kernel_launch")
    capacity = have.get("memory.l2.capacity")
    grown = 1.0 if units is None else _grown(have, units)
    exp = product("compute.exp_per_clock_per_sm", "compute.units", "clock")
    return Rates(
        dtype=dtype,
        matrix=matrix,
        warp_matrix=min(matrix, peak * share),
        peak=peak,
        hbm=min(bandwidth, seen),
        hbm_peak=bandwidth,
        l2=have.get("measured.l2_bandwidth", have.get("memory.l2.bandwidth")),
        shared=product("memory.sram.bandwidth_per_clock_per_sm", "compute.units", "clock"),
        exp=have.get("measured.exp", have.get("compute.exp") if exp is None else exp),
        fp32=None if fp32 is None else fp32 / 2,
        units=None if units is None else int(units),
        clock=clock,
        l2_capacity=None if capacity is None else int(capacity),
        launch=launch,
        grown=grown,
    )


def _grown(have: Mapping[str, float], units: float) -> float:
    """The SMs there are over those of which the printed peaks are [-]: 1 but for rounding, unless a file has more."""
    figures = [have.get(path) for path in (*_PEAK, "clock")]
    if None in figures:
        return 1.0
    peak, per_clock, clock = (figure for figure in figures if figure is not None)
    return units * per_clock * clock / peak


_PEAK = ("compute.peak.fp16", "compute.fp16_per_clock_per_sm")
_INSTRUCTIONS = ("fp16_per_clock_per_sm", "mma.warp_fp16_per_clock_per_sm")
# Reads and writes together come first: that is what kernels do.
_BANDWIDTHS = tuple(f"measured.{name}" for name in ("hbm_copy", "hbm_triad", "hbm_read", "hbm_write"))
