"""Offsets of buffers in shared memory by the times at which they are live, as Triton's compiler assigns them.

The compiler packs intervals of time into a strip of memory, after Gergov, "Algorithms for compile-time memory
optimization" (SODA 1999): large buffers first, each into the lowest free place that no other place competes for, then
overlapping ones are moved up until none overlaps. The strip may be longer than the most that is live at any one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class SharedBuffer:
    """A buffer of `size` bytes that is live from `start` until before `end`, at a multiple of `alignment` [B]."""

    size: int
    alignment: int
    start: float
    end: float

    def meets(self, start: float, end: float) -> bool:
        """Check whether the buffer is live at some time of an interval."""
        return self.start < end and start < self.end

    def aligned(self, offset: int) -> int:
        """Compute the first aligned offset from this one on [B]."""
        return -(-offset // self.alignment) * self.alignment


def allocated(buffers: Sequence[SharedBuffer]) -> int:
    """Compute the length of the memory that buffers take together [B].

    >>> allocated([SharedBuffer(64, 16, 0, 9), SharedBuffer(32, 16, 0, 4), SharedBuffer(32, 16, 5, 9)])
    96
    """
    ordered = sorted((buffer for buffer in buffers if buffer.size), key=lambda buffer: -buffer.size)
    offsets = _first_fit(ordered)
    while overlaps := _overlaps(ordered, offsets):
        _move_up(ordered, offsets, overlaps)
    return max((offset + buffer.size for offset, buffer in zip(offsets, ordered, strict=True)), default=0)


def _first_fit(ordered: Sequence[SharedBuffer]) -> list[int]:
    """Assign first offsets: a place is an offset that is free in an interval of time; the lowest is filled first."""
    offsets = [0] * len(ordered)
    waiting = list(range(len(ordered)))
    places: list[tuple[int, int, float, float]] = [(0, 0, 0.0, inf)]  # offset, number of the place, interval
    made = 1
    while waiting:
        offset, _, start, end = places[0]
        places = places[1:]
        index = next((each for each in waiting if _alone(ordered[each], start, end, places)), None)
        if index is None:
            continue
        buffer = ordered[index]
        waiting = [each for each in waiting if each != index]
        offsets[index] = buffer.aligned(offset)
        above = offsets[index] + buffer.size
        further = [(above, max(start, buffer.start), min(end, buffer.end))]
        further += [(offset, start, buffer.end)] * (start < buffer.start)
        further += [(offset, buffer.start, end)] * (buffer.end < end)
        numbered = [(place[0], made + number, place[1], place[2]) for number, place in enumerate(further)]
        places, made = sorted([*places, *numbered]), made + len(numbered)
    return offsets


def _alone(buffer: SharedBuffer, start: float, end: float, places: Sequence[tuple[int, int, float, float]]) -> bool:
    """Check that a buffer is live in the interval of one place, and of none of the others."""
    return buffer.meets(start, end) and not any(buffer.meets(place[2], place[3]) for place in places)


def _overlaps(ordered: Sequence[SharedBuffer], offsets: Sequence[int]) -> dict[int, list[int]]:
    """List the buffers that each one overlaps in time and in memory; none for those without an overlap."""
    overlaps: dict[int, list[int]] = {}
    for i, one in enumerate(ordered):
        for j, other in enumerate(ordered[:i]):
            apart = offsets[i] + one.size <= offsets[j] or offsets[j] + other.size <= offsets[i]
            if not apart and one.meets(other.start, other.end):
                overlaps.setdefault(i, []).append(j)
                overlaps.setdefault(j, []).append(i)
    return overlaps


def _move_up(ordered: Sequence[SharedBuffer], offsets: list[int], overlaps: dict[int, list[int]]) -> None:
    """Colour the overlapping buffers, and move those behind the first colour past all that they overlap."""
    colours: dict[int, int] = {}
    for index in range(len(ordered)):
        taken = {colours[other] for other in overlaps.get(index, ()) if other in colours}
        colours[index] = next(colour for colour in range(len(ordered)) if colour not in taken)
    for index, buffer in enumerate(ordered):
        if colours[index]:
            offsets[index] = buffer.aligned(max(offsets[other] + ordered[other].size for other in overlaps[index]))
