"""The simulated memory: it runs a program tile by tile and tells every event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from iomodel.tracing.events import Event
from iomodel.tracing.program import Program, Step, Walk
from iomodel.tracing.rates import Rates
from iomodel.tracing.sight import Sight

Picker = Callable[[list[Any]], tuple[Any, ...]]


class _Ready(NamedTuple):
    """A step with what can be worked out before it runs."""

    tile: Picker
    event: Callable[[tuple[Any, ...], int], Event]
    size: int | None
    after: int | None


class _Inside(NamedTuple):
    walk: Walk
    body: list[Any]


class Machine:
    """One run of a program: where each slot is, and how often the loops have gone round."""

    def __init__(self, program: Program, sight: Sight, rates: Rates, batch: int, head: int) -> None:
        self.program, self.sight, self.rates = program, sight, rates
        self.batch, self.head = batch, head
        self.at = list(program.slots)
        self.size = [stop - start for _, start, stop in self.at]
        self.trips = [0] * len(self.at)

    def events(self) -> Iterator[Event]:
        """Every event, in the order of the program."""
        return self._run(self._ready(self.program.body))

    def _ready(self, body: tuple[Step | Walk, ...]) -> list[_Ready | _Inside]:
        return [
            _Inside(found, self._ready(found.body))
            if isinstance(found, Walk)
            else _Ready(_picker(found.slots), self._teller(found), found.size, found.after)
            for found in body
        ]

    def _teller(self, step: Step) -> Callable[[tuple[Any, ...], int], Event]:
        """How a step is told: what is the same every time is put together once."""
        first = (self.program.title, self.batch, self.head, step.op, step.tensor)
        memory = sum(size for _, size in step.held), self.program.allocated
        last = step.atomic, step.held
        per_byte, per_flop = self.rates.of_byte, self.rates.of_flop
        width, moves, factor, product = step.width, step.moves, step.factor, step.op == "MatMul"
        make = tuple.__new__

        def moved(tile: tuple[Any, ...], n: int) -> Event:
            size = n * width
            time = None if per_byte is None else size * moves * per_byte
            return make(Event, (*first, tile, n, size, 0, *memory, time, none, *last))

        def computed(tile: tuple[Any, ...], n: int) -> Event:
            work = n * factor
            time = None if per_flop is None else work * per_flop if product else 0.0
            return make(Event, (*first, tile, 0, 0, work, *memory, nothing, time, *last))

        none = None if per_flop is None else 0.0
        nothing = None if per_byte is None else 0.0
        return computed if factor else moved

    def _run(self, body: list[_Ready | _Inside]) -> Iterator[Event]:
        at, size, trips = self.at, self.size, self.trips
        for found in body:
            if isinstance(found, _Ready):
                pick, tell, fixed, after = found
                if after is None or trips[after]:
                    yield tell(pick(at), prod(pick(size)) if fixed is None else fixed)
            elif found.walk.tile:
                for _ in self._trips(found.walk):
                    yield from self._run(found.body)
            elif self._lets_through(found.walk):
                yield from self._run(found.body)

    def _trips(self, walk: Walk) -> Iterator[None]:
        """Go over the tiles of a loop, all or those that are seen, with the slots set."""
        at, size, name, tile = self.at, self.size, walk.axis, walk.tile
        for trip, (start, stop) in enumerate(self._tiles(walk)):
            at[walk.slot], size[walk.slot], self.trips[walk.slot] = (name, start, stop), stop - start, trip
            if walk.stored is not None:
                slot, end = walk.stored
                last = min(start + tile, end)
                at[slot], size[slot] = (name, start, last), last - start
            if walk.pages is not None:
                slot, rows = walk.pages
                first, last = start // rows, (stop - 1) // rows + 1
                at[slot], size[slot] = ("page", first, last), last - first
            yield

    def _tiles(self, walk: Walk) -> Iterator[tuple[int, int]]:
        tile, done = walk.tile, -1
        begin, end = self._whole(walk)
        for low, high in self._spans(walk):
            for i in range(max((low - begin) // tile, done + 1), (high - 1 - begin) // tile + 1):
                start = begin + i * tile
                yield start, min(start + tile, end)
                done = i

    def _lets_through(self, walk: Walk) -> bool:
        return any(True for _ in self._spans(walk)) == walk.live

    def _spans(self, walk: Walk) -> Iterator[tuple[int, int]]:
        """The rows that are to be visited: all of them, or those that the tile around them sees."""
        begin, end = self._whole(walk)
        seen = None
        if walk.seer is not None:
            _, start, stop = self.at[walk.seer]
            seen = self.sight.spans(walk.axis, start, stop)
        for low, high in [(begin, end)] if seen is None else seen:
            if max(low, begin) < min(high, end):
                yield max(low, begin), min(high, end)

    def _whole(self, walk: Walk) -> tuple[int, int]:
        """All of an axis, or the part of it that a loop over a partition is at."""
        if walk.part is None:
            return 0, walk.rows
        part = self.at[walk.part][1]
        return min(part * walk.chunk, walk.rows), min((part + 1) * walk.chunk, walk.rows)


def _picker(slots: tuple[int, ...]) -> Picker:
    """What is in some slots, as a tuple however many they are."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return (lambda values: (values[slots[0]],)) if slots else (lambda _: ())
