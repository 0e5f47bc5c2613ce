"""Linear layers on a number of rows: widths and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import Count
from iomodel.errors import InputError, shown
from iomodel.workloads.call import ELEMENT_SIZE, ElementType, Switch
from iomodel.workloads.dtypes import WEIGHT_SIZE
from iomodel.workloads.workload import Shape, one_of

WEIGHT_QUARTERS: dict[str, int] = {
    **{name: 32 * size for name, size in ELEMENT_SIZE.items()},
    **{name: int(32 * size) for name, size in WEIGHT_SIZE.items() if (32 * size).denominator == 1},
}
"""Size of a weight in HBM, in quarters of a bit: 16 are half a byte, 17 include the share of a scale. Types with a
smaller share of a scale are left out: `scale_block` counts scales of any block."""
StoredType = Annotated[str, one_of(WEIGHT_QUARTERS)]
"""Type of weights in HBM."""


class Linear(Shape):
    """A linear layer on some rows: Y = X W, or Y = act(X W_gate) * (X W_up) if gated.

    Parameters
    ----------
    rows, in_features, out_features : int
        Rows of X and Y (tokens) [rows]; widths of X and of Y [elements].
    groups : int
        Number of products of this shape, each with separate X and W [-].
    dtype : str
        Type of X in HBM, and of the products; weights of another type are converted on chip.
    out_dtype : str, optional
        Type of Y and of a bias in HBM, if different from `dtype`.
    weight_dtype : str, optional
        Type of W in HBM, if different from `dtype`: "int4" (half a byte per element), "mxfp4", "nvfp4" and so on.
    scale_block : int, optional
        Terms per scale of `dtype` in each column [elements]. The small scales of mxfp4 and nvfp4 are part of the
        weight.
    gated, bias : bool
        Two products of the same X in one kernel; a row added to the result.

    Raises
    ------
    InputError
        A field is missing, unknown, or not a positive integer.

    Examples
    --------
    >>> layer = Linear(rows=8192, in_features=4096, out_features=14336)
    >>> layer.parameters, layer.flops
    (58720256, 962072674304)
    """

    operation: ClassVar[str] = "linear"
    direction: ClassVar[str] = "forward"

    rows: Count
    in_features: Count
    out_features: Count
    groups: Count = 1
    dtype: ElementType = "bf16"
    weight_dtype: StoredType = Field(default_factory=lambda data: data["dtype"])
    out_dtype: ElementType = Field(default_factory=lambda data: data["dtype"])
    scale_block: Count | None = None
    gated: Switch = False
    bias: Switch = False

    @model_validator(mode="before")
    @classmethod
    def _none_is_absent(cls, data: Any) -> Any:
        if isinstance(data, dict):
            follows = ("weight_dtype", "out_dtype")
            return {name: value for name, value in data.items() if value is not None or name not in follows}
        return data

    @model_validator(mode="after")
    def _one_epilogue(self) -> Self:
        if self.gated and self.bias:
            raise InputError("bias: given with gated = True; allowed: one of the two")
        return self

    @property
    def parameters(self) -> int:
        """Number of weights, without biases and scales [elements]."""
        return self.groups * self.in_features * self.out_features * (2 if self.gated else 1)

    @property
    def flops(self) -> int:
        """FLOPs, 2 per row and weight [FLOP]."""
        return 2 * self.rows * self.parameters

    @property
    def features(self) -> tuple[str, ...]:
        """Features that change the nest of the layer: "gated", "scaled", "bias"."""
        has = {"gated": self.gated, "scaled": self.scale_block is not None, "bias": self.bias}
        return tuple(name for name, present in has.items() if present)

    @property
    def narrowest(self) -> int:
        """Size of the narrowest element of X, W and Y in HBM, in quarters of a bit."""
        return min(32 * ELEMENT_SIZE[self.dtype], WEIGHT_QUARTERS[self.weight_dtype], 32 * ELEMENT_SIZE[self.out_dtype])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Value of every symbol of a linear layer, keyed by its Python name, in alphabet order."""
        shape = {
            "groups": self.groups,
            "rows": self.rows,
            "in_features": self.in_features,
            "out_features": self.out_features,
            "scale_block": self.scale_block or 1,
        }
        sizes = {
            "element_size": self.element_size,
            "weight_size": WEIGHT_QUARTERS[self.weight_dtype],
            "out_element_size": ELEMENT_SIZE[self.out_dtype],
        }
        return FrozenDict({**shape, **sizes})


def as_linear(workload: object) -> Linear:
    """Validate a Linear, or raise InputError."""
    if not isinstance(workload, Linear):
        raise InputError(f"workload: {shown(workload)} given; allowed: an iomodel.Linear")
    return workload
