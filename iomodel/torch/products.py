"""Matrix products of PyTorch as linear layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.operator_call import TYPES, OperatorCall
from iomodel.workloads.linear import Linear


class Product(NamedTuple):
    """A matrix product: groups of rows x terms by terms x columns, with what is added to the result."""

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
    rows, terms = call.inputs["self"].shape
    return Product(1, rows, terms, call.inputs["mat2"].shape[1], "self")


def _addmm(call: OperatorCall) -> Product:
    rows, terms = call.inputs["mat1"].shape
    return Product(1, rows, terms, call.inputs["mat2"].shape[1], "mat1", _added(call, "self"))


def _bmm(call: OperatorCall) -> Product:
    groups, rows, terms = call.inputs["self"].shape
    return Product(groups, rows, terms, call.inputs["mat2"].shape[2], "self")


def _baddbmm(call: OperatorCall) -> Product:
    groups, rows, terms = call.inputs["batch1"].shape
    return Product(groups, rows, terms, call.inputs["batch2"].shape[2], "batch1", _added(call, "self"))


def _linear(call: OperatorCall) -> Product:
    *rows, terms = call.inputs["input"].shape
    bias = "bias" if "bias" in call.inputs else None
    return Product(1, prod(rows), terms, call.inputs["weight"].shape[0], "input", bias)


def _mv(call: OperatorCall) -> Product:
    rows, terms = call.inputs["self"].shape
    return Product(1, rows, terms, 1, "self")


def _dot(call: OperatorCall) -> Product:
    return Product(1, 1, call.inputs["self"].shape[0], 1, "self")


def _added(call: OperatorCall, name: str) -> str | None:
    """The name of an addend, if its factor is not 0; a product with factor 0 does not read it."""
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
    operand = call.inputs[product.operand]
    result = call.outputs[0] if call.outputs else call.inputs[call.written[0]]
    if operand.dtype not in TYPES or result.dtype not in TYPES:
        return None, 0
    addend = None if product.added is None else call.inputs[product.added]
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
