"""What a contender moves, computes or takes at many points of an axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from iomodel.budget import budget_of
from iomodel.cost_array import cost_array
from iomodel.crossings.axes import Axis, fields_at
from iomodel.crossings.contenders import Contender
from iomodel.crossings.metrics import COUNTS
from iomodel.errors import InfeasibleError, InputError
from iomodel.estimate import estimate
from iomodel.expressions import check_options, kind_of, structural
from iomodel.hardware import Hardware
from iomodel.many.formulas import many_parts
from iomodel.requirements import met
from iomodel.solve_many import solve_many
from iomodel.symbols import OPTIONS
from iomodel.workload import Attention


class Values(NamedTuple):
    """Values at points, and where there are any: not where no tile fits or the algorithm does not answer."""

    values: Any
    there: Any


class Curve(Protocol):
    """A contender over an axis."""

    @property
    def asked(self) -> Asked:
        """Who, and what is varied."""
        ...

    @property
    def cheap(self) -> bool:
        """Whether many points at once take little time."""
        ...

    def at(self, points: Any) -> Values:
        """The values at integers of the axis."""
        ...


@dataclass(frozen=True)
class Asked:
    """A contender, the call, what is varied and what is looked at."""

    contender: Contender
    workload: Attention
    axis: Axis
    metric: str

    def answers(self, points: Any, tiles: Mapping[str, int]) -> Any:
        """Where what the algorithm requires of its numbers holds; what it requires of unknown tiles is left alone."""
        found, w = self.contender.found, self.workload
        numbers = {**w.numbers, "mask": w.mask, **dict.fromkeys(self.axis.fields, points)}
        numbers |= {**found.takes(w.direction), **self.contender.options, **tiles}
        return np.array(np.broadcast_to(met(found, numbers), len(points)))

    def counted(self, points: Any, tiles: Mapping[str, Any]) -> Any:
        """The metric at tiles."""
        fields = fields_at(self.workload, self.axis, points)
        found = cost_array(self.contender.algorithm, **fields, **tiles, **self.contender.options)
        return np.broadcast_to(getattr(found, COUNTS[self.metric][0]), points.shape)


def filled(points: Any, there: Any, values: Any) -> Values:
    """Values where there are any, 0 elsewhere."""
    whole = np.zeros(len(points), dtype=values.dtype)
    whole[there] = values
    return Values(whole, there)


@dataclass(frozen=True)
class Fixed:
    """Counts at tiles that stay."""

    asked: Asked

    @property
    def cheap(self) -> bool:
        """Whether its counts are formulas, not walks over data."""
        return self.asked.workload.page_size is None or self.asked.workload.mask == "full"

    def at(self, points: Any) -> Values:
        """The counts."""
        tiles = self.asked.contender.tiles
        there = self.asked.answers(points, tiles)
        if not there.any():
            return Values(np.zeros(len(points), dtype=np.int64), there)
        return filled(points, there, self.asked.counted(points[there], tiles))


@dataclass(frozen=True)
class Solved:
    """Counts at the tiles of least traffic under a budget, solved at every point."""

    asked: Asked
    budget: Mapping[str, Any]

    @property
    def cheap(self) -> bool:
        """Without a mask the solver takes a microsecond a problem; with one, or one by one, it may take much longer."""
        asked, contender = self.asked, self.asked.contender
        if asked.workload.mask != "full":
            return False
        found, kind = contender.found, kind_of(asked.workload)
        complete = check_options(found, contender.options, True, kind.direction)
        taken = tuple(entry.name for entry in OPTIONS if entry.name in found.takes(kind.direction))
        unit = "elements" if "sram_elements" in (*self.budget, asked.axis.name) else "B"
        return many_parts(found.name, kind, structural(complete), taken, unit) is not None

    @property
    def _smallest(self) -> int:
        """The smallest tile there is: where it leaves too few for as many splits, no other does."""
        hardware, alignment = self.budget.get("hardware"), self.budget.get("alignment")
        return int(alignment or (budget_of(hardware, None, None, None).alignment if hardware is not None else 1))

    def at(self, points: Any) -> Values:
        """The counts."""
        asked, name = self.asked, self.asked.contender.algorithm
        there = asked.answers(points, dict.fromkeys(asked.contender.formulas.tiles, self._smallest))
        if not there.any():
            return Values(np.zeros(len(points), dtype=np.int64), there)
        some = points[there]
        budget = {**self.budget, asked.axis.name: some} if asked.axis.memory else self.budget
        fields = fields_at(asked.workload, asked.axis, some)
        found = solve_many(name, **budget, **fields, **asked.contender.options, infeasible="mark")
        there[there] = np.broadcast_to(found.feasible, some.shape)
        feasible = np.broadcast_to(found.feasible, some.shape)
        if asked.metric == "bytes" or not feasible.any():
            return filled(points, there, np.broadcast_to(found.hbm_bytes, some.shape)[feasible])
        tiles = {tile: np.broadcast_to(sizes, some.shape)[feasible] for tile, sizes in found.tiles.items()}
        return filled(points, there, asked.counted(some[feasible], tiles))


@dataclass(frozen=True)
class Timed:
    """Seconds on a device, at tiles that stay or at the fastest of every point."""

    asked: Asked
    hardware: Hardware
    cheap: bool = False
    _known: dict[int, float | None] = field(default_factory=dict, repr=False, compare=False)

    def at(self, points: Any) -> Values:
        """The seconds, of each point once."""
        there = self.asked.answers(points, self.asked.contender.tiles)
        found = [self._seconds(int(point)) if here else None for point, here in zip(points, there, strict=True)]
        present = np.array([one is not None for one in found], dtype=bool)
        return Values(np.array([0.0 if one is None else one for one in found]), present)

    def _seconds(self, point: int) -> float | None:
        if point not in self._known:
            asked, contender = self.asked, self.asked.contender
            call = asked.workload.model_copy(update=dict.fromkeys(asked.axis.fields, point))
            try:
                seconds = estimate(contender.algorithm, call, self.hardware, self._tiles, **contender.options).seconds
            except (InfeasibleError, InputError) as error:
                if isinstance(error, InputError) and not contender.found.requires:
                    raise
                self._known[point] = None  # no tile fits, or none that meets what the algorithm requires
            else:
                self._known[point] = seconds
        return self._known[point]

    @cached_property
    def _tiles(self) -> Mapping[str, int] | None:
        contender = self.asked.contender
        return {**contender.tiles, **contender.launch} or None
