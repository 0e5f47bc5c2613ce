"""Least row accesses of attention over all schedules that move whole rows, by a plain search over every state.

A pair of a query and a key is done when the rows Q, O, K and V of the two are on chip together; scores take no room. A
load and a store of a row cost one access each. A row of O is begun on chip for nothing, and stored before it leaves.
:mod:`tests.support.least_schedule` is held against this search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

State = tuple[int, int, int]
"""Rows on chip, pairs done and rows of O with a sum that is not in memory, as bits; the rows are Q, O, K and V."""


def least_row_accesses(queries: int, keys: int, rows: int, causal: bool = False) -> int:
    """Search the states in order of the accesses that lead to them."""
    needed = {
        (query, key): 1 << query | 1 << queries + query | 1 << 2 * queries + key | 1 << 2 * queries + keys + key
        for query in range(queries)
        for key in range(keys)
        if not causal or key <= query
    }
    every = (1 << len(needed)) - 1
    start: State = (0, 0, 0)
    known, waiting = {start: 0}, deque([start])
    accesses = {start: 0}
    while waiting:
        state = waiting.popleft()
        spent = accesses[state]
        if known[state] < 0:
            continue
        known[state] = -1  # settled
        if state[1] == every and not state[2]:
            return spent
        for after, more in _steps(state, queries, keys, rows, needed):
            if accesses.get(after, spent + more + 1) > spent + more:
                accesses[after], known[after] = spent + more, 0
                (waiting.append if more else waiting.appendleft)(after)
    raise AssertionError("the chip is too small")


def _steps(
    state: State, queries: int, keys: int, rows: int, needed: dict[tuple[int, int], int]
) -> Iterator[tuple[State, int]]:
    chip, done, changed = state
    outputs = ((1 << queries) - 1) << queries
    begun = 0
    for place, (query, _) in enumerate(needed):
        begun |= (done >> place & 1) << queries + query
    if (changed and done == (1 << len(needed)) - 1) or chip.bit_count() == rows:
        for row in _bits(chip & changed):
            yield (chip, done, changed & ~row), 1  # store
    if chip.bit_count() == rows:
        for row in _bits(chip & ~changed):
            yield (chip & ~row, done, changed), 0  # drop
        return
    for row in _bits((1 << 2 * (queries + keys)) - 1 & ~chip):
        there, more, finished = chip | row, int(not (row & outputs and not begun & row)), done
        written = changed
        for place, (pair, rows_of) in enumerate(needed.items()):
            if there & rows_of == rows_of and not done >> place & 1:
                finished |= 1 << place
                written |= 1 << queries + pair[0]
        yield (there, finished, written), more


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1
