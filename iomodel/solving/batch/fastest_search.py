"""Tiles of least time for arrays of calls: every tile that fits, at every call, in one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.algorithms import name_of
from iomodel.common.arithmetic import at_places
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.options import NUMBERS
from iomodel.counting.requirements import met
from iomodel.errors import InputError
from iomodel.solving.candidates import LAUNCH, PREFERENCE, Candidates, SettingGroup, families
from iomodel.solving.certificate import TIE
from iomodel.solving.question import Question, underfilled
from iomodel.solving.tile_table import TileTable, tile_tables
from iomodel.timing.balance import GridRows
from iomodel.timing.clock_points import PointCalls
from iomodel.timing.kernel_work import KernelWork
from iomodel.workloads.attention import Attention

POINTS = 1 << 14
"""Tiles of calls timed together [-]."""
TOGETHER = 16
"""Times as many whose bounds are compared before the rest is timed [-]."""
FEW = 16
"""Tiles that are timed without a comparison of bounds [-]."""
SLACK = 1 + 1e-9
"""Tiles whose bound exceeds the time of another by more are not timed [-]; it covers the rounding of both."""


@dataclass
class Best:
    """The best tile of each call so far, as columns; the seconds are infinite where none fits."""

    columns: dict[str, Any]
    order: Sequence[str] = PREFERENCE

    @classmethod
    def none(cls, size: int, order: Sequence[str] = PREFERENCE) -> Best:
        """Start without a tile."""
        return cls({name: np.full(size, np.inf) for name in order}, order)

    def offer(self, calls: Any, columns: Mapping[str, Any], anyway: bool = False) -> None:
        """Take the columns of some calls where they are preferred, or `anyway`; without columns there are none."""
        if not columns:
            return
        better, equal = np.zeros(len(calls), dtype=bool), np.ones(len(calls), dtype=bool)
        for name in self.order:
            here, before = columns[name], self.columns[name][calls]
            better |= equal & (here < before)
            equal &= here == before
        better |= anyway
        for name, values in columns.items():
            self.columns.setdefault(name, np.zeros(len(self.columns["seconds"])))[calls[better]] = values[better]


@dataclass(frozen=True)
class FastestSearch:
    """A search for the fastest tiles of many calls; `numbers` and `options` are flat columns or single numbers.

    A search `within` times [s] looks for the tiles that leave the fewest SMs idle.
    """

    question: Question
    called: Calls
    numbers: Mapping[str, Any]
    options: Mapping[str, Any]
    size: int
    within: Any = None

    def found(self) -> Best:
        """Find the fastest tiles; of those within `TIE` of them, those that leave the fewest SMs idle.

        The column `least` is the time of the fastest [s].
        """
        best = self._found(np.arange(self.size))
        least = best.columns["seconds"].copy()
        idle = np.flatnonzero(best.columns.get("idle", np.zeros(self.size)) > 0)
        if len(idle):
            fuller = replace(self, within=least * (1 + TIE))._found(idle)
            best.offer(idle, {name: values[idle] for name, values in fuller.columns.items()}, anyway=True)
        best.columns["least"] = least
        return best

    def _found(self, some: Any) -> Best:
        """Search some calls, those with rows of the same widths and with tiles filled alike together."""
        best = Best.none(self.size, PREFERENCE if self.within is None else ("idle", *PREFERENCE))
        packs = underfilled(self._column("q_len"), self._column("group")) & (self._column("group") != 1)
        one_query = self._column("q_len") == 1  # FlashAttention-2 packs the heads of one query alone
        kinds = np.stack([self._column("head_dim"), self._column("value_dim"), packs, one_query])
        known, places = np.unique(kinds[:, some], axis=1, return_inverse=True)
        for number in range(known.shape[1]):
            calls = some[places.ravel() == number]
            groups = families(self._question(calls), self._call(calls[:1]))
            # Options that differ between calls are refused call by call, which the search of one call does not do.
            if len(calls) == 1 and not any(isinstance(value, np.ndarray) for value in self.options.values()):
                timed = Candidates.timed(groups, whole=False)
                best.offer(calls, timed.row if self.within is None else timed.filled.row)
                continue
            for family in groups:
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

    def _question(self, calls: Any) -> Question:
        """Build the question of the longest of some calls; its tiles include those of the shorter ones."""
        given = {name: self._first(value) for name, value in self.options.items()}
        least = self.question.min_block_kv if len(calls) == 1 else 1  # a call with fewer keys has a smaller tile
        asked = replace(self.question, call=self._call(calls), options=FrozenDict(given), min_block_kv=least)
        kernels = asked.library
        if not kernels.residency:
            obstacle = f"no implementation of {name_of(asked.algorithm)}"
            raise InputError(f"objective: 'time' given with {obstacle}; allowed: with an implementation")
        return asked.by(kernels)

    @staticmethod
    def _first(value: Any) -> Any:
        return int(value[0]) if isinstance(value, np.ndarray) else value

    def _search(self, best: Best, calls: Any, family: SettingGroup) -> None:
        """Find the best tiles of a family at some calls."""
        for tiles, _ in tile_tables(family.setting.variants.ways, family.numbers):
            many = max(1, TOGETHER * POINTS // max(1, len(tiles)))
            for start in range(0, len(calls), many):
                self._offer(best, CallTiles.product(self, tiles, family, calls[start : start + many]))

    def _offer(self, best: Best, every: CallTiles) -> None:
        """Time the tiles that may be the best of their calls, and take the best of each call."""
        rest = self._promising(best, every)
        timed = [part.columns() for part in rest.parts()]
        if not timed:
            return
        columns = {name: np.concatenate([part[name] for part in timed]) for name in timed[0]}
        columns |= {"call": rest.calls, "place": rest.places}
        if self.within is not None:
            ties = columns["seconds"] <= self.within[rest.calls]
            columns = {name: values[ties] for name, values in columns.items()}
        calls, places = columns.pop("call"), columns.pop("place")
        if len(calls):
            chosen = first_of(calls, [*(columns[name] for name in best.order), places])
            best.offer(calls[chosen], {name: values[chosen] for name, values in columns.items()})

    @staticmethod
    def _promising(best: Best, every: CallTiles) -> CallTiles:
        """Leave out the tiles whose bound exceeds the time of another tile of the call."""
        bounding = len(every.tiles) > FEW
        allowed, bounds = zip(*(part.bounded(bounding) for part in every.parts()), strict=True)
        fitting, least = every.where(np.concatenate(allowed)), np.concatenate(bounds)
        if every.search.within is not None:
            return fitting.where(least <= every.search.within[fitting.calls] * SLACK)
        if not bounding or not len(fitting.calls):
            return fitting
        first = fitting.where(first_of(fitting.calls, [least]))
        reached = best.columns["seconds"].copy()
        for part in first.parts():
            reached[part.calls] = np.minimum(reached[part.calls], part.seconds())
        return fitting.where(least <= reached[fitting.calls] * SLACK)


@dataclass(frozen=True)
class CallTiles:
    """Pairs of a call and a tile, as the places of both."""

    search: FastestSearch
    tiles: TileTable
    family: SettingGroup
    calls: Any
    places: Any

    @classmethod
    def product(cls, search: FastestSearch, tiles: TileTable, family: SettingGroup, calls: Any) -> CallTiles:
        """Pair every tile with every call; launch configurations of a tile follow one another."""
        return cls(search, tiles, family, np.repeat(calls, len(tiles)), np.tile(tiles.by_tile, len(calls)))

    def where(self, chosen: Any) -> CallTiles:
        """Select some of the pairs."""
        return replace(self, calls=self.calls[chosen], places=self.places[chosen])

    def parts(self) -> Iterator[CallTiles]:
        """Cut the pairs into parts that are computed at once."""
        for start in range(0, len(self.calls), POINTS):
            yield self.where(slice(start, start + POINTS))

    def bounded(self, bounding: bool = True) -> tuple[Any, Any]:
        """Return the mask of the tiles that may run, and a lower bound of the time of each of these [s].

        Without `bounding` it is 0.
        """
        allowed = self._allowed()
        if not bounding:
            return allowed, np.zeros(np.count_nonzero(allowed))
        return allowed, self.seconds(bounded=True)[allowed]

    def _of_calls(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: at_places(value, self.calls) for name, value in values.items()}

    def _of_tiles(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value[self.places] for name, value in values.items()}

    @cached_property
    def _point(self) -> dict[str, Any]:
        return self._of_calls(self.search.numbers)

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        return self._of_tiles(self.tiles.numbers)

    @cached_property
    def _sizes(self) -> dict[str, Any]:
        return self._of_tiles(self.tiles.sizes)

    @cached_property
    def _options(self) -> dict[str, Any]:
        given = self._of_calls(self.search.options)
        return {**self.family.setting.clock.options, **given, **self._numbers}

    def _allowed(self) -> Any:
        """Check which tiles compete for their calls, and which the algorithm allows."""
        search, first = self.search, self.search.called.first
        algorithm, least = search.question.algorithm, search.question.min_block_kv or 1
        fits = self.tiles.allowed(self._point, self._options, least, self.places)
        features = {name: name in first.features for name in algorithm.features}
        asked = {**self._point, **features, "mask": first.mask, **self._options, **self._sizes}
        return fits & np.broadcast_to(met(algorithm, asked), fits.shape)

    @cached_property
    def _work(self) -> tuple[KernelWork, ...]:
        """The work of the pairs, counted once for the launch configurations of a tile."""
        first, clock, widths = self.search.called.first, self.family.setting.clock, self.tiles.placement.widths
        tile = self.tiles.alike[self.places]
        starts = np.append(True, (tile[1:] != tile[:-1]) | (self.calls[1:] != self.calls[:-1]))
        each = self.where(starts)
        counted = PointCalls({name: each._point[name] for name in first.numbers}, first.element_size, first.mask)
        return clock.demands.over(
            counted, counted.widened(widths), each._options, each._sizes, places=np.cumsum(starts) - 1
        )

    @cached_property
    def _rows(self) -> GridRows:
        point = self._point
        lengths, mask = (point["q_len"], point["kv_len"], point["group"]), self.search.called.first.mask
        return GridRows(*lengths, mask, point["batch"], point["heads"], point["page_size"])

    def seconds(self, bounded: bool = False) -> Any:
        """Time the tiles, or bound their times from below [s]."""
        clock, seconds = self.family.setting.clock, np.zeros(len(self.calls))
        launched = self.tiles.launched(clock, self.places)
        for demand in self._work:
            seconds += clock.elapsed(demand, self._rows, launched, bounded).seconds * (demand.requested_bytes > 0)
        return seconds

    def columns(self) -> dict[str, Any]:
        """Return the times, traffic, tiles and launch of the pairs, with the options that are searched."""
        columns = {
            **self._of_tiles({name: self.tiles.columns[name] for name in LAUNCH}),
            **self._sizes,
            **self._numbers,
        }
        columns["seconds"] = self.seconds()
        columns["requested"] = sum(demand.requested_bytes for demand in self._work)
        columns["idle"] = self.family.setting.clock.idle(self._work)
        words = self.family.setting.searched.items()
        columns |= {name: np.full(len(self.calls), value) for name, value in words if name not in NUMBERS}
        return {name: np.broadcast_to(values, len(self.calls)) for name, values in columns.items()}


def first_of(groups: Any, columns: Sequence[Any]) -> Any:
    """Return the place of the least row of columns in each group, compared column after column.

    The rows of a group follow one another.

    >>> first_of(np.array([0, 0, 1]), [np.array([2.0, 1.0, 3.0])]).tolist()
    [1, 2]
    """
    left = np.arange(len(groups))
    for column in columns:
        changes = groups[left][1:] != groups[left][:-1]
        number = np.concatenate([[0], np.cumsum(changes)])
        least = np.minimum.reduceat(column[left], np.flatnonzero(np.concatenate([[True], changes])))
        left = left[column[left] == least[number]]
    return left[np.flatnonzero(np.concatenate([[True], groups[left][1:] != groups[left][:-1]]))]
