"""The tile that an implementation ships for a call on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.devices.device import Hardware
from iomodel.nests.implementation import Implementation, ShippedTile
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.window import Window
from iomodel.workloads.workload import stored

LIKE = {"sm_100": "sm_90", "sm_103": "sm_90", "sm_121": "sm_120"}
"""Architectures whose tiles are those of another where a table has none of their own: the sources choose by compute
capability 8.x above 8.0 (FlashAttention-2's launch templates, CUTLASS's Sm80 kernels) or by the shared memory of an SM
(FlashInfer), which are alike."""
ROWS = (8, 16, 32, 64, 128)
"""Numbers of rows that the tables distinguish."""


def shipped_tile(
    implementation: Implementation, call: Attention | VarlenAttention, hardware: Hardware, options: Mapping[str, Any]
) -> Mapping[str, int] | None:
    """Return the tile that an implementation ships for a call; None where its table has none."""
    row = shipped_row(implementation, call, hardware, options)
    return None if row is None else row.tiles


def shipped_row(
    implementation: Implementation, call: Attention | VarlenAttention, hardware: Hardware, options: Mapping[str, Any]
) -> ShippedTile | None:
    """Return the row of an implementation's table for a call; None where it has none."""
    words = _words(call, options)
    if words is None:
        return None
    known = [
        row
        for row in implementation.tiles
        if row.direction == call.direction
        and row.head_dim >= call.head_dim
        and row.value_dim >= call.value_dim
        and (not row.dtypes or stored(call.dtype) in row.dtypes)
    ]
    own = hardware.architecture or ""
    rows = [row for row in known if row.architecture in ("", own)]
    rows = rows or [row for row in known if row.architecture == LIKE.get(own)]
    narrowest = min(((row.head_dim, row.value_dim) for row in rows), default=None)
    matched = [(row.match(words), row) for row in rows if (row.head_dim, row.value_dim) == narrowest]
    scores = [score for score, _ in matched if score is not None]
    return next(row for score, row in matched if score == max(scores)) if scores else None


def _rows(call: Attention | VarlenAttention) -> int:
    """Count the rows of a group of heads, those of the longest sequence."""
    return call.longest.q_len * call.group


def _words(call: Attention | VarlenAttention, options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the words for a call in tables of tiles; None for a mask given by data, which no table covers."""
    mask = call.mask
    if isinstance(mask, BlockMask):
        return None
    if isinstance(mask, Documents):
        kind = "causal" if mask.causal else "full"
    elif isinstance(mask, Window):
        kind = "window" if mask.left is not None else "full" if mask.right is None else "causal"
    else:
        kind = str(mask)
    return frozenset(
        {
            kind,
            "dropout" if call.dropout else "no dropout",
            "several splits" if options.get("splits", 1) > 1 else "one split",
            *(["paged"] if call.page_size else []),
            *(["softcap"] if call.softcap else []),
            *(f"up to {most} rows" for most in ROWS if _rows(call) <= most),
        }
    )
