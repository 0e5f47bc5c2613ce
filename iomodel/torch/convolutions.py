"""Convolutions of PyTorch: products, FLOPs, and the fewest products of fast algorithms."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from iomodel.errors import InputError, shown, shown_name
from iomodel.torch.operator_call import OperatorCall, OperatorWork

FORWARD = frozenset(
    {"aten.convolution", "aten._convolution", "aten.cudnn_convolution", "aten.cudnn_convolution_transpose"}
)
BACKWARD = "aten.convolution_backward"
CONVOLUTIONS = FORWARD | {BACKWARD}
"""Operators that are convolutions of one to three axes."""
WINOGRAD_TILE = 4
"""Outputs along an axis of a tile of Winograd's algorithm: F(4 x 4, 3 x 3), the largest of A. Lavin and S. Gray, *Fast
Algorithms for Convolutional Neural Networks* (arXiv:1509.09308)."""


@dataclass(frozen=True)
class Convolution(OperatorWork):
    """A convolution as products: groups of positions x terms by terms x channels, for each of its results.

    `positions` are those of the output, or of the input if it is transposed; `kernel` has the lengths of the filter.
    """

    groups: int
    positions: int
    terms: int
    channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    results: int
    biased: bool
    channels_last: bool = False

    @property
    def inner(self) -> int:
        """Channels of the input that an output sums over, those of the result if it is transposed [-]."""
        return max(1, self.terms // max(1, prod(self.kernel)))

    @property
    def summed(self) -> int:
        """Channels of a group that a product sums over [-]."""
        return self.channels if self.transposed else self.inner

    @property
    def made(self) -> int:
        """Channels of a group of the result [-]."""
        return self.inner if self.transposed else self.channels

    @property
    def flops(self) -> int:
        """FLOPs, 2 per position, term and channel of each result [FLOP]."""
        return 2 * self.results * self.groups * self.positions * self.terms * self.channels

    @property
    def depthwise(self) -> bool:
        """True if every channel of the input has filters of its own."""
        return self.groups > 1 and self.terms == prod(self.kernel)

    @property
    def least_flops(self) -> int:
        """FLOPs of Winograd's algorithm at tiles of 4 outputs an axis, for the phases of a strided filter [FLOP]."""
        saved = 1.0
        for length, step, apart in zip(self.kernel, self.stride, self.dilation, strict=True):
            phase = ceil(length / step)
            saved *= WINOGRAD_TILE * phase / (WINOGRAD_TILE + phase - 1) if apart == 1 else 1.0
        return int(self.flops / saved)


def convolution_of(call: OperatorCall) -> Convolution:
    """Return the convolution that an operator computes.

    Raises
    ------
    InputError
        The filter has another number of axes than the input, or no group divides the channels.
    """
    back = call.operator == BACKWARD
    weight, source = call.tensor("weight"), call.tensor("input")
    axes = len(weight.shape) - 2
    result = call.tensor("grad_output") if back else call.outputs[0] if call.outputs else None
    if axes < 1 or len(source.shape) != axes + 2 or result is None or len(result.shape) != axes + 2:
        raise InputError(
            f"inputs.weight of {shown_name(call.operator)}: shape {weight.shape} given; allowed: channels and as many "
            f"axes as the input {source.shape} and the result have"
        )
    groups = call.arguments.get("groups", 1)
    if type(groups) is not int or groups < 1 or weight.shape[0] % groups:
        raise InputError(
            f"arguments.groups: {shown(groups)} given; allowed: a divisor of the {weight.shape[0]} channels"
        )
    transposed = bool(call.arguments.get("transposed", call.operator.endswith("transpose")))
    along = (source if transposed else result).shape
    mask = call.arguments.get("output_mask")
    results = sum(map(bool, mask[:2])) if back and isinstance(mask, tuple) else 2 if back else 1
    inner = prod(weight.shape[1:])
    return Convolution(
        groups,
        along[0] * prod(along[2:]),
        inner,
        weight.shape[0] // groups,
        weight.shape[2:],
        _each(call.arguments.get("stride"), axes),
        _each(call.arguments.get("dilation"), axes),
        transposed,
        results,
        "bias" in call.inputs,
        source.strides is not None and axes > 1 and source.strides[1] == 1 < prod(source.shape[2:]),
    )


def _each(value: Any, axes: int) -> tuple[int, ...]:
    """Return a step for each axis; 1 where none is recorded."""
    steps = value if isinstance(value, tuple) else (value,) if type(value) is int else (1,)
    if not all(type(step) is int and step > 0 for step in steps) or len(steps) not in (1, axes):
        raise InputError(
            f"arguments.stride: {shown(value)} given; allowed: a whole number above 0 for each of {axes} axes"
        )
    return steps if len(steps) == axes else steps * axes
