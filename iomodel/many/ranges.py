"""The sizes that the tiles of many problems may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from iomodel.arithmetic import NeedsExactError
from iomodel.errors import InputError
from iomodel.many.formulas import ManyParts, Values, take
from iomodel.many.problem import HUGE, Sizes, align_up
from iomodel.nest import Axis
from iomodel.symbols import FOLLOWS, NAME_OF
from iomodel.tensors import query

Columns = Mapping[str, Values]


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems laid out in a row: every number of workload, options, budget, alignment, least block_kv by name."""

    parts: ManyParts
    columns: Columns
    numbers: tuple[str, ...]
    packed: bool
    share: Fraction
    shape: tuple[int, ...]
    count: int

    def place(self, where: int) -> str:
        """The index of a problem, as an error names it."""
        return f"; at index {tuple(map(int, np.unravel_index(where, self.shape)))}" if self.shape else ""


def some(tile: Sizes, where: Any) -> Sizes:
    """Those of some problems."""
    return Sizes(*(take(values, where) for values in (tile.rows, tile.step, tile.first, tile.last)))


def ranges(batch: Batch, columns: Columns, where: Any) -> dict[str, Sizes]:
    """What :func:`iomodel.question.ranges_for` says, for every problem."""
    step, least_kv = columns["alignment"], columns["min_block_kv"]
    most = _most_kv(batch, columns, where)
    found = {}
    for part in batch.parts.arrays:
        for symbol, axis in part.formulas.part.axes.items():
            name = NAME_OF[symbol]
            rows = _rows(columns, axis, batch.packed)
            keys = name == "block_kv" or FOLLOWS.get(name) == "block_kv"
            first = align_up(np.minimum(least_kv, rows) if keys else 1, step)
            last = align_up(rows, step)
            if most is not None and name == "block_kv":
                last = np.where(most > 0, most // step * step, last)
            if np.any(wrong := first > last):
                at = np.flatnonzero(np.broadcast_to(wrong, where.shape))[0]
                given, up_to = (int(np.broadcast_to(values, where.shape)[at]) for values in (least_kv, last))
                raise InputError(
                    f"min_block_kv: {given} given; allowed: up to {up_to}, for as many tiles as splits"
                    f"{batch.place(where[at])}"
                )
            found[name] = Sizes(*map(_plain, (rows, step, first, last)))
    return found


def _plain(values: Any) -> Values:
    return values if isinstance(values, np.ndarray) and values.ndim else int(values)


def _rows(columns: Columns, axis: Axis, packed: bool) -> Values:
    rows, name = columns[NAME_OF[axis.length]], NAME_OF[axis.length]
    if not packed or axis != query:
        return rows
    group = columns["group"]
    if float(np.max(rows)) * float(np.max(group)) >= HUGE:
        raise NeedsExactError(name)
    return rows * group


def _most_kv(batch: Batch, columns: Columns, where: Any) -> Any:
    """The largest key tile of which there are as many as splits, 0 where that is no matter."""
    splits, keys, step = columns.get("splits", 1), columns["kv_len"], columns["alignment"]
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
