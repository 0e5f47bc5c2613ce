"""Layers with a state of fixed size instead of a cache: linear recurrences of keys and values, state spaces, and short
convolutions.

FLOPs follow the reference code of Hugging Face transformers, with whole chunks of scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

from iomodel.common.validation import Count
from iomodel.devices.quantity import Group
from iomodel.models.indexer import Projection
from iomodel.workloads.call import Switch

STATE_BYTES = 4
"""Size of an element of a recurrent state, fp32 [B]."""
CONVOLUTION_BYTES = 2
"""Size of an input kept by a convolution, bf16 [B]."""
CHANNELS = 64
"""Channels of a thread block where channels are independent."""


class State(NamedTuple):
    """The state of one sequence: of the recurrence, and inputs kept by a convolution [elements]."""

    recurrent: int
    convolution: int

    @property
    def bytes(self) -> int:
        """Size of the state [B]."""
        return self.sized(STATE_BYTES)

    def sized(self, element: int) -> int:
        """Compute the size of the state with elements of the recurrence of some size [B].

        >>> State(recurrent=100, convolution=10).sized(2)
        220
        """
        return element * self.recurrent + CONVOLUTION_BYTES * self.convolution


class Widths(NamedTuple):
    """Widths and counts of a recurrent layer, which follow from its fields.

    Attributes
    ----------
    inputs, outputs : elements that a token hands to the recurrence, and elements of its output [elements].
    convolved : channels of the convolution; 0 without one [elements].
    state : elements of the recurrent state of a sequence [elements].
    blocks : heads, or groups of channels, of a sequence that are computed in parallel [-].
    divided : heads and groups that ranks divide, by the names of their fields.
    step_flops : FLOPs of one token besides the convolution and the linear layers, with the state updated once [FLOP].
    chunk_flops : the same of a whole chunk of a prompt [FLOP]; None for a recurrence token by token.
    """

    inputs: int
    outputs: int
    convolved: int
    state: int
    blocks: int
    divided: tuple[tuple[str, int], ...]
    step_flops: int
    chunk_flops: int | None = None


class RecurrentLayer(Group, ABC):
    """The part of a decoder layer that mixes tokens through a state.

    A kind of layer states its widths, its linear layers and its other weights.
    """

    @property
    @abstractmethod
    def widths(self) -> Widths:
        """Widths and counts that follow from the fields."""

    @abstractmethod
    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""

    @abstractmethod
    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolutions, decays, biases, norms [elements]."""

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        kernel: int = getattr(self, "kernel", 1)
        return State(self.widths.state, self.widths.convolved * (kernel - 1))

    def chunks(self, tokens: int) -> int:
        """Count the chunks of a prompt, the last one computed as a whole; 1 for a layer without a field `chunk`."""
        size: int | None = getattr(self, "chunk", None)
        return 1 if size is None else -(-tokens // size)

    def convolution_flops(self, tokens: int) -> int:
        """Count the FLOPs of the convolution [FLOP]; 0 without one."""
        kernel: int = getattr(self, "kernel", 1)
        return 2 * tokens * self.widths.convolved * kernel

    def decode_flops(self) -> int:
        """Count the FLOPs of one token besides the linear layers, with the state updated once [FLOP]."""
        return self.convolution_flops(1) + self.widths.step_flops

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt besides the linear layers, in chunks [FLOP]."""
        each = self.widths.chunk_flops
        update = tokens * self.widths.step_flops if each is None else self.chunks(tokens) * each
        return self.convolution_flops(tokens) + update


class GatedDeltaNet(RecurrentLayer):
    """A gated delta rule with one decay per head (arXiv:2412.06464), as in Qwen3-Next.

    Parameters
    ----------
    key_heads, value_heads : heads of Q and K, and of V and the state.
    key_dim, value_dim : widths of a row of K and of V [elements].
    kernel : width of the convolution over Q, K and V [tokens].
    chunk : tokens per chunk of a prefill.

    Examples
    --------
    >>> GatedDeltaNet(key_heads=16, value_heads=32, key_dim=128, value_dim=128, kernel=4).state.bytes
    2146304
    """

    kind: Literal["gated_deltanet"] = "gated_deltanet"
    key_heads: Count
    value_heads: Count
    key_dim: Count
    value_dim: Count
    kernel: Count = 4
    chunk: Count = 64

    @property
    def widths(self) -> Widths:
        values = self.value_heads * self.value_dim
        channels = 2 * self.key_heads * self.key_dim + values
        divided = ("key_heads", self.key_heads), ("value_heads", self.value_heads)
        return _delta_rule(channels, self.value_heads, self.key_dim, self.value_dim, self.chunk, divided)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        channels, values, heads = self.widths.inputs, self.widths.outputs, self.value_heads
        gates = ("z", hidden, values), ("b", hidden, heads), ("a", hidden, heads)
        return ("qkv", hidden, channels), *gates, ("out", values, hidden)

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: convolution, decay, norm [elements]."""
        return self.widths.convolved * self.kernel + 2 * self.value_heads + self.value_dim


def _delta_rule(
    channels: int, heads: int, keys: int, values: int, chunk: int, divided: tuple[tuple[str, int], ...]
) -> Widths:
    """Return the widths of a delta rule; a decay per channel changes none of its products."""
    step = 7 * keys * values  # decay, k S, update, q S
    within = 2 * chunk * (2 * keys + values) + 6 * keys * values
    solve = chunk * (keys + values)  # the triangle of a chunk
    flops = heads * step, heads * chunk * (within + solve)
    return Widths(channels, heads * values, channels, heads * keys * values, heads, divided, *flops)


class KimiDelta(RecurrentLayer):
    """A gated delta rule with one decay per channel, KDA (arXiv:2510.26692).

    Parameters
    ----------
    heads, head_dim : heads, and the width of a row of Q, K and V [elements].
    kernel : width of the convolutions [tokens].
    forget_rank, gate_rank : width between the two projections to the decay, and to the output gate; None for one
        projection.
    chunk : tokens per chunk of a prefill.

    Examples
    --------
    >>> KimiDelta(heads=32, head_dim=128).state.bytes
    2170880
    """

    kind: Literal["kda"] = "kda"
    heads: Count
    head_dim: Count
    kernel: Count = 4
    forget_rank: Count | None = None
    gate_rank: Count | None = None
    chunk: Count = 64

    @property
    def widths(self) -> Widths:
        width, divided = self.head_dim, (("heads", self.heads),)
        return _delta_rule(3 * self.heads * width, self.heads, width, width, self.chunk, divided)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        wide = self.widths.outputs
        first = tuple((name, hidden, wide) for name in ("q", "k", "v"))
        forget, gate = _in_two("f", hidden, wide, self.forget_rank), _in_two("g", hidden, wide, self.gate_rank)
        return *first, *forget, ("b", hidden, self.heads), *gate, ("out", wide, hidden)

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: convolutions, decay, norm [elements]."""
        return self.widths.convolved * self.kernel + self.widths.outputs + self.heads + self.head_dim


def _in_two(name: str, hidden: int, wide: int, rank: int | None) -> tuple[Projection, ...]:
    if rank is None:
        return ((name, hidden, wide),)
    return (f"{name}_a", hidden, rank), (f"{name}_b", rank, wide)


class LightningAttention(RecurrentLayer):
    """Linear attention with a constant decay per head (arXiv:2401.04658), as in MiniMax-Text-01.

    Parameters
    ----------
    heads, head_dim : heads, and the width of a row of Q, K and V [elements].
    chunk : tokens per block of a prefill.

    Examples
    --------
    >>> LightningAttention(heads=64, head_dim=128).state.bytes
    4194304
    """

    kind: Literal["lightning"] = "lightning"
    heads: Count
    head_dim: Count
    chunk: Count = 256

    @property
    def widths(self) -> Widths:
        outputs, state = self.heads * self.head_dim, self.heads * self.head_dim**2
        step, chunk = 5 * state, self.chunk * (4 * self.chunk * outputs + 4 * state)  # decay, update, q S
        return Widths(3 * outputs, outputs, 0, state, self.heads, (("heads", self.heads),), step, chunk)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        wide = self.widths.outputs
        return ("qkv", hidden, 3 * wide), ("g", hidden, wide), ("out", wide, hidden)

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: a norm over all heads [elements]."""
        return self.widths.outputs


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
    def widths(self) -> Widths:
        inner, size = self.heads * self.head_dim, self.chunk
        state, channels = inner * self.state_dim, inner + 2 * self.groups * self.state_dim  # x, B and C
        divided = ("heads", self.heads), ("groups", self.groups)
        scores, products = self.groups * 2 * size * self.state_dim, 2 * size * inner + 4 * state
        chunk = size * (scores + products) + state  # with the state handed to the next chunk
        return Widths(channels, inner, channels, state, self.heads, divided, 5 * state + 2 * inner, chunk)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        inner = self.widths.outputs
        return ("in", hidden, inner + self.widths.convolved + self.heads), ("out", inner, hidden)

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution, decay, skip, step, norm, biases [elements]."""
        convolution = self.widths.convolved * (self.kernel + self.conv_bias)
        biases = self.proj_bias * sum(columns for _, _, columns in self.projections(hidden))
        return convolution + 3 * self.heads + self.widths.outputs * self.gate_norm + biases


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
    def widths(self) -> Widths:
        inner, state = self.inner, self.inner * self.state_dim
        # Ranks divide nothing: the projection to the step, B and C would need a sum over ranks that is not counted.
        undivided = (("ranks of a Mamba-1 layer", 1),)
        return Widths(inner, inner, inner, state, -(-inner // CHANNELS), undivided, 5 * state + 2 * inner)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        step = ("x", self.inner, self.rank + 2 * self.state_dim), ("dt", self.rank, self.inner)
        return ("in", hidden, 2 * self.inner), *step, ("out", self.inner, hidden)

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution, bias of the step, decays, skip, norms, biases [elements]."""
        count = self.inner * (self.kernel + self.conv_bias + 1 + self.state_dim + 1)
        count += (self.rank + 2 * self.state_dim) * self.inner_norms
        return count + self.proj_bias * (2 * self.inner + hidden)


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
    def widths(self) -> Widths:
        wide = self.channels  # gated before the convolution and after it
        return Widths(3 * wide, wide, wide, 0, -(-wide // CHANNELS), (("channels", wide),), 2 * wide)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        return ("in", hidden, 3 * self.channels), ("out", self.channels, hidden)

    def vectors(self, hidden: int) -> int:
        """Count the remaining weights: convolution and biases [elements]."""
        return self.channels * self.kernel + self.bias * (4 * self.channels + hidden)
