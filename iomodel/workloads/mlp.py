"""Two-layer MLPs of a decoder, and those of experts with different numbers of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.workloads.call import ElementType, Pass, Switch
from iomodel.workloads.linear import WEIGHT_QUARTERS, StoredType
from iomodel.workloads.varlen import Lengths
from iomodel.workloads.workload import Mixed, Shape


class MLP(Shape):
    """A two-layer MLP on some rows: Y = (act(X W_gate) * (X W_up)) W_down, or Y = act(X W_up) W_down.

    Parameters
    ----------
    rows, in_features, hidden_features : int
        Rows of X and Y (tokens) [rows]; width of X and Y, and between the layers [elements].
    groups : int
        Number of MLPs of this shape, each with separate rows and weights, such as experts with as many tokens [-].
    dtype : str
        Type of X, of the hidden rows and of Y in HBM, and of the products.
    weight_dtype : str, optional
        Type of the weights in HBM, if different from `dtype`: "int4" (half a byte per element), "mxfp4", "nvfp4" and so
        on, with the share of a small scale. They are converted on chip.
    gated : bool
        True for three matrices, False for two.
    direction : {"forward", "backward", "both"}
        The pass: Y; the gradients of X and of the weights, from the products before the activation; or one after the
        other.

    Raises
    ------
    InputError
        A field is missing, unknown, or not a positive integer.

    References
    ----------
    Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, equation 6 (SwiGLU).

    Examples
    --------
    >>> layer = MLP(rows=8192, in_features=4096, hidden_features=14336)
    >>> layer.parameters, layer.flops
    (176160768, 2886218022912)
    """

    operation: ClassVar[str] = "mlp"

    rows: Count
    in_features: Count
    hidden_features: Count
    groups: Count = 1
    dtype: ElementType = "bf16"
    weight_dtype: StoredType = Field(default_factory=lambda data: data["dtype"])
    gated: Switch = True
    direction: Pass = "forward"

    @property
    def parameters(self) -> int:
        """Number of weights, without scales [elements]."""
        return self.groups * self.in_features * self.hidden_features * (3 if self.gated else 2)

    @property
    def flops(self) -> int:
        """FLOPs, 2 per row and weight in a forward pass, twice as many in a backward pass [FLOP]."""
        return {"forward": 2, "backward": 4, "both": 6}[self.direction] * self.rows * self.parameters

    @property
    def features(self) -> tuple[str, ...]:
        """Features that change the nest: "gated"."""
        return ("gated",) if self.gated else ()

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element in HBM, in quarters of a bit."""
        return min(32 * self.element_size, WEIGHT_QUARTERS[self.weight_dtype])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Value of every symbol of an MLP, keyed by its Python name, in alphabet order."""
        shape = {name: getattr(self, name) for name in ("groups", "rows", "in_features", "hidden_features")}
        sizes = {"element_size": self.element_size, "weight_size": WEIGHT_QUARTERS[self.weight_dtype]}
        return FrozenDict({**shape, **sizes})


class Experts(Mixed):
    """The MLPs of several experts in one call, each on its own rows: :class:`MLP` with a number of rows per expert.

    A tile never has rows of two experts, so every expert with tokens moves its weights at least once.

    Parameters
    ----------
    loads : sequence of int
        Rows of each expert that has any: its tokens [rows]. A shared expert has all tokens.
    in_features, hidden_features, dtype, weight_dtype, gated, direction :
        As for :class:`MLP`, common to all experts.

    Raises
    ------
    InputError
        There is no expert; a load is no positive integer; MLP rejects a field.

    References
    ----------
    Gale, Narayanan, Young and Zaharia, MegaBlocks, arXiv:2211.15841, section 4.

    Examples
    --------
    >>> import iomodel
    >>> layer = Experts(loads=[100, 1, 30], in_features=64, hidden_features=32)
    >>> tiles = {"block_m": 64, "block_n": 32, "block_k": 16}
    >>> iomodel.cost("split_mlp", layer, tiles).reads["W_down"]  # by 2 + 1 + 1 tiles of rows
    8192
    """

    operation: ClassVar[str] = "mlp"

    loads: Lengths
    in_features: Count
    hidden_features: Count
    dtype: ElementType = "bf16"
    weight_dtype: StoredType = Field(default_factory=lambda data: data["dtype"])
    gated: Switch = True
    direction: Pass = "forward"

    @cached_property
    def sequences(self) -> tuple[MLP, ...]:
        """Every distinct load, as a separate call with its multiplicity as groups."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "loads"}
        return tuple(MLP(**fields, rows=rows, groups=times) for rows, times in Counter(self.loads).items())

    @cached_property
    def longest(self) -> MLP:
        """The call of the expert with the most rows, whose footprint no other exceeds."""
        return max(self.sequences, key=lambda call: call.rows)

    @property
    def lengths(self) -> Mapping[str, tuple[int, ...]]:
        """The loads, by the name of their symbol."""
        return FrozenDict(rows=self.loads)

    @cached_property
    def columns(self) -> tuple[Any, ...]:
        """Values of all symbols in the order of the alphabet; arrays over the distinct loads where these differ."""
        points = [call.numbers for call in self.sequences]
        varied = {name: np.array([point[name] for point in points]) for name in ("groups", "rows")}
        for array in varied.values():
            array.flags.writeable = False  # cached on the workload
        return tuple({**points[0], **varied}.values())

    @property
    def unit(self) -> tuple[int, ...]:
        """Values of all symbols of one expert with one row."""
        return self.longest.model_copy(update={"rows": 1, "groups": 1}).point

    @property
    def flops(self) -> int:
        """FLOPs, 2 per row and weight in a forward pass, twice as many in a backward pass [FLOP]."""
        return sum(call.flops for call in self.sequences)

    @property
    def features(self) -> tuple[str, ...]:
        """Features that change the nest: "gated"."""
        return self.longest.features

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element in HBM, in quarters of a bit."""
        return self.longest.narrowest
