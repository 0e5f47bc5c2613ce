"""Ranges of the tiles of many problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from iomodel.counting.bound_call import CutAxis
from iomodel.counting.evaluation.arithmetic import NeedsExactError
from iomodel.errors import InputError
from iomodel.nests.alphabet import FOLLOWS
from iomodel.solving.batch.formulas import ManyParts, Values, take
from iomodel.solving.batch.many_problems import HUGE, TileRanges, align_up

Columns = Mapping[str, Values]


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems as flat columns: numbers of the workload, options, budget, alignment and least block_kv by name."""

    parts: ManyParts
    columns: Columns
    numbers: tuple[str, ...]
    packed: bool
    share: Fraction
    shape: tuple[int, ...]
    count: int

    def place(self, where: int) -> str:
        """Format the index of a problem for an error."""
        return f"; at index {tuple(map(int, np.unravel_index(where, self.shape)))}" if self.shape else ""


def some(tile: TileRanges, where: Any) -> TileRanges:
    """Select the ranges of some problems."""
    return TileRanges(*(take(values, where) for values in (tile.rows, tile.step, tile.first, tile.last)))


def ranges(batch: Batch, columns: Columns, where: Any) -> dict[str, TileRanges]:
    """Compute the ranges of :func:`iomodel.solving.parts.ranges_for` for every problem."""
    step, least_kv = columns["alignment"], columns["min_block_kv"]
    most = _most_kv(batch, columns, where)
    sizes = {}
    for part in batch.parts.arrays:
        for axis in part.formulas.axes:
            name = axis.tile
            rows = _rows(columns, axis)
            keys = name == "block_kv" or FOLLOWS.get(name) == "block_kv"
            first = align_up(np.minimum(least_kv, rows) if keys else 1, step)
            last = align_up(rows, step)
            if most is not None and name == "block_kv":
                last = np.where(most > 0, most // step * step, last)
            if np.any(wrong := first > last):
                at = np.flatnonzero(np.broadcast_to(wrong, where.shape))[0]
                least_rows, up_to = (int(np.broadcast_to(values, where.shape)[at]) for values in (least_kv, last))
                raise InputError(
                    f"min_block_kv: {least_rows} given; allowed: up to {up_to}, for at least one tile per split"
                    f"{batch.place(where[at])}"
                )
            sizes[name] = TileRanges(*map(_plain, (rows, step, first, last)))
    return sizes


def _plain(values: Any) -> Values:
    return values if isinstance(values, np.ndarray) and values.ndim else int(values)


def _rows(columns: Columns, axis: CutAxis) -> Values:
    rows, name = columns[axis.length], axis.length
    if not axis.packed:
        return rows
    group = columns["group"]
    if float(np.max(rows)) * float(np.max(group)) >= HUGE:
        raise NeedsExactError(name)
    return rows * group


def _most_kv(batch: Batch, columns: Columns, where: Any) -> Any:
    """Compute the largest key tile that leaves at least one tile per split; 0 for a single split."""
    splits, keys, step = columns.get("splits", 1), columns.get("top_k", columns["kv_len"]), columns["alignment"]
    if np.all(splits == 1):
        return None
    most = np.where(splits > 1, (keys - 1) // np.maximum(splits - 1, 1), 0)
    wrong = np.broadcast_to((splits > 1) & (most < step), where.shape)
    if wrong.any():
        at = np.flatnonzero(wrong)[0]
        parts, length, by = (int(np.broadcast_to(values, where.shape)[at]) for values in (splits, keys, step))
        raise InputError(
            f"splits: {parts} given; allowed: up to {-(-length // by)}, the tiles of {by} keys in {length}"
            f"{batch.place(where[at])}"
        )
    return most
