"""Forward and backward passes of a micro-batch: the same kernels at two settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.devices.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.models.layers import DecoderLayer
from iomodel.planning.step.attention import AttentionClock
from iomodel.planning.step.parts import layer_parts
from iomodel.planning.step.setting import Part, StepSetting
from iomodel.studies.estimate import estimate
from iomodel.timing.parameters import Parameters
from iomodel.timing.span import Span
from iomodel.workloads.attention import Attention
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import Linear

BACKWARDS = ("flash3", "flash2")
"""Algorithms whose backward passes are compared."""
BY_SEQUENCE = ("add_norm", "norm", "embedding")
"""Kernels outside the tensor-parallel regions, whose rows sequence parallelism divides."""
HAS_BACKWARD = ("gated_activation", "activation", "rotary")
"""Kernels with a declared backward pass; that of a norm streams four rows, as the norm with its sum does."""


@dataclass(frozen=True)
class Forward(StepSetting):
    """Settings of the forward kernels of a micro-batch, with sequence parallelism."""

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time an elementwise kernel on the rows of this rank."""
        return super().rowwise(name, kernel, channels, others, self.rows_of(kernel, rows))

    def rows_of(self, kernel: str, rows: int | None) -> int:
        """Return the rows of a kernel on one rank [rows]."""
        tokens = self.tokens if rows is None else rows
        return -(-tokens // self.layout.tensor_parallel) if kernel in BY_SEQUENCE else tokens


@dataclass(frozen=True)
class Backward(Forward):
    """Settings of the backward kernels of the same micro-batch."""

    def product(self, name: str, *layers: Linear) -> Part:
        """Time the gradients of the rows and of the weights of linear layers as one part."""
        gradients = []
        for layer in layers:
            rows, wide, narrow = layer.rows, layer.out_features, layer.in_features
            for shape in ((rows, wide, narrow), (narrow, rows, wide)):
                wide_type = layer.dtype == self.dtype and layer.groups == 1  # as the output layer is at any precision
                gradient = self.wide(*shape) if wide_type else self.linear(*shape, groups=layer.groups)
                gradients.append(super().product(name, gradient)[2])
        return name, "linear", joined(gradients)

    def rowwise(self, name: str, kernel: str, channels: int, others: int = 1, rows: int | None = None) -> Part:
        """Time the backward pass of an elementwise kernel."""
        if kernel not in HAS_BACKWARD:
            return super().rowwise(name, "embedding" if kernel == "embedding" else "add_norm", channels, others, rows)
        shape = Elementwise(
            rows=self.rows_of(kernel, rows), channels=channels, others=others, dtype=self.dtype, direction="backward"
        )
        return name, "other", self.clock.elementwise(kernel, shape)


@dataclass(frozen=True)
class BackwardClock(AttentionClock):
    """A timer of the backward passes of attention calls."""

    def fastest(self, call: Attention) -> tuple[str, Span]:
        """Find the fastest algorithm with a backward pass, and its time."""
        return _backward(self.device, call.model_copy(update={"direction": "backward"}), self.parameters)


@per_device
def _backward(device: Hardware, call: Attention, parameters: Parameters) -> tuple[str, Span]:
    found: list[tuple[str, Span]] = []
    refused: Exception | None = None
    for name in BACKWARDS:
        if "backward" not in find_algorithm(name).directions:
            continue
        try:
            result = estimate(name, call, device, parameters=parameters)
        except (InputError, SpecError, InfeasibleError) as error:
            refused = error
            continue
        streamed = sum(kernel.streamed_bytes for kernel in result.kernels)
        times = tuple(result.breakdown.items())
        found.append((name, Span(result.seconds, streamed, result.requested_bytes, result.cost.useful_flops, times)))
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda entry: entry[1].seconds)


def joined(spans: Sequence[Span]) -> Span:
    """Combine spans in sequence into one.

    >>> joined([Span(1.0, 2, 3, 4, (("hbm", 1.0),)), Span(1.0, 2, 3, 4, (("hbm", 1.0),))])
    Span(seconds=2.0, hbm_bytes=4, requested_bytes=6, flops=8, breakdown=(('hbm', 2.0),), tiles=())
    """
    times: dict[str, float] = {}
    for span in spans:
        for name, seconds in span.breakdown:
            times[name] = times.get(name, 0.0) + seconds
    return Span(
        sum(span.seconds for span in spans),
        sum(span.hbm_bytes for span in spans),
        sum(span.requested_bytes for span in spans),
        sum(span.flops for span in spans),
        tuple(times.items()),
    )


def pass_of_layer(layer: DecoderLayer, at: Forward) -> list[Part]:
    """List the kernels of a layer in training, which has no cache."""
    return [part for part in layer_parts(layer, at) if part[0] != "append to the cache"]


def loss_parts(vocabulary: int, at: Forward) -> Iterator[Part]:
    """List the last norm, the output layer on every token, and the loss, on one rank."""
    width = -(-vocabulary // at.layout.tensor_parallel)
    yield at.rowwise("norm of the last layer", "add_norm", at.hidden)
    yield at.product("output", at.wide(at.tokens, at.hidden, width))
    yield at.rowwise("loss", "activation", width)
