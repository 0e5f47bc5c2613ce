"""Bytes and FLOPs of the calls of operators, each by the algorithm that describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import answering, replacing
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.cost import Cost
from iomodel.counting.cost import cost as count
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.placement.implementations import stand_in
from iomodel.planning.step.attention_clock import attention_clock
from iomodel.solving.question import Question
from iomodel.studies.estimate import estimate
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.span import Span
from iomodel.torch.attention_calls import AttentionCalls
from iomodel.torch.convolutions import Convolution
from iomodel.torch.eager_clock import EagerClock, eager_clock, queued
from iomodel.torch.eager_kernels import EagerKernel, kernels_of, launches, plain, vector_operations
from iomodel.torch.last_cache import NOTHING, LastCache, Saved, places_of
from iomodel.torch.moved_bytes import distinct_bytes, moved_bytes
from iomodel.torch.operator_call import OperatorCall
from iomodel.torch.operator_work import may_multiply, product_type, work_of
from iomodel.torch.products import MatrixProduct, layer_of
from iomodel.torch.recurrent import RecurrentLayers
from iomodel.torch.report import OperatorTraffic, TrafficReport
from iomodel.workloads.attention import Attention
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload

Rule = Callable[[OperatorCall], tuple[str, Workload]]
"""A function that names the algorithm of an operator of one's own, and its workload."""
GEMM_TILES = ("block_m", "block_n", "block_k")
WHOLE = {
    "block_q": "q_len",
    "block_kv": "kv_len",
    "block_m": "rows",
    "block_n": "out_features",
    "block_k": "in_features",
}
"""The length that a tile covers where none is given: each operand then makes one ideal pass."""
HOST = 10e-6
"""Time of an operator below which an eager program is likely to wait for its host [s]: programs of KernelBench whose
kernels are short take 10 to 15 us an operator on three machines and 29 to 39 us on five."""


