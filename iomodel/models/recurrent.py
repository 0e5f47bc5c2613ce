"""Common fields of layers with a state of fixed size instead of a cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from iomodel.devices.quantity import Group

Projection = tuple[str, int, int]
"""A linear layer: name, input width, output width [elements]."""

STATE_BYTES = 4
"""Size of an element of a recurrent state, fp32 [B]."""
CONVOLUTION_BYTES = 2
"""Size of an input kept by a convolution, bf16 [B]."""


class State(NamedTuple):
    """The state of one sequence: of the recurrence, and inputs kept by a convolution [elements]."""

    recurrent: int
    convolution: int

    @property
    def bytes(self) -> int:
        """Size of the state [B]."""
        return STATE_BYTES * self.recurrent + CONVOLUTION_BYTES * self.convolution


class RecurrentLayer(Group, ABC):
    """The part of a decoder layer that mixes tokens through a state.

    A kind of layer states its linear layers, its other weights, its state, and the FLOPs besides the linear layers.
    """

    @abstractmethod
    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""

    @abstractmethod
    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolutions, decays, biases, norms [elements]."""

    @property
    @abstractmethod
    def state(self) -> State:
        """State of one sequence [elements]."""

    @property
    @abstractmethod
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Heads and groups that ranks divide, by the names of their fields."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Elements that a token hands to the recurrence: the channels of its convolution, or Q, K and V."""

    @property
    @abstractmethod
    def blocks(self) -> int:
        """Number of heads or groups of channels of a sequence that are computed in parallel."""

    def chunks(self, tokens: int) -> int:
        """Count the chunks of a prompt, the last one computed as a whole; 1 for a layer without a field `chunk`."""
        size: int | None = getattr(self, "chunk", None)
        return 1 if size is None else -(-tokens // size)

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Elements of the output of a token, before the output projection."""

    @abstractmethod
    def decode_flops(self) -> int:
        """Count the FLOPs of one token besides the linear layers, with the state updated once [FLOP]."""

    @abstractmethod
    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt besides the linear layers, in chunks [FLOP]."""

    def matrices(self, hidden: int) -> int:
        """Count the weights of the linear layers [elements]."""
        return sum(rows * columns for _, rows, columns in self.projections(hidden))
