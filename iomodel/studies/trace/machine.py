"""Simulated memory: runs a program tile by tile and yields its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from iomodel.studies.trace.events import Event
from iomodel.studies.trace.program import Program, TraceCut, TraceLoop, TracePiece, TraceStep
from iomodel.studies.trace.rates import TraceRates
from iomodel.workloads.masks.spans import MaskSpans

Picker = Callable[[list[Any]], tuple[Any, ...]]


class _Ready(NamedTuple):
    """A step with the constants computed before it runs."""

    tile: Picker
    event: Callable[[tuple[Any, ...], int], Event]
    size: int | None
    after: int | None
    only: int | None
    stays: int | None


class _Inside(NamedTuple):
    walk: TraceLoop
    body: list[Any]


class _Pieces(NamedTuple):
    pieces: list[tuple[TracePiece, list[Any]]]


class TraceMachine:
    """A run of a program: the current tile of each slot, and the trips of the loops."""

    def __init__(self, program: Program, mask: MaskSpans, rates: TraceRates, batch: int, head: int) -> None:
        self.program, self.mask, self.rates = program, mask, rates
        self.unskipped = mask.without_left()
        self.batch, self.head = batch, head
        self.at = list(program.slots)
        self.size = [stop - start for _, start, stop in self.at]
        self.trips = [0] * len(self.at)
        self.ended: dict[int, tuple[int, tuple[int, int]]] = {}  # by slot, the outer trip and the last tile of a walk
        self.turned = [False] * len(self.at)
        self.visits: Counter[tuple[int, int]] = Counter()  # by slot and first row
        self.begin: dict[str, int] = {}
        """The first row of the current piece on each axis; masks and bounds count from it."""

    def events(self) -> Iterator[Event]:
        """Yield every event in the order of the program."""
        return self._run(self._ready(self.program.body))

    def _ready(self, body: tuple[TraceStep | TraceLoop | TraceCut, ...]) -> list[_Ready | _Inside | _Pieces]:
        return [self._ready_step(step) for step in body]

    def _ready_step(self, step: TraceStep | TraceLoop | TraceCut) -> _Ready | _Inside | _Pieces:
        if isinstance(step, TraceLoop):
            return _Inside(step, self._ready(step.body))
        if isinstance(step, TraceCut):
            return _Pieces([(piece, self._ready(piece.body)) for piece in step.pieces])
        return _Ready(_picker(step.slots), self._formatter(step), step.size, step.after, step.only, step.stays)

    def _formatter(self, step: TraceStep) -> Callable[[tuple[Any, ...], int], Event]:
        """Build the function that formats a step, with its constant parts assembled once."""
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

    def _run(self, body: list[_Ready | _Inside | _Pieces]) -> Iterator[Event]:
        at, size, trips = self.at, self.size, self.trips
        for step in body:
            if isinstance(step, _Ready):
                pick, tell, fixed, after, only, stays = step
                if (after is not None and not trips[after]) or (only is not None and trips[only]):
                    continue
                if stays is None or trips[stays] or not self.turned[stays]:
                    yield tell(pick(at), prod(pick(size)) if fixed is None else fixed)
            elif isinstance(step, _Pieces):
                yield from self._run_pieces(step)
            elif step.walk.tile:
                for _ in self._trips(step.walk):
                    yield from self._run(step.body)
            elif self._lets_through(step.walk):
                yield from self._run(step.body)

    def _run_pieces(self, cut: _Pieces) -> Iterator[Event]:
        """Run the pieces of a cut in order; their rows follow each other on the axes that they share out."""
        masks = self.mask, self.unskipped
        begin: dict[str, int] = {}
        for piece, body in cut.pieces:
            self.mask, self.unskipped = piece.mask, piece.mask.without_left()
            for _ in range(piece.times):
                self.begin = begin
                for slot in piece.whole:
                    name = self.at[slot][0]
                    start = begin.get(name, 0)
                    self.at[slot] = name, start, start + self.size[slot]
                yield from self._run(body)
                begin = {name: begin.get(name, 0) + rows for name, rows in piece.shares}
        (self.mask, self.unskipped), self.begin = masks, {}

    def _trips(self, walk: TraceLoop) -> Iterator[None]:
        """Iterate over the tiles of a loop, all or the visible ones, and set the slots."""
        at, size, name, tile = self.at, self.size, walk.axis, walk.tile
        begin = self.begin.get(name, 0)
        seen = 0 if walk.clipped is None else max((high for _, high in self._spans(walk)), default=0)
        for trip, (start, stop) in enumerate(self._tiles(walk) if walk.turns is None else self._serpentine(walk)):
            at[walk.slot], size[walk.slot], self.trips[walk.slot] = (
                (name, begin + start, begin + stop),
                stop - start,
                trip,
            )
            if walk.clipped is not None:
                last = min(stop, seen)
                at[walk.clipped], size[walk.clipped] = (name, begin + start, begin + last), last - start
            if walk.padded is not None:
                at[walk.padded], size[walk.padded] = (name, begin + start, begin + start + tile), tile
            if walk.again is not None:
                self.trips[walk.again] = self.visits[walk.again, start]
                self.visits[walk.again, start] += 1
            if walk.heads is not None:
                slot, group = walk.heads
                at[slot], size[slot] = ("head", 0, min(group, stop - start)), min(group, stop - start)
            if walk.stored is not None:
                slot, end = walk.stored
                last = min(start + tile, end)
                at[slot], size[slot] = (name, begin + start, begin + last), last - start
            if walk.pages is not None:
                slot, rows = walk.pages
                first, last = start // rows, (stop - 1) // rows + 1
                at[slot], size[slot] = ("page", first, last), last - first
            yield

    def _tiles(self, walk: TraceLoop) -> Iterator[tuple[int, int]]:
        tile, done = walk.tile, -1
        begin, end = self._whole(walk)
        for low, high in self._spans(walk):
            for i in range(max((low - begin) // tile, done + 1), (high - 1 - begin) // tile + 1):
                start = begin + i * tile
                yield start, min(start + tile, end)
                done = i

    def _serpentine(self, walk: TraceLoop) -> Iterator[tuple[int, int]]:
        """Yield the tiles in the direction of the current tile of the loop around."""
        assert walk.turns is not None
        trip, tiles = self.trips[walk.turns], list(self._tiles(walk))
        if trip % 2:
            tiles.reverse()
        if tiles:
            self.turned[walk.slot] = self.ended.get(walk.slot) == (trip - 1, tiles[0])
            self.ended[walk.slot] = trip, tiles[-1]
        yield from tiles

    def _lets_through(self, walk: TraceLoop) -> bool:
        return any(True for _ in self._spans(walk)) == walk.live

    def _spans(self, walk: TraceLoop) -> Iterator[tuple[int, int]]:
        """Yield the spans of rows to visit: all rows, or the rows visible to the enclosing tile."""
        first, end = self._whole(walk)
        visible = None
        if walk.seer is not None:
            name, start, stop = self.at[walk.seer]
            begin = self.begin.get(name, 0)
            start, stop = start - begin, stop - begin
            mask, padded = self.mask if walk.left else self.unskipped, 0
            if walk.query_tile and name == "query":
                stop = -(-stop // walk.query_tile) * walk.query_tile
            elif walk.query_tile:
                padded = -end % walk.query_tile
            visible = mask.spans(walk.axis, start, stop, padded)
            if padded and visible is not None:  # the padding belongs to the last tile
                visible = [(min(low, end - 1), high) for low, high in visible]
        for low, high in [(first, end)] if visible is None else visible:
            if max(low, first) < min(high, end):
                yield max(low, first), min(high, end)

    def _whole(self, walk: TraceLoop) -> tuple[int, int]:
        """Return the range of an axis, or the current part of a partition of it."""
        if walk.part is None:
            return 0, walk.rows
        part = self.at[walk.part][1]
        return min(part * walk.chunk, walk.rows), min((part + 1) * walk.chunk, walk.rows)


def _picker(slots: tuple[int, ...]) -> Picker:
    """Build a function that returns the contents of some slots as a tuple."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return (lambda values: (values[slots[0]],)) if slots else (lambda _: ())
