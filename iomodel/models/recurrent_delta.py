"""Layers with a linear recurrence of keys and values: gated delta rule, KDA, lightning attention.

FLOPs follow the reference code of Hugging Face transformers, with whole chunks of scores.
"""

from __future__ import annotations

from typing import Literal

from iomodel.common.validation import Count
from iomodel.models.recurrent import Projection, RecurrentLayer, State


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
    def channels(self) -> int:
        """Width of Q, K and V together, the channels of the convolution [elements]."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def inputs(self) -> int:
        """Width of Q, K and V together [elements]."""
        return self.channels

    @property
    def outputs(self) -> int:
        """Width of V [elements]."""
        return self.value_heads * self.value_dim

    @property
    def blocks(self) -> int:
        """Number of heads."""
        return self.value_heads

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Heads that ranks divide."""
        return ("key_heads", self.key_heads), ("value_heads", self.value_heads)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        values = self.value_heads * self.value_dim
        heads = self.value_heads
        return (
            ("qkv", hidden, self.channels),
            ("z", hidden, values),
            ("b", hidden, heads),
            ("a", hidden, heads),
            ("out", values, hidden),
        )

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: convolution, decay, norm [elements]."""
        return self.channels * self.kernel + 2 * self.value_heads + self.value_dim

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(self.value_heads * self.key_dim * self.value_dim, self.channels * (self.kernel - 1))

    def decode_flops(self) -> int:
        """Count the FLOPs of one token: convolution, decay, k S, update, q S [FLOP]."""
        return 2 * self.channels * self.kernel + self.value_heads * 7 * self.key_dim * self.value_dim

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt: products within chunks and with the state, and a triangle solved [FLOP]."""
        keys, values, size = self.key_dim, self.value_dim, self.chunk
        within = 2 * size * (2 * keys + values) + 6 * keys * values
        solve = size * (keys + values)
        return tokens * 2 * self.channels * self.kernel + self.value_heads * size * self.chunks(tokens) * (
            within + solve
        )


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
    def inner(self) -> int:
        """Width of all heads [elements]."""
        return self.heads * self.head_dim

    @property
    def inputs(self) -> int:
        """Width of Q, K and V together, the channels of the convolutions [elements]."""
        return 3 * self.inner

    @property
    def outputs(self) -> int:
        """Width of V [elements]."""
        return self.inner

    @property
    def blocks(self) -> int:
        """Number of heads."""
        return self.heads

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Heads that ranks divide."""
        return (("heads", self.heads),)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        wide = self.inner
        first = tuple((name, hidden, wide) for name in ("q", "k", "v"))
        forget = _in_two("f", hidden, wide, self.forget_rank)
        gate = _in_two("g", hidden, wide, self.gate_rank)
        return *first, *forget, ("b", hidden, self.heads), *gate, ("out", wide, hidden)

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: convolutions, decay, norm [elements]."""
        return 3 * self.inner * self.kernel + self.inner + self.heads + self.head_dim

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(self.inner * self.head_dim, 3 * self.inner * (self.kernel - 1))

    def _as_delta(self) -> GatedDeltaNet:
        """Return the gated delta rule with the same products; the decay per channel changes none of them."""
        width = self.head_dim
        return GatedDeltaNet(
            key_heads=self.heads,
            value_heads=self.heads,
            key_dim=width,
            value_dim=width,
            kernel=self.kernel,
            chunk=self.chunk,
        )

    def decode_flops(self) -> int:
        """Count the FLOPs of one token besides the linear layers [FLOP]."""
        return self._as_delta().decode_flops()

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt besides the linear layers, in chunks [FLOP]."""
        return self._as_delta().prefill_flops(tokens)


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
    def inputs(self) -> int:
        """Width of Q, K and V together [elements]."""
        return 3 * self.outputs

    @property
    def outputs(self) -> int:
        """Width of V [elements]."""
        return self.heads * self.head_dim

    @property
    def blocks(self) -> int:
        """Number of heads."""
        return self.heads

    @property
    def divided(self) -> tuple[tuple[str, int], ...]:
        """Heads that ranks divide."""
        return (("heads", self.heads),)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """List every linear layer, from a row of `hidden` elements and back."""
        wide = self.heads * self.head_dim
        return ("qkv", hidden, 3 * wide), ("g", hidden, wide), ("out", wide, hidden)

    def vectors(self, hidden: int) -> int:  # noqa: ARG002 - the same for all layers
        """Count the remaining weights: a norm over all heads [elements]."""
        return self.heads * self.head_dim

    @property
    def state(self) -> State:
        """State of one sequence [elements]."""
        return State(self.heads * self.head_dim**2, 0)

    def decode_flops(self) -> int:
        """Count the FLOPs of one token: decay, update, q S [FLOP]."""
        return self.heads * 5 * self.head_dim**2

    def prefill_flops(self, tokens: int) -> int:
        """Count the FLOPs of a prompt: products within blocks and with the state [FLOP]."""
        width = self.head_dim
        whole = self.chunk * self.chunks(tokens)
        return self.heads * whole * (4 * self.chunk * width + 4 * width**2)
