"""Tiles that fit a device in the launch configurations of a kernel, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.cache import per_device
from iomodel.placement.limits import DeviceLimits
from iomodel.placement.placement import Launch, Placement
from iomodel.solving.on_device import LaunchProblem
from iomodel.solving.problem import TileRange
from iomodel.timing.clock import SCHEDULERS, Clock
from iomodel.timing.kernel_time import Launched
from iomodel.timing.shared_memory import by_point


@dataclass(frozen=True)
class RoomKey:
    """The inputs that decide which tiles fit; the longest tiles are rounded up, for other lengths to share them."""

    known: tuple[Any, ...]
    ways: Sequence[LaunchProblem] = field(compare=False, repr=False)

    @classmethod
    def of(cls, ways: Sequence[LaunchProblem]) -> RoomKey:
        """Return the key of launch configurations."""
        placed = {id(each): _placed(each) for each in {id(way.placement): way.placement for way in ways}.values()}
        known = (
            (
                placed[id(way.placement)], way.launch.warps, way.launch.stages, way.launch.along, way.names,
                way.least_blocks, *map(_rounded, way.sides),
            )
            for way in ways
        )  # fmt: skip
        return cls(tuple(known), ways)


def _placed(placement: Placement) -> tuple[Any, ...]:
    """Return the inputs that decide the memory and registers of a tile, formulas by identity."""
    formulas = (placement.shared, placement.registers)
    numbers = (compiled.read(placement.padded.point) for compiled in formulas)
    return id(placement.residency), *map(id, formulas), *numbers, placement.padded.element_size


def _rounded(side: TileRange) -> tuple[int, int]:
    """Return the longest tile, a power of two of steps, and its step; one that is compiled for stays."""
    first, last, step = side.first, side.last, side.step
    return (first, first) if first == last else (step << (last // step - 1).bit_length(), step)


def _room(variant: LaunchProblem) -> Mapping[str, Any] | None:
    """Find the tiles that fit in a launch configuration, with shared memory [B] and blocks per SM; None if none do."""
    outer, inner = (TileRange(*_rounded(side)) for side in variant.sides)
    problem, placement, launch = variant.problem, variant.placement, variant.launch
    device = placement.device
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
    fit = placement.fit(query, key_rows, launch, on_steps=True)
    blocks = fit.blocks_per_sm
    fits = fit.fits & (blocks >= variant.least_blocks)
    near, far = fit.spilled
    named = {
        "outer": u, "inner": v, "shared": fit.used["shared memory"], "blocks": blocks, "less_keys": -key_rows,
        "near": near, "far": far, "repeated": fit.repeated,
    }  # fmt: skip
    return {name: np.broadcast_to(values, u.shape)[fits] for name, values in named.items()} if fits.any() else None


class Rooms(NamedTuple):
    """The tiles that fit in launch configurations, as columns, and a launch configuration of each layout of warps."""

    columns: Mapping[str, Any]
    launches: tuple[Launch, ...]


@per_device
def _rooms(device: DeviceLimits, key: RoomKey) -> Rooms | None:  # noqa: ARG001 - the limits of the ways
    """Lay the tiles that fit in launch configurations out; None if there are none."""
    fitting = {place: found for place, way in enumerate(key.ways) if (found := _room(way)) is not None}
    if not fitting:
        return None
    lengths = [len(found["outer"]) for found in fitting.values()]
    launches = [key.ways[place].launch for place in fitting]
    layouts = [(id(launch.residency), launch.along) for launch in launches]
    numbered = {layout: number for number, layout in enumerate(dict.fromkeys(layouts))}
    each = {
        "warps": [launch.warps for launch in launches],
        "scheduled": [max(launch.residency.parts, launch.warps // SCHEDULERS) for launch in launches],
        "stages": [launch.stages for launch in launches],
        "layout": [numbered[layout] for layout in layouts],
        "way": list(fitting),
    }
    names = next(iter(fitting.values()))
    columns = {name: np.concatenate([found[name] for found in fitting.values()]) for name in names}
    columns |= {name: np.repeat(values, lengths) for name, values in each.items()}
    return Rooms(columns, tuple(dict(zip(layouts, launches, strict=True)).values()))


@dataclass(frozen=True)
class TileTable:
    """Tiles of launch configurations that are timed together, once for each choice of the numbers that are searched.

    Attributes
    ----------
    ways : sequence of LaunchProblem
        The launch configurations; all have rows of the same widths.
    launches : tuple of Launch
        A launch configuration of each layout of warps.
    numbers : mapping of str to array
        The searched numbers, such as `splits`.
    columns : mapping of str to array
        Outer and inner tile [rows], shared memory [B], blocks per SM, warps, stages, the negative key tile, registers
        spilled near and far [B], warps with the same rows, and the places of the layout of warps, of the launch
        configuration and of the choice of numbers.
    """

    ways: Sequence[LaunchProblem]
    launches: tuple[Launch, ...]
    numbers: Mapping[str, Any]
    columns: Mapping[str, Any]

    @classmethod
    def of(
        cls, ways: Sequence[LaunchProblem], choices: Sequence[Mapping[str, Any]], most: Sequence[int | None]
    ) -> TileTable | None:
        """Lay the tiles of launch configurations out, once for each choice of the numbers; None if none fits.

        `most` has the largest key tile of each choice [rows].
        """
        rooms = _rooms(ways[0].placement.device, RoomKey.of(ways))
        if rooms is None:
            return None
        known = rooms.columns
        ends = np.array([[(side.first, side.last) for side in way.sides] for way in ways])
        low, high = np.moveaxis(ends, 2, 0)[:, known["way"]]
        within = (known["outer"] >= low[:, 0]) & (known["outer"] <= high[:, 0])
        places = np.flatnonzero(within & (known["inner"] >= low[:, 1]) & (known["inner"] <= high[:, 1]))
        number = np.repeat(np.arange(len(choices)), len(places))
        places = np.tile(places, len(choices))
        if any(limit is not None for limit in most):
            limits = np.array([np.inf if limit is None else limit for limit in most])
            kept = np.flatnonzero(-known["less_keys"][places] <= limits[number])
            places, number = places[kept], number[kept]
        if not len(places):
            return None
        columns = {name: values[places] for name, values in known.items()}
        numbers = {name: np.array([chosen[name] for chosen in choices])[number] for name in choices[0]}
        return cls(ways, rooms.launches, numbers, {**columns, "number": number})

    @property
    def placement(self) -> Placement:
        """The layout of the first of the launch configurations."""
        return self.ways[0].placement

    @property
    def sizes(self) -> dict[str, Any]:
        """The tiles by name, the query tile first [rows]."""
        return self.ways[0].sizes((self.columns["outer"], self.columns["inner"]))

    @cached_property
    def steps(self) -> dict[str, Any]:
        """Steps of the tiles [rows]; 0 for a size that the kernel is compiled for, which competes at any length."""
        return {
            name: np.array([0 if way.placement.residency.sizes[side] else way.ranges[name].step for way in self.ways])[
                self.columns["way"]
            ]
            for side, name in enumerate(self.placement.tiles)
        }

    @cached_property
    def alike(self) -> Any:
        """A number for each tile and choice of numbers, whose launch configurations do the same work [-]."""
        tiles = np.stack([self.columns[name] for name in ("outer", "inner", "number")])
        return np.unique(tiles, axis=1, return_inverse=True)[1].ravel()

    @cached_property
    def by_tile(self) -> Any:
        """The places of the launch configurations, those of a tile one after another [-]."""
        return np.argsort(self.alike, kind="stable")

    def __len__(self) -> int:
        return len(self.columns["outer"])

    def allowed(self, point: Mapping[str, Any], options: Mapping[str, Any], least_keys: int, places: Any) -> Any:
        """Check tiles at many calls: no axis is shorter than a tile less one step, and no split is without keys.

        `point` and `options` have the numbers of the calls, and `places` the tile of each; the key tile has at least
        `least_keys` rows, or covers all keys.
        """
        query, key = self.placement.tiles
        group = point["group"] if options["packed"] else 1
        sizes = {name: column[places] for name, column in self.sizes.items()}
        fits = np.full(len(places), True)
        for name, rows, least in ((query, point["q_len"] * group, 1), (key, point["kv_len"], least_keys)):
            step = self.steps[name][places]
            on_grid = np.maximum(step, 1)
            first = np.ceil(np.minimum(least, rows) / on_grid) * on_grid
            fits &= (sizes[name] >= first) & ((step == 0) | (sizes[name] <= np.ceil(rows / on_grid) * on_grid))
        splits = np.asarray(options.get("splits", 1))
        most = (point["kv_len"] - 1) // np.maximum(splits - 1, 1)
        coarsest = max(1, int(self.steps[key].max(initial=1)))
        return fits & ((splits == 1) | ((sizes[key] <= most) & (most >= coarsest)))

    def launched(self, clock: Clock, places: Any = slice(None)) -> Launched:
        """Describe the launch configurations to the time model, those of some places if they are given."""
        each = [clock.launched(launch) for launch in self.launches]
        names = ("layout", "stages", "scheduled", "blocks", "near", "far", "repeated")
        column = {name: self.columns[name][places] for name in names}
        exposed = np.array([launch.exposed for launch in each])
        return replace(
            each[0],
            exposed=exposed[column["layout"]] if len({*exposed.tolist()}) > 1 else each[0].exposed,
            layouts=by_point([launch.layout for launch in each], column["layout"]),
            stages=column["stages"],
            warps=column["scheduled"],
            blocks_per_sm=column["blocks"],
            spilled=(column["near"], column["far"]),
            repeated=column["repeated"],
        )


def tile_tables(
    ways: Sequence[LaunchProblem], choices: Sequence[Mapping[str, Any]], most: Sequence[int | None] = (None,)
) -> list[tuple[TileTable, Any]]:
    """Lay out the tiles that fit, those of the launch configurations that the time model takes at once together.

    `most` has the largest key tile of each choice of the numbers [rows]. With each table come the places of its launch
    configurations among all.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, way in enumerate(ways):
        layout = way.placement.residency
        key = (way.placement.widths, way.placement.tiles, layout.mma, layout.producers > 0)
        groups.setdefault(key, []).append(place)
    tables = ((TileTable.of([ways[place] for place in alike], choices, most), alike) for alike in groups.values())
    return [(table, np.array(alike)) for table, alike in tables if table is not None]