@dataclass(frozen=True)
class Accounting:
    """The choices that turn calls into traffic: device, tiles, algorithm of attention, the caller's rules, the host.

    `warm` repeats the program: the last cache holds what the run before left.
    """

    hardware: Hardware | None = None
    tiles: Mapping[str, int] = FrozenDict()
    attention: str | None = None
    operators: Mapping[str, Rule] = FrozenDict()
    host: float | None = None
    warm: bool = False
    known: dict[Any, OperatorTraffic] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def eager(self) -> EagerClock:
        """The timer of the kernels that PyTorch launches."""
        assert self.hardware is not None
        return eager_clock(self.hardware)

    @property
    def clock(self) -> LayerClock:
        """The timer of linear layers and elementwise kernels."""
        return self.eager.layers

    def report(self, calls: Iterable[OperatorCall]) -> TrafficReport:
        """Count calls, and add up equal ones of a module."""
        groups: dict[Any, list[OperatorTraffic]] = {}
        notes: dict[str, None] = {}
        times = []
        listed = tuple(calls)
        for call, traffic in zip(listed, self.each(listed), strict=True):
            groups.setdefault(traffic.group, []).append(traffic)
            times.append(traffic.seconds or 0.0)
            if traffic.at_least:
                notes[f"{call.operator}: {traffic.at_least}"] = None
        elapsed = None
        if self.host is not None and self.hardware is not None:
            elapsed = queued(zip(times, map(launches, listed), strict=True), self.host)
        if self.hardware is not None and self.host is None and times and sum(times) < HOST * len(times):
            notes[_waits(times)] = None
        operators = tuple(_together(alike) for alike in groups.values())
        return TrafficReport(operators, self.hardware, tuple(notes), elapsed).of_calls(listed)

    def each(self, calls: Sequence[OperatorCall]) -> list[OperatorTraffic]:
        """Count the calls of a program one by one, each with what the ones before left in the last cache."""
        capacity = None if self.hardware is None else self.eager.known.last_cache
        if capacity is None:
            return [self.traffic(call) for call in calls]
        cache = LastCache(capacity, places_of(calls) if self.warm else None)
        for call in calls if self.warm else ():
            cache.use(call)
        return [self.traffic(call, cache.use(call)) for call in calls]

    def traffic(self, call: OperatorCall, saved: Saved = NOTHING) -> OperatorTraffic:
        """Count one call, some of whose bytes no DRAM sees."""
        key = call.alike, saved
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._counted(call, saved)
        return known if known.module == call.module else known.of_module(call.module)

    def _counted(self, call: OperatorCall, saved: Saved) -> OperatorTraffic:
        if call.operator in self.operators:
            name, workload = self._ruled(call)
            return self._declared(call, name, workload)
        match work_of(call):
            case AttentionCalls() as calls:
                parts = [self._attention(call, workload, beside) for workload, beside in calls.parts]
                return replace(_together(parts), times=1)
            case MatrixProduct() as product if product.flops:
                return self._product(call, product, saved)
            case Convolution() as conv:
                return self._timed(
                    call, conv.flops, lambda dtype, kernel: self.eager.convolution(conv, dtype, kernel, saved)
                )
            case RecurrentLayers() as layers:
                return self._timed(
                    call, layers.flops, lambda dtype, kernel: self.eager.recurrent(layers, dtype, kernel)
                )
        return self._streamed(call, saved)

    def _product(self, call: OperatorCall, product: MatrixProduct, saved: Saved) -> OperatorTraffic:
        """Count a matrix product: as a linear layer, or as a stream where it has one column or no tiles."""
        layer, beside = layer_of(call, product)
        if layer is None:
            return self._timed(
                call, product.flops, lambda dtype, kernel: self.eager.products(product.flops, dtype, kernel, saved)
            )
        if self.hardware is not None and not self.tiles and _is_a_stream(product, layer):
            ideal = self._largest(call, layer)
            span = self.eager.kernel(call.operator, plain(call), saved)
            return replace(ideal, seconds=span.seconds, hbm_bytes=span.hbm_bytes, tiles=FrozenDict())
        counted = self._declared(call, general(layer), layer)
        return replace(counted, requested_bytes=counted.requested_bytes + beside, hbm_bytes=counted.hbm_bytes + beside)

    def _timed(
        self, call: OperatorCall, flops: int, timer: Callable[[str, EagerKernel], Span | None]
    ) -> OperatorTraffic:
        """Count an operator that moves each tensor once and whose products have a rate of their own."""
        read, written = distinct_bytes(call)
        counted = _traffic(call, "", sum(moved_bytes(call)), flops, hbm_bytes=read + written)
        if self.hardware is None:
            return counted
        dtype = product_type(call)
        span = timer(dtype, plain(call))
        if span is None:
            span = self.eager.kernel(call.operator, plain(call))
            reason = f"no peak of {dtype} on file; seconds are at least"
            return replace(counted, seconds=span.seconds, hbm_bytes=span.hbm_bytes, at_least=reason)
        return replace(counted, seconds=span.seconds, hbm_bytes=span.hbm_bytes)

    def _ruled(self, call: OperatorCall) -> tuple[str, Workload]:
        """Apply a rule of the caller."""
        answer = self.operators[call.operator](call)
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], Workload):
            raise InputError(
                f"operators: the rule of {call.operator} returns {shown(answer)}; allowed: an algorithm and a workload"
            )
        return answer

    def _declared(self, call: OperatorCall, name: str, workload: Workload) -> OperatorTraffic:
        """Count a call by a declared algorithm: timed on the device, else at the given tiles or the largest."""
        if isinstance(workload, Attention):
            return self._attention(call, workload, 0, name)
        if self.hardware is None:
            return self._largest(call, workload, name)
        if isinstance(workload, Linear):
            span = self._linear(workload, _is_transposed(call))
        elif isinstance(workload, Elementwise):
            span = self.clock.elementwise(name, workload)
        else:
            return _of_span(call, name, *self._estimated(name, workload, None))
        return _of_span(call, name, span)

    def _largest(self, call: OperatorCall, workload: Workload, name: str | None = None) -> OperatorTraffic:
        """Count a call at the given tiles, or at the largest."""
        name = name or general(workload)
        return _of_cost(call, count(name, workload, self._sizes(name, workload, {})))

    def _linear(self, layer: Linear, transposed: bool) -> Span:
        tiles = {tile: size for tile, size in self.tiles.items() if tile in GEMM_TILES}
        if not tiles:
            return (self.eager.transposed if transposed else self.clock).linear(layer)
        result = estimate(general(layer), layer, self.clock.device, tiles)
        return _span(result)

    def _estimated(self, name: str, workload: Workload, tiles: Mapping[str, int] | None) -> tuple[Span, ...]:
        assert self.hardware is not None
        return (_span(estimate(name, workload, self.hardware, tiles)),)

    def _attention(
        self, call: OperatorCall, workload: Attention, mask_bytes: int, name: str | None = None
    ) -> OperatorTraffic:
        """Count an attention call; the log-sum-exp is stored only where a gradient is needed."""
        name = name or self.attention
        saved = bool(call.arguments.get("saved", True)) or workload.direction != "forward"
        if self.hardware is None:
            name = name or general(workload)
            options = {} if saved or "lse" not in find_algorithm(name).takes() else {"lse": False}
            counted = count(name, workload, self._sizes(name, workload, options), **options)
            return _of_cost(call, counted, _narrower(counted, mask_bytes))
        try:
            name, span = self._fused(workload, name, saved)
        except InfeasibleError:
            if name is not None or self.tiles:
                raise
            separate = replacing("scaled_dot_product_attention")  # as PyTorch runs where no fused kernel takes a call
            assert separate is not None
            name, span = separate.name, self._estimated(separate.name, workload, None)[0]
        timed = _of_span(call, name, span)
        if not mask_bytes:
            return timed
        sizes = {tile: size for tile, size in span.tiles if tile not in LAUNCH_NAMES}
        return replace(
            timed, requested_bytes=timed.requested_bytes + _narrower(count(name, workload, sizes), mask_bytes)
        )

    def _fused(self, workload: Attention, name: str | None, saved: bool) -> tuple[str, Span]:
        """Time a fused kernel of attention, at the given tiles or the fastest."""
        assert self.hardware is not None
        tiles = {tile: size for tile, size in self.tiles.items() if tile not in GEMM_TILES}
        if tiles or saved:
            name = name or general(workload)
            kernels = stand_in(name, workload, self.hardware)
            return name, _span(estimate(name, workload, self.hardware, tiles or None, implementation=kernels))
        algorithm = None if name is None else find_algorithm(name)
        return attention_clock(self.hardware, DEFAULT, algorithm).fastest(workload)

    def _sizes(self, name: str, workload: Workload, options: Mapping[str, Any]) -> dict[str, int]:
        """Return the given tiles that an algorithm takes; a missing tile covers the whole length of its axis."""
        asked = Question.ask(name, workload, None, options=options)
        bound = asked.bound if any(tile in self.tiles for tile in asked.bound.tiles) else asked.untiled
        numbers = workload.longest.numbers
        whole = {tile: numbers[length] for tile, length in WHOLE.items() if length in numbers}
        sizes = {tile: size for tile in bound.tiles if (size := self.tiles.get(tile, whole.get(tile))) is not None}
        return bound.sizes(sizes)

    def _streamed(self, call: OperatorCall, saved: Saved) -> OperatorTraffic:
        """Count a call by the passes of the kernels that PyTorch launches for it."""
        kernels = kernels_of(call)
        requested = (
            sum(moved_bytes(call)) if len(kernels) == 1 and not kernels[0].again else sum(k.requested for k in kernels)
        )
        traffic = _traffic(
            call,
            "",
            requested,
            0,
            hbm_bytes=sum(kernel.requested for kernel in kernels),
            vector_flops=vector_operations(call),
            at_least="FLOPs are not counted; flops and seconds are at least" if may_multiply(call.operator) else "",
        )
        if self.hardware is None or not requested:
            return traffic
        spans = [
            self.eager.kernel(call.operator, kernel, NOTHING if place else saved)
            for place, kernel in enumerate(kernels)
        ]
        return replace(
            traffic, seconds=sum(span.seconds for span in spans), hbm_bytes=sum(span.hbm_bytes for span in spans)
        )


