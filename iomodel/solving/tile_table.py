"""Tiles that fit a device in the launch configurations of a kernel, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iomodel.placement.placement import Launch, Placement
from iomodel.solving.on_device import LaunchProblem
from iomodel.timing.clock import SCHEDULERS, Clock
from iomodel.timing.kernel_time import Launched


@dataclass(frozen=True)
class Fitting:
    """The tiles that fit in one launch configuration, with the shared memory of a block [B] and blocks per SM."""

    variant: LaunchProblem
    outer: Any
    inner: Any
    shared: Any
    blocks: Any

    @classmethod
    def of(cls, variant: LaunchProblem) -> Fitting | None:
        """Find the tiles that fit; None if there are none."""
        problem, placement, launch = variant.problem, variant.placement, variant.launch
        outer, inner, budget = problem.outer, problem.inner, problem.budget
        if (outer.first, inner.first) == (outer.last, inner.last):  # a size that the kernel is compiled for
            most, widest = outer.first, inner.first
        else:
            found = outer.largest(lambda u: problem.footprint(u, inner.first), budget)
            if found is None:
                return None
            most, widest = found, inner.largest(lambda v: problem.footprint(outer.first, v), budget) or inner.first
        sizes = (
            np.arange(side.first, last + 1, side.step, dtype=np.int64)
            for side, last in ((outer, most), (inner, widest))
        )
        u, v = (size.ravel() for size in np.meshgrid(*sizes, indexing="ij"))
        query, key = variant.sizes((u, v)).values()
        shared, columns = placement.memory(query, key, launch.stages, launch.warps)
        registers = placement.registers_of(query, key, launch.warps)
        blocks = placement.room(shared, registers, launch.warps, columns)
        fits = (shared <= budget) & (registers <= placement.registers_limit(launch.warps))
        fits &= blocks >= variant.least_blocks
        return cls(variant, u[fits], v[fits], *(np.broadcast_to(value, u.shape)[fits] for value in (shared, blocks)))


@dataclass(frozen=True)
class TileTable:
    """The tiles of the launch configurations of one kernel, once for each choice of the numbers that it searches.

    Attributes
    ----------
    sizes, numbers : mapping of str to array
        Tiles [rows], and the searched numbers, such as `splits`.
    columns : mapping of str to array
        Outer and inner tile, shared memory [B], blocks per SM, warps, stages, the negative key tile, and the places of
        the layout of warps, of the launch configuration and of the choice of numbers.
    steps : mapping of str to array
        Steps of the tiles [rows]; 0 for a size that the kernel is compiled for, which competes at any length.
    """

    placement: Placement
    launch: Launch
    layouts: tuple[tuple[int, int], ...]
    sizes: Mapping[str, Any]
    numbers: Mapping[str, Any]
    columns: Mapping[str, Any]
    steps: Mapping[str, Any]

    @classmethod
    def of(cls, alike: Sequence[Fitting], choices: Sequence[Mapping[str, Any]]) -> TileTable:
        """Lay the tiles of all launch configurations out, once for each choice of the numbers."""
        first, lengths = alike[0].variant, [len(fitting.outer) for fitting in alike]
        launches = [fitting.variant.launch for fitting in alike]
        layouts = tuple(dict.fromkeys(launch.along for launch in launches))

        def joined(name: str) -> Any:
            return np.tile(np.concatenate([getattr(fitting, name) for fitting in alike]), len(choices))

        def each(values: Iterable[int]) -> Any:
            return np.tile(np.repeat(list(values), lengths), len(choices))

        columns = {name: joined(name) for name in ("outer", "inner", "shared", "blocks")}
        sizes = first.sizes((columns["outer"], columns["inner"]))
        columns |= {
            "warps": each(launch.warps for launch in launches),
            "stages": each(launch.stages for launch in launches),
            "less_keys": -sizes[first.placement.tiles[1]],
            "layout": each(layouts.index(launch.along) for launch in launches),
            "fitting": each(range(len(alike))),
            "number": np.repeat(np.arange(len(choices)), sum(lengths)),
        }
        numbers = {name: np.array([chosen[name] for chosen in choices])[columns["number"]] for name in choices[0]}
        steps = {
            name: each(0 if fixed else fitting.variant.ranges[name].step for fitting in alike)
            for name, fixed in zip(first.placement.tiles, first.placement.residency.sizes, strict=True)
        }
        return cls(first.placement, first.launch, layouts, sizes, numbers, columns, steps)

    def __len__(self) -> int:
        return len(self.columns["outer"])

    def at(self, places: Any) -> TileTable:
        """Return some of the tiles."""
        parts: dict[str, Any] = {
            part: {name: values[places] for name, values in getattr(self, part).items()}
            for part in ("sizes", "numbers", "columns", "steps")
        }
        return replace(self, **parts)

    def allowed(
        self, point: Mapping[str, Any], sizes: Mapping[str, Any], options: Mapping[str, Any], least_keys: int, size: int
    ) -> Any:
        """Check every tile at many calls: no axis is shorter than a tile less one step, and no split is without keys.

        `point`, `sizes` and `options` have the numbers of the calls, tiles and options at all pairs of a call and a
        tile; the key tile has at least `least_keys` rows, or covers all keys.
        """
        query, key = self.placement.tiles
        group = point["group"] if options["packed"] else 1
        fits = np.full(len(self) * size, True)
        for name, rows, least in ((query, point["q_len"] * group, 1), (key, point["kv_len"], least_keys)):
            step = np.tile(self.steps[name], size)
            on_grid = np.maximum(step, 1)
            first = np.ceil(np.minimum(least, rows) / on_grid) * on_grid
            fits &= (sizes[name] >= first) & ((step == 0) | (sizes[name] <= np.ceil(rows / on_grid) * on_grid))
        splits = np.asarray(options.get("splits", 1))
        most = (point["kv_len"] - 1) // np.maximum(splits - 1, 1)
        coarsest = max(1, int(self.steps[key].max(initial=1)))
        return fits & ((splits == 1) | ((sizes[key] <= most) & (most >= coarsest)))

    def launched(self, clock: Clock, calls: int = 1) -> Launched:
        """Describe the launch configurations to the time model, once for each of so many calls."""
        each = [clock.launched(replace(self.launch, along=along)) for along in self.layouts]
        column = {name: np.tile(self.columns[name], calls) for name in ("layout", "stages", "warps", "blocks")}
        return replace(
            each[0],
            layouts=tuple((column["layout"] == number, launch.layout) for number, launch in enumerate(each)),
            stages=column["stages"],
            warps=np.maximum(1, column["warps"] // SCHEDULERS),
            blocks_per_sm=column["blocks"],
        )
