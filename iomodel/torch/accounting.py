"""Bytes and FLOPs of the calls of operators, each by the algorithm that describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import answering
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.cost import Cost
from iomodel.counting.cost import cost as count
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.placement.implementations import stand_in
from iomodel.planning.step.attention_clock import attention_clock
from iomodel.planning.step.streamed import streamed
from iomodel.solving.question import Question
from iomodel.studies.estimate import estimate
from iomodel.timing.layer_clock import LayerClock, layer_clock
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.span import Span
from iomodel.torch.attention_calls import attention_calls, is_attention
from iomodel.torch.moved_bytes import moved_bytes
from iomodel.torch.operator_call import OperatorCall
from iomodel.torch.products import layer_of, product_of
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
ELEMENTS_PER_BLOCK = 512
"""Elements per thread block of an elementwise kernel of PyTorch: 128 threads with 4 each (github.com/pytorch/pytorch,
aten/src/ATen/native/cuda/thread_constants.h)."""


@dataclass(frozen=True)
class Accounting:
    """The choices that turn calls into traffic: device, tiles, algorithm of attention, and the caller's rules."""

    hardware: Hardware | None = None
    tiles: Mapping[str, int] = FrozenDict()
    attention: str | None = None
    operators: Mapping[str, Rule] = FrozenDict()
    known: dict[Any, OperatorTraffic] = field(default_factory=dict, compare=False, repr=False)

    dtype = "bf16"
    """Type of the peak in the rates of elementwise kernels, which take no product."""

    @cached_property
    def clock(self) -> LayerClock:
        """The timer of linear layers and elementwise kernels."""
        assert self.hardware is not None
        return layer_clock(self.hardware)

    def report(self, calls: Iterable[OperatorCall]) -> TrafficReport:
        """Count calls, and add up equal ones of a module."""
        groups: dict[Any, OperatorTraffic] = {}
        notes: dict[str, None] = {}
        for call in calls:
            traffic = self.traffic(call)
            same = groups.get(traffic.group)
            groups[traffic.group] = traffic if same is None else _together(same, traffic)
            if call.operator in UNCOUNTED:
                notes[f"{call.operator}: FLOPs are not counted"] = None
        return TrafficReport(tuple(groups.values()), self.hardware, tuple(notes))

    def traffic(self, call: OperatorCall) -> OperatorTraffic:
        """Count one call."""
        key = replace(call, module="")
        if key not in self.known:
            self.known[key] = self._counted(key)
        return replace(self.known[key], module=call.module)

    def _counted(self, call: OperatorCall) -> OperatorTraffic:
        if call.operator in self.operators:
            name, workload = self._ruled(call)
            return self._declared(call, name, workload)
        if is_attention(call):
            parts = [self._attention(call, workload, beside) for workload, beside in attention_calls(call)]
            whole = parts[0]
            for part in parts[1:]:
                whole = _together(whole, part)
            return replace(whole, times=1)
        product = product_of(call)
        if product is not None and min(product[:4]) > 0:
            layer, beside = layer_of(call, product)
            if layer is not None:
                counted = self._declared(call, general(layer), layer)
                return replace(counted, requested_bytes=counted.requested_bytes + beside)
            return replace(self._streamed(call), flops=product.flops)
        return self._streamed(call)

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
            counted = count(name, workload, self._sizes(name, workload, {}))
            return _of_cost(call, counted)
        if isinstance(workload, Linear):
            span = self._linear(workload)
        elif isinstance(workload, Elementwise):
            span = self.clock.elementwise(name, workload)
        else:
            return _of_span(call, name, *self._estimated(name, workload, None))
        return _of_span(call, name, span)

    def _linear(self, layer: Linear) -> Span:
        tiles = {tile: size for tile, size in self.tiles.items() if tile in GEMM_TILES}
        if not tiles:
            return self.clock.linear(layer)
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
        tiles = {tile: size for tile, size in self.tiles.items() if tile not in GEMM_TILES}
        if tiles or saved:
            name = name or general(workload)
            kernels = stand_in(name, workload, self.hardware)
            span = _span(estimate(name, workload, self.hardware, tiles or None, implementation=kernels))
        else:
            algorithm = None if name is None else find_algorithm(name)
            name, span = attention_clock(self.hardware, DEFAULT, algorithm).fastest(workload)
        timed = _of_span(call, name, span)
        if not mask_bytes:
            return timed
        sizes = {tile: size for tile, size in span.tiles if tile not in LAUNCH_NAMES}
        return replace(
            timed, requested_bytes=timed.requested_bytes + _narrower(count(name, workload, sizes), mask_bytes)
        )

    def _sizes(self, name: str, workload: Workload, options: Mapping[str, Any]) -> dict[str, int]:
        """Return the given tiles that an algorithm takes; a missing tile covers the whole length of its axis."""
        asked = Question.ask(name, workload, None, options=options)
        bound = asked.bound({}, tiled=any(tile in self.tiles for tile in asked.bound({}).tiles))
        numbers = workload.longest.numbers
        whole = {tile: numbers[length] for tile, length in WHOLE.items() if length in numbers}
        sizes = {tile: size for tile in bound.tiles if (size := self.tiles.get(tile, whole.get(tile))) is not None}
        return bound.sizes(sizes)

    def _streamed(self, call: OperatorCall) -> OperatorTraffic:
        """Count a call that reads and writes each tensor once."""
        read, written = moved_bytes(call)
        tensors = {"read": read, "written": written}
        if self.hardware is None or not read + written:
            return _traffic(call, "", read + written, 0)
        elements = max((tensor.elements for tensor in (*call.outputs, *call.inputs.values())), default=1)
        span = streamed(self, call.operator, tensors, 0, -(-elements // ELEMENTS_PER_BLOCK))
        return _of_span(call, "", span)


UNCOUNTED = frozenset({"aten.convolution", "aten.convolution_backward", "aten._scaled_mm", "aten._grouped_mm"})
"""Operators with products that are counted as a read and a write of each tensor."""


def general(workload: Workload) -> str:
    """Name the algorithm of a workload that answers the most devices and calls."""
    return answering(workload)[-1].name


def _traffic(call: OperatorCall, name: str, requested: int, flops: int, **rest: Any) -> OperatorTraffic:
    return OperatorTraffic(call.module, call.operator, name, call.backward, 1, requested, flops, **rest)


def _of_cost(call: OperatorCall, counted: Cost, beside: int = 0) -> OperatorTraffic:
    return _traffic(
        call, counted.algorithm, counted.hbm_bytes + beside, counted.useful_flops, tiles=FrozenDict(counted.tiles)
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


def _together(first: OperatorTraffic, second: OperatorTraffic) -> OperatorTraffic:
    timed = first.seconds is not None
    return replace(
        first,
        times=first.times + second.times,
        requested_bytes=first.requested_bytes + second.requested_bytes,
        flops=first.flops + second.flops,
        seconds=(first.seconds or 0.0) + (second.seconds or 0.0) if timed else None,
        hbm_bytes=(first.hbm_bytes or 0) + (second.hbm_bytes or 0) if timed else None,
    )
