"""Matrix products of PyTorch as linear layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown_name
from iomodel.torch.operator_call import TYPES, OperatorCall
from iomodel.workloads.linear import Linear


class MatrixProduct(NamedTuple):
    """A matrix product: groups of rows x terms by terms x columns, with the tensor that is added to the result."""

    groups: int
    rows: int
    terms: int
    columns: int
    operand: str
    added: str | None = None

    @property
    def flops(self) -> int:
        """FLOPs, 2 per row, term and column [FLOP]."""
        return 2 * self.groups * self.rows * self.terms * self.columns


def _matrices(call: OperatorCall, first: str, second: str, added: str | None = None, axes: int = 2) -> MatrixProduct:
    """Read a product of two matrices or of two stacks of them; an addend with the factor 0 is not read."""
    *groups, rows, terms = call.tensor(first, axes).shape
    columns = call.tensor(second, axes).shape[-1]
    return MatrixProduct(prod(groups), rows, terms, columns, first, added if call.arguments.get("beta", 1) else None)


def _linear(call: OperatorCall) -> MatrixProduct:
    *rows, terms = call.tensor("input").shape or (1,)
    bias = "bias" if "bias" in call.inputs else None
    return MatrixProduct(1, prod(rows), terms, (call.tensor("weight").shape or (1,))[0], "input", bias)


def _mv(call: OperatorCall) -> MatrixProduct:
    rows, terms = call.tensor("self", 2).shape
    return MatrixProduct(1, rows, terms, 1, "self")


def _dot(call: OperatorCall) -> MatrixProduct:
    return MatrixProduct(1, 1, call.tensor("self", 1).shape[0], 1, "self")


PRODUCTS: Mapping[str, Callable[[OperatorCall], MatrixProduct]] = FrozenDict({
    "aten.mm": partial(_matrices, first="self", second="mat2"),
    "aten.addmm": partial(_matrices, first="mat1", second="mat2", added="self"),
    "aten.bmm": partial(_matrices, first="self", second="mat2", axes=3),
    "aten.baddbmm": partial(_matrices, first="batch1", second="batch2", added="self", axes=3),
    "aten.linear": _linear,
    "aten.mv": _mv,
    "aten.dot": _dot,
})  # fmt: skip
"""Operators that are one matrix product."""


def product_of(call: OperatorCall) -> MatrixProduct | None:
    """Return the product that an operator computes, if it is one."""
    reader = PRODUCTS.get(call.operator)
    return None if reader is None else reader(call)


def layer_of(call: OperatorCall, product: MatrixProduct) -> tuple[Linear | None, int]:
    """Return a product as a linear layer, with the bytes that it reads beside; None for other types [B].

    A bias of one row is part of the layer. Any other addend is read once beside it.
    """
    operand = call.tensor(product.operand)
    results = (*call.outputs, *map(call.tensor, call.written))
    if not results:
        raise InputError(
            f"outputs of {shown_name(call.operator)}: none given; allowed: the product, or an input that it changes"
        )
    result = results[0]
    if operand.dtype not in TYPES or result.dtype not in TYPES:
        return None, 0
    addend = None if product.added is None else call.tensor(product.added)
    row = addend is not None and addend.elements == product.columns and product.groups == 1 and product.rows > 1
    layer = Linear(
        rows=product.rows,
        in_features=product.terms,
        out_features=product.columns,
        groups=product.groups,
        dtype=TYPES[operand.dtype],
        out_dtype=TYPES[result.dtype],
        bias=row,
    )
    return layer, 0 if addend is None or row else addend.bytes
