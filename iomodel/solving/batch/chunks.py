"""Search of arrays of problems in pieces that fit the processor's cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iomodel.counting.evaluation.arithmetic import NeedsExactError
from iomodel.nests.alphabet import WORKLOAD
from iomodel.solving.batch.formulas import Values, take
from iomodel.solving.batch.many_problems import HUGE
from iomodel.solving.batch.ranges import Batch, Columns, ranges, some
from iomodel.solving.batch.separable_answers import Magnitudes, answers_of

PIECE = 8192
"""Number of problems in a piece."""


@dataclass
class Results:
    """The results of all problems, 0 where nothing fits; `exact` lists the problems that arrays cannot solve."""

    count: int
    tiles: dict[str, Any]
    bytes: Any = field(init=False)
    least: Any = field(init=False)
    needed: Any = field(init=False)
    exact: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bytes, self.least, self.needed = (np.zeros(self.count, dtype=np.int64) for _ in range(3))

    def note(self, where: int, tiles: Mapping[str, int], spent: int, least: int) -> None:
        """Store the result of one problem; missing tiles become 0."""
        for name, sizes in self.tiles.items():
            sizes[where] = tiles.get(name, 0)
        self.bytes = with_exact(self.bytes, where, spent)
        self.least = with_exact(self.least, where, least)


def with_exact(values: Any, where: int, value: int) -> Any:
    """Set one value of an array, converted to Python integers if the value exceeds 64 bits."""
    values = values.astype(object) if value >= 2**63 else values
    values[where] = value
    return values


def solve_batch(batch: Batch, names: Sequence[str]) -> Results:
    """Search every problem; problems that exceed 64 bits are listed in `exact`."""
    results = Results(batch.count, {name: np.zeros(batch.count, dtype=np.int64) for name in names})
    stack = [np.arange(start, min(start + PIECE, batch.count)) for start in range(0, batch.count, PIECE)]
    while stack:
        where = stack.pop()
        try:
            with np.errstate(over="ignore"):  # weights wrap around where their count is 0
                _piece(batch, where, results)
        except (NeedsExactError, OverflowError):
            if len(where) == 1:
                results.exact.append(int(where[0]))
            else:
                stack += [where[: len(where) // 2], where[len(where) // 2 :]]
    return results


def _piece(batch: Batch, where: Any, results: Results) -> None:
    columns = {name: take(values, where) for name, values in batch.columns.items()}
    sizes = ranges(batch, columns, where)
    point = _point(batch, columns)
    bounds = Magnitudes(point, len(where))
    able = bounds.fit(batch.parts.rest_sizes, (1, 1), (1, 1))
    needed = batch.parts.rest_footprint.at(point, len(where))(None, 0, 0)
    for part in batch.parts.arrays:
        u, v = (sizes[name] for name in part.formulas.names)
        able &= bounds.fit(part.occupied, (u.first, u.last), (v.first, v.last))
        needed = np.maximum(needed, part.footprint.value.at(point, len(where))(None, u.first, v.first))
    results.exact += where[~able].tolist()
    results.needed[where] = needed
    chosen = np.flatnonzero(able & (needed <= columns["budget"]))
    if not len(chosen):
        return
    if len(chosen) < len(where):
        where, columns = where[chosen], {name: take(values, chosen) for name, values in columns.items()}
        sizes, point = {name: some(tile, chosen) for name, tile in sizes.items()}, _point(batch, columns)
    spent = least = batch.parts.rest_traffic.at(point, len(where))(None, 0, 0)
    hard = np.zeros(len(where), dtype=bool)
    tiles: dict[str, Any] = {}
    for part in batch.parts.arrays:
        names = part.formulas.names
        answers = answers_of(part, point, [sizes[name] for name in names], columns["budget"], batch.share, len(where))
        if float(spent.max()) + float(answers.bytes.max()) >= HUGE:
            raise NeedsExactError
        spent, least = spent + answers.bytes, least + answers.least
        hard |= answers.hard
        tiles |= dict(zip(names, (answers.outer, answers.inner), strict=True))
    results.bytes[where], results.least[where] = spent, least
    for name, chosen_sizes in tiles.items():
        results.tiles[name][where] = chosen_sizes
    results.exact += where[hard].tolist()


def _point(batch: Batch, columns: Columns) -> list[Values]:
    return [columns[name] for name in (*(entry.name for entry in WORKLOAD), *batch.numbers)]
