"""Tiles of least time for arrays of calls: every tile that fits, at every call, in one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from iomodel.solving.candidates import SettingGroup, TileSearch, families, underfilled
from iomodel.solving.tile_table import TileTable, tile_tables
from iomodel.timing.balance import GridRows
from iomodel.timing.clock_points import PointCalls
from iomodel.timing.parameters import DEFAULT
from iomodel.workloads.attention import Attention

POINTS = 1 << 14
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
            for family in families(self._question(calls), self._call(calls[:1])):
                self._search(best, calls, family)
        return best

    def _column(self, name: str) -> Any:
        return np.broadcast_to(self.numbers[name], self.size)

    def _call(self, calls: Any) -> Attention:
        """Return the first of some calls with the longest lengths of any."""
        own = {name: self._column(name)[calls] for name in self.called.numeric}
        fields = {name: int(values[0]) for name, values in own.items()}
        fields |= {name: int(own[name].max()) for name in ("q_len", "kv_len") if name in own}
        return Attention(**{**self.called.fields, **fields})

    def _question(self, calls: Any) -> TileSearch:
        """Ask for the longest of some calls, in which every tile of the others competes."""
        call = self._call(calls)
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
        for tiles, _ in tile_tables(family.setting.variants.ways, family.numbers):
            many = max(1, POINTS // max(1, len(tiles)))
            for start in range(0, len(calls), many):
                self._offer(best, calls[start : start + many], tiles, family)

    def _offer(self, best: Best, calls: Any, tiles: TileTable, family: SettingGroup) -> None:
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
        kept = {name: tiles.columns[name] for name in ("shared", "less_keys", "warps", "stages")}
        columns = {**of_tiles(kept), **sizes, **numbers}
        columns["seconds"] = np.where(fits, seconds, np.inf)
        columns["requested"] = np.broadcast_to(sum(demand.requested_bytes for demand in work), fits.shape)
        words = {name: value for name, value in family.setting.searched.items() if name not in NUMBERS}
        columns |= {name: np.full(fits.shape, value) for name, value in words.items()}
        table = {name: np.asarray(values).reshape(size, -1) for name, values in columns.items()}
        places = _preferred([table[name] for name in PREFERENCE])
        best.offer(calls, {name: values[np.arange(size), places] for name, values in table.items()})


def _preferred(columns: Sequence[Any]) -> Any:
    """Return the place of the least row of columns in each row, compared column after column."""
    left = np.ones(columns[0].shape, dtype=bool)
    for column in columns:
        value = np.where(left, column, np.inf)
        left &= value == value.min(axis=1, keepdims=True)
    return left.argmax(axis=1)
