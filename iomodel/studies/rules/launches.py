"""Launches among which a rule chooses, their times at arrays of calls, and the answers of the solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.errors import InputError, IOModelError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.implementation import Implementation
from iomodel.solving.question import Question, underfilled
from iomodel.solving.solve import solve
from iomodel.solving.solve_many import solve_array
from iomodel.studies.estimate import estimate
from iomodel.studies.estimate_array import estimate_array
from iomodel.studies.rules.domain import HEAD_DIMS
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

Calls = Mapping[str, Any]
TILES = ("block_q", "block_kv", "warps", "stages")
FILLS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Blocks for every two SMs, to which splits may raise those of a call [-]."""
SHARE = 0.005
"""Excess over the least time up to which a choice counts as the solver's, the solver's own tolerance [-]."""
KEYS = 8192
"""Keys of the call whose default kernels are taken [-]."""
POINTS = 60_000
"""Pairs of a call and a launch that are timed together [-]."""


@dataclass(frozen=True)
class Launch(Record):
    """A launch that a rule may choose, with its splits.

    Attributes
    ----------
    block_q, block_kv : int
        The tile [rows].
    warps, stages : int
        Warps of a block, and stages of its buffers [-].
    packed : bool
        True if query heads with the same keys share a tile.
    splits : int
        Parts of the keys; 0 where `fill` decides [-].
    fill : int
        Blocks for every two SMs, to which the splits raise those of the call; 0 where `splits` decides [-].
    """

    block_q: int
    block_kv: int
    warps: int
    stages: int
    packed: bool
    splits: int = 1
    fill: int = 0

    def divided(self, calls: Calls, units: int, most: int) -> Any:
        """Count the splits of calls, no more than `most` nor than their key tiles."""
        tiles = -(-calls["kv_len"] // self.block_kv)
        if self.splits:
            return np.minimum(self.splits, np.minimum(most, tiles))
        group = calls["heads"] // calls["kv_heads"] if self.packed else 1
        blocks = calls["batch"] * calls["heads"] // group * -(-calls["q_len"] * group // self.block_q)
        return np.clip(self.fill * units // (2 * blocks), 1, np.minimum(most, tiles))


class Kernels(Protocol):
    """Kernels on a device among whose launches a rule chooses."""

    @property
    def device(self) -> Hardware:
        """The device."""

    @property
    def dtype(self) -> str:
        """The type of the rows."""

    @property
    def name(self) -> str:
        """The name of the kernels."""

    @property
    def units(self) -> int:
        """The SMs of the device."""

    @property
    def most_splits(self) -> int:
        """The most splits that the kernels try."""

    @property
    def ships(self) -> bool:
        """True if the library ships a launch, which `shipped` times."""

    def takes(self, head_dim: int) -> bool:
        """Check that the kernels run rows of a width."""

    def solved(self, calls: Calls) -> tuple[list[Launch], Any]:
        """Find the fastest launch and the time of each call [s]."""

    def shipped(self, calls: Calls) -> Any:
        """Time calls as their library launches them by default [s]."""

    def times(self, calls: Calls, launches: Sequence[Launch], chosen: Any = None) -> Any:
        """Time every launch at every call, or the chosen one of each [s]."""

    def ragged(self, call: VarlenAttention, launch: Launch) -> tuple[float, float]:
        """Time sequences of different lengths at their solution and at a launch [s]."""


@dataclass(frozen=True)
class Family:
    """The kernels of one implementation of an algorithm on a device."""

    algorithm: Algorithm
    device: Hardware
    implementation: Implementation
    dtype: str

    @classmethod
    def of(cls, algorithm: Algorithm, device: Hardware, wanted: str | Implementation | None, dtype: str) -> Family:
        """Find the implementation that is wanted, or the default one of a layer with many keys.

        The layer has one query where the algorithm divides the keys, else as many queries as keys. Kernels of one width
        alone leave nothing to choose; the next ones of the call with several widths stand for them.
        """
        if algorithm.answers != Attention.operation:
            raise InputError(f"algorithm: {algorithm.name} given; allowed: an algorithm of attention, such as flash2")
        queries = 1 if "splits" in algorithm.options else KEYS
        call = Attention(batch=8, heads=32, kv_heads=8, q_len=queries, kv_len=KEYS, head_dim=128, dtype=dtype)
        question = Question.ask(algorithm, call, device, wanted)
        if not question.kernels:
            own = "" if wanted is None else f" {getattr(wanted, 'name', wanted)}"
            raise InputError(
                f"hardware: {device.id} given, for which {algorithm.name} has no kernel{own}; allowed: one on which "
                f"'iomodel check {algorithm.name}' names a kernel"
            )
        listed = (question.library, *(question.kernels if wanted is None else ()))
        families = [cls(algorithm, device, kernels, dtype) for kernels in listed]
        several = (family for family in families if sum(map(family.takes, HEAD_DIMS)) > 1)
        return next(several, families[0])

    @property
    def name(self) -> str:
        """The name of the implementation."""
        return self.implementation.name

    @property
    def ships(self) -> bool:
        """True if the library ships tiles."""
        return bool(self.implementation.tiles)

    @cached_property
    def units(self) -> int:
        """The SMs of the device."""
        return units_of(self.device, self.dtype)

    @cached_property
    def most_splits(self) -> int:
        """The most splits that the kernels try; 1 for kernels that divide no keys."""
        return int(max(self.implementation.searched.get("splits", (1,))))

    @cached_property
    def packs(self) -> bool:
        """True if the kernels choose whether to pack the rows of heads that share keys."""
        return "packed" in self.implementation.searched

    def _asked(self, call: Attention, options: Mapping[str, Any] = FrozenDict()) -> Question:
        return Question.ask(self.algorithm, call, self.device, self.implementation, options)

    def takes(self, head_dim: int) -> bool:
        """Check that the kernels run rows of a width."""
        try:
            return bool(self._asked(Attention(q_len=256, head_dim=head_dim, dtype=self.dtype)).kernels)
        except IOModelError:
            return False

    def solved(self, calls: Calls) -> tuple[list[Launch], Any]:
        """Solve calls: the launch and the time of each [s]."""
        size = len(calls["q_len"])
        launches, seconds = np.empty(size, dtype=object), np.full(size, np.inf)
        for mask, where in _by_mask(calls):
            found = solve_array(
                self.algorithm, None, self.device, implementation=self.implementation, dtype=self.dtype, mask=mask,
                infeasible="mark", **_sizes(calls, where),
            )  # fmt: skip
            chosen = {**found.tiles, **found.searched}
            columns = [np.broadcast_to(chosen.get(name, default), len(where)).tolist()
                       for name, default in (*((name, 1) for name in TILES), ("packed", 0), ("splits", 1))]  # fmt: skip
            for place, row in zip(where.tolist(), zip(*columns, strict=True), strict=True):
                launches[place] = Launch(row[0], row[1], row[2], row[3], bool(row[4]), row[5])
            seconds[where] = np.where(found.feasible, found.seconds, np.inf)
        return launches.tolist(), seconds

    def shipped(self, calls: Calls) -> Any:
        """Time calls as their library launches them by default [s]."""
        seconds = np.full(len(calls["q_len"]), np.nan)
        for mask, where in _by_mask(calls):
            found = estimate_array(
                self.algorithm, None, self.device, implementation=self.implementation, dtype=self.dtype, mask=mask,
                infeasible="mark", **_sizes(calls, where),
            )  # fmt: skip
            seconds[where] = found.seconds
        return seconds

    def times(self, calls: Calls, launches: Sequence[Launch], chosen: Any = None) -> Any:
        """Time every launch at every call, or the chosen one of each; infinite where the kernels refuse it [s].

        Returns
        -------
        array
            Times by launch and call, or by call.
        """
        legal = self._legal(calls)
        size = len(calls["q_len"])
        if chosen is None:
            first, second = np.divmod(np.arange(len(launches) * size), size)
        else:
            first, second = chosen, np.arange(size)
        seconds = np.full(len(first), np.inf)
        packed = np.array([launch.packed for launch in launches])
        divided = np.stack([launch.divided(calls, self.units, self.most_splits) for launch in launches])
        several = np.array([launch.splits != 1 for launch in launches]).astype(int)
        for word in (False, True):
            pairs = np.flatnonzero((packed[first] == word) & legal[int(word), several[first], second])
            for part in np.array_split(pairs, max(1, -(-len(pairs) // POINTS))):
                seconds[part] = self._timed(calls, launches, first[part], second[part], divided, word)
        return seconds if chosen is not None else seconds.reshape(len(launches), size)

    def ragged(self, call: VarlenAttention, launch: Launch) -> tuple[float, float]:
        """Time sequences of different lengths at their solution and at a launch [s]."""
        best = solve(self.algorithm, call, self.device, implementation=self.implementation)
        tiles = {name: getattr(launch, name) for name in TILES}
        packed = {"packed": launch.packed} if self.packs and call.group > 1 else {}
        return best.seconds, self._estimated(call, tiles, splits=launch.splits, **packed)

    def _estimated(self, call: VarlenAttention, tiles: Mapping[str, int] | None, **options: Any) -> float:
        """Time a launch of sequences of different lengths; infinite where the kernels refuse it [s]."""
        try:
            return estimate(
                self.algorithm, call, self.device, tiles, implementation=self.implementation, **options
            ).seconds
        except IOModelError:
            return float(np.inf)

    def _timed(
        self, calls: Calls, launches: Sequence[Launch], first: Any, second: Any, divided: Any, word: bool
    ) -> Any:
        """Time pairs of a launch and a call [s]."""
        seconds = np.full(len(first), np.inf)
        here = {name: values[second] for name, values in calls.items()}
        for mask, where in _by_mask(here):
            own = first[where]
            options = self._chosen([launches[place] for place in own], word)
            if self.most_splits > 1:
                options["splits"] = divided[own, second[where]]
            found = estimate_array(
                self.algorithm, None, self.device, implementation=self.implementation, dtype=self.dtype,
                mask=mask, infeasible="mark", **_sizes(here, where), **options,
            )  # fmt: skip
            seconds[where] = np.where(np.isnan(found.seconds), np.inf, found.seconds)
        return seconds

    def _chosen(self, launches: Sequence[Launch], packed: bool) -> dict[str, Any]:
        """Return the arguments of an estimate that launches decide, but for the splits."""
        tiles = {name: np.array([getattr(launch, name) for launch in launches]) for name in TILES}
        return {"tiles": tiles, **({"packed": packed} if self.packs else {})}

    def _legal(self, calls: Calls) -> Any:
        """Check which calls the kernels run unpacked and packed, with one split and with any number of them.

        The bools are those of the packing, then of the splits, then of the calls.
        """
        legal = np.zeros((2, 2, len(calls["q_len"])), dtype=bool)
        for where in self.kinds(calls):
            first = {name: values[where[0]].item() for name, values in calls.items()}
            mask = "causal" if first.pop("causal") else "full"
            call = Attention(**first, dtype=self.dtype, mask=mask)
            one, several = (self._packings(call, splits) for splits in (1, 2))
            for word in one:
                legal[int(word), 0, where] = True
                legal[int(word), 1, where] = word in several
        return legal

    def _packings(self, call: Attention, splits: int) -> tuple[bool, ...]:
        """List the packings of a call that the kernels take, and that may pay."""
        options = {"splits": splits} if self.most_splits > 1 else {}
        return tuple(self._asked(call, options).free().get("packed", (False,)))

    @staticmethod
    def kinds(calls: Calls) -> Iterator[Any]:
        """Yield the places of calls whose options are legal alike."""
        group = calls["heads"] // calls["kv_heads"]
        fuller = underfilled(calls["q_len"], group) & (group > 1)
        stacked = np.stack([calls["q_len"] == 1, group == 1, fuller, calls["causal"]])
        _, places = np.unique(stacked, axis=1, return_inverse=True)
        for number in range(places.max() + 1):
            yield np.flatnonzero(places.ravel() == number)


@dataclass(frozen=True)
class DividingFamily(Family):
    """Kernels whose library chooses tiles and packing itself, so that a rule chooses the splits alone.

    The tile of its launches is that of a layer with many keys; the blocks that splits multiply are counted by it.
    """

    @cached_property
    def ways(self) -> tuple[Launch, ...]:
        """The launches: the numbers of splits that the kernels try, then those that fill the SMs, few splits first."""
        if self.most_splits == 1:
            raise InputError(
                f"engine: given for {self.algorithm.name}, whose kernels {self.implementation.name} divide no keys; "
                "allowed: with split_kv"
            )
        call = Attention(heads=32, q_len=1, kv_len=KEYS, head_dim=128, dtype=self.dtype)
        tiles = estimate(self.algorithm, call, self.device, implementation=self.implementation).tiles
        shapes = [Launch(tiles["block_q"], tiles["block_kv"], 0, 0, packed) for packed in (False, True)]
        fixed = [replace(shapes[0], splits=splits) for splits in sorted(self.implementation.searched["splits"])]
        return (*fixed, *(replace(shape, splits=0, fill=fill) for shape in shapes for fill in FILLS))

    def solved(self, calls: Calls) -> tuple[list[Launch], Any]:
        """Try all ways on calls: the first one within the solver's tolerance, and the least time of each [s]."""
        times = self.times(calls, self.ways)
        least = times.min(axis=0)
        places = (times <= (1 + SHARE) * least).argmax(axis=0)
        return [self.ways[place] for place in places.tolist()], least

    def ragged(self, call: VarlenAttention, launch: Launch) -> tuple[float, float]:
        """Time sequences of different lengths at their best number of splits and at that of a launch [s]."""
        tried = (launch.splits, *self.implementation.searched["splits"])
        seconds = [self._estimated(call, None, splits=splits) for splits in tried]
        return min(seconds), seconds[0]

    def _chosen(self, *_: Any) -> dict[str, Any]:
        return {}  # the library decides

    def _legal(self, calls: Calls) -> Any:
        return np.ones((2, 2, len(calls["q_len"])), dtype=bool)


def units_of(device: Hardware, dtype: str) -> int:
    """Return the SMs of a device."""
    found = rates(device, dtype).units
    if found is None:
        raise InputError(f"hardware: {device.id} given, without compute.units; allowed: a device that has them")
    return int(found)


def _by_mask(calls: Calls) -> Iterator[tuple[str, Any]]:
    """Yield the masks of calls with their places."""
    for mask, where in (("full", ~calls["causal"]), ("causal", calls["causal"])):
        if where.any():
            yield mask, np.flatnonzero(where)


def _sizes(calls: Calls, where: Any) -> dict[str, Any]:
    return {name: values[where] for name, values in calls.items() if name != "causal"}


def part_of(calls: Calls, where: Any) -> dict[str, Any]:
    """Return some of the calls."""
    return {name: values[where] for name, values in calls.items()}
