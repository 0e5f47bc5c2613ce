"""How wide a weight is in each type it is released in."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator

from iomodel.errors import UnknownNameError
from iomodel.workload import ELEMENT_SIZE

WEIGHT_SIZE: dict[str, Fraction] = {
    "fp32": Fraction(4),
    "fp16": Fraction(2),
    "bf16": Fraction(2),
    "fp8": Fraction(1),
    "int8": Fraction(1),
    "int4": Fraction(1, 2),
    "mxfp4": Fraction(17, 32),
    "nvfp4": Fraction(9, 16),
}
"""Size of a weight [B]. The scales of mxfp4 (a byte for 32 weights) and nvfp4 (a byte for 16) are counted; those of
fp8, int8 and int4 are not: their blocks differ, and are large."""

QUANTISED = frozenset({"fp8", "int8", "int4", "mxfp4", "nvfp4"})
"""Types of matrices only: embeddings, norms, biases and routers stay wide, and so does the cache."""

WIDE = "bf16"
"""What stays wide in a quantised model is of this type."""


def known_dtype(given: object, field: str = "dtype") -> str:
    """The name itself, if weights may be of this type.

    >>> known_dtype("fp4")
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownNameError: dtype: 'fp4' is unknown; did you mean 'nvfp4'? allowed: fp32, fp16, bf16, fp8, ...
    """
    if isinstance(given, str) and given in WEIGHT_SIZE:
        return given
    raise UnknownNameError(field, given, WEIGHT_SIZE)


def known_kv_dtype(given: object) -> str:
    """The name itself, if a cache may be of this type."""
    if isinstance(given, str) and given in ELEMENT_SIZE:
        return given
    raise UnknownNameError("kv_dtype", given, ELEMENT_SIZE)


def wide(dtype: str) -> str:
    """The type of what is not quantised in a model of this type."""
    return WIDE if dtype in QUANTISED else dtype


def served(dtype: str) -> str:
    """The type that a model released in this type runs in: one in fp32 too, for tensor cores do not multiply that."""
    return WIDE if dtype == "fp32" else wide(dtype)


def in_bytes(weights: int, dtype: str) -> int:
    """What so many weights occupy, up to a whole byte [B].

    >>> in_bytes(32, "mxfp4"), in_bytes(3, "int4")
    (17, 2)
    """
    size = WEIGHT_SIZE[dtype]
    return -(-weights * size.numerator // size.denominator)


def _known(value: Any) -> Any:
    return known_dtype(value)


WeightType = Annotated[str, BeforeValidator(_known)]
"""A field that holds the name of a type of weights."""
