"""Least accesses of attention over all schedules on a chip where a result may take the place of an operand.

Queries, keys, values and outputs are single elements. An operation reads two values on chip; its result takes a free
place, or that of an operand, which is then gone. Each product is formed once. A score takes part in one product, and
sums of products of a query are added in any association; scores and sums may be stored and loaded at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple


class State(NamedTuple):
    """Values on chip and in memory, and the pairs whose products with a key or a value are formed.

    A value is ("q", i), ("k", j), ("v", j), ("s", i, j), or ("o", i, keys) for the sum over some keys.
    """

    chip: frozenset[tuple]  # type: ignore[type-arg]
    memory: frozenset[tuple]  # type: ignore[type-arg]
    formed: frozenset[tuple[int, int]]
    added: frozenset[tuple[int, int]]


def least_accesses(queries: int, keys: int, places: int) -> int:
    """Search the states in order of the accesses that lead to them."""
    every = frozenset(range(keys))
    results = {("o", query, every) for query in range(queries)}
    empty: frozenset[tuple] = frozenset()  # type: ignore[type-arg]
    start = State(empty, empty, frozenset(), frozenset())
    known, turn = {start: 0}, count()
    waiting = [(0, next(turn), start)]
    while waiting:
        accesses, _, state = heappop(waiting)
        if known[state] < accesses:
            continue
        if results <= state.memory:
            return accesses
        for raw, more in _steps(state, queries, keys, places):
            after = _needed(raw)
            if known.get(after, accesses + more + 1) > accesses + more:
                known[after] = accesses + more
                heappush(waiting, (accesses + more, next(turn), after))
    raise AssertionError("the chip is too small")


def _steps(state: State, queries: int, keys: int, places: int) -> Iterator[tuple[State, int]]:
    chip, memory, formed, added = state

    def results(value: tuple, *operands: tuple) -> Iterator[frozenset[tuple]]:  # type: ignore[type-arg]
        """List the chips with a new value in a free place, or in that of an operand."""
        if len(chip) < places:
            yield chip | {value}
        for operand in operands:
            yield chip - {operand} | {value}

    for query in range(queries):
        for key in range(keys):
            pair = query, key
            q, k, v, s = ("q", query), ("k", key), ("v", key), ("s", query, key)
            if pair not in formed and {q, k} <= chip:
                for after in results(s, q, k):
                    yield State(after, memory, formed | {pair}, added), 0
            if pair not in added and {s, v} <= chip:
                for after in results(("o", query, frozenset({key})), s, v):
                    yield State(after, memory, formed, added | {pair}), 0
        sums = [value for value in chip if value[0] == "o" and value[1] == query]
        for place, one in enumerate(sums):
            for other in sums[place + 1 :]:
                yield State(chip - {one, other} | {("o", query, one[2] | other[2])}, memory, formed, added), 0
    for value in chip:
        if value[0] in "so" and value not in memory:
            yield State(chip, memory | {value}, formed, added), 1
        if len(chip) == places:
            yield State(chip - {value}, memory, formed, added), 0
    if len(chip) < places:
        inputs = {("q", query) for query in range(queries)} | {(kind, key) for kind in "kv" for key in range(keys)}
        for value in (inputs | memory) - chip:
            yield State(chip | {value}, memory, formed, added), 1


def _needed(state: State) -> State:
    """Drop the values that no further operation needs: used scores, and sums that are a part of another sum."""
    chip, memory, formed, added = state
    sums = [value for value in chip | memory if value[0] == "o"]

    def used(value: tuple) -> bool:  # type: ignore[type-arg]
        if value[0] == "s":
            return value[1:] in added
        return value[0] == "o" and any(other[1] == value[1] and other[2] > value[2] for other in sums)

    left = frozenset(value for value in chip if not used(value))
    return State(left, frozenset(value for value in memory if not used(value)), formed, added)
