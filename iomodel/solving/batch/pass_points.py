"""Times of one pass of an algorithm at the points of many calls, and the default tiles of each point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import anywhere, at_places
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.options import NUMBERS
from iomodel.counting.requirements import met
from iomodel.counting.tiles import with_followers
from iomodel.errors import InputError, IOModelError
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.placement.front_ends import launched_first
from iomodel.placement.shipped_tile import ROWS, shipped_tile
from iomodel.solving.batch.fastest_search import FastestSearch
from iomodel.solving.certificate import TIE
from iomodel.solving.default_tiles import check_kernels, default_launch
from iomodel.solving.question import Question, underfilled
from iomodel.timing.clock import Clock
from iomodel.timing.clock_points import Fastest, PointCalls, fastest_at
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.tabulated import Tabulated

Columns = dict[str, Any]
NO_KERNEL = -1
KERNELS = "implementation"
"""The column of the implementations, as places in the declaration of the algorithm."""


class KernelChoice(NamedTuple):
    """A choice of the searched options, its clock, and the tile that the implementation ships for it."""

    searched: Mapping[str, Any]
    clock: Clock
    shipped: Mapping[str, int] | None


Run = Callable[["PassPoints", Columns, Columns, int], Fastest]
"""A way to time points by one implementation, from their numbers, options and size."""


@dataclass(frozen=True)
class PassPoints:
    """A timer of one pass at many points; numbers and options are flat columns or single values."""

    question: Question
    called: Calls
    clocks: dict[Any, list[KernelChoice]] = field(default_factory=dict, compare=False, repr=False)
    others: dict[int, PassPoints] = field(default_factory=dict, compare=False, repr=False)

    def fastest(self, numbers: Columns, options: Columns, size: int, searched: bool = False) -> Fastest:
        """Time the points at their tiles, each at its fastest launch and, unless `searched`, options not given."""
        choice = "given" if searched else "searched"

        def run(timer: PassPoints, numbers: Columns, options: Columns, size: int) -> Fastest:
            return timer._over_kinds(numbers, options, size, choice)

        if self.question.implementation is not None or KERNELS in numbers or not TILE_NAMES & numbers.keys():
            return self.by_kernels(numbers, options, size, run)
        result = Fastest.none(size)
        for where, kernels in self._legal(numbers, options, size):
            here, own = _at(where, numbers, options)
            found = Fastest.none(len(where))
            for alike in self._launched_first(kernels) if kernels else [[NO_KERNEL]]:
                left = np.isinf(found.seconds)
                for number in alike if left.any() else ():
                    part = run(self._by(number), here, own, len(where))
                    found.offer(left & np.isfinite(part.seconds), part.seconds, {**part.columns, KERNELS: number})
            result.place(where, found)
        return result

    def by_kernels(self, numbers: Columns, options: Columns, size: int, run: Run) -> Fastest:
        """Run each point by its default implementation, and by the next where no launch of that one fits.

        The column `KERNELS` holds the places of the implementations in the declaration; it may be given.
        """
        if self.question.implementation is not None:
            return run(self, numbers, options, size)
        result = Fastest.none(size)
        for where, kernels in self._legal(numbers, options, size):
            here, own = _at(where, numbers, options)
            if not kernels:
                part = run(self, here, own, len(where))
                part.columns[KERNELS] = np.full(len(where), NO_KERNEL)
                result.place(where, part)
                continue
            order = self._order(kernels, here, own, len(where))
            left = np.arange(len(where))
            for rank in range(len(kernels)):
                for number in np.unique(order[rank, left]):
                    places = left[order[rank, left] == number]
                    inputs, chosen = _at(places, here, own)
                    part = run(self._by(kernels[number]), inputs, chosen, len(places))
                    part.columns[KERNELS] = np.full(len(places), kernels[number])
                    result.place(where[places], part)
                left = left[np.isinf(result.seconds[where[left]])]
                if not len(left):
                    break
        return result

    def _by(self, number: int) -> PassPoints:
        """Return the timer of one implementation."""
        if number == NO_KERNEL:
            return self
        if number not in self.others:
            kernels = self.question.algorithm.implementations[number]
            self.others[number] = replace(self, question=self.question.by(kernels), clocks={}, others={})
        return self.others[number]

    def _legal(self, numbers: Columns, options: Columns, size: int) -> Iterator[tuple[Any, list[int]]]:
        """Yield the places of calls that the same implementations run, with the places of these in the declaration."""
        words = [value for name, value in options.items() if name not in NUMBERS and isinstance(value, np.ndarray)]
        kinds = [numbers["head_dim"], numbers["value_dim"], numbers["q_len"] == 1, numbers["group"] == 1,
                 numbers["page_size"], *words]  # fmt: skip
        stacked = np.stack([np.broadcast_to(kind, size).astype(np.int64) for kind in kinds])
        known, places = np.unique(stacked, axis=1, return_inverse=True)
        declared = self.question.algorithm.implementations
        for number in range(known.shape[1]):
            where = np.flatnonzero(places.ravel() == number)
            first = {name: at_places(value, where[:1]) for name, value in {**numbers, **options}.items()}
            call = self._call({**numbers, **first})
            given = {name: np.ravel(first[name])[0].item() if isinstance(value, np.ndarray) else value
                     for name, value in options.items()}  # fmt: skip
            asked = replace(self.question, call=call, options=FrozenDict(given))
            check_kernels(asked)
            yield where, [declared.index(known) for known in asked.kernels]

    def _order(self, kernels: list[int], numbers: Columns, options: Columns, size: int) -> Any:
        """Rank implementations at each point, the default one first: places in `kernels` by rank and point."""
        if len(kernels) == 1:
            return np.zeros((1, size), dtype=np.int64)
        if KERNELS in numbers:
            first = np.searchsorted(kernels, np.broadcast_to(numbers[KERNELS], size))
            return np.argsort(np.arange(len(kernels))[:, None] != first, axis=0, kind="stable")
        chosen = {name for known in self.question.algorithm.implementations for name in known.searched}
        plain = {name: value for name, value in options.items() if name not in chosen}
        own = {name: value for name, value in numbers.items() if name not in TILE_NAMES | LAUNCH_NAMES}
        usual, _ = self._launched_first(kernels)
        never = np.finfo(float).max / 2  # before the kernels that come last, and finite with a tie
        times = np.stack([
            np.minimum(self._by(number)._default(own, plain, size).seconds, never) if number in usual
            else np.full(size, np.inf) for number in kernels
        ])  # fmt: skip
        least = times.min(axis=0)
        default = (times <= least * (1 + TIE)).argmax(axis=0)
        times[default, np.arange(size)] = -np.inf
        return np.argsort(times, axis=0, kind="stable")

    def _launched_first(self, kernels: list[int]) -> tuple[list[int], list[int]]:
        """Divide kernels, by their places in the declaration, as :func:`launched_first`."""
        declared = self.question.algorithm.implementations
        usual, others = launched_first([declared[number] for number in kernels])
        return [declared.index(known) for known in usual], [declared.index(known) for known in others]

    def defaults(self, numbers: Columns, options: Columns, size: int) -> tuple[Columns, Any]:
        """Choose the tiles, the launch and the options of :func:`iomodel.estimate` without tiles at each point.

        The second value is the mask of the points where some tile fits.
        """
        best = self.by_kernels(numbers, options, size, PassPoints._default)
        return {name: values.astype(np.int64) for name, values in best.columns.items()}, np.isfinite(best.seconds)

    def _default(self, numbers: Columns, options: Columns, size: int) -> Fastest:
        """Choose the default tiles of one implementation at each point, with their times."""
        best = self._over_kinds(numbers, options, size, "shipped")
        columns = {name: np.array(values) for name, values in best.columns.items() if name in self._chosen_names}
        seconds = np.array(best.seconds)
        for choose in (self._by_search, self._one_by_one):
            rest = np.flatnonzero(np.isinf(seconds))
            if not len(rest):
                break
            here, own = _at(rest, numbers, options)
            chosen = choose(here, own, len(rest))
            feasible = np.isfinite(chosen.seconds)
            for name, values in chosen.columns.items():
                columns.setdefault(name, np.zeros(size))[rest[feasible]] = values[feasible]
            seconds[rest[feasible]] = chosen.seconds[feasible]
        return Fastest(seconds, columns)

    def shipped(self, numbers: Columns, options: Columns, size: int) -> Fastest:
        """Time each point at the tile that the implementation ships for it, with the options that go with it."""
        return self._over_kinds(numbers, options, size, "shipped")

    def competes(self, where: Any, columns: Columns, numbers: Columns) -> Any:
        """Check that shipped tiles of some points are among those of a search: no axis is a step shorter than one."""
        competing = np.full(np.count_nonzero(where), True)
        if not len(competing):
            return competing
        point = {name: at_places(numbers[name], where) for name in ("q_len", "kv_len", "group")}
        packed = at_places(columns.get("packed", self.question.options.get("packed", False)), where)
        rows = point["q_len"] * np.where(packed, point["group"], 1), point["kv_len"]
        least = 1, self.question.min_block_kv or 1
        clocks = [choice.clock for key, found in self.clocks.items() if key[0] == "shipped" for choice in found]
        ways = {
            (launch.warps, launch.stages, placement.tiles, placement.steps(launch), placement.residency.sizes)
            for clock in clocks for placement in clock.placements for launch in placement.launches()
        }  # fmt: skip
        among = np.full(len(competing), False)
        for warps, stages, names, steps, listed in ways:
            here = (columns["warps"][where] == warps) & (columns["stages"][where] == stages)
            for name, length, step, first, sizes in zip(names, rows, steps, least, listed, strict=True):
                tile = columns[name][where]
                here &= tile >= np.minimum(first, length)
                here &= (tile < length + step) | bool(sizes)
            among |= here
        return among

    @property
    def _chosen_names(self) -> set[str]:
        algorithm = self.question.algorithm
        return {*TILE_NAMES, *LAUNCH_NAMES, *algorithm.takes(self.called.first.direction), *algorithm.common}

    def _by_search(self, numbers: Columns, options: Columns, size: int) -> Fastest:
        """Search for the fastest tiles of the kernels on the device."""
        if isinstance(self.called.first.mask, Tabulated):
            return Fastest.none(size)
        try:
            columns = FastestSearch(self.question, self.called, numbers, options, size).found().columns
        except InputError:  # no kernel on the device
            return Fastest.none(size)
        return Fastest(
            columns["seconds"], {name: values for name, values in columns.items() if name in self._chosen_names}
        )

    def _one_by_one(self, numbers: Columns, options: Columns, size: int) -> Fastest:
        """Choose the tiles of each distinct call by itself."""
        varying = {name: value for name, value in {**numbers, **options}.items() if isinstance(value, np.ndarray)}
        if not varying:
            varying = {"q_len": np.full(size, numbers["q_len"])}
        points, places = np.unique(np.stack([*varying.values()]), axis=1, return_inverse=True)
        chosen: list[tuple[float, Columns]] = []
        for point in points.T.tolist():
            known = {**numbers, **options, **{name: int(value) for name, value in zip(varying, point, strict=True)}}
            given = {name: known[name] if name in NUMBERS else type(value)(known[name]) for name, value in
                     ((name, np.ravel(value)[0].item()) for name, value in options.items())}  # fmt: skip
            try:
                asked, (tiles, own) = default_launch(
                    replace(self.question, call=self._call(known), options=FrozenDict(given))
                )
                seconds = asked.choosing(own).launched(tiles).seconds
            except IOModelError:
                chosen.append((np.inf, {}))
                continue
            chosen.append((seconds, {**tiles, **{name: own[name] for name in own.keys() - given.keys()}}))
        names = dict.fromkeys(name for _, columns in chosen for name in columns)
        columns = {name: np.array([at.get(name, 0) for _, at in chosen])[places.ravel()] for name in names}
        return Fastest(np.array([seconds for seconds, _ in chosen])[places.ravel()], columns)

    def _over_kinds(self, numbers: Columns, options: Columns, size: int, choice: str) -> Fastest:
        """Time points split into those whose rows have the same widths and whose tables have the same words."""
        packs = underfilled(numbers["q_len"], numbers["group"]) & (numbers["group"] != 1)
        words = [value for name, value in options.items() if name not in NUMBERS and isinstance(value, np.ndarray)]
        kinds = [numbers["head_dim"], numbers["value_dim"], packs, numbers["q_len"] == 1, *words]
        if choice == "shipped":
            rows = numbers["q_len"] * numbers["group"]
            kinds += [sum(np.asarray(rows <= most, dtype=np.int64) for most in ROWS), options.get("splits", 1) > 1]
        if not any(isinstance(kind, np.ndarray) and kind.ndim for kind in kinds):
            return self._alike(tuple(map(int, kinds)), numbers, options, size, choice)
        stacked = np.stack([np.broadcast_to(kind, size).astype(np.int64) for kind in kinds])
        if (stacked == stacked[:, :1]).all():
            return self._alike(tuple(stacked[:, 0].tolist()), numbers, options, size, choice)
        fastest = Fastest.none(size)
        known, places = np.unique(stacked, axis=1, return_inverse=True)
        for number, kind in enumerate(known.T.tolist()):
            where = np.flatnonzero(places.ravel() == number)
            inputs, own = (
                {name: at_places(value, where) for name, value in each.items()} for each in (numbers, options)
            )
            fastest.place(where, self._alike(tuple(kind), inputs, own, len(where), choice))
        return fastest

    def _alike(self, kind: tuple[int, ...], numbers: Columns, options: Columns, size: int, choice: str) -> Fastest:
        """Time points of one kind, those together that the rule of their library divides among as many splits."""
        splits = self._divided(numbers, options, size) if choice == "shipped" else None
        if splits is None:
            return self._equal(kind, numbers, options, size, choice)
        fastest = Fastest.none(size)
        for many in np.unique(splits).tolist():
            where = np.flatnonzero(splits == many)
            here, own = _at(where, numbers, options)
            fastest.place(where, self._equal((*kind, many), here, own, len(where), choice))
        return fastest

    def _divided(self, numbers: Columns, options: Columns, size: int) -> Any:
        """Return the splits of each point by the rule of the library; None without one, or if they are given."""
        if self.question.implementation is None or self.question.library.front_end.division is None:
            return None
        asked = replace(self.question, call=self._call(numbers), options=FrozenDict(_first(options)))
        free = asked.free()
        if "splits" not in free:
            return None
        packed = bool(free.get("packed", (asked.options.get("packed", False),))[0])
        shared = numbers["group"] if packed else 1
        columns = (numbers["batch"] * numbers["heads"] // shared, numbers["q_len"] * shared, numbers["kv_len"])
        stacked = np.stack([np.broadcast_to(column, size) for column in columns])
        known, places = np.unique(stacked, axis=1, return_inverse=True)
        return np.array([asked.divided(packed, *point) for point in known.T.tolist()])[places.ravel()]

    def _equal(self, kind: tuple[int, ...], numbers: Columns, options: Columns, size: int, choice: str) -> Fastest:
        """Time points whose tables and choices of options are the same."""
        fastest, first = Fastest.none(size), self.called.first
        point = {name: numbers[name] for name in first.numbers}
        calls = PointCalls(point, first.element_size, first.mask)
        features = {name: name in first.features for name in self.question.algorithm.features}
        for searched, clock, shipped in self._kernel_choices(kind, numbers, options, choice):
            if choice == "shipped" and shipped is None:
                continue
            sizes = numbers if shipped is None else shipped
            tiles = {name: sizes[name] for name in clock.demands.tiles}
            launch = {name: sizes[name] for name in LAUNCH_NAMES & sizes.keys()}
            chosen = {**clock.options, **options, **searched}
            values = {**point, **chosen, **{name: sizes[name] for name in TILE_NAMES & sizes.keys()}}
            where = np.broadcast_to(met(self.question.algorithm, {**features, "mask": first.mask, **values}), size)
            if not where.any():
                continue
            each = fastest_at(clock, calls, chosen, tiles, launch, size)
            columns = {**each.columns, **searched, **({} if shipped is None else tiles)}
            fastest.offer(where & np.isfinite(each.seconds), each.seconds, columns)
        return fastest

    def _kernel_choices(
        self, kind: tuple[int, ...], numbers: Columns, options: Columns, choice: str
    ) -> list[KernelChoice]:
        """Return each choice of the searched options that are not given, with its clock."""
        key = (choice, kind, *options)
        if key not in self.clocks:
            self.clocks[key] = [*self._found(numbers, options, choice)]
        return self.clocks[key]

    def _found(self, numbers: Columns, options: Columns, choice: str) -> Iterator[KernelChoice]:
        call = self._call(numbers)
        first = _first(options)
        asked = replace(self.question, call=call, options=FrozenDict(first))
        tiled = choice == "shipped" or bool(TILE_NAMES & numbers.keys())
        free: Iterable[Mapping[str, Any]] = [{}] if choice == "given" else asked.choices(choice == "shipped")
        for searched in free:
            chosen = {**first, **searched}
            shipped = None
            try:
                if choice == "shipped":
                    shipped = shipped_tile(asked.library, call, asked.device, chosen)
                    if shipped is None:
                        continue
                words = {name: value for name, value in chosen.items() if name in first or name not in NUMBERS}
                bound, clock = asked.choosing(words).timer(tiled=tiled)
                if shipped is not None:
                    named = {name: shipped[name] for name in bound.tiles if name in shipped}
                    launch = {name: shipped[name] for name in LAUNCH_NAMES & shipped.keys()}
                    shipped = {**with_followers(asked.algorithm.name, bound.tiles, named), **launch}
            except IOModelError:
                if choice != "shipped":
                    raise
                continue
            yield KernelChoice(searched, clock, shipped)

    def _call(self, numbers: Columns) -> Attention:
        """Return the first of some calls."""
        fields = {name: int(np.ravel(numbers[name])[0]) for name in self.called.numeric}
        return Attention(**{**self.called.fields, **fields})


def _first(options: Columns) -> dict[str, Any]:
    """Return the options of the first point."""
    first = {name: np.ravel(value)[0].item() if isinstance(value, np.ndarray) else value
             for name, value in options.items()}  # fmt: skip
    first |= {name: bool(first[name]) for name, value in options.items()
              if isinstance(value, np.ndarray) and name not in NUMBERS}  # fmt: skip
    return first


def _at(where: Any, numbers: Columns, options: Columns) -> tuple[Columns, Columns]:
    """Return the numbers and the options of some of the points."""
    here, own = ({name: at_places(value, where) for name, value in each.items()} for each in (numbers, options))
    return here, own


def filled(columns: Columns, found: Any) -> Columns:
    """Fill the tiles of points where none fits with those of another point."""
    if not anywhere(~found) or not found.any():
        return columns
    first = int(found.argmax())
    return {name: np.where(found, values, values[first]) for name, values in columns.items()}
