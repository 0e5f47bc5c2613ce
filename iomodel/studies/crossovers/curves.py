"""Values of a metric at points of an axis: counts at given or best tiles, or times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from iomodel.counting.cost_array import cost_array
from iomodel.counting.kinds import kind_of
from iomodel.counting.options import check_options, structural
from iomodel.counting.requirements import met
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.alphabet import OPTIONS
from iomodel.placement.budget import budget_of
from iomodel.solving.batch.formulas import many_parts
from iomodel.solving.solve_many import solve_array
from iomodel.studies.crossovers.contenders import AXES, METRICS, Contender, VariedAxis
from iomodel.studies.estimate import estimate
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call

NEITHER = 2
"""The sign of a pair where neither has a value."""


@dataclass(frozen=True)
class Curve:
    """The metric of one contender along an axis: seconds, counts at given tiles, or counts at the best tiles."""

    contender: Contender
    workload: Attention
    axis: VariedAxis
    metric: str
    budget: Mapping[str, Any]

    def __post_init__(self) -> None:
        memory = sorted(set(self.budget) - {"alignment"})
        if self.metric == "time":
            if self.axis.memory:
                lasting = ", ".join(name for name, axis in AXES.items() if not axis.memory)
                raise InputError(f"over: {self.axis.name} given with metric 'time'; allowed: {lasting}")
            if list(self.budget) != ["hardware"]:
                beside = next((f"{name} given" for name in self.budget if name != "hardware"), "none given")
                raise InputError(f"hardware: {beside} with metric 'time'; allowed: a device alone, such as 'h100-sxm5'")
        elif self.axis.memory and memory and not self.contender.tiles:
            raise InputError(f"over: {self.axis.name} given with {memory[0]}; allowed: one of the two")
        elif not (self.fixed or memory or self.axis.memory):
            own = ", ".join(self.contender.formulas(self.workload).own_tiles)
            raise InputError(
                f"tiles: none given for {self.contender.label}, nor a budget; allowed: its tiles {own}, or one of "
                "hardware, sram_bytes, sram_elements"
            )

    @property
    def fixed(self) -> bool:
        """True if the values are counts at tiles that are constant along the axis."""
        if self.metric == "time":
            return False
        budgeted = self.axis.memory or set(self.budget) - {"alignment"}
        return bool(self.contender.tiles) or not (budgeted or self.contender.formulas(self.workload).tiles)

    @property
    def fast(self) -> bool:
        """True if many points are evaluated quickly: by closed forms, or by the array solver without a mask."""
        w = self.workload
        if self.fixed:
            return w.page_size is None or w.mask == "full"
        if self.metric == "time" or w.mask != "full":
            return False
        declaration, kind = self.contender.declaration, kind_of(w)
        complete = structural(check_options(declaration, self.contender.options, True, kind.direction))
        taken = tuple(entry.name for entry in OPTIONS if entry.name in declaration.takes(kind.direction))
        unit = "elements" if "sram_elements" in (*self.budget, self.axis.name) else "B"
        return many_parts(declaration, kind, complete, taken, unit) is not None

    def answers(self, points: Any) -> Any:
        """Mark the points at which the requirements of the algorithm hold, at the smallest tiles if none are given."""
        declaration, w, tiles = self.contender.declaration, self.workload, self.contender.tiles
        if not (tiles or self.fixed or self.metric == "time"):
            alignment, device = self.budget.get("alignment"), self.budget.get("hardware")
            least = alignment or (budget_of(device, None, None, None).alignment if device is not None else 1)
            tiles = dict.fromkeys(self.contender.formulas(w).tiles, int(least))
        numbers = {**w.numbers, "mask": w.mask, **dict.fromkeys(self.axis.fields, points)}
        numbers |= {**declaration.takes(w.direction), **self.contender.options, **tiles}
        return np.array(np.broadcast_to(met(declaration, numbers), len(points)))

    def at(self, points: Any) -> tuple[Any, Any]:
        """Return the values at integers of the axis, and a mask of the points that have one."""
        present = self.answers(points)
        if self.metric == "time":
            return self._seconds(points, present)
        inside = points[present]
        if not len(inside):
            return np.zeros(len(points), dtype=np.int64), present
        if self.fixed:
            counts = self.counted(inside, self.contender.tiles)
        else:
            counts, feasible = self._at_best_tiles(inside)
            present[present] = feasible
        values = np.zeros(len(points), dtype=counts.dtype)
        values[present] = counts
        return values, present

    def _call(self, points: Any) -> dict[str, Any]:
        fields = {name: getattr(self.workload, name) for name in (*Call.model_fields, "batch", "q_len", "kv_len")}
        return {**fields, **dict.fromkeys(self.axis.fields, points), **self.contender.options}

    def counted(self, points: Any, tiles: Mapping[str, Any]) -> Any:
        """Count the metric at tiles."""
        costs = cost_array(self.contender.algorithm, **self._call(points), **tiles)
        return np.broadcast_to(getattr(costs, METRICS[self.metric].quantity), points.shape)

    def _at_best_tiles(self, points: Any) -> tuple[Any, Any]:
        budget = {**self.budget, self.axis.name: points} if self.axis.memory else self.budget
        solved = solve_array(
            self.contender.algorithm, implementation="textbook", **budget, **self._call(points), infeasible="mark"
        )
        feasible = np.broadcast_to(solved.feasible, points.shape)
        if self.metric == "bytes" or not feasible.any():
            return np.broadcast_to(solved.hbm_bytes, points.shape)[feasible], feasible
        tiles = {name: np.broadcast_to(sizes, points.shape)[feasible] for name, sizes in solved.tiles.items()}
        return self.counted(points[feasible], tiles), feasible

    def _seconds(self, points: Any, present: Any) -> tuple[Any, Any]:
        values = np.zeros(len(points))
        contender, device = self.contender, self.budget["hardware"]
        for place in np.flatnonzero(present):
            call = self.workload.model_copy(update=dict.fromkeys(self.axis.fields, int(points[place])))
            try:
                timed = estimate(contender.algorithm, call, device, contender.tiles or None, **contender.options)
            except (InfeasibleError, InputError) as error:
                if isinstance(error, InputError) and not contender.declaration.requires:
                    raise
                present[place] = False  # no tile fits, or none that meets the requirements of the algorithm
            else:
                values[place] = timed.seconds
        return values, present


class CurveValues(NamedTuple):
    """Values of all contenders at points of the axis in ascending order, and masks of those that exist."""

    points: Any
    values: list[Any]
    present: list[Any]

    def below(self, i: int, j: int) -> Any:
        """Mark the points at which one contender is below another, or alone has a value."""
        return self.present[i] & (~self.present[j] | (self.values[i] < self.values[j]))

    def signs(self, i: int, j: int) -> Any:
        """Compare two contenders: -1 where the first is below, 0 where they are equal, 1 above, else NEITHER."""
        codes = np.subtract(self.below(j, i), self.below(i, j), dtype=np.int8)
        codes[~(self.present[i] | self.present[j])] = NEITHER
        return codes

    def least(self) -> Any:
        """Return a bit mask of the contenders with the least value at each point; 0 where none has a value."""
        codes = sum(present.astype(np.int64) << i for i, present in enumerate(self.present))
        for i, j in combinations(range(len(self.values)), 2):
            codes = codes & ~(self.below(j, i).astype(np.int64) << i) & ~(self.below(i, j).astype(np.int64) << j)
        return codes

    def merged(self, more: CurveValues) -> CurveValues:
        """Return the values at the points of both, in ascending order."""
        order = np.argsort(np.r_[self.points, more.points], kind="stable")
        values, present = (
            [np.concatenate(pair)[order] for pair in zip(mine, others, strict=True)]
            for mine, others in ((self.values, more.values), (self.present, more.present))
        )
        return CurveValues(np.r_[self.points, more.points][order], values, present)


def runs(points: Any, codes: Any) -> tuple[Any, Any, Any]:
    """Return the first point, the last point and the code of every run of equal codes."""
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    ends = np.r_[starts[1:] - 1, len(codes) - 1]
    return points[starts], points[ends], codes[starts]
