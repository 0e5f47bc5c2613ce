r"""Time of the slot that ends last where blocks start in a declared order, each on the first free slot or on its own.

A list schedule keeps all slots busy until its last block starts: by then, the slots have done the work W before that
block and a part of the blocks that still run. Of running blocks whose lengths are spread evenly from a to b, the part
that is left is :math:`(a^2 + a b + b^2) / 3 (a + b)` in the mean, the mean residual life of a renewal process, so a
block of length L ends at :math:`W / P - (a^2 + a b + b^2) / 3 (a + b) + L` on P slots. The last end is the largest of
a few blocks that may end last.

The copies of a grid (its heads) make up sections, one after the other. In a section the tiles follow each other, each
on all copies in turn: sections of one copy are head after head, one section of all copies has the heads in turn. Where
later tiles are longer, all copies in turn are dealt to the slots round-robin, as they end in the order in which they
started. Visits of tiles count as evenly spaced between two ranks. Numbers may be arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, floor_sum_of, larger, pick, ratio, smaller


class Lengths(NamedTuple):
    """Durations of a visit and of a block beside its visits, with all neighbours and for the block that ends last [s].

    `work` and `each` are the time of an SM per visit and per block, with all slots busy [s].
    """

    work: Any
    each: Any
    visit: Any
    block: Any
    last_visit: Any
    last_block: Any

    def ending(self, visits: Any) -> Any:
        """Return the duration of a block whose neighbours end before it [s]."""
        return visits * self.last_visit + self.last_block

    def on_sms(self, visits: Any, blocks: Any, units: Any) -> Any:
        """Return the time in which all SMs do this work [s]."""
        return (visits * self.work + blocks * self.each) / units


def list_scheduled(
    tiles: Any, copies: Any, units: Any, many: Any, section: Any, descending: bool, of: Lengths, mixed: bool = False
) -> Any:
    """Estimate the end of the last block, each on the first of `many` slots of an SM that is free [s].

    In a `mixed` grid tiles of several sequences follow each other, so that lengths rise and fall.
    """
    first, last = tiles.ends or (tiles.longest, tiles.longest)
    if descending:
        first, last = last, first
    section = smaller(larger(1, section), copies)
    rises = last >= first
    if anywhere(rises):
        rising = _rising(tiles, copies, units, many, section, of, mixed)
        if not isinstance(rises, np.ndarray) or rises.all():
            return rising
        return pick(rises, rising, _falling(tiles, copies, units, many, section, of))
    return _falling(tiles, copies, units, many, section, of)


def _left(shorter: Any, longer: Any) -> Any:
    """Return the mean residual life of blocks whose lengths are spread evenly [s]."""
    return ratio(shorter * shorter + shorter * longer + longer * longer, 3 * (shorter + longer))


def _rising(tiles: Any, copies: Any, units: Any, many: Any, section: Any, of: Lengths, mixed: bool) -> Any:
    """Estimate the end where the longest tile of a section starts last [s]."""
    longest, slots, blocks = tiles.longest, units * many, tiles.blocks * copies
    listed = dealt = 0.0
    if mixed or anywhere(section < copies):
        others = tiles.ranked(smaller(tiles.blocks - 1, floor_div(slots, section)))
        before = of.on_sms(tiles.total * copies - longest, blocks - 1, units)
        listed = before - _left(of.ending(others), of.ending(longest)) + of.ending(longest)
    if mixed:
        return listed
    if anywhere(section >= copies):
        step = ratio(longest - tiles.ranked(tiles.blocks - 1), tiles.blocks - 1)
        turns = ceil_div(blocks, slots)
        visited = turns * longest - step * floor_sum_of(turns, copies, slots, 0)
        dealt = visited * of.visit + turns * of.block
    return pick(section >= copies, dealt, listed)


def _falling(tiles: Any, copies: Any, units: Any, many: Any, section: Any, of: Lengths) -> Any:
    """Estimate the end where the shortest tile of a section starts last [s]."""
    count, shortest = tiles.blocks, tiles.ranked(tiles.blocks - 1)
    at_once = smaller(count, larger(1, units * many / section))  # tiles of a section that run at once
    # The first tile of the last section, beside the last ones of the section before.
    visited, blocks = tiles.total * (copies - section), count * (copies - section)
    beside = _left(of.ending(shortest), of.ending(tiles.ranked(count - at_once)))
    end = of.on_sms(visited, blocks, units) - beside * (section < copies) + of.ending(tiles.longest)
    # A later tile of that section, beside longer ones.
    rank = larger(1, at_once / 2)
    own, longer = tiles.ranked(count - rank), tiles.ranked(larger(0, count - rank - at_once))
    visited = tiles.total * copies - rank * (shortest + own) / 2 * section
    later = of.on_sms(visited, count * copies - rank * section, units)
    later = later - _left(of.ending(own), of.ending(longer)) + of.ending(own)
    return larger(end, later)


def dealt_in_turn(tiles: Any, copies: Any, slots: int, visit: Any, block: Any) -> Any:
    """Compute the end of the longest slot if slot i runs the blocks i, i + P, i + 2 P, ... of the grid [s].

    >>> class Tiles:  # 1, 2 and 3 visits
    ...     blocks, ends = 3, (1, 3)
    >>> dealt_in_turn(Tiles, 2, 2, 1.0, 0.0)  # 1 + 3 + 2 and 2 + 1 + 3
    6.0
    """
    first, last = tiles.ends or (tiles.longest, tiles.longest)
    step = ratio(last - first, tiles.blocks - 1)
    end: Any = 0.0
    for slot in range(slots):
        runs = larger(0, ceil_div(tiles.blocks * copies - slot, slots))
        places = runs * slot + slots * runs * (runs - 1) / 2
        places = places - tiles.blocks * floor_sum_of(runs, tiles.blocks, slots, slot)
        end = larger(end, (runs * first + places * step) * visit + runs * block)
    return end
