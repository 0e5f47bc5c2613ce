"""What may be varied: lengths, widths, the batch, on-chip memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Symbol

from iomodel.block_mask import BlockMask
from iomodel.documents import Documents
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.symbols import B, M, N, N_k, N_q, d
from iomodel.workload import Attention, Call


@dataclass(frozen=True)
class Axis:
    """A quantity that is varied: the fields of the call that it stands for, its letter, its unit.

    `limit` is where one stops looking if nobody says where.
    """

    name: str
    fields: tuple[str, ...]
    symbol: Symbol
    unit: str
    limit: int
    meaning: str

    @property
    def memory(self) -> bool:
        """Whether it is the budget of on-chip memory."""
        return not self.fields


AXES = {
    axis.name: axis
    for axis in (
        Axis("length", ("q_len", "kv_len"), N, "rows", 65536, "queries and keys a head, as many of both"),
        Axis("q_len", ("q_len",), N_q, "rows", 65536, "queries a head"),
        Axis("kv_len", ("kv_len",), N_k, "rows", 65536, "keys a head"),
        Axis("head_dim", ("head_dim", "value_dim"), d, "elements", 1024, "width of a row of Q and K"),
        Axis("batch", ("batch",), B, "-", 1024, "sequences"),
        Axis("sram_elements", (), M, "elements", 65536, "on-chip memory in elements"),
        Axis("sram_bytes", (), M, "B", 262144, "on-chip memory in bytes"),
    )
}
"""What may be varied, by name."""


def axis_for(over: object, workload: Attention) -> Axis:
    """The axis of that name for a call: a value_dim of its own stays as it is."""
    if not isinstance(over, str) or over not in AXES:
        raise UnknownNameError("over", over, AXES)
    axis = AXES[over]
    if {"q_len", "kv_len"} & set(axis.fields) and isinstance(workload.mask, BlockMask | Documents):
        raise InputError(f"mask: {shown(workload.mask)} given; allowed: full, causal or a Window, for {over} varies")
    if over == "head_dim" and workload.value_dim != workload.head_dim:
        return Axis(over, ("head_dim",), axis.symbol, axis.unit, axis.limit, axis.meaning)
    return axis


def fields_at(workload: Attention, axis: Axis, points: Any) -> dict[str, Any]:
    """The fields of the call, those of the axis as arrays (one and the same for all of them)."""
    fields = {name: getattr(workload, name) for name in (*Call.model_fields, "batch", "q_len", "kv_len")}
    return {**fields, **dict.fromkeys(axis.fields, points)}
