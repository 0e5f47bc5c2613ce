"""Time of linear layers and elementwise kernels on a device, at the fastest of the common tiles.

There is no separate roofline: :func:`iomodel.timing.kernel_time.kernel_time` times the work of a kernel at the rates of
the device, as for attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, algorithm, answering
from iomodel.common.arithmetic import at_places, ceil_div, larger, pick
from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.kinds import kind_of
from iomodel.counting.options import check_options, structural
from iomodel.devices.device import Hardware
from iomodel.devices.rates import REACHED_IN_FP32, Rates, has_rates, product_rates, rates
from iomodel.errors import InfeasibleError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED
from iomodel.placement.gemm_tiles import GemmTile, candidates, competing, fitting
from iomodel.timing.clock_points import PointCalls
from iomodel.timing.gemm_waves import in_waves, layout, multicast
from iomodel.timing.kernel_time import Elapsed, KernelTime, Launched, Setting, elapsed, kernel_time
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.kernel_work_sum import added
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.timing.shared_memory import by_point
from iomodel.timing.span import Span, span_of
from iomodel.timing.work_at_point import demands
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import WEIGHT_QUARTERS, Linear

BUFFERED = replace(PIPELINED, waiting=1)
"""Execution of products, which wait for each slice where a block has one buffer of it alone."""
MOST_ROWS = 1 << 40
"""Most rows of a layer whose tiles are ranked in arrays of floats, exactly [rows]."""
MOST = 1 << 16
"""Cached results of a clock."""
ROWS = (tuple(1 << power for power in range(9)), tuple(1 << power for power in range(9, 14)))
"""Rows ranked together, small and large: the batches at which planners compute decode steps [rows]."""
IN_BLOCKS = "fp8 in blocks"
"""Products of fp8 rows and weights with a scale for each block of 128 terms, whose sums are scaled one by one."""
REACHED = {
    "sm_89": {"fp8": 0.6, "int8": 0.7, IN_BLOCKS: 0.38},
    "sm_90": {"fp8": 0.65, "int8": 0.65},
    "sm_100": {"bf16": 0.73, "fp16": 0.73, "fp8": 0.59, "int8": 0.59, IN_BLOCKS: 0.65, "fp4": 0.5},
    "sm_103": {"bf16": 0.78, "fp16": 0.78, "fp8": 0.62, "int8": 0.62, IN_BLOCKS: 0.71, "fp4": 0.36},
    "sm_120": {"fp8": 0.84, "int8": 0.7, IN_BLOCKS: 0.66, "fp4": 0.86},
}
"""Share of the matrix peak that a long product reaches where none is measured, by architecture [-]: working rows of
tests/measured/linear_layers.csv with 1,024 and 4,096 rows on H100 and H200, B200, B300, L40S and RTX PRO 6000, the
median of their engines is predicted within 10 %. In int8, `NARROW` on sm_120. Products whose scales are of blocks have
kernels of their own (DeepGEMM), which are faster than those of one scale on Blackwell."""
BOARDS = {"sm_89": 0.734, "sm_90": 0.802}
"""Rate of bf16 products over half the peak in 8 bits on the boards of `REACHED` [-], the L40S and the H100 SXM: where
those of another board reach less, for a limit of power, its products in 8 bits do too (H100 PCIe of 350 W: 0.656)."""
NARROW = {"fp8": 0.7, "int8": 0.7, "fp4": 0.35}
"""The same on other architectures [-]: calibration rows of tests/measured/serving.csv with 2048 and 128 tokens (Llama
3.1 70B on an H200, 405B on GB200)."""
LAST_WAVE = 0.2
"""Waves of blocks that a product takes beside its own, where no rate is measured [-]: the last wave has between none
and all of its blocks, and takes less time than a full one, as fewer SMs share the power."""
IN_WAVES = 0.95
"""Rate of a long product over that of its SMs while they multiply [-]: one of 8192 rows, terms and columns in tiles of
128 x 256 takes 16 waves for 15.5 on 132 SMs, and its tiles 1.02 times their products with the start of a block."""
ROUNDED = 1.005
"""Most that a datasheet's peak exceeds the rate of its SMs at its clock by rounding [-]: 0.3 % on a B200."""
STREAMED = {"sm_80": 0.79, "sm_86": 0.79, "sm_90": 0.92, "sm_100": 0.86, "sm_103": 0.9, "sm_120": 0.92}
"""Share of the bandwidth of DRAM at which products of few rows load weights [-]: working rows of
tests/measured/linear_layers.csv in bf16 with 1 to 64 rows, whose medians are within 4 % by architecture; sm_86 has the
instructions of sm_80."""
LOADED = 24.0
"""Bytes that an SM loads from DRAM in a clock [B/clk]: the same rows of H200 and B200 with 4,096 and 5,120 columns,
which leave SMs without a tile or take a split sum."""
_BLACKWELL = {"bf16": 0.51, "fp16": 0.51, "fp8": 0.5, "int8": 0.5, IN_BLOCKS: 0.2, "fp4": 0.4}
GROUPED = {
    "sm_90": {"bf16": 0.52, "fp16": 0.52, "fp8": 0.62, "int8": 0.62, IN_BLOCKS: 0.32},
    "sm_100": _BLACKWELL,
    "sm_103": _BLACKWELL,
    "sm_120": {"bf16": 0.49, "fp16": 0.49, "fp8": 0.48, "int8": 0.48, IN_BLOCKS: 0.41, "fp4": 0.58},
}
"""The same for the products of experts in tiles of whole rows [-]: of each engine the median of the working rows of
tests/measured/experts.csv with 16,384 tokens and experts of 1,024 columns and more, less the other kernels of the
experts, and of the three engines the median. Left out are kernels that take twice the time of the others or more:
Triton's under SGLang without a tuned configuration, FlashInfer's in fp8 under vLLM on Hopper."""
GROUPED_NARROW = {"bf16": 0.41, "fp16": 0.41, "fp8": 0.42, "int8": 0.42, IN_BLOCKS: 0.49, "fp4": 0.35}
"""The same on other architectures [-]: A100 and L40S in bf16, L40S in fp8; fp4 of none."""