def _is_transposed(call: OperatorCall) -> bool:
    """Check whether the second matrix of a product has its rows next to each other, as the weight of a linear layer."""
    names = [name for name in ("mat2", "batch2", "weight") if name in call.inputs]
    strides = call.inputs[names[0]].strides if names else None
    return call.operator == "aten.linear" or (strides is not None and len(strides) > 1 and strides[-2] == 1)


def _is_a_stream(product: MatrixProduct, layer: Linear) -> bool:
    """Check whether a product reads a matrix once for one vector, on no matrix units."""
    return product.columns == 1 or (product.rows == 1 and layer.dtype == "fp32")


def _waits(times: Sequence[float]) -> str:
    return (
        f"{len(times):,} operators of {sum(times) / len(times) * 1e6:.1f} us on average: an eager program waits for "
        "its host below 10 to 40 us an operator; host= takes the host's time of a launch"
    )


def general(workload: Workload) -> str:
    """Name the algorithm of a workload that answers the most devices and calls."""
    return answering(workload)[-1].name


def _traffic(call: OperatorCall, name: str, requested: int, flops: int, **rest: Any) -> OperatorTraffic:
    return OperatorTraffic(call.module, call.operator, name, call.backward, 1, requested, flops, **rest)


def _of_cost(call: OperatorCall, counted: Cost, beside: int = 0) -> OperatorTraffic:
    moved = counted.hbm_bytes + beside
    return _traffic(
        call, counted.algorithm, moved, counted.useful_flops, tiles=FrozenDict(counted.tiles), hbm_bytes=moved
    )


def _of_span(call: OperatorCall, name: str, span: Span) -> OperatorTraffic:
    timed = {"seconds": span.seconds, "hbm_bytes": span.hbm_bytes, "tiles": FrozenDict(dict(span.tiles))}
    return _traffic(call, name, span.requested_bytes, span.flops, **timed)


def _span(result: Any) -> Span:
    return Span(
        result.seconds,
        sum(kernel.streamed_bytes for kernel in result.kernels),
        result.requested_bytes,
        result.cost.useful_flops,
        tuple(result.breakdown.items()),
        tuple(result.tiles.items()),
    )


def _narrower(counted: Cost, mask_bytes: int) -> int:
    """Compute the difference that the type of a mask tensor makes to its reads [B]."""
    size = counted.workload.element_size
    return counted.reads.get("bias", 0) * (mask_bytes - size) if mask_bytes else 0


def _together(alike: Sequence[OperatorTraffic]) -> OperatorTraffic:
    """Add up equal operators."""
    first = alike[0]
    if len(alike) == 1:
        return first
    return replace(
        first,
        times=sum(each.times for each in alike),
        requested_bytes=sum(each.requested_bytes for each in alike),
        flops=sum(each.flops for each in alike),
        vector_flops=sum(each.vector_flops for each in alike),
        seconds=None if first.seconds is None else sum(each.seconds or 0.0 for each in alike),
        hbm_bytes=sum(each.hbm_bytes for each in alike),
    )
