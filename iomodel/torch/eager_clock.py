"""Times of the kernels of eager PyTorch on a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, prod
from typing import NamedTuple

from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import Quantity
from iomodel.devices.rates import Rates, has_rates, product_rates, rates
from iomodel.planning.step.streamed import streamed
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.span import Span
from iomodel.torch.convolutions import Convolution
from iomodel.torch.eager_kernels import THREADS, EagerKernel
from iomodel.torch.last_cache import NOTHING, Saved
from iomodel.torch.recurrent import RecurrentLayers

FP32: Mapping[str, tuple[float, float]] = FrozenDict({
    "sm_70": (0.8, 0.7), "sm_75": (0.5, 0.4), "sm_80": (0.75, 0.65), "sm_86": (0.58, 0.42), "sm_89": (0.5, 0.36),
    "sm_90": (0.76, 0.75), "sm_100": (0.6, 0.5), "l4": (0.42, 0.3), "h100-pcie": (0.7, 0.58),
})  # fmt: skip
"""Share of the fp32 peak that a long product without TF32 reaches, plain and with a transposed second operand, as of a
linear layer, by architecture or device [-]. Those of sm_70, sm_75, sm_80 and sm_100 are not read off rows."""
FP32_ELSEWHERE = (0.55, 0.45)
"""The same on other architectures [-]."""


class Layout(NamedTuple):
    """Kernels of one kind of convolution in TF32, which take the channels last.

    `after` has the passes over the result to move its channels back: on GPUs whose kernels are of warp groups, and on
    others, whose kernels write the channels first. `share` is that of the rate of products [-], `tile` the channels of
    the result that a block makes [-].
    """

    after: tuple[float, float]
    share: float
    tile: int


CONVOLUTION: Mapping[str, Layout] = FrozenDict({
    "dense": Layout((2, 0), 0.9, 128),
    "few": Layout((2, 1), 0.4, 32),
    "transposed": Layout((3, 3), 0.9, 64),
    "deep": Layout((2, 0), 0.65, 128),
    "deep few": Layout((4, 0), 0.3, 32),
    "deep transposed": Layout((3, 3), 0.65, 128),
    "deep transposed few": Layout((2, 3), 0.5, 64),
})  # fmt: skip
"""Kernels by kind: of one or two axes, of three axes, and with fewer than `TERM_TILE` channels to sum over; an axis
along which the filter has one element does not count. A transposed result is also set to zero. The kernels are those of
profiles (`nchwToNhwcKernel`, `sm80_xmma_fprop_..._nhwckrsc_nchw`, `sm90_xmma_fprop_..._nhwckrsc_nhwc`,
`nhwcToNchwKernel`) in the working records of `convolution` of an H100 in tests/measured/gpu, the figures those of the
working programs of KernelBench."""
BEFORE = 2
"""Passes over the input to move its channels last [-]."""
HELD, HELD_RATE = 0.5, 0.3
"""Share of the last cache up to which a tensor stays there while its channels are moved, and share of the bandwidth of
the L2 at which they are [-]."""
MOVES = 3
"""Kernels that move channels: those of the input, of the filter, and of the result [-]."""
POINTWISE, POINTWISE_TILE = 0.9, 32
"""Share of the rate of products of a filter with one element, and channels of the result that a block makes [-]."""
GROUPED_PASSES, GROUPED_EACH = 3, 37.0
"""Passes over the tensors of a convolution with groups of several channels, and operations of a product [-]."""
HALVES = "bf16", "fp16"
SHARE_16, TRANSPOSED_16, FEW_16, FIXED_16 = 0.5, 0.25, 0.07, 6e-6
"""Shares of the peak that products of 16 bits reach, those of transposed convolutions, and those of fewer than
`TERM_TILE` channels [-]; time of a call beside [s]. These and the following are read off the working records of
`convolution` of an H100 in tests/measured/gpu, for cuDNN 9.19 without its benchmark."""
LAYOUT_16, LAYOUT_LAUNCH = 0.55, 2e-6
"""Share of the bandwidth at which channels are moved last and back around products of 16 bits [-]; a launch [s]."""
SHARE_32, FIXED_32, TILE_32 = 0.55, 20e-6, (128, 32)
"""Share of the rate of an SM, time of a call beside [s], and tile of a block of products in fp32 without TF32."""
DIRECT = 0.213
"""Share of the fp32 peak of the kernel for three axes and fewer than `TERM_TILE` channels, in fp32 or 16 bits [-]."""
FEW_32 = (0.26, 64), (DIRECT, 32)
"""Share of the fp32 peak of convolutions in fp32 with fewer than `TERM_TILE` channels, and tile of their results, of
one or two axes and of three [-]."""
TRANSPOSED_32 = (0.35, 64), (0.8, 64)
"""The same of transposed convolutions, which multiply the zeros between the elements of the input too [-]: working
programs of KernelBench on a T4, whose cuDNN is of January 2025."""
DEPTHWISE_FIXED, DEPTHWISE_EACH = 120.0, 22.0
"""Operations of a depthwise convolution per output, and per element of its filter [-]."""
DEPTHWISE_LAST = 20.0, 5.0
"""The same of cuDNN's kernel for 16 bits with the channels last [-]; one working record."""
CHANNEL_TILE, TERM_TILE = 32, 8
"""Channels that a convolution in 16 bits pads its outputs to, and one of any type its inputs [-]."""
LOAD_CLOCKS = 870.0
"""Time from a load to its data in a kernel that awaits each load [clk]."""
STEP = 9e-6
"""Time of a step of a recurrent layer beside its bytes and FLOPs [s]."""


