"""Rates of a device's resources: measured where available, otherwise from the datasheet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from iomodel.common.cache import per_device
from iomodel.common.display import percent
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.errors import MissingRateError


@dataclass(frozen=True)
class Rates:
    """Rates of a whole chip for one dtype; an unknown rate is None.

    Attributes
    ----------
    matrix, warp_matrix : float
        Matrix units with the fastest instruction, and with the single-warp instruction; at most the peak [FLOP/s].
    peak : float
        Matrix peak of the dtype on the datasheet, or the best product measured where that is more, as on cards that run
        above their datasheet's clock; with `hbm_peak` it sets the lower bound on time [FLOP/s].
    hbm, hbm_peak, l2, shared, llc : float or None
        Bandwidths, `llc` that of a last-level cache behind the L2 [B/s].
    exp, fp32 : float or None
        Special-function results, fp32 operations [1/s].
    units : int or None
        SMs [-].
    clock : float or None
        Clock of an SM: that of the matrix units, of the chip, or the one implied by the matrix peak [Hz].
    l2_capacity : int or None
        Capacity of the L2 cache [B].
    l2_slices : int
        Private caches that the L2 is made of, which blocks are dealt to in turn [-].
    l2_partitions : int
        Parts of the L2 that may each hold a copy of a line [-].
    l2_for_all : int or None
        Capacity of the L2 for what all SMs read [B]: the largest buffer so measured, at least that of one partition.
    llc_capacity : int or None
        Capacity of a last-level cache behind the L2; None without one [B].
    dirty : float
        Bytes that the L2 holds to be written back when a benchmark's call starts [B].
    throttled : float
        Time of a long kernel at the limit of power over that at its first clock [-].
    spare : float
        Boost clock over the clock, where that at the limit of power is on file [-].
    launch, node : float or None
        Time between the starts of consecutive kernels, and in a graph, or of dependent ones [s].
    sm_matrix, sm_warp_matrix, sm_fp32 : float or None
        Rates of one SM, from its operations per clock and the clock; the share of the chip's rate where those are not
        on file, None without a number of SMs [FLOP/s], [1/s].
    reached : float
        Most that products of attention kernels reach: the best product measured, or a declared share of the peak
        [FLOP/s]; 0 for the peak.
    assumed : tuple of str
        Figures that a declared default stands in for.
    assumed_products : str or None
        The default that stands in for a measured best product.
    asynchronous : bool
        True if matrix instructions run beside the warps that issue them: those of warp groups (wgmma), and those that
        accumulate in tensor memory (tcgen05).
    simulated : bool
        True for a device made up for teaching: it moves bytes and computes products in turn, each at its peak rate.
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
    sm_matrix: float | None = None
    sm_warp_matrix: float | None = None
    sm_fp32: float | None = None
    assumed: tuple[str, ...] = ()
    asynchronous: bool = False
    l2_slices: int = 1
    l2_partitions: int = 1
    l2_for_all: int | None = None
    llc_capacity: int | None = None
    llc: float | None = None
    reached: float = 0.0
    node: float | None = None
    throttled: float = 1.0
    spare: float = 1.0
    dirty: float = 0.0
    assumed_products: str | None = None
    simulated: bool = False

    @property
    def best_product(self) -> float:
        """The best product measured [FLOP/s]; 0 where none is on file."""
        return self.reached if self.assumed_products is None else 0.0

    @property
    def last_cache(self) -> int | None:
        """Capacity of the last cache before DRAM [B]; None if the file has no L2."""
        return self.l2_capacity if self.l2_capacity is None or self.llc_capacity is None else self.llc_capacity

    @property
    def cached(self) -> int | None:
        """Capacity of all caches that the SMs share [B]; None if the file has no L2."""
        return None if self.l2_capacity is None else self.l2_capacity + (self.llc_capacity or 0)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Effects that cannot be timed because a figure is missing; a simulated device has none of them."""
        if self.simulated:
            return ()
        missing = {
            "l2": (self.l2, "the time of L2 requests (no L2 bandwidth on file)"),
            "llc": (self.llc if self.llc_capacity else 0.0, "the time of the last-level cache (no bandwidth on file)"),
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
    """Derive the rates of a device for a dtype; without one, for kernels without products, whose peak is no figure.

    Raises
    ------
    SpecError
        The device has no matrix peak of this dtype, or no memory bandwidth.

    >>> from iomodel.devices.device import hardware
    >>> rates(hardware("h100-sxm5"), "bf16").exp  # 132 SMs, 16 per clock, 1.83 GHz
    3864960000000.0
    """
    have = _Figures(device)
    known = ", ".join(path.rsplit(".", 1)[1] for path in have if path.startswith("compute.peak."))
    wanted = f"a time needs the matrix peak of the dtype; on file: {known or 'none'}"
    per_clock, width = _PER_CLOCK.get(dtype, ("", 1.0))
    boost = have.get("compute.clock.boost", 0.0) if "compute.clock.throttled" in have else 0.0
    peak = NO_PRODUCTS
    if dtype:
        listed = have.needed(f"compute.peak.{dtype}", wanted)
        peak = max(have.sustained(listed, f"compute.{per_clock}", width), have.get(f"measured.best_gemm_{dtype}", 0.0))
    bandwidth = have.needed(_BANDWIDTH, "a time needs the bandwidth of the memory")
    matrix = min(peak, have.get(f"measured.gemm_{dtype}", peak))
    fp32 = have.get("compute.peak.fp32")
    fp32 = None if fp32 is None else have.sustained(fp32, "compute.fp32_per_clock_per_sm", 2.0)
    units = have.get("compute.units")
    sm_matrix = have.of_one_sm(f"compute.{per_clock}", peak, width)
    sm_warp = have.of_one_sm(f"compute.mma.warp_{per_clock}", None, width)
    sm_warp = sm_matrix if sm_warp is None or sm_matrix is None else min(sm_matrix, sm_warp)
    hbm, llc, assumed = (bandwidth, None, ()) if device.simulated else _sustained(have, bandwidth)
    if device.id is None and device.architecture is None and assumed:  # a file of a user's own
        assumed = (*assumed, "a real device ('architecture: simulated' in its file takes its figures as they are)")
    l2, assumed = (None, assumed) if device.simulated else _of_the_l2(have, device.compute_capability, assumed)
    capacity = have.get("memory.l2.capacity")
    partition = (capacity or 0.0) / have.get("memory.l2.partitions", 1)
    for_all = None if capacity is None else int(min(capacity, max(partition, have.get("measured.l2_capacity", 0.0))))
    exp = have.product("compute.exp_per_clock_per_sm", "compute.units", "clock")
    reached, assumed_products = matrix, None
    if not device.simulated and dtype:
        reached, assumed_products = _reached(
            have, dtype, matrix, peak, device.compute_capability or device.architecture or ""
        )
    return Rates(
        dtype=dtype,
        matrix=matrix,
        warp_matrix=matrix if sm_warp is None or units is None else min(matrix, sm_warp * units),
        peak=peak,
        hbm=hbm,
        hbm_peak=bandwidth,
        l2=l2,
        shared=have.product("memory.sram.bandwidth_per_clock_per_sm", "compute.units", "clock"),
        exp=have.get("measured.exp", have.get("compute.exp") if exp is None else exp),
        fp32=None if fp32 is None else fp32 / 2,
        units=have.whole("compute.units"),
        clock=have.get("clock"),
        l2_capacity=have.whole("memory.l2.capacity"),
        launch=0.0 if device.simulated else have.get("measured.kernel_launch"),
        sm_matrix=sm_matrix,
        sm_warp_matrix=sm_warp,
        sm_fp32=None if fp32 is None else have.of_one_sm("compute.fp32_per_clock_per_sm", fp32 / 2),
        assumed=assumed,
        asynchronous=any(path in have for path in _ASYNCHRONOUS),
        l2_slices=int(have.get("memory.l2.slices", 1)),
        l2_partitions=int(have.get("memory.l2.partitions", 1)),
        l2_for_all=for_all,
        llc_capacity=have.whole("memory.llc.capacity"),
        llc=llc,
        reached=reached,
        node=have.get("measured.graph_node"),
        dirty=have.get("memory.l2.written", 0.0),
        throttled=max(1.0, have.get("clock", 0.0) / have.get("compute.clock.throttled", math.inf)),
        spare=max(1.0, boost / have.get("clock", math.inf)),
        assumed_products=assumed_products,
        simulated=device.simulated,
    )


@per_device
def product_rates(device: Hardware, dtype: str) -> Rates:
    """Derive the rates of a device for the products of a library, by the fastest instruction of a dtype.

    >>> from iomodel.devices.device import hardware
    >>> fp8 = product_rates(hardware("rtx5060ti-16gb"), "fp8")
    >>> fp8.dtype, fp8.reached
    ('fp8', 184600000000000.0)
    """
    scaled = f"mx{dtype}"
    return replace(rates(device, scaled), dtype=dtype) if has_rates(device, scaled) else rates(device, dtype)


def split_in_tf32(own: Rates, tf32: Rates, products: int) -> Rates:
    """Return the rates of a kernel that forms each product of fp32 operands as several products in TF32.

    >>> from iomodel.devices.device import hardware
    >>> fp32, tf32 = (rates(hardware("a100-sxm4-80gb"), name) for name in ("fp32", "tf32"))
    >>> fp32.peak, split_in_tf32(fp32, tf32, 3).peak  # of CUTLASS's OpMultiplyAddFastF32
    (19500000000000.0, 52000000000000.0)
    """
    return replace(
        own,
        matrix=tf32.matrix / products,
        warp_matrix=tf32.warp_matrix / products,
        peak=tf32.peak / products,
        reached=tf32.reached / products,
        sm_matrix=None if tf32.sm_matrix is None else tf32.sm_matrix / products,
        sm_warp_matrix=None if tf32.sm_warp_matrix is None else tf32.sm_warp_matrix / products,
        assumed=(*own.assumed, f"each product in fp32 as {products} in TF32, whether a framework allows TF32 or not"),
        assumed_products=tf32.assumed_products,
    )


class _Figures(dict[str, float]):
    """The figures of a device by the paths of their fields, and its clock as "clock"."""

    def __init__(self, device: Hardware) -> None:
        super().__init__({path: float(q.value) for path, q in device.quantities.items() if isinstance(q, Quantity)})
        self.label = device.id or device.name
        names = ("sustained", "tensor", "boost")
        clock = next((self[path] for path in (f"compute.clock.{name}" for name in names) if path in self), None)
        if clock is None and all(path in self for path in (*_PEAK, "compute.units")):
            clock = self[_PEAK[0]] / self[_PEAK[1]] / self["compute.units"]  # the clock implied by the peak
        if clock is not None:
            self["clock"] = clock

    def needed(self, path: str, text: str) -> float:
        """Look up a figure, or raise SpecError."""
        if path not in self:
            raise MissingRateError(f"{path}: {self.label} lacks it; {text}")
        return self[path]

    def whole(self, path: str) -> int | None:
        """Look up a figure that is an integer."""
        return int(self[path]) if path in self else None

    def product(self, *paths: str) -> float | None:
        """Multiply figures; None if one is not on file."""
        return math.prod(self[path] for path in paths) if all(path in self for path in paths) else None

    def sustained(self, listed: float, per_clock: str, times: float) -> float:
        """Return a datasheet's rate, or that of all SMs at the clock that the card sustains where it is above."""
        paths = per_clock, "compute.clock.sustained", "compute.units"
        return max(listed, times * (self.product(*paths) or 0.0))

    def of_one_sm(self, per_clock: str, whole: float | None, times: float = 1.0) -> float | None:
        """Compute the rate of one SM, which is independent of their number where a rate per clock is on file."""
        units = self.get("compute.units")
        if per_clock in self and "clock" in self and units is not None:
            return self[per_clock] * times * self["clock"]
        return None if whole is None or units is None else whole / units


