"""Tiles of least time for arrays of calls: every tile that fits, at every call, in one array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iomodel.algorithms import name_of
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.options import NUMBERS
from iomodel.counting.requirements import met
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import implementation_for
from iomodel.placement.placement import Launch, Placement
from iomodel.solving.candidates import Fitting, SettingGroup, TileSearch, families, underfilled
from iomodel.timing.balance import GridRows
from iomodel.timing.clock import SCHEDULERS, Clock
from iomodel.timing.clock_points import PointCalls
from iomodel.timing.kernel_time import Launched
from iomodel.timing.parameters import DEFAULT
from iomodel.workloads.attention import Attention

POINTS = 1 << 15
"""Tiles of calls timed together [-]."""
PREFERENCE = ("seconds", "requested", "less_keys", "shared", "warps")
"""The quantities that decide, in this order, as in :mod:`iomodel.solving.candidates`."""


@dataclass
class Best:
    """The best tile of each call so far, as columns; the seconds are infinite where none fits."""

    columns: dict[str, Any]

    @classmethod
    def none(cls, size: int) -> Best:
        """Start without a tile."""
        return cls({name: np.full(size, np.inf) for name in PREFERENCE})

    def offer(self, calls: Any, columns: Mapping[str, Any]) -> None:
        """Take the columns of some calls where they are preferred."""
        better, equal = np.zeros(len(calls), dtype=bool), np.ones(len(calls), dtype=bool)
        for name in PREFERENCE:
            here, before = columns[name], self.columns[name][calls]
            better |= equal & (here < before)
            equal &= here == before
        for name, values in columns.items():
            self.columns.setdefault(name, np.zeros(len(self.columns["seconds"])))[calls[better]] = values[better]


@dataclass(frozen=True)
class FastestSearch:
    """A search for the fastest tiles of many calls; `numbers` and `options` are flat columns or single numbers."""

    algorithm: Algorithm
    device: Hardware
    implementation: str | Implementation | None
    called: Calls
    numbers: Mapping[str, Any]
    options: Mapping[str, Any]
    min_block_kv: int
    size: int

    def found(self) -> Best:
        """Search the calls, those with rows of the same widths and with tiles filled alike together."""
        best = Best.none(self.size)
        packs = underfilled(self._column("q_len"), self._column("group")) & (self._column("group") != 1)
        kinds = np.stack([self._column("head_dim"), self._column("value_dim"), packs])
        known, places = np.unique(kinds, axis=1, return_inverse=True)
        for number in range(known.shape[1]):
            calls = np.flatnonzero(places.ravel() == number)
            for family in families(self._question(calls)):
                self._search(best, calls, family)
        return best

    def _column(self, name: str) -> Any:
        return np.broadcast_to(self.numbers[name], self.size)

    def _question(self, calls: Any) -> TileSearch:
        """Ask for the longest of some calls, in which every tile of the others competes."""
        own = {name: self._column(name)[calls] for name in self.called.numeric}
        fields = {name: int(values[0]) for name, values in own.items()}
        fields |= {name: int(own[name].max()) for name in ("q_len", "kv_len") if name in own}
        call = Attention(**{**self.called.fields, **fields})
        kernels = implementation_for(self.algorithm, call, self.device, self.implementation)
        if not kernels.residency:
            obstacle = f"no implementation of {name_of(self.algorithm)}"
            raise InputError(f"objective: 'time' given with {obstacle}; allowed: with an implementation")
        given = {name: self._first(value) for name, value in self.options.items()}
        return TileSearch(self.algorithm, call, self.device, kernels, self.min_block_kv, 1, given, DEFAULT)

    @staticmethod
    def _first(value: Any) -> Any:
        return int(value[0]) if isinstance(value, np.ndarray) else value

    def _search(self, best: Best, calls: Any, family: SettingGroup) -> None:
        """Time every tile of a family at some calls."""
        kernels: dict[int, list[Fitting]] = {}
        for way in family.setting.variants.ways:
            fitting = Fitting.of(way)
            if fitting is not None:
                kernels.setdefault(id(way.placement), []).append(fitting)
        for alike in kernels.values():
            tiles = Tiles.of(alike, family)
            many = max(1, POINTS // max(1, len(tiles)))
            for start in range(0, len(calls), many):
                self._offer(best, calls[start : start + many], tiles, family)

    def _offer(self, best: Best, calls: Any, tiles: Tiles, family: SettingGroup) -> None:
        """Time some tiles at some calls, and take the best of each call."""
        clock, size = family.setting.clock, len(calls)

        def of_calls(values: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: np.repeat(value[calls], len(tiles)) if isinstance(value, np.ndarray) else value
                for name, value in values.items()
            }

        def of_tiles(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: np.tile(value, size) for name, value in values.items()}

        point, sizes, numbers = of_calls(self.numbers), of_tiles(tiles.sizes), of_tiles(tiles.numbers)
        options = {**clock.options, **of_calls(self.options), **numbers}
        fits = tiles.allowed(point, sizes, options, self.min_block_kv, size)
        features = {name: name in self.called.first.features for name in self.algorithm.features}
        asked = {**point, **features, "mask": self.called.first.mask, **options, **sizes}
        fits &= np.broadcast_to(met(self.algorithm, asked), fits.shape)
        counted = PointCalls({name: point[name] for name in self.called.first.numbers}, self.called.first.element_size)
        work = clock.demands.over(counted, counted.widened(tiles.placement.widths), options, sizes)
        rows = GridRows(point["q_len"], point["kv_len"], point["group"], self.called.first.mask)
        launched, seconds = tiles.launched(clock, size), np.zeros(fits.shape)
        for demand in work:
            seconds += clock.elapsed(demand, rows, launched).seconds * (demand.requested_bytes > 0)
        columns = {**of_tiles(tiles.columns), **sizes, **numbers}
        columns["seconds"] = np.where(fits, seconds, np.inf)
        columns["requested"] = np.broadcast_to(sum(demand.requested_bytes for demand in work), fits.shape)
        words = {name: value for name, value in family.setting.searched.items() if name not in NUMBERS}
        columns |= {name: np.full(fits.shape, value) for name, value in words.items()}
        table = {name: np.asarray(values).reshape(size, -1) for name, values in columns.items()}
        places = _preferred([table[name] for name in PREFERENCE])
        best.offer(calls, {name: values[np.arange(size), places] for name, values in table.items()})


@dataclass(frozen=True)
class Tiles:
    """The tiles of the launch configurations of one kernel, under each choice of the numbers that it searches."""

    placement: Placement
    sizes: Mapping[str, Any]
    numbers: Mapping[str, Any]
    columns: Mapping[str, Any]
    steps: Mapping[str, Any]
    layouts: tuple[tuple[int, int], ...]
    layout: Any
    blocks: Any
    launch: Launch

    @classmethod
    def of(cls, alike: Sequence[Fitting], family: SettingGroup) -> Tiles:
        """Lay the tiles of all launch configurations out, once for each choice of the numbers."""
        first, lengths = alike[0].variant, [len(fitting.outer) for fitting in alike]
        launches, choices = [fitting.variant.launch for fitting in alike], len(family.numbers)
        layouts = tuple(dict.fromkeys(launch.along for launch in launches))

        def joined(values: Iterable[Any]) -> Any:
            return np.tile(np.concatenate([np.asarray(value) for value in values]), choices)

        def each(values: Iterable[Any]) -> Any:
            return np.tile(np.repeat(np.array(list(values)), lengths), choices)

        sizes = first.sizes((joined(one.outer for one in alike), joined(one.inner for one in alike)))
        columns = {
            "shared": joined(fitting.shared for fitting in alike),
            "warps": each(launch.warps for launch in launches),
            "stages": each(launch.stages for launch in launches),
            "less_keys": -sizes[first.placement.tiles[1]],
        }
        numbers = {
            name: np.repeat(np.array([chosen[name] for chosen in family.numbers]), sum(lengths))
            for name in family.numbers[0]
        }
        # A size that is compiled for competes at any length; 0 marks it.
        steps = {
            name: each(0 if fixed else fitting.variant.ranges[name].step for fitting in alike)
            for name, fixed in zip(first.placement.tiles, first.placement.residency.sizes, strict=True)
        }
        return cls(
            first.placement, sizes, numbers, columns, steps, layouts,
            each(layouts.index(launch.along) for launch in launches), joined(one.blocks for one in alike), first.launch,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.blocks)

    def allowed(
        self, point: Mapping[str, Any], sizes: Mapping[str, Any], options: Mapping[str, Any], least_keys: int, size: int
    ) -> Any:
        """Check that tiles are no longer than their axis, the key tile as long as wanted, and no split empty."""
        query, key = self.placement.tiles
        group = point["group"] if options["packed"] else 1
        fits = np.full(len(self) * size, True)
        for name, rows, least in ((query, point["q_len"] * group, 1), (key, point["kv_len"], least_keys)):
            step = np.tile(self.steps[name], size)
            on_grid = np.maximum(step, 1)
            first = np.ceil(np.minimum(least, rows) / on_grid) * on_grid
            fits &= (sizes[name] >= first) & ((step == 0) | (sizes[name] <= np.ceil(rows / on_grid) * on_grid))
        splits = options.get("splits", 1)
        most = (point["kv_len"] - 1) // np.maximum(np.asarray(splits) - 1, 1)
        coarsest = max(step for step in (int(self.steps[key].max()), 1))
        return fits & ((np.asarray(splits) == 1) | ((sizes[key] <= most) & (most >= coarsest)))

    def launched(self, clock: Clock, size: int) -> Launched:
        """Describe the launch configurations to the time model."""
        each = [clock.launched(replace(self.launch, along=along)) for along in self.layouts]
        layout = np.tile(self.layout, size)
        return replace(
            each[0],
            layouts=tuple((layout == number, launch.layout) for number, launch in enumerate(each)),
            stages=np.tile(self.columns["stages"], size),
            warps=np.maximum(1, np.tile(self.columns["warps"], size) // SCHEDULERS),
            blocks_per_sm=np.tile(self.blocks, size),
        )


def _preferred(columns: Sequence[Any]) -> Any:
    """Return the place of the least row of columns in each row, compared column after column."""
    left = np.ones(columns[0].shape, dtype=bool)
    for column in columns:
        value = np.where(left, column, np.inf)
        left &= value == value.min(axis=1, keepdims=True)
    return left.argmax(axis=1)
