"""Every tile that fits a device in the launch configurations of an implementation, with its time.

The time is no monotone function of the tile size (waves, trips and padding jump), so all tiles that fit are timed, in
arrays: the tiles of all launch configurations of a kernel together, under all candidates of the options that the
kernels choose per call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from iomodel.common.validation import as_integer
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost import Cost
from iomodel.counting.options import NUMBERS
from iomodel.counting.requirements import check_numbers, numbers_of
from iomodel.errors import InfeasibleError, InputError
from iomodel.solving.certificate import TIE
from iomodel.solving.on_device import LaunchProblem, LaunchProblems, nothing_fits, ways_for
from iomodel.solving.parts import most_kv
from iomodel.solving.problem import Tile
from iomodel.solving.question import Question, TimedChoice, products
from iomodel.solving.tile_table import tile_tables
from iomodel.timing.clock import Clock, clock_for
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Shape

LAUNCH = ("shared", "less_keys", "warps", "stages")
"""Columns of a candidate that an answer keeps beside its time, traffic, tiles and options."""
ROUNDING = 1e-9
"""Most by which the time of a tile differs from its time among others [-]."""
PREFERENCE = ("seconds", "requested", "less_keys", "shared", "warps")
"""The quantities that decide between candidates, in this order: all of them are better when they are less."""


@dataclass(frozen=True)
class Setting:
    """The launch configurations of a call under one choice of the searched options, with their timer."""

    question: Question
    searched: Mapping[str, Any]
    variants: LaunchProblems

    @classmethod
    def of(cls, question: Question, searched: Mapping[str, Any]) -> Setting:
        """Lay a call out under a choice of the options that its kernels search."""
        own = {name: searched[name] for name in question.library.searched if name in searched}
        return cls(question, own, ways_for(question, own))

    @cached_property
    def clock(self) -> Clock:
        """The timer."""
        ask, laid = self.question, self.variants
        return clock_for(
            ask.algorithm, ask.call, ask.device, laid.ask.options, ask.parameters, ask.rates, ask.library,
            laid.placements,
        )  # fmt: skip

    @cached_property
    def key_step(self) -> int:
        """The coarsest step of the key tiles [rows]."""
        return max(way.placement.steps(way.launch)[1] for way in self.variants.ways)

    @cached_property
    def _checked(self) -> Mapping[str, Any]:
        """The numbers that requirements of the algorithm name."""
        ask = self.variants.ask
        return {**numbers_of(ask.algorithm, ask.workload), **ask.options}

    def most_kv(self, numbers: Mapping[str, int]) -> int | None:
        """Return the largest key tile under other searched numbers; raise InputError if the numbers are refused."""
        ask = self.variants.ask
        check_numbers(ask.algorithm, {**self._checked, **numbers})
        return most_kv(ask.workload, {**ask.options, **numbers}, self.key_step)

    def way(self, like: LaunchProblem, tile: Tile) -> LaunchProblem:
        """Return the search problem of a launch configuration that has a tile."""
        return next(
            way
            for way in self.variants.ways
            if way.launch == like.launch and all(way.ranges[name].has(size) for name, size in way.sizes(tile).items())
        )


@dataclass(frozen=True)
class SettingGroup:
    """Settings that differ in numbers alone, such as the number of splits: one layout, and arrays of the numbers."""

    setting: Setting
    numbers: tuple[Mapping[str, Any], ...]
    most: tuple[int | None, ...]
    _built: dict[int, Setting] = field(default_factory=dict, compare=False, repr=False)

    def at(self, place: int) -> Setting:
        """Return one of the settings, built on first use."""
        if place not in self._built:
            own = {**self.setting.searched, **self.numbers[place]}
            same = own == self.setting.searched
            self._built[place] = self.setting if same else Setting.of(self.setting.question, own)
        return self._built[place]

    def clock(self, place: int) -> Clock:
        """Return the timer of one of the settings."""
        clock = self.setting.clock
        options = {**clock.options, **self.numbers[place]}
        return clock if options == clock.options else replace(clock, options=options, asked={}, fitted={})

    @property
    def floor(self) -> float:
        """A time that no tile undercuts, in which the least requests pass the L2 cache [s]; 0 if none is known."""
        variants, clock = self.setting.variants, self.setting.clock
        workload, part = variants.ask.workload, variants.ways[0].part
        rate = clock.rates.l2
        if rate is None or not isinstance(workload, Shape) or any("l2" in phase for phase in clock.execution.phases):
            return 0.0
        most: Any
        outer, keys = (max(way.sides[side].last for way in variants.ways) for side in (0, 1))
        if part.names == variants.ways[0].placement.tiles:
            most = np.array([keys if limit is None else min(keys, limit) for limit in self.most])
        else:
            most = keys
        options = {**variants.ask.options, **_columns(self.numbers)}
        return part.least_traffic(workload, options, outer, most) / rate + clock.setting.start(True)

    def timed(self, family: int, ways: int) -> list[dict[str, Any]]:
        """Time every tile that fits, as columns for each layout.

        `family` and `ways` are the places of the family and of its first launch configuration among all.
        """
        variants, clock = self.setting.variants, self.setting.clock
        found = []
        first = 0
        for tiles, places in tile_tables(variants.ways, self.numbers, self.most):
            size, sizes = len(tiles), tiles.sizes
            plain = {name: sizes[name] for name in variants.ask.compiled.tiles}
            work = clock.over(tiles.placement.widths, plain, tiles.numbers)
            columns = {
                "seconds": clock.seconds_over(work, tiles.launched(clock)),
                "requested": sum(demand.requested_bytes for demand in work),
                "idle": clock.idle(work),
                **tiles.columns,
                "family": family,
                "way": places[tiles.columns["way"]] + ways,
                "place": np.arange(first, first + size),
            }
            found.append({name: np.broadcast_to(values, size) for name, values in columns.items()})
            first += size
        return found

    def bound(self, place: int) -> BoundCall:
        """Return the call with the options of one of the settings."""
        return self.setting.question.adding({**self.setting.searched, **self.numbers[place]}).bound


@dataclass(frozen=True)
class Candidates:
    """Every tile that fits at every launch configuration, as columns in the order of preference.

    Faster tiles come first; then those with less traffic, the larger key tile, less shared memory, fewer warps. The
    families in `left` are left out: no tile of them is as fast as the first, or ties with it.
    """

    families: tuple[SettingGroup, ...]
    ways: tuple[LaunchProblem, ...]
    columns: Mapping[str, Any]
    left: frozenset[int] = frozenset()

    @classmethod
    def timed(cls, families: Sequence[SettingGroup], whole: bool = True) -> Candidates:
        """Time the tiles of families, or of those alone that may have the fastest tile."""
        ways = [group.setting.variants.ways for group in families]
        starts = [sum(map(len, ways[:number])) for number in range(len(ways))]
        parts: list[dict[str, Any]] = []
        left = set()
        least = inf
        for number in reversed(range(len(families))):  # packed rows, which are mostly faster, come last
            if not whole and parts and families[number].floor > least * (1 + TIE):
                left.add(number)
                continue
            found = families[number].timed(number, starts[number])
            least = min([least, *(part["seconds"].min() for part in found)])
            parts.extend(found)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        keys = (*PREFERENCE, "family", "place")
        order: Any = np.lexsort([columns[name] for name in reversed(keys)]) if parts else []
        sorted_columns = {name: column[order] for name, column in columns.items()}
        return cls(tuple(families), tuple(chain(*ways)), sorted_columns, frozenset(left))

    @property
    def ties(self) -> Any:
        """The places of the candidates that are as fast as the fastest, to within `TIE`."""
        seconds = self.columns["seconds"]
        return np.flatnonzero(seconds <= seconds.min() * (1 + TIE))

    @property
    def filled(self) -> Candidates:
        """The candidates with the one first that leaves the fewest SMs idle, of those that tie with the fastest."""
        return self._led(int(self.ties[self.columns["idle"][self.ties].argmin()])) if self.columns else self

    def led_by(self, question: Question, choice: TimedChoice) -> Candidates | None:
        """Put a choice of tiles, launch and options first, also one that the search has left out; None if none ties."""
        tiles, options, seconds = choice
        if seconds > self.columns["seconds"].min() * (1 + TIE) * (1 + ROUNDING):
            return None
        place = self._place(tiles, options)
        if place is not None:
            return self._led(place)
        try:
            setting = Setting.of(question, options)
            numbers = {name: value for name, value in setting.searched.items() if name in NUMBERS}
            alone = Candidates.timed([SettingGroup(setting, (numbers,), (setting.most_kv(numbers),))])
        except (InputError, InfeasibleError):  # more splits than key tiles of the smallest size
            return None
        place = alone._place(tiles, options, self.columns["seconds"].min()) if alone.columns else None
        if place is None:
            return None
        moved = {"family": len(self.families), "way": len(self.ways)}
        first = {name: column[[place]] + moved.get(name, 0) for name, column in alone.columns.items()}
        columns = {name: np.concatenate([first[name], column]) for name, column in self.columns.items()}
        return replace(
            self, families=(*self.families, *alone.families), ways=(*self.ways, *alone.ways), columns=columns
        )

    def _place(self, tiles: Mapping[str, int], options: Mapping[str, Any], least: float | None = None) -> int | None:
        """Find the fastest candidate with these tiles, launch and options among those within `TIE` of a time [s]."""
        columns, names = self.columns, self.ways[0].names
        wanted = dict(zip(("outer", "inner", "warps", "stages"), (*names, "warps", "stages"), strict=True))
        limit = (columns["seconds"].min() if least is None else least) * (1 + TIE)
        alike = columns["seconds"] <= limit
        for column, name in wanted.items():
            alike = alike & (columns[column] == tiles[name])
        for place in np.flatnonzero(alike):
            group, number = self.families[columns["family"][place]], columns["number"][place]
            chosen = {**group.setting.searched, **group.numbers[number]}
            if all(options.get(name) == value for name, value in chosen.items()):
                return int(place)
        return None

    def _led(self, place: int) -> Candidates:
        """Put one candidate before all others."""
        order = np.concatenate([[place], np.delete(np.arange(len(self)), place)])
        return replace(self, columns={name: column[order] for name, column in self.columns.items()})

    @cached_property
    def whole(self) -> Candidates:
        """The candidates with those that were left out."""
        return Candidates.timed(self.families) if self.left else self

    def __len__(self) -> int:
        return len(self.columns["seconds"])

    @property
    def first(self) -> tuple[SettingGroup, int, LaunchProblem, dict[str, int]]:
        """The family of the fastest candidate, its place in it, its launch configuration and its tiles by name.

        The ranges of the launch configuration are those of the first choice of the searched numbers.
        """
        at = {name: int(self.columns[name][0]) for name in ("family", "number", "way", "outer", "inner")}
        way = self.ways[at["way"]]
        return self.families[at["family"]], at["number"], way, way.sizes((at["outer"], at["inner"]))

    @property
    def row(self) -> dict[str, Any]:
        """The columns of the fastest candidate, with its tiles and searched options by name; empty without any."""
        if not self.columns:
            return {}
        family, number, _, sizes = self.first
        kept = {name: self.columns[name][:1] for name in (*PREFERENCE, *LAUNCH, "idle")}
        chosen = {**sizes, **family.setting.searched, **family.numbers[number]}
        return {**kept, **{name: np.array([value]) for name, value in chosen.items()}}

    def of(self, place: int) -> tuple[Setting, LaunchProblem, Tile, float]:
        """Return the setting, launch configuration, tile and time [s] of one candidate."""
        at = {name: column[place] for name, column in self.columns.items()}
        tile = int(at["outer"]), int(at["inner"])
        setting = self.families[at["family"]].at(int(at["number"]))
        return setting, setting.way(self.ways[at["way"]], tile), tile, float(at["seconds"])

    def cost(self, place: int) -> Cost:
        """Evaluate the exact cost of one candidate."""
        at = {name: int(self.columns[name][place]) for name in ("family", "number", "way", "outer", "inner")}
        call = self.families[at["family"]].bound(at["number"])
        return call.cost(self.ways[at["way"]].sizes((at["outer"], at["inner"])))

    def key(self, place: int) -> tuple[Any, ...]:
        """Return the tiles, launch and searched options, which name a candidate to its user."""
        names = ("outer", "inner", "warps", "stages", "family", "number")
        return tuple(self.columns[name][place] for name in names)


def candidates(question: Question, whole: bool = True) -> Candidates:
    """Time every tile that fits, or those alone that may be the fastest.

    Raises
    ------
    InfeasibleError
        No tile fits.
    InputError
        No option is allowed.
    """
    found = Candidates.timed(families(question), whole)
    if not found.columns:
        raise nothing_fits(question, found.families[0].setting.variants.ways)
    return found


def _columns(numbers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return choices of numbers as an array of each."""
    return {name: np.array([chosen[name] for chosen in numbers]) for name in numbers[0]}


def families(question: Question, alike: Attention | None = None) -> list[SettingGroup]:
    """Build the settings of every choice of the searched options; raise the first error if every choice is refused.

    The options are those that are searched for the call, or for one `alike` where the question stands for several.
    """
    free = question.free(alike)
    numeric = {name: values for name, values in free.items() if name in NUMBERS}
    found: list[SettingGroup] = []
    failure: InputError | InfeasibleError | None = None
    for words in products({name: values for name, values in free.items() if name not in numeric}):
        base: Setting | None = None
        numbers, most = [], []
        for chosen in products(numeric):
            try:
                if base is None:
                    base = Setting.of(question, {**words, **chosen})
                limit = base.most_kv({name: as_integer(name, value) for name, value in chosen.items()})
            except (InputError, InfeasibleError) as error:  # more splits than key tiles, say
                if not free:
                    raise
                failure = failure or error
                continue
            numbers.append(chosen)
            most.append(limit)
        if base is not None:
            found.append(SettingGroup(base, tuple(numbers), tuple(most)))
    if not found:
        assert failure is not None  # every choice was refused
        raise failure
    return found