def _sustained(have: _Figures, bandwidth: float) -> tuple[float, float | None, tuple[str, ...]]:
    """Return the bandwidths that kernels sustain, of the memory and of a last-level cache, and what is assumed."""
    assumed = []
    measured = next((have[path] for path in _BANDWIDTHS if path in have), None)
    if measured is None:
        measured = SUSTAINED * bandwidth
        assumed.append(f"memory at {percent(SUSTAINED)} of the datasheet's bandwidth (none measured)")
    last, seen = have.get("memory.llc.bandwidth"), have.get("measured.llc_bandwidth")
    if last is not None and seen is None:
        seen = SUSTAINED_LAST * last
        assumed.append(f"the last-level cache at {percent(SUSTAINED_LAST)} of its peak bandwidth (none measured)")
    return min(bandwidth, measured), seen if last is None or seen is None else min(last, seen), tuple(assumed)


def _of_the_l2(
    have: _Figures, capability: str | None, assumed: tuple[str, ...]
) -> tuple[float | None, tuple[str, ...]]:
    """Return the bandwidth of the L2 [B/s], and what is assumed with it."""
    known = have.get("measured.l2_bandwidth", have.get("memory.l2.bandwidth"))
    per_clock, sms = L2_PER_CLOCK.get(capability or ""), have.product("compute.units", "clock")
    if known is not None or per_clock is None or sms is None or "memory.l2.capacity" not in have:
        return known, assumed
    return per_clock * sms, (*assumed, f"the L2 at {per_clock:g} B/clk for each SM (none measured)")


