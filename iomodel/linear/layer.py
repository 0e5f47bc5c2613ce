"""A linear layer on some rows: its widths, its types, which nest it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from iomodel.errors import InputError, UnknownNameError
from iomodel.linear.nest import Form
from iomodel.models.dtypes import WEIGHT_SIZE
from iomodel.validation import Count, Model
from iomodel.workload import ELEMENT_SIZE, DType

WEIGHT_QUARTERS: dict[str, int] = {
    **{name: 32 * size for name, size in ELEMENT_SIZE.items()},
    **{name: int(32 * size) for name, size in WEIGHT_SIZE.items()},
}
"""Size of an element of a weight in HBM, in quarters of a bit: 16 are half a byte, 17 that and its share of a scale."""


def _one_of(field: str, names: Iterable[str]) -> BeforeValidator:
    def known(value: Any) -> Any:
        if isinstance(value, str) and value in names:
            return value
        raise UnknownNameError(field, value, names)

    return BeforeValidator(known)


class Linear(Model):
    """A linear layer on some rows: Y = X W, or Y = act(X W_gate) * (X W_up) where it is gated.

    Parameters
    ----------
    rows, in_features, out_features : int
        Rows of X and Y (tokens) [rows]; widths of X and of Y [elements].
    groups : int
        Products of that shape, each with its own X and W [-].
    dtype : str
        Type of X in HBM, in which the products are taken; weights of another type are converted on chip.
    out_dtype : str, optional
        Type of Y, and of a bias, in HBM where it is not `dtype`.
    weight_dtype : str, optional
        Type of W in HBM where it is not `dtype`: "int4", half a byte an element, "mxfp4", "nvfp4" and so on.
    scale_block : int, optional
        Weights have a scale of `dtype` for each column and so many terms [elements]. The small scales of mxfp4 and
        nvfp4 are part of the weight.
    gated, bias : bool
        Two products of one X in one kernel; a row that is added to the result.

    Raises
    ------
    InputError
        A field is missing, unknown or no positive integer.

    Examples
    --------
    >>> layer = Linear(rows=8192, in_features=4096, out_features=14336)
    >>> layer.parameters, layer.flops
    (58720256, 962072674304)
    """

    rows: Count
    in_features: Count
    out_features: Count
    groups: Count = 1
    dtype: Annotated[DType, _one_of("dtype", ELEMENT_SIZE)] = "bf16"
    weight_dtype: Annotated[str, _one_of("weight_dtype", WEIGHT_QUARTERS)] = Field(
        default_factory=lambda data: data["dtype"]
    )
    out_dtype: Annotated[DType, _one_of("out_dtype", ELEMENT_SIZE)] = Field(default_factory=lambda data: data["dtype"])
    scale_block: Count | None = None
    gated: Annotated[bool, Field(strict=True)] = False
    bias: Annotated[bool, Field(strict=True)] = False

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
        """Elements of the weights, without biases and scales [elements]."""
        return self.groups * self.in_features * self.out_features * (2 if self.gated else 1)

    @property
    def flops(self) -> int:
        """2 for each row and weight [FLOP]."""
        return 2 * self.rows * self.parameters

    def form(self, splits: int = 1) -> Form:
        """Which nest it is."""
        return Form(splits > 1, self.gated, self.scale_block is not None, self.bias)

    def point(self, block_m: int, block_n: int, block_k: int, splits: int = 1) -> tuple[int, ...]:
        """The numbers of the formulas, in their order."""
        shape = (self.groups, self.rows, self.in_features, self.out_features, self.scale_block or 1)
        sizes = ELEMENT_SIZE[self.dtype], WEIGHT_QUARTERS[self.weight_dtype], ELEMENT_SIZE[self.out_dtype]
        return (*shape, *sizes, block_m, block_n, block_k, splits)