@dataclass(frozen=True)
class EagerClock:
    """A timer of the kernels that eager PyTorch launches on one device."""

    device: Hardware
    layers: LayerClock
    transposed: LayerClock
    dtype = ""
    """The type of kernels without products."""

    @property
    def clock(self) -> LayerClock:
        """The timer of linear layers and declared elementwise kernels."""
        return self.layers

    @property
    def known(self) -> Rates:
        """Rates of kernels without products."""
        return rates(self.device, self.dtype)

    def kernel(self, title: str, kernel: EagerKernel, saved: Saved = NOTHING) -> Span:
        """Time a kernel, some of whose bytes stay in the last cache."""
        known = self.known
        again = kernel.rereads(known.units, known.last_cache)
        dram = max(0, kernel.read - saved.read) + again + max(0, kernel.written - saved.written)
        tensors = {"read": kernel.read + kernel.again, "written": kernel.written}
        if not sum(tensors.values()) or not kernel.blocks:
            return Span(0.0, 0, 0, 0, ())
        span = streamed(self, title, tensors, 0, kernel.blocks, dram=dram)
        limits = {**dict(span.breakdown), **self._limits(kernel, dram, known)}
        launch = limits.pop("launch", 0.0)
        return Span(max(span.seconds, launch + max(limits.values())), dram, kernel.requested, 0, tuple(limits.items()))

    def _limits(self, kernel: EagerKernel, dram: int, known: Rates) -> dict[str, float]:
        """Time the limits of a kernel beside its bytes [s]."""
        limits = {"hbm": dram / (known.hbm * kernel.share)}
        if kernel.operations and known.fp32:
            limits["fp32"] = kernel.operations / known.fp32
        if kernel.in_flight and known.clock and known.units:
            at_work = min(kernel.blocks, known.units * (THREADS // kernel.threads))
            waits = (kernel.read + kernel.again) / (at_work * kernel.in_flight)
            joined = ceil(kernel.blocks / at_work) * kernel.joined
            limits["latency"] = (waits * LOAD_CLOCKS + joined) / known.clock
        return limits

    def peak(self, dtype: str, warps: bool = False) -> float | None:
        """Return the peak of a type of products, that of fp32 for TF32 where there is none [FLOP/s].

        `warps` takes the instruction of single warps.
        """
        for name in (dtype, "fp32") if dtype == "tf32" else (dtype,):
            if has_rates(self.device, name):
                known = product_rates(self.device, name)
                return known.warp_matrix if warps else known.peak
        return None

    def convolution(self, conv: Convolution, dtype: str, kernel: EagerKernel, saved: Saved = NOTHING) -> Span | None:
        """Time a convolution as products of padded channels; None where the device has no peak of the type."""
        if conv.depthwise:
            outputs = conv.results * conv.groups * conv.positions * conv.channels
            fixed, tap = DEPTHWISE_FIXED, DEPTHWISE_EACH
            if conv.channels_last and dtype in HALVES:
                fixed, tap = DEPTHWISE_LAST
            each = fixed + tap * prod(conv.kernel)
            span = self.kernel("convolution", replace(kernel, operations=outputs * each), saved)
            return replace(span, flops=conv.flops)
        kind = kind_of(conv)
        if dtype == "tf32" and (kind == "transposed few" or not has_rates(self.device, dtype)):
            dtype = "fp32"  # no kernel in TF32
        peak = self.peak(dtype, warps=True)
        if peak is None:
            return None
        span = self.kernel("convolution", kernel, saved)
        launch = self.known.launch or 0.0
        bias = 2 if conv.biased else 0
        if dtype in HALVES and kind != "pointwise":
            seconds = self._in_halves(conv, span, kernel, dtype) + self._moved((0, bias), kernel)[0]
            return replace(span, seconds=seconds, flops=conv.flops)
        if dtype == "fp32" and self.known.units:
            seconds = max(span.seconds, launch + self._in_fp32(conv, peak)) + self._moved((0, bias), kernel)[0]
            return replace(span, seconds=seconds, flops=conv.flops)
        products, (before, after) = self._in_tf32(conv, kind, min(peak, self._sustained(dtype)))
        beside, dram = self._moved((before, after + bias), kernel)
        hidden = max(span.seconds, launch + products)
        seconds = beside + (span.seconds + products if kind == "pointwise" else hidden)
        return replace(span, seconds=seconds, hbm_bytes=span.hbm_bytes + dram, flops=conv.flops)

    def _in_tf32(self, conv: Convolution, kind: str, peak: float) -> tuple[float, tuple[float, float]]:
        """Time the products of a convolution [s]; list the passes of its other kernels over the input and the result.

        These are changes of layout, around products with the channels last.
        """
        if kind == "pointwise":
            return padded_flops(conv, POINTWISE_TILE) / (POINTWISE * peak), (0, 0)
        if kind == "grouped":
            operations = conv.flops / 2 * GROUPED_EACH
            return operations / (self.known.fp32 or inf), (GROUPED_PASSES - 1, GROUPED_PASSES - 1)
        layout = CONVOLUTION[kind]
        flops = padded_flops(conv, layout.tile)
        if conv.transposed and "few" in kind:
            flops *= prod(conv.stride)  # no kernel leaves out the zeros between the elements of the input
        groups_of_warps = has_rates(self.device, "tf32") and product_rates(self.device, "tf32").asynchronous
        after = layout.after[0 if groups_of_warps else 1]
        return flops / (layout.share * peak), (0, 0) if conv.channels_last else (BEFORE, after)

    def _moved(self, passes: tuple[float, float], kernel: EagerKernel) -> tuple[float, int]:
        """Time passes over the input and the result beside the products [s], and count their traffic in DRAM [B]."""
        known = self.known
        sizes = [(size, count * size) for count, size in zip(passes, (kernel.read, kernel.written), strict=True)]
        dram = sum(moved for size, moved in sizes if size > HELD * (known.last_cache or 0))
        held = (sum(moved for _, moved in sizes) - dram) / (HELD_RATE * known.l2 if known.l2 else known.hbm)
        return dram / known.hbm + held + (MOVES * LAYOUT_LAUNCH if passes[0] else 0.0), int(dram)

    def _sustained(self, dtype: str) -> float:
        """Return the rate of long products: the peak, or what products of bf16 reach of theirs on file [FLOP/s]."""
        peak = self.peak(dtype) or inf
        if not has_rates(self.device, "bf16"):
            return peak
        known = product_rates(self.device, "bf16")
        return peak * (known.reached / known.peak if known.reached else 1.0)

    def _in_halves(self, conv: Convolution, span: Span, kernel: EagerKernel, dtype: str) -> float:
        """Time a convolution in 16 bits: products with the channels last, between changes of the layout [s]."""
        if conv.inner < TERM_TILE and len(conv.kernel) == 3:
            return max(span.seconds, conv.flops / (DIRECT * (self.peak("fp32") or inf)))
        share = FEW_16 if conv.inner < TERM_TILE and conv.groups == 1 else SHARE_16
        products = padded_flops(conv, CHANNEL_TILE) / (
            min(share, TRANSPOSED_16 if conv.transposed else 1.0) * (self.peak(dtype) or inf)
        )
        moved = 0 if conv.channels_last else kernel.read + kernel.written
        layout = 2 * moved / (LAYOUT_16 * self.known.hbm) + (2 * LAYOUT_LAUNCH if moved else 0.0)
        return layout + max(span.seconds, products) + FIXED_16

    def _in_fp32(self, conv: Convolution, peak: float) -> float:
        """Time the products of a convolution in fp32 without TF32, in whole waves of blocks [s]."""
        deep = len(conv.kernel) == 3
        if conv.transposed:
            share, tile = TRANSPOSED_32[deep]
            return padded_flops(conv, tile) * prod(conv.stride) / (share * peak) + FIXED_32
        if conv.summed < TERM_TILE:
            share, tile = FEW_32[deep]
            return conv.flops * _padded(conv.made, tile) / conv.made / (share * peak) + (0.0 if deep else FIXED_32)
        rows, columns = TILE_32
        units = self.known.units or 1
        blocks = conv.results * conv.groups * ceil(conv.positions / rows) * ceil(conv.channels / columns)
        each = 2 * rows * columns * conv.terms / (SHARE_32 * peak / units)
        return ceil(blocks / units) * each + FIXED_32

    def products(self, flops: int, dtype: str, kernel: EagerKernel, saved: Saved = NOTHING) -> Span | None:
        """Time products that no tile is known for, at the peak of their type; None where the device has none."""
        peak = self.peak(dtype)
        return None if peak is None else _at_least(self.kernel("products", kernel, saved), flops / peak, flops)

    def recurrent(self, layers: RecurrentLayers, dtype: str, kernel: EagerKernel) -> Span | None:
        """Time recurrent layers, whose steps follow one another."""
        peak = self.peak(dtype)
        if peak is None:
            return None
        return _at_least(self.kernel("recurrent", kernel), max(layers.steps * STEP, layers.flops / peak), layers.flops)


def kind_of(conv: Convolution) -> str:
    """Name the kind of a convolution that its rate goes by."""
    if prod(conv.kernel) == 1:
        return "pointwise"
    if conv.groups > 1:
        return "grouped"
    deep = "deep" if sum(length > 1 for length in conv.kernel) == 3 else ""
    few = "few" if conv.summed < TERM_TILE else ""
    return " ".join(word for word in (deep, "transposed" if conv.transposed else "", few) if word) or "dense"


def padded_flops(conv: Convolution, tile: int) -> float:
    """Compute the FLOPs of a convolution with its channels padded, those of its result to a tile [FLOP]."""
    padding = _padded(conv.summed, TERM_TILE) / conv.summed * _padded(conv.made, tile) / conv.made
    return conv.flops * padding


def _padded(length: int, tile: int) -> int:
    return ceil(length / tile) * tile


def _at_least(span: Span, seconds: float, flops: int) -> Span:
    """Return a span that takes at least some time for its products."""
    launch = max(0.0, span.seconds - max((value for _, value in span.breakdown), default=0.0))
    return Span(
        max(span.seconds, seconds + launch),
        span.hbm_bytes,
        span.requested_bytes,
        flops,
        (*span.breakdown, ("matrix", seconds)),
    )


@per_device
def eager_clock(device: Hardware) -> EagerClock:
    """Return the timer of a device.

    Raises
    ------
    SpecError
        The device has no bandwidth.
    """
    plain, transposed = FP32.get(device.id or "", FP32.get(device.architecture or "", FP32_ELSEWHERE))
    if isinstance(device.quantities.get("measured.gemm_fp32"), Quantity):
        return EagerClock(device, LayerClock(device), LayerClock(device))
    clocks = (LayerClock(device, shares=FrozenDict(fp32=share)) for share in (plain, transposed))
    return EagerClock(device, next(clocks), next(clocks))


def queued(operators: Iterable[tuple[float, int]], host: float) -> float:
    """Compute the time of operators that a host launches one after the other [s].

    Each has the time of its kernels [s], and their number; each launch takes `host` seconds of the host.

    >>> queued([(1.0, 1), (5.0, 1), (1.0, 2)], 2.0)
    10.0
    """
    end, launched = 0.0, 0
    for seconds, launches in operators:
        launched += launches
        end = max(end, launched * host) + seconds
    return end