def _reached(have: _Figures, dtype: str, matrix: float, peak: float, architecture: str) -> tuple[float, str | None]:
    """Return the most that products of a dtype reach [FLOP/s], and what is assumed for it."""
    if f"measured.gemm_{dtype}" in have:  # also one at the peak or above
        return matrix, None
    for best in (f"measured.best_gemm_{dtype}", *(["measured.best_gemm_bf16"] if dtype == "fp16" else ())):
        if best in have:
            return min(matrix, have[best]), None
    share = REACHED.get(architecture, 1.0)
    most = REACHED_IN_FP32.get(architecture, 1.0) if dtype == "fp32" else 1.0
    for best, other in _BEST.items():
        if best in have and other in have:
            share = min(1.0, have[best] / have[other])
            break
    share = min(share, most)
    of_peak = "the datasheet's peak" if share == 1 else f"{percent(share)} of the peak"
    return min(matrix, share * peak), f"{dtype} products at {of_peak} at most (none measured)"


@per_device
def has_rates(device: Hardware, dtype: str) -> bool:
    """Check that a device's file has the figures that a time needs: the matrix peak of a dtype and the bandwidth.

    >>> from iomodel.devices.device import hardware
    >>> has_rates(hardware("h100-sxm5"), "bf16"), has_rates(hardware("v100-sxm2-32gb"), "bf16")
    (True, False)
    """
    return all(isinstance(device.quantities.get(path), Quantity) for path in (f"compute.peak.{dtype}", _BANDWIDTH))