@dataclass(frozen=True)
class LayerNumbers:
    """The numbers of many linear layers, which share the types and the features of the first."""

    first: Linear
    numbers: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a number, as floats if it is an array, or an attribute that the layers share."""
        if name in self.numbers and name != "scale_block":
            value = self.numbers[name]
            return value.astype(np.float64) if isinstance(value, np.ndarray) else value
        return getattr(self.first, name)

    @property
    def parameters(self) -> Any:
        """Number of weights, as :attr:`iomodel.Linear.parameters` [elements]."""
        return self.groups * self.in_features * self.out_features * (2 if self.first.gated else 1)

    @property
    def flops(self) -> Any:
        """FLOPs, 2 per row and weight [FLOP]."""
        return 2 * self.rows * self.parameters

    def at(self, where: Any) -> LayerNumbers:
        """Return the layers at some places."""
        return LayerNumbers(self.first, {name: at_places(value, where) for name, value in self.numbers.items()})


@dataclass(frozen=True)
class LayerClock:
    """A timer of linear layers and elementwise kernels on one device.

    `shares` are shares of the matrix peak that long products reach, by type, in place of `REACHED`; `grouped` those of
    the products of experts in place of `GROUPED` [-]. Products are those of serving engines (`engines`) at `REACHED`,
    or of a library alone, at the best rate on file of their type where there is one; `sustained` is their rate in the
    clock's load over that of a product alone [-].
    """

    device: Hardware
    parameters: Parameters = DEFAULT
    shares: Mapping[str, float] = FrozenDict()
    grouped: Mapping[str, float] = FrozenDict()
    engines: bool = False
    sustained: float = 1.0
    known: dict[Any, Span] = field(default_factory=dict, compare=False, repr=False)
    ranked: dict[tuple[str | None, Linear], tuple[GemmTile, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    rated: dict[str, tuple[Rates, Rates]] = field(default_factory=dict, compare=False, repr=False)

    def linear(self, *layers: Linear, products: str | None = None) -> Span:
        """Time layers of one width and different rows (experts) in one launch, at the fastest tile.

        `products` is the type in which the matrix units multiply, if it is not that of the rows, or `IN_BLOCKS`.
        """
        kind = layers[0].dtype if products is None else products
        found = self.known.get((kind, layers))
        if found is None:
            kernels, tile = self.fastest(layers, products=kind)
            flops = sum(layer.flops for layer in layers)
            found = self._keep((kind, layers), span_of(kernels, flops, tile.sizes))
        return found

    def elementwise(self, name: str, kernel: Elementwise) -> Span:
        """Time an elementwise kernel."""
        found = self.known.get((name, kernel))
        if found is None:
            found = self._keep((name, kernel), span_of(self.streamed(name, kernel), 0))
        return found

    def streamed(self, name: AlgorithmLike, kernel: Elementwise) -> list[KernelTime]:
        """Time each launch of an elementwise kernel."""
        declared, kind = algorithm(name), kind_of(kernel)
        options = check_options(declared, {}, direction=kind.direction)
        work = demands(declared, kind, structural(options), PIPELINED).at(kernel, kernel, options, {})
        known = rates(self.device, kernel.dtype)
        return [self._timed(demand, known, Launched()) for demand in work]

    def _keep(self, point: Any, span: Span) -> Span:
        if len(self.known) >= MOST:
            self.known.pop(next(iter(self.known)), None)
        self.known[point] = span
        return span

    def _timed(self, demand: KernelWork, known: Rates, launched: Launched) -> KernelTime:
        return kernel_time(demand, self._setting(known), launched)

    def fastest(
        self,
        layers: tuple[Linear, ...],
        tiles: Mapping[str, int] | None = None,
        splits: int | None = None,
        name: AlgorithmLike | None = None,
        products: str | None = None,
    ) -> tuple[list[KernelTime], GemmTile]:
        """Return the kernels of layers of one width at the fastest tile, or at a given one.

        `splits` is tried in several sizes where it is not given.
        """
        first = layers[0]
        known, free = self.rates_of(first, products)
        if tiles is not None:
            listed = list(fitting(self.device, first, {**tiles, "splits": splits or 1}))
        elif len(layers) == 1 and splits is None and _is_usual(name, first) and first.rows <= MOST_ROWS:
            listed = list(self._ranked(first, products))
        else:
            listed = list(candidates(self.device, layers, known.units, splits))
        if not listed:
            limit = self.device.sram_per_block
            wanted = "no tile of a linear layer" if tiles is None else f"no block of {dict(tiles)}"
            raise InfeasibleError(
                f"hardware: {wanted} fits the {limit:,} B of a block on {self.device.name}", least=limit + 1, unit="B"
            )
        tile = listed[0]
        if len(listed) > 1:
            tile = min(listed, key=lambda tile: self._seconds(layers, tile, name, products))
        work, launched = self._work(layers, tile, name, known)
        free = replace(free, l2=multicast(free, first, tile))
        kernels = [self._timed(demand, free, launched) for demand in work]
        floor = self._floor(layers, tile, known, products)
        if kernels[0].seconds < floor:
            kernels[0] = replace(kernels[0], seconds=floor)
        return kernels, tile

    def rates_of(self, layer: Linear, products: str | None = None) -> tuple[Rates, Rates]:
        """Return the rates of the device, and those without the limits of a benchmark."""
        kind = products or layer.dtype
        if kind not in self.rated:
            self.rated[kind] = self._rated(kind)
        return self.rated[kind]

    def _rated(self, kind: str) -> tuple[Rates, Rates]:
        in_blocks = kind == IN_BLOCKS
        derived = rates if in_blocks or self.engines else product_rates  # engines launch CUTLASS's kernels of fp8
        known = derived(self.device, "fp8" if in_blocks else kind)
        share = known.warp_matrix / known.matrix if known.matrix else 1.0
        warp = max(known.warp_matrix, known.peak * share)
        free = replace(known, matrix=known.peak, warp_matrix=warp, reached=known.peak)
        if known.asynchronous and known.sm_matrix is not None:  # warps of their own load the slices of a trip
            share = self.sustained * min(self._reached(known, kind), known.reached or known.peak) / _peak(known)
            free = replace(free, sm_matrix=known.sm_matrix * min(1.0, share / IN_WAVES))
        return known, free

    def _reached(self, known: Rates, kind: str) -> float:
        """Return the rate that a long product of a kind reaches, of a type or `IN_BLOCKS` [FLOP/s]."""
        shares = REACHED.get(self.device.architecture or "", NARROW)
        share = shares.get(kind, shares.get(known.dtype))
        alone = REACHED_IN_FP32.get(self.device.compute_capability or "", 1.0) if known.dtype == "fp32" else 1.0
        most = min(_best(known), alone * known.peak)
        reached = known.matrix if known.matrix < known.peak else most if share is None else share * known.peak
        if share is not None and known.matrix >= known.peak:
            reached = min(reached, share * self._limit)
        if not self.engines and reached < known.matrix:
            reached = max(reached, known.reached)
        return self.shares[known.dtype] * known.peak if known.dtype in self.shares else reached

    @cached_property
    def _limit(self) -> float:
        """Return the peak in 8 bits of a board whose bf16 products reach as much of theirs as `BOARDS` [FLOP/s]."""
        usual = BOARDS.get(self.device.architecture or "")
        wide = rates(self.device, "bf16").best_product if usual and has_rates(self.device, "bf16") else 0.0
        return 2 * wide / usual if usual and wide else inf

    def _setting(self, known: Rates) -> Setting:
        """Describe the device for products, whose warps wait for no loads where matrix units are asynchronous."""
        return Setting(known, BUFFERED, self._without_steps if known.asynchronous else self.parameters)

    @cached_property
    def _without_steps(self) -> Parameters:
        return replace(self.parameters, step_clocks=0.0)

    def _work(
        self, layers: tuple[Linear, ...], tile: GemmTile, name: AlgorithmLike | None, known: Rates
    ) -> tuple[list[KernelWork], Launched]:
        launched = Launched(layout(self.device, tile.warps, layers[0]), tile.blocks_per_sm, stages=tile.stages)
        return list(self._demands(name, layers, tile, known)), launched

    def _seconds(
        self, layers: tuple[Linear, ...], tile: GemmTile, name: AlgorithmLike | None, products: str | None
    ) -> float:
        """Time a tile [s]."""
        known, free = self.rates_of(layers[0], products)
        work, launched = self._work(layers, tile, name, known)
        free = replace(free, l2=multicast(free, layers[0], tile))
        times = [elapsed(demand, self._setting(free), launched).seconds for demand in work]
        return float(max(times[0], self._floor(layers, tile, known, products)) + sum(times[1:]))

    def kernels_at(
        self, layers: LayerNumbers, tile: Any, name: AlgorithmLike | None = None, products: str | None = None
    ) -> Iterator[tuple[Any, Any, Elapsed]]:
        """Time each kernel of layers at tiles that fit, whose numbers are arrays: seconds, bytes requested, its parts.

        A kernel that requests nothing is not launched, and takes no time.
        """
        known, free = self.rates_of(layers.first, products)
        sizes = {key: getattr(tile, key) for key in ("block_m", "block_n", "block_k", "splits")}
        call = PointCalls(layers.numbers, layers.first.element_size)
        work = demands(_declared(name, layers.first), kind_of(layers.first), (), PIPELINED).over(
            call, call, sizes, sizes, True
        )
        distinct, places = np.unique(tile.warps, return_inverse=True)
        layouts = [layout(self.device, warps, layers.first) for warps in distinct.tolist()]
        masked = by_point(layouts, places)
        launched = Launched(layouts[0], tile.blocks_per_sm, stages=tile.stages, layouts=masked)
        free = replace(free, l2=multicast(free, layers, tile))
        least: Any = self._floor((layers,), tile, known, products)
        for demand in work:
            moved = in_waves(demand, layers, tile, known)
            took = elapsed(moved, self._setting(free), launched)
            requested = demand.requested_bytes
            yield np.where(requested > 0, np.maximum(took.seconds, least), 0.0), requested, took
            least = 0.0

    def _seconds_at(self, layers: LayerNumbers, tiles: Sequence[GemmTile], products: str | None = None) -> list[float]:
        """Time layers, each at its tile [s]."""
        each: Any = (np.array([getattr(tile, key) for tile in tiles]) for key in GemmTile.__dataclass_fields__)
        columns = GemmTile(*each)
        first, *others = (seconds for seconds, _, _ in self.kernels_at(layers, columns, products=products))
        rest: Any = sum(others, np.zeros(len(tiles)))
        times: list[float] = (np.broadcast_to(first, len(tiles)) + rest).tolist()
        return times

    def _ranked(self, layer: Linear, products: str | None) -> tuple[GemmTile, ...]:
        """Return the fastest tile of a layer, if one fits."""
        while (found := self.ranked.get((products, layer))) is None:  # another thread may have dropped it again
            self.rank((layer,), products)
        return found

    def rank(self, layers: Iterable[Linear], products: str | None) -> None:
        """Find the fastest tile of each layer in arrays, those of other numbers of rows along with it."""
        alike: dict[Any, list[Linear]] = {}
        for layer in layers:
            if layer.rows <= MOST_ROWS and (products, layer) not in self.ranked:
                alike.setdefault(_shared(layer), []).append(layer)
        for asked in alike.values():
            self._rank(list(dict.fromkeys(one for layer in asked for one in _at_rows(layer))), products)

    def _rank(self, layers: Sequence[Linear], products: str | None) -> None:
        """Find the fastest tile of each of some layers that share their types."""
        numbers: dict[str, Any] = dict(layers[0].numbers)
        for name in ("rows", "in_features", "out_features"):
            numbers[name] = np.array([getattr(layer, name) for layer in layers])
        every = LayerNumbers(layers[0], numbers)
        units = self.rates_of(layers[0], products)[0].units
        places: list[int] = []
        tiles: list[GemmTile] = []
        for tile, competes in competing(self.device, (every,), units):
            here = np.flatnonzero(np.broadcast_to(competes, len(layers))).tolist()
            places += here
            tiles += [tile] * len(here)
        best: list[tuple[float, tuple[GemmTile, ...]]] = [(inf, ())] * len(layers)
        times = self._seconds_at(every.at(np.array(places)), tiles, products) if places else []
        for place, tile, seconds in zip(places, tiles, times, strict=True):
            if seconds < best[place][0]:
                best[place] = seconds, (tile,)
        while self.ranked and len(self.ranked) + len(layers) > MOST:
            self.ranked.pop(next(iter(self.ranked)), None)
        self.ranked.update({(products, layer): tile for layer, (_, tile) in zip(layers, best, strict=True)})

    def launch(self, known: Rates) -> float:
        """Return the time between the starts of consecutive kernels [s]."""
        return self._setting(known).launch

    def _floor(self, layers: Sequence[Any], tile: Any, known: Rates, products: str | None) -> Any:
        """Compute the least time of the first kernel [s]; the numbers of the layers and of the tile may be arrays."""
        return larger(
            self._least(layers, tile, known, products),
            self._conversion(layers, tile, known, products),
            self._loaded(layers, tile, known),
        )

    def _loaded(self, layers: Sequence[Any], tile: Any, known: Rates) -> Any:
        """Time the loads of a lone product from DRAM, of all SMs and of the one with the most blocks [s].

        Rows of tiles load the same weights at once.
        """
        if known.units is None or known.clock is None or known.simulated or len(layers) > 1:
            return 0.0
        layer = layers[0]
        weight = WEIGHT_QUARTERS[layer.weight_dtype] / 32
        moved = layer.parameters * weight + layer.rows * layer.in_features * layer.element_size
        share = STREAMED.get(self.device.architecture or "", 1.0)
        at = self._setting(known)
        start = at.start(True) + self.parameters.block_clocks / 2 / known.clock
        waves = ceil_div(ceil_div(layer.out_features, tile.block_n) * tile.splits, known.units)
        tiles = ceil_div(layer.in_features, tile.splits) * tile.block_n * (2 if layer.gated else 1)
        busiest = waves * tiles * weight / (LOADED * known.clock)
        return pick(layer.groups == 1, larger(moved / (share * known.hbm) + start, busiest), 0.0)

    def _least(self, layers: Sequence[Any], tile: Any, known: Rates, products: str | None) -> Any:
        """Compute the least time of the products of a tile [s].

        The rate of a benchmark includes trips and tails, so it bounds the time instead of adding to them.
        """
        kind = IN_BLOCKS if products == IN_BLOCKS else known.dtype
        reached: Any = self._reached(known, kind)
        shares_of_groups = self.grouped or GROUPED.get(self.device.architecture or "", GROUPED_NARROW)
        grouped = min(reached, shares_of_groups.get(kind, 1.0) * known.peak)
        of_experts = sum(layer.groups for layer in layers) > 1
        reached = self.sustained * pick(of_experts, grouped, reached)
        flops = sum(layer.flops * pick(of_experts, _padded(layer.rows, tile.block_m), 1.0) for layer in layers)
        if known.units is None or known.matrix < known.peak or known.dtype in self.shares:
            return flops / reached
        last = 2 * tile.block_m * tile.block_n * ceil_div(layers[0].in_features, tile.splits)
        of_sm = known.peak / known.units if known.sm_matrix is None else known.sm_matrix  # whatever the number of SMs
        return (flops + LAST_WAVE * last * _best(known) / of_sm) / reached

    def _conversion(self, layers: Sequence[Any], tile: Any, known: Rates, products: str | None) -> Any:
        """Time the conversion of weights narrower than the products, which every row of tiles repeats [s]."""
        first = layers[0]
        if known.fp32 is None or products == "fp4" or WEIGHT_QUARTERS[first.weight_dtype] >= 32 * first.element_size:
            return 0.0
        weights = sum(layer.parameters * ceil_div(layer.rows, tile.block_m) for layer in layers)
        return weights * self.parameters.convert_ops / known.fp32

    def _demands(
        self, name: AlgorithmLike | None, layers: tuple[Linear, ...], tile: GemmTile, known: Rates
    ) -> Iterator[KernelWork]:
        work_by_layer = []
        for layer in layers:
            sizes = dict(tile.sizes)
            work = demands(_declared(name, layer), kind_of(layer), (), PIPELINED).at(layer, layer, sizes, sizes)
            work_by_layer.append([in_waves(demand, layer, tile, known) for demand in work])
        for parts in zip(*work_by_layer, strict=True):
            yield parts[0] if len(parts) == 1 else added(parts)


def _padded(rows: Any, block_m: Any) -> Any:
    """Return the rows of whole tiles over those of a layer [-]."""
    return ceil_div(rows, block_m) * block_m / rows


def _best(known: Rates) -> float:
    """Return the best product on file, else the peak [FLOP/s]; asynchronous units are slowed in their waves instead."""
    return known.peak if known.asynchronous else known.best_product or known.peak


def _peak(known: Rates) -> float:
    """Return the peak of products [FLOP/s], or the rate of the SMs together where that is less, beyond rounding.

    A share of the rate of an SM refers to this one, so that a device with one of the two raised is not slower.
    """
    together = (known.sm_matrix or inf) * (known.units or inf)
    return known.peak if known.peak <= ROUNDED * together else together


def _declared(name: AlgorithmLike | None, layer: Linear) -> Algorithm:
    """Return an algorithm of linear layers, by default the one that is preferred."""
    return answering(layer)[0] if name is None else algorithm(name)


def _shared(layer: Linear) -> tuple[Any, ...]:
    """Return what layers share whose tiles are ranked in the same arrays: types, and a block of scales."""
    scales = layer.scale_block is not None and layer.scale_block < layer.in_features
    types = layer.dtype, layer.weight_dtype, layer.out_dtype, layer.scale_block
    return (*types, scales, layer.gated, layer.bias, layer.groups)


def _at_rows(layer: Linear) -> list[Linear]:
    """List a layer at the numbers of rows that are ranked with its own."""
    alike = next((group for group in ROWS if layer.rows in group), (layer.rows,))
    return [layer if layer.rows == rows else layer.model_copy(update={"rows": rows}) for rows in alike]


def _is_usual(name: AlgorithmLike | None, layer: Linear) -> bool:
    """Check that an algorithm is the one that is preferred, whose tiles are ranked in arrays."""
    return name is None or algorithm(name) is answering(layer)[0]


@per_device
def layer_clock(
    device: Hardware, parameters: Parameters = DEFAULT, engines: bool = False, sustained: float = 1.0
) -> LayerClock:
    """Return the timer of a device, one per device and parameters, of products alone or of those of serving engines.

    `sustained` is the rate of products over that of one alone.

    >>> from iomodel.devices.device import hardware
    >>> span = layer_clock(hardware("h100-sxm5")).linear(Linear(rows=1, in_features=4096, out_features=4096))
    >>> span.hbm_bytes >= 2 * 4096**2
    True
    """
    started = replace(parameters, in_graph=1.0) if engines else parameters
    return LayerClock(device, started, engines=engines, sustained=sustained)
