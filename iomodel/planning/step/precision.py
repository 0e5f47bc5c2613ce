"""Precisions of serving: the types of weights, products and cache that one name stands for.

Products of quantised weights run at the matrix rate of the type in which both operands are multiplied. Weights in fp8
and nvfp4 are multiplied with activations of their own type where the device has the rate on file; others
are converted to the type of the activations on chip ("w4a16").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from iomodel.devices.device import Hardware
from iomodel.errors import InputError, UnknownNameError


class Precision(NamedTuple):
    """Types that a precision stands for; None where the default of the model or the device holds."""

    weight_dtype: str
    linear_dtype: str | None
    kv_dtype: str | None


PRECISIONS = {
    "bf16": Precision("bf16", None, "bf16"),
    "fp8": Precision("fp8", None, "fp8"),
    "int8": Precision("int8", "int8", None),
    "fp4": Precision("nvfp4", None, "fp8"),
    "nvfp4": Precision("nvfp4", None, "fp8"),
    "mxfp4": Precision("mxfp4", None, None),
    "int4": Precision("int4-g128", None, None),
}
"""Precisions by name: fp4 is nvfp4 weights and activations, int8 W8A8, mxfp4 and int4 weights only."""
MULTIPLIED = {"fp8": "fp8", "nvfp4": "fp4"}
"""Type in which weights are multiplied with activations of their own type, if the device can."""
PRODUCTS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
"""Types of products of linear layers."""
ROW_TYPE = {"fp4": "fp8"}
"""Type of the rows of a product in HBM, where a byte per element is the narrowest that is counted."""


def with_precision(precision: object, types: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the types that are not given from a precision.

    Raises
    ------
    UnknownNameError
        The precision is unknown.

    Examples
    --------
    >>> with_precision("fp8", {"kv_dtype": "bf16", "weight_dtype": None})
    {'kv_dtype': 'bf16', 'weight_dtype': 'fp8', 'linear_dtype': None}
    """
    filled = dict(types)
    if precision is None:
        return filled
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    for name, value in PRECISIONS[precision]._asdict().items():
        filled[name] = value if filled.get(name) is None else filled[name]
    return filled


def as_linear_dtype(value: object) -> str | None:
    """Validate a type of products."""
    if value is None or (isinstance(value, str) and value in PRODUCTS):
        return value
    raise UnknownNameError("linear_dtype", value, PRODUCTS)


def own_products(device: Hardware) -> frozenset[str]:
    """List the types of weights that a device multiplies with activations of their own type."""
    return frozenset(weights for weights, kind in MULTIPLIED.items() if getattr(device.compute.peak, kind))


def check_products(device: Hardware, linear_dtype: str | None) -> None:
    """Raise InputError for a type of products without a rate on file."""
    if linear_dtype is None or getattr(device.compute.peak, linear_dtype, None):
        return
    known = [kind for kind in PRODUCTS if getattr(device.compute.peak, kind, None)]
    raise InputError(
        f"linear_dtype: {linear_dtype} given, but {device.id or device.name} has no such matrix peak on file; "
        f"allowed: {', '.join(known)}"
    )
