"""Operators of PyTorch that compute products, each declared once: what it computes, and the switch of its precision."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.attention_calls import attention_of, is_attention
from iomodel.torch.convolutions import CONVOLUTIONS, convolution_of
from iomodel.torch.operator_call import TYPES, OperatorCall, OperatorWork
from iomodel.torch.products import PRODUCTS
from iomodel.torch.recurrent import RECURRENT, recurrent_of


class Multiplying(NamedTuple):
    """An operator with products: the reader of a call, and PyTorch's switch that lets products of fp32 run in TF32."""

    read: Callable[[OperatorCall], OperatorWork]
    switch: str = ""


OPERATORS: Mapping[str, Multiplying] = FrozenDict({
    **{name: Multiplying(read, "matmul") for name, read in PRODUCTS.items()},
    **dict.fromkeys(CONVOLUTIONS, Multiplying(convolution_of, "cudnn")),
    RECURRENT: Multiplying(recurrent_of, "cudnn"),
})  # fmt: skip
"""Operators with products by name, beside those of attention."""
ATTENTION = Multiplying(attention_of)
OWN = ("aten", "prims", "higher_order")
"""Namespaces of PyTorch's own operators."""
_MULTIPLY = re.compile(
    r"linalg_(?!vector_norm|norm|cross|diagonal)|conv|rnn|lstm|gru|einsum|cdist|bilinear|trilinear|mm(_|$)|matmul|matrix_exp"
    r"|cholesky|inverse|solve|svd|qr$|geqrf|ormqr|_eig|(^|_)lu(_|$)|(^|_)det$|lstsq|attention|_int4pack|_int8pack"
)


def multiplying(operator: str) -> Multiplying | None:
    """Return the declaration of an operator with products, if it has one."""
    return ATTENTION if is_attention(operator) else OPERATORS.get(operator)


def work_of(call: OperatorCall) -> OperatorWork | None:
    """Return the products of a call, if its operator declares them."""
    declared = multiplying(call.operator)
    return None if declared is None else declared.read(call)


def may_multiply(operator: str) -> bool:
    """Check whether an undeclared operator may compute products: by its name, or because it is not PyTorch's own.

    >>> [may_multiply(name) for name in ("aten.add", "aten.linalg_solve", "engine.rotary")]
    [False, True, True]
    """
    namespace, _, name = operator.partition(".")
    return namespace not in OWN or (multiplying(operator) is None and bool(_MULTIPLY.search(name)))


def product_type(call: OperatorCall) -> str:
    """Name the type of the products of an operator: TF32 where PyTorch's switches let fp32 run in it."""
    tensors = (*call.inputs.values(), *call.outputs)
    dtype = next((tensor.dtype for tensor in tensors if tensor.dtype in TYPES or "float" in tensor.dtype), "float32")
    if dtype == "float32" and call.arguments.get("tf32"):
        return "tf32"
    return TYPES.get(dtype, {"float64": "fp64"}.get(dtype, dtype))
