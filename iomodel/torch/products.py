"""Matrix products of PyTorch as linear layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown_name
from iomodel.torch.moved_bytes import results_of
from iomodel.torch.operator_call import TYPES, OperatorCall, OperatorWork
from iomodel.workloads.linear import Linear


@dataclass(frozen=True)
class MatrixProduct(OperatorWork):
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

    def workload(self, call: OperatorCall) -> Linear | None:
        """Return the product as a linear layer, if its types are those of one."""
        return layer_of(call, self)[0]


def _matrices(call: OperatorCall, first: str, second: str, added: str | None = None, axes: int = 2) -> MatrixProduct:
    """Read a product of two matrices or of two stacks of them; an addend with the factor 0 is not read."""
    *groups, rows, terms = call.tensor(first, axes).shape
    columns = call.tensor(second, axes).shape[-1]
    read = call.arguments.get("beta", 1) and added in call.inputs
    return MatrixProduct(prod(groups), rows, terms, columns, first, added if read else None)


def _linear(call: OperatorCall) -> MatrixProduct:
    *rows, terms = call.tensor("input").shape or (1,)
    bias = "bias" if "bias" in call.inputs else None
    return MatrixProduct(1, prod(rows), terms, (call.tensor("weight").shape or (1,))[0], "input", bias)


def _mv(call: OperatorCall) -> MatrixProduct:
    rows, terms = call.tensor("self", 2).shape
    return MatrixProduct(1, rows, terms, 1, "self")


def _dot(call: OperatorCall) -> MatrixProduct:
    return MatrixProduct(1, 1, call.tensor("self", 1).shape[0], 1, "self")


def _addmv(call: OperatorCall) -> MatrixProduct:
    rows, terms = call.tensor("mat", 2).shape
    return MatrixProduct(1, rows, terms, 1, "mat", "self" if call.arguments.get("beta", 1) else None)


def _addbmm(call: OperatorCall) -> MatrixProduct:
    groups, rows, terms = call.tensor("batch1", 3).shape
    return MatrixProduct(1, rows, groups * terms, call.tensor("batch2", 3).shape[-1], "batch1", "self")


def _grouped(call: OperatorCall) -> MatrixProduct:
    """Read a product whose rows, columns or terms are divided among groups; each row meets one group."""
    first, second = call.tensor("self"), call.tensor("mat2")
    stacked = {2: first.shape[-2:], 3: first.shape[1:]}.get(len(first.shape))
    if stacked is None or len(second.shape) not in (2, 3):
        raise InputError(
            f"inputs of {shown_name(call.operator)}: {first.shape} and {second.shape} given; allowed: 2 or 3 axes"
        )
    rows, terms = stacked
    groups = first.shape[0] if len(first.shape) == 3 and len(second.shape) == 3 else 1
    return MatrixProduct(groups, rows, terms, second.shape[-1], "self", "bias" if "bias" in call.inputs else None)


PRODUCTS: Mapping[str, Callable[[OperatorCall], MatrixProduct]] = FrozenDict({
    "aten.mm": partial(_matrices, first="self", second="mat2"),
    "aten.addmm": partial(_matrices, first="mat1", second="mat2", added="self"),
    "aten.bmm": partial(_matrices, first="self", second="mat2", axes=3),
    "aten.baddbmm": partial(_matrices, first="batch1", second="batch2", added="self", axes=3),
    "aten.linear": _linear,
    "aten.mv": _mv,
    "aten.dot": _dot,
    "aten.vdot": _dot,
    "aten.addmv": _addmv,
    "aten.addbmm": _addbmm,
    "aten._addmm_activation": partial(_matrices, first="mat1", second="mat2", added="self"),
    "aten._scaled_mm": partial(_matrices, first="self", second="mat2", added="bias"),
    "aten._int_mm": partial(_matrices, first="self", second="mat2"),
    "aten._grouped_mm": _grouped,
    "aten._scaled_grouped_mm": _grouped,
})  # fmt: skip
"""Operators that are one matrix product."""


def layer_of(call: OperatorCall, product: MatrixProduct) -> tuple[Linear | None, int]:
    """Return a product as a linear layer, with the bytes that it reads beside; None for other types [B].

    A bias of one row is part of the layer. Any other addend is read once beside it.
    """
    operand = call.tensor(product.operand)
    results = results_of(call)
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
        dtype="tf32" if call.arguments.get("tf32") and operand.dtype == "float32" else TYPES[operand.dtype],
        out_dtype=TYPES[result.dtype],
        bias=row,
    )
    return layer, 0 if addend is None or row else addend.bytes
