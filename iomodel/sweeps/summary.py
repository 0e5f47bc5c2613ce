"""What a sweep found, in a few lines: its dimensions, and where each quantity is least and largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.show import Shown, table
from iomodel.sweeps.dataset import described
from iomodel.sweeps.plan import Plan, plain

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Extreme = tuple[int, Mapping[str, Any]]
"""A value, and the point at which it is met first."""


@dataclass(frozen=True)
class Summary(Shown):
    """A sweep as a command reports it.

    Attributes
    ----------
    dimensions : mapping of name to int
        Places along each.
    points, chunks : int
        Calls asked about; parts that they are computed in [-].
    computed : int or None
        The chunks that this run computed, the others having been there; None where none was to be.
    extremes : mapping of variable to (least, largest)
        Each with its point.
    out : str or None
        Where the result is.
    """

    dimensions: Mapping[str, int]
    points: int
    chunks: int
    computed: int | None
    extremes: Mapping[str, tuple[Extreme, Extreme]]
    out: str | None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "dimensions": dict(self.dimensions),
            "points": self.points,
            "chunks": self.chunks,
            "computed": self.computed,
            "quantities": {
                name: {
                    "units": described(name)["units"],
                    **{which: {"value": value, "at": dict(point)} for which, (value, point) in _both(found)},
                }
                for name, found in self.extremes.items()
            },
            "out": self.out,
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        there = "" if self.computed is None else f", of which {self.computed:,} were computed now"
        title = f"{self.points:,} points, chunks: {self.chunks:,}{there}"
        rows = [(f"dimension {name}", f"{size:,}", "-", "") for name, size in self.dimensions.items()]
        rows += [
            (f"{which} {name}", f"{value:,}", described(name)["units"], ", ".join(f"{k} = {v}" for k, v in at.items()))
            for name, found in self.extremes.items()
            for which, (value, at) in _both(found)
        ]
        if self.out is not None:
            rows.append(("in", self.out, "", ""))
        return table(title, ("quantity", ">value", "unit", "at"), rows)


def _both(found: tuple[Extreme, Extreme]) -> Any:
    return zip(("least", "largest"), found, strict=True)


def summary(plan: Plan, result: Dataset | None, computed: int | None, out: str | None) -> Summary:
    """What a result holds; without one, how large it would be."""
    found = {} if result is None else _extremes(plan, result)
    sizes = dict(zip(plan.dims, plan.shape, strict=True))
    return Summary(sizes, plan.points, plan.block_count, computed, found, out)


def _extremes(plan: Plan, result: Dataset) -> dict[str, tuple[Extreme, Extreme]]:
    """The least and the largest of each variable, chunk by chunk."""
    found: dict[str, tuple[Extreme, Extreme]] = {}
    for block in plan.blocks():
        part = result.isel(dict(zip(plan.dims, plan.slices(block), strict=True))).load()
        for name in plan.variables:
            values = part[name]
            least, largest = (_extreme(values, int(pick(values.values))) for pick in (np.argmin, np.argmax))
            if name in found:
                least = min(found[name][0], least, key=lambda extreme: extreme[0])
                largest = max(found[name][1], largest, key=lambda extreme: extreme[0])
            found[name] = least, largest
    return found


def _extreme(part: DataArray, place: int) -> Extreme:
    where = dict(zip(part.dims, np.unravel_index(place, part.shape), strict=True))
    point = part.isel(where)
    return int(point), {str(name): plain(coord.values[()]) for name, coord in point.coords.items()}
