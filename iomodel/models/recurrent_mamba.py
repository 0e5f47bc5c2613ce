"""State-space layers and short convolutions: Mamba-1, Mamba-2, the convolution of LFM2."""

from __future__ import annotations

from typing import Literal

from iomodel.common.validation import Count
from iomodel.models.recurrent import Projection, RecurrentLayer, State
from iomodel.workloads.call import Switch

GROUP = 64
"""Channels of a thread block where channels are independent."""


class Mamba2(RecurrentLayer):
    """A state-space layer with one decay per head (arXiv:2405.21060).

    Parameters
    ----------
    heads, head_dim : heads, and channels per head [elements].
    state_dim, groups : width of B and of C [elements], and groups of heads that share them.
    kernel : width of the convolution [tokens].
    conv_bias, proj_bias : the convolution adds a bias; the linear layers add one.
    gate_norm : the gated output is normalised with weights.
    chunk : tokens per chunk of a prefill.

    Examples
    --------
    >>> Mamba2(heads=64, head_dim=64, state_dim=128, groups=8).state.bytes
    2134016
    """

    kind: Literal["mamba2"] = "mamba2"
    heads: Count
    head_dim: Count
    state_dim: Count
    groups: Count = 1
    kernel: Count = 4
    conv_bias: Switch = True
    proj_bias: Switch = False
    gate_norm: Switch = True
    chunk: Count = 256

    @property
    def inner(self) -> int:
        """Channels of all heads [elements]."""
        return self.heads * self.head_dim

    @property
    def channels(self) -> int:
        """Channels of the convolution: x, B and C [elements]."""
        return self.inner + 2 * self.groups * self.state_dim

    @property
    def inputs(self) -> int:
        """Channels of the convolution [elements]."""
        return self.channels

    @property
    def outputs(self) -> int:
        """Channels of all heads [elements]."""
        return self.inner

    @property
    def blocks(self) -> int:
        """Number of heads."""
        return self.heads

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Heads, and groups of them, that ranks divide."""
        return ("heads", self.heads), ("groups", self.groups)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        return ("in", hidden, self.inner + self.channels + self.heads), ("out", self.inner, hidden)

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution, decay, skip, step, norm, biases [elements]."""
        count = self.channels * (self.kernel + self.conv_bias) + 3 * self.heads + self.inner * self.gate_norm
        return count + self.proj_bias * sum(columns for _, _, columns in self.projections(hidden))

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(self.inner * self.state_dim, self.channels * (self.kernel - 1))

    def decode_flops(self) -> int:
        """Count the FLOPs of one token: convolution, decay, update, C h, skip [FLOP]."""
        return 2 * self.channels * self.kernel + self.inner * (5 * self.state_dim + 2)

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt: scores, products with x, states in, out and between chunks [FLOP]."""
        size, number = self.chunk, self.chunks(tokens)
        scores = self.groups * 2 * size * self.state_dim
        heads = self.inner * (2 * size + 4 * self.state_dim)
        passed = number * self.inner * self.state_dim
        return tokens * 2 * self.channels * self.kernel + size * number * (scores + heads) + passed


class Mamba1(RecurrentLayer):
    """A selective state-space layer with one decay per channel and state (arXiv:2312.00752).

    Parameters
    ----------
    inner, state_dim, rank : channels [elements]; states per channel; width between the projections to the step.
    kernel : width of the convolution [tokens].
    conv_bias, proj_bias : the convolution adds a bias; the linear layers add one.
    inner_norms : the step, B and C are normalised with weights (Jamba).

    Examples
    --------
    >>> Mamba1(inner=8192, state_dim=16, rank=256).state.bytes
    573440
    """

    kind: Literal["mamba1"] = "mamba1"
    inner: Count
    state_dim: Count
    rank: Count
    kernel: Count = 4
    conv_bias: Switch = True
    proj_bias: Switch = False
    inner_norms: Switch = False

    @property
    def inputs(self) -> int:
        """Channels of the convolution [elements]."""
        return self.inner

    @property
    def outputs(self) -> int:
        """Channels [elements]."""
        return self.inner

    @property
    def blocks(self) -> int:
        """Number of groups of channels."""
        return -(-self.inner // GROUP)

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Nothing: the projection to the step, B and C would need a sum over ranks that is not counted."""
        return (("ranks of a Mamba-1 layer", 1),)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        return (
            ("in", hidden, 2 * self.inner),
            ("x", self.inner, self.rank + 2 * self.state_dim),
            ("dt", self.rank, self.inner),
            ("out", self.inner, hidden),
        )

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution, bias of the step, decays, skip, norms, biases [elements]."""
        count = self.inner * (self.kernel + self.conv_bias + 1 + self.state_dim + 1)
        count += (self.rank + 2 * self.state_dim) * self.inner_norms
        return count + self.proj_bias * (2 * self.inner + hidden)

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(self.inner * self.state_dim, self.inner * (self.kernel - 1))

    def decode_flops(self) -> int:
        """Count the FLOPs of one token: convolution, decay, update, C h, skip [FLOP]."""
        return 2 * self.inner * self.kernel + self.inner * (5 * self.state_dim + 2)

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt: the recurrence, token by token [FLOP]."""
        return tokens * self.decode_flops()


class ShortConvolution(RecurrentLayer):
    """A gated convolution over a few tokens, as in LFM2: a state of inputs alone.

    Parameters
    ----------
    channels, kernel : channels [elements]; width of the convolution [tokens].
    bias : the convolution and the linear layers add a bias.

    Examples
    --------
    >>> ShortConvolution(channels=2048, kernel=3).state.bytes
    8192
    """

    kind: Literal["short_convolution"] = "short_convolution"
    channels: Count
    kernel: Count = 3
    bias: Switch = False

    @property
    def inputs(self) -> int:
        """Channels and their two gates [elements]."""
        return 3 * self.channels

    @property
    def outputs(self) -> int:
        """Channels [elements]."""
        return self.channels

    @property
    def blocks(self) -> int:
        """Number of groups of channels."""
        return -(-self.channels // GROUP)

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Channels that ranks divide."""
        return (("channels", self.channels),)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        return ("in", hidden, 3 * self.channels), ("out", self.channels, hidden)

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution and biases [elements]."""
        return self.channels * self.kernel + self.bias * (4 * self.channels + hidden)

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(0, self.channels * (self.kernel - 1))

    def decode_flops(self) -> int:
        """Count the FLOPs of one token: two gates, and the convolution [FLOP]."""
        return self.channels * (2 * self.kernel + 2)

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt [FLOP]."""
        return tokens * self.decode_flops()
