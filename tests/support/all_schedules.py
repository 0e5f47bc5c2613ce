"""Least accesses of attention over all schedules, by a plain search over every state of a small chip.

Queries, keys, values and outputs are single elements. A score is formed once, from its query and its key; it is added
to its output once, with its value, and is gone. Operands and results take a place on the chip each. Scores and outputs
may be stored and loaded again at any time; what memory holds may be dropped, which is never needed on a chip with room.
:mod:`tests.support.least_schedule` leaves out what another schedule matches, and is held against this search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class State(NamedTuple):
    """Sets as bits: what is on chip; scores formed, added, in memory; outputs begun, and complete in memory so far."""

    chip: int
    formed: int
    added: int
    spilled: int
    begun: int
    kept: int


def least_accesses(queries: int, keys: int, places: int) -> int:
    """Search the states in order of the accesses that lead to them."""
    every_pair, every_output = (1 << queries * keys) - 1, (1 << queries) - 1
    start = State(0, 0, 0, 0, 0, 0)
    known, waiting = {start: 0}, deque([(start, 0)])
    while waiting:
        state, accesses = waiting.popleft()
        if known[state] < accesses:
            continue
        if state.added == every_pair and state.kept == every_output:
            return accesses
        for after, more in steps(state, queries, keys, places):
            if known.get(after, accesses + more + 1) > accesses + more:
                known[after] = accesses + more
                (waiting.append if more else waiting.appendleft)((after, accesses + more))
    raise AssertionError("the chip is too small")


def steps(state: State, queries: int, keys: int, places: int) -> Iterator[tuple[State, int]]:
    """List the states one step on, with the accesses of the step."""
    chip, formed, added, spilled, begun, kept = state
    free = chip.bit_count() < places
    outputs, scores = queries + 2 * keys, 2 * queries + 2 * keys
    for query in range(queries):
        for key in range(keys):
            pair = query * keys + key
            one, score, output = 1 << pair, 1 << scores + pair, 1 << outputs + query
            value = 1 << queries + keys + key
            both = 1 << query | 1 << queries + key
            if free and chip & both == both and not formed & one:
                yield state._replace(chip=chip | score, formed=formed | one), 0
            begins = free and not begun >> query & 1
            if chip & score and chip & value and not added & one and (chip & output or begins):
                left = (chip | output) & ~score
                yield State(left, formed, added | one, spilled, begun | 1 << query, kept & ~(1 << query)), 0
            if chip & score and not spilled & one:
                yield state._replace(spilled=spilled | one), 1
            if free and spilled & one and not added & one and not chip & score:
                yield state._replace(chip=chip | score), 1
            if not free and chip & score and spilled & one:
                yield state._replace(chip=chip & ~score), 0
    for query in range(queries):
        output, one = 1 << outputs + query, 1 << query
        if chip & output and not kept & one:
            yield state._replace(kept=kept | one), 1
        if not free and chip & output and kept & one:
            yield state._replace(chip=chip & ~output), 0
        if free and kept & one and not chip & output:
            yield state._replace(chip=chip | output), 1
    for operand in range(outputs):
        one = 1 << operand
        if not free and chip & one:
            yield state._replace(chip=chip & ~one), 0
        elif free and not chip & one:
            yield state._replace(chip=chip | one), 1
