"""Tiles that fit a device in the launch configurations of a kernel, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from iomodel.devices.cache import per_device
from iomodel.placement.limits import DeviceLimits
from iomodel.placement.placement import Launch, Placement
from iomodel.solving.on_device import LaunchProblem
from iomodel.solving.problem import TileRange
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
        found = _room(variant.placement.device, RoomKey.of(variant))
        if found is None:
            return None
        within = [
            (size >= side.first) & (size <= side.last)
            for size, side in zip(found[:2], (variant.problem.outer, variant.problem.inner), strict=True)
        ]
        places = np.flatnonzero(within[0] & within[1])
        return cls(variant, *(values[places] for values in found)) if len(places) else None


@dataclass(frozen=True)
class RoomKey:
    """The inputs that decide which tiles fit; the longest tiles are rounded up, for other lengths to share them."""

    known: tuple[Any, ...]
    sides: tuple[TileRange, TileRange]
    variant: LaunchProblem = field(compare=False, repr=False)

    @classmethod
    def of(cls, variant: LaunchProblem) -> RoomKey:
        """Return the key of a launch configuration."""
        placement, problem = variant.placement, variant.problem
        numbers = (formulas.read(placement.padded.point) for formulas in (placement.shared, placement.registers))
        known = (
            id(placement.residency), id(placement.shared), id(placement.registers), *numbers,
            placement.padded.element_size, variant.launch.warps, variant.launch.stages, variant.names,
            variant.least_blocks,
        )  # fmt: skip
        return cls(known, (_rounded(problem.outer), _rounded(problem.inner)), variant)


def _rounded(side: TileRange) -> TileRange:
    """Return all sizes of a tile from one step to a power of two of them; one that is compiled for stays."""
    if side.first == side.last:
        return TileRange(side.first, side.first)
    return TileRange(side.step << (side.last // side.step - 1).bit_length(), side.step)


@per_device
def _room(device: DeviceLimits, key: RoomKey) -> tuple[Any, Any, Any, Any] | None:
    """Find the tiles that fit a device, with their shared memory [B] and blocks per SM; None if there are none."""
    variant, (outer, inner) = key.variant, key.sides
    problem, placement, launch = variant.problem, variant.placement, variant.launch
    if (outer.first, inner.first) == (outer.last, inner.last):  # a size that the kernel is compiled for
        most, widest = outer.first, inner.first
    else:
        found = outer.largest(lambda u: problem.footprint(u, inner.first), device.shared_per_block)
        if found is None:
            return None
        most = found
        widest = inner.largest(lambda v: problem.footprint(outer.first, v), device.shared_per_block) or inner.first
    sizes = (
        np.arange(side.first, last + 1, side.step, dtype=np.int64) for side, last in ((outer, most), (inner, widest))
    )
    u, v = (size.ravel() for size in np.meshgrid(*sizes, indexing="ij"))
    query, key_rows = variant.sizes((u, v)).values()
    shared, columns = placement.memory(query, key_rows, launch.stages, launch.warps)
    registers = placement.registers_of(query, key_rows, launch.warps)
    blocks = placement.room(shared, registers, launch.warps, columns)
    fits = (shared <= device.shared_per_block) & (registers <= placement.registers_limit(launch.warps))
    fits &= blocks >= variant.least_blocks
    shared, blocks = (np.broadcast_to(value, u.shape) for value in (shared, blocks))
    return u[fits], v[fits], shared[fits], blocks[fits]


@dataclass(frozen=True)
class TileTable:
    """Tiles of launch configurations that are timed together, once for each choice of the numbers that are searched.

    Attributes
    ----------
    placement : Placement
        The layout of the first of the launch configurations; the others have rows of the same widths.
    launches : tuple of Launch
        A launch configuration of each layout of warps.
    sizes, numbers : mapping of str to array
        Tiles [rows], and the searched numbers, such as `splits`.
    columns : mapping of str to array
        Outer and inner tile, shared memory [B], blocks per SM, warps, stages, the negative key tile, and the places of
        the layout of warps, of the launch configuration and of the choice of numbers.
    steps : mapping of str to array
        Steps of the tiles [rows]; 0 for a size that the kernel is compiled for, which competes at any length.
    """

    placement: Placement
    launches: tuple[Launch, ...]
    sizes: Mapping[str, Any]
    numbers: Mapping[str, Any]
    columns: Mapping[str, Any]
    steps: Mapping[str, Any]

    @classmethod
    def of(cls, alike: Mapping[int, Fitting], choices: Sequence[Mapping[str, Any]]) -> TileTable:
        """Lay the tiles of launch configurations, by their places, out, once for each choice of the numbers."""
        fittings = list(alike.values())
        first, lengths = fittings[0].variant, [len(fitting.outer) for fitting in fittings]
        layouts = [(id(fitting.variant.placement), fitting.variant.launch.along) for fitting in fittings]
        launches = dict(zip(layouts, (fitting.variant.launch for fitting in fittings), strict=True))
        numbered = {layout: number for number, layout in enumerate(launches)}

        def joined(name: str) -> Any:
            return np.tile(np.concatenate([getattr(fitting, name) for fitting in fittings]), len(choices))

        def each(values: Iterable[int]) -> Any:
            return np.tile(np.repeat(list(values), lengths), len(choices))

        columns = {name: joined(name) for name in ("outer", "inner", "shared", "blocks")}
        sizes = first.sizes((columns["outer"], columns["inner"]))
        columns |= {
            "warps": each(fitting.variant.launch.warps for fitting in fittings),
            "stages": each(fitting.variant.launch.stages for fitting in fittings),
            "less_keys": -sizes[first.placement.tiles[1]],
            "layout": each(numbered[layout] for layout in layouts),
            "way": each(alike),
            "number": np.repeat(np.arange(len(choices)), sum(lengths)),
        }
        numbers = {name: np.array([chosen[name] for chosen in choices])[columns["number"]] for name in choices[0]}
        steps = {
            name: each(
                0 if fitting.variant.placement.residency.sizes[side] else fitting.variant.ranges[name].step
                for fitting in fittings
            )
            for side, name in enumerate(first.placement.tiles)
        }
        return cls(first.placement, tuple(launches.values()), sizes, numbers, columns, steps)

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
        each = [clock.launched(launch) for launch in self.launches]
        column = {name: np.tile(self.columns[name], calls) for name in ("layout", "stages", "warps", "blocks")}
        exposed = np.array([launch.exposed for launch in each])
        return replace(
            each[0],
            exposed=exposed[column["layout"]] if len({*exposed.tolist()}) > 1 else each[0].exposed,
            layouts=tuple((column["layout"] == number, launch.layout) for number, launch in enumerate(each)),
            stages=column["stages"],
            warps=np.maximum(1, column["warps"] // SCHEDULERS),
            blocks_per_sm=column["blocks"],
        )


def tile_tables(ways: Sequence[LaunchProblem], choices: Sequence[Mapping[str, Any]]) -> list[TileTable]:
    """Lay out the tiles that fit, those of the launch configurations that the time model takes at once together."""
    groups: dict[tuple[Any, ...], dict[int, Fitting]] = {}
    for place, way in enumerate(ways):
        fitting = Fitting.of(way)
        if fitting is not None:
            layout = way.placement.residency
            key = (way.placement.widths, way.placement.tiles, layout.mma, layout.producers > 0)
            groups.setdefault(key, {})[place] = fitting
    return [TileTable.of(alike, choices) for alike in groups.values()]
