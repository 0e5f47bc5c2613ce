"""Summary of a sweep: its dimensions, and the points where each quantity is least and largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.common.display import Result, Table
from iomodel.studies.sweeps.dataset import described
from iomodel.studies.sweeps.plan import SweepPlan, plain

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Extreme = tuple[int, Mapping[str, Any]]
"""A value, and the first point at which it occurs."""


@dataclass(frozen=True)
class Summary(Result):
    """The summary of a sweep.

    Attributes
    ----------
    dimensions : mapping of name to int
        The size of each dimension.
    points, chunks : int
        The number of calls, and of chunks of the computation [-].
    computed : int or None
        The chunks computed by this run, without those already stored; None if nothing was to be computed.
    extremes : mapping of variable to (least, largest)
        The least and the largest value, each with its point.
    out : str or None
        The path of the result.
    """

    dimensions: Mapping[str, int]
    points: int
    chunks: int
    computed: int | None
    extremes: Mapping[str, tuple[Extreme, Extreme]]
    out: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "dimensions": dict(self.dimensions),
            "points": self.points,
            "chunks": self.chunks,
            "computed": self.computed,
            "quantities": {
                name: {
                    "units": described(name)["units"],
                    **{which: {"value": value, "at": dict(point)} for which, (value, point) in _both(extremes)},
                }
                for name, extremes in self.extremes.items()
            },
            "out": self.out,
        }

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        there = "" if self.computed is None else f", of which {self.computed:,} were computed now"
        title = f"{self.points:,} points, chunks: {self.chunks:,}{there}"
        rows = [(f"dimension {name}", f"{size:,}", "-", "") for name, size in self.dimensions.items()]
        rows += [
            (f"{which} {name}", f"{value:,}", described(name)["units"], ", ".join(f"{k} = {v}" for k, v in at.items()))
            for name, extremes in self.extremes.items()
            for which, (value, at) in _both(extremes)
        ]
        if self.out is not None:
            rows.append(("in", self.out, "", ""))
        return [Table(title, ("quantity", ">value", "unit", "at"), rows)]


def _both(extremes: tuple[Extreme, Extreme]) -> Any:
    return zip(("least", "largest"), extremes, strict=True)


def summary(plan: SweepPlan, result: Dataset | None, computed: int | None, out: str | None) -> Summary:
    """Summarise a result, or the size of a result not yet computed."""
    extremes = {} if result is None else _extremes(plan, result)
    sizes = dict(zip(plan.dims, plan.shape, strict=True))
    return Summary(sizes, plan.points, plan.block_count, computed, extremes, out)


def _extremes(plan: SweepPlan, result: Dataset) -> dict[str, tuple[Extreme, Extreme]]:
    """Return the least and the largest value of each variable, chunk by chunk."""
    extremes: dict[str, tuple[Extreme, Extreme]] = {}
    for block in plan.blocks():
        part = result.isel(dict(zip(plan.dims, plan.slices(block), strict=True))).load()
        for name in plan.variables:
            values = part[name]
            least, largest = (_extreme(values, int(pick(values.values))) for pick in (np.argmin, np.argmax))
            if name in extremes:
                least = min(extremes[name][0], least, key=lambda extreme: extreme[0])
                largest = max(extremes[name][1], largest, key=lambda extreme: extreme[0])
            extremes[name] = least, largest
    return extremes


def _extreme(part: DataArray, place: int) -> Extreme:
    where = dict(zip(part.dims, np.unravel_index(place, part.shape), strict=True))
    point = part.isel(where)
    return int(point), {str(name): plain(coord.values[()]) for name, coord in point.coords.items()}
