"""Two-layer MLPs of a decoder: widths and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, get_args

from pydantic import Field

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.workloads.call import ELEMENT_SIZE, Direction, DType, Switch
from iomodel.workloads.linear import WEIGHT_QUARTERS
from iomodel.workloads.workload import Shape, one_of


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
    dtype: Annotated[DType, one_of("dtype", ELEMENT_SIZE)] = "bf16"
    weight_dtype: Annotated[str, one_of("weight_dtype", WEIGHT_QUARTERS)] = Field(
        default_factory=lambda data: data["dtype"]
    )
    gated: Switch = True
    direction: Annotated[Direction, one_of("direction", get_args(Direction))] = "forward"

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