NO_PRODUCTS = 1.0
"""Peak in the rates of kernels without products [FLOP/s], by which nothing but no FLOPs is divided."""
_BEST = {f"measured.best_gemm_{dtype}": f"compute.peak.{dtype}" for dtype in ("bf16", "fp16")}
"""Peaks of the types with a measured best product."""
_BANDWIDTH = "memory.hbm.bandwidth"
SUSTAINED = 0.9
"""Share of the datasheet's bandwidth that a kernel sustains where none is measured [-]: copies and triads on file reach
0.88 (A100, V100), 0.90 (H200), 0.92 (H100 PCIe) and 0.96 (A40)."""
SUSTAINED_LAST = 0.69
"""Share of the peak bandwidth of a last-level cache that a kernel sustains where none is measured [-]: 11.9 of 17.2
TB/s on an MI300X."""
REACHED = {**dict.fromkeys(("8.0", "9.0", "10.0", "10.3"), 0.8), **dict.fromkeys(("gfx90a", "gfx942", "gfx950"), 0.6)}
"""Share of the peak that the best product reaches where none is measured, by compute capability or architecture [-],
near the medians of the shares measured: 0.87 and 0.81 (A100 SXM, PCIe), 0.80 (H100), 0.84 (GH200), 0.78 (B200), 0.79
(B300) and 0.73 (GB200); 0.54 (MI300X), 0.64 (MI325X) and 0.62 (MI355X). No other architecture has one on file."""
REACHED_IN_FP32 = dict.fromkeys(("8.9", "12.0", "12.1"), 0.7)
"""The same of products in fp32 without matrix units [-]: cuBLAS reaches 0.69 of the peak of an RTX 4090, 0.79 of an RTX
5090, 0.67 of an RTX PRO 6000 and 0.69 of a GB10 (xzwgit/gpu-flops-bench, 8,192 to 12,288 rows)."""
L2_PER_CLOCK = {"8.0": 35.5, "8.6": 21.2, "8.9": 14.6, "9.0": 40.6}
"""Bandwidth of the L2 per SM where none is on file, by compute capability [B/clk]: those measured on an A100, an A40,
an L40 and an H200."""
_ASYNCHRONOUS = ("compute.mma.warpgroup_rows", "memory.accumulator.per_sm")
_PEAK = ("compute.peak.fp16", "compute.fp16_per_clock_per_sm")
_PER_CLOCK = {
    **{
        dtype: ("fp16_per_clock_per_sm", width)
        for dtype, width in {"fp16": 1.0, "bf16": 1.0, "tf32": 0.5, "fp8": 2.0}.items()
    },
    "mxfp8": ("fp16_per_clock_per_sm", 4.0),  # on cards that accumulate fp16 and fp8 in fp32 at half the rate
    "fp4": ("fp4_per_clock_per_sm", 1.0),
    "int8": ("int8_per_clock_per_sm", 1.0),
    "fp32": ("fp32_per_clock_per_sm", 2.0),  # a multiply-add is two; on no matrix units
}
"""Operations of one SM per clock that a dtype goes by, and its operations over those [-]; the peak bounds the chip."""
# Mixed reads and writes come first: they are what kernels do.
_BANDWIDTHS = tuple(f"measured.{name}" for name in ("hbm_copy", "hbm_triad", "hbm_read", "hbm_write"))
