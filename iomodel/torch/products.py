"""Matrix products of PyTorch as linear layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown_name
from iomodel.torch.operator_call import TYPES, OperatorCall
from iomodel.workloads.linear import Linear


class Product(NamedTuple):
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


def _mm(call: OperatorCall) -> Product:
    rows, terms = call.tensor("self", 2).shape
    return Product(1, rows, terms, call.tensor("mat2", 2).shape[1], "self")


def _addmm(call: OperatorCall) -> Product:
    rows, terms = call.tensor("mat1", 2).shape
    return Product(1, rows, terms, call.tensor("mat2", 2).shape[1], "mat1", _added(call, "self"))


def _bmm(call: OperatorCall) -> Product:
    groups, rows, terms = call.tensor("self", 3).shape
    return Product(groups, rows, terms, call.tensor("mat2", 3).shape[2], "self")


def _baddbmm(call: OperatorCall) -> Product:
    groups, rows, terms = call.tensor("batch1", 3).shape
    return Product(groups, rows, terms, call.tensor("batch2", 3).shape[2], "batch1", _added(call, "self"))


def _linear(call: OperatorCall) -> Product:
    *rows, terms = call.tensor("input").shape or (1,)
    bias = "bias" if "bias" in call.inputs else None
    return Product(1, prod(rows), terms, (call.tensor("weight").shape or (1,))[0], "input", bias)


def _mv(call: OperatorCall) -> Product:
    rows, terms = call.tensor("self", 2).shape
    return Product(1, rows, terms, 1, "self")


def _dot(call: OperatorCall) -> Product:
    return Product(1, 1, call.tensor("self", 1).shape[0], 1, "self")


def _added(call: OperatorCall, name: str) -> str | None:
    """Return the name of an addend, if its factor is not 0; a product with factor 0 does not read it."""
    return name if call.arguments.get("beta", 1) else None


PRODUCTS: Mapping[str, Callable[[OperatorCall], Product]] = FrozenDict({
    "aten.mm": _mm,
    "aten.addmm": _addmm,
    "aten.bmm": _bmm,
    "aten.baddbmm": _baddbmm,
    "aten.linear": _linear,
    "aten.mv": _mv,
    "aten.dot": _dot,
})  # fmt: skip
"""Operators that are one matrix product."""


def product_of(call: OperatorCall) -> Product | None:
    """Return the product that an operator computes, if it is one."""
    reader = PRODUCTS.get(call.operator)
    return None if reader is None else reader(call)


def layer_of(call: OperatorCall, product: Product) -> tuple[Linear | None, int]:
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
