"""Least accesses of a backward pass over all schedules on a chip where a result may take the place of an operand.

Rows are single elements, d = d_v = 1. Of a pair s = q k and p = dO v are formed, then t, which stands for dS, from
both; dV takes s dO, dQ takes t k, dK takes t q. Each product is formed once, s and p included. The numbers of a row of
queries (statistics of its softmax, the sum of dO O) are free, and w is the value s. Sums of a gradient are added in any
association, and any value may be stored and loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, pairwise
from typing import Any, NamedTuple

Value = tuple[Any, ...]
SUMS = {"dv": ("s", "do"), "dq": ("t", "k"), "dk": ("t", "q")}
"""The operands of the products of each gradient."""


class State(NamedTuple):
    """Values on chip and in memory, and the products and dS formed, by name and pair.

    An input is (name, number), a value of a pair (name, query, key), a sum (name, number, its pairs).
    """

    chip: frozenset[Value]
    memory: frozenset[Value]
    formed: frozenset[Value]


def least_accesses(queries: int, keys: int, places: int) -> int:
    """Search the states in order of the accesses that lead to them and of those that must follow."""
    pairs = [(query, key) for query in range(queries) for key in range(keys)]
    results = {("dq", query, frozenset(pair for pair in pairs if pair[0] == query)) for query in range(queries)}
    results |= {(name, key, frozenset(p for p in pairs if p[1] == key)) for name in ("dk", "dv") for key in range(keys)}
    inputs = frozenset((name, query) for name in ("q", "do") for query in range(queries))
    inputs |= {(name, key) for name in "kv" for key in range(keys)}
    empty: frozenset[Value] = frozenset()
    start = State(empty, empty, empty)

    def left(state: State) -> int:
        """Count the stores of results and the loads of inputs that are to come in any case."""
        return len(results - state.memory) + len((_uses(state.formed, pairs) & inputs) - state.chip)

    known, turn = {start: 0}, count()
    waiting = [(left(start), next(turn), 0, start)]
    while waiting:
        _, _, accesses, state = heappop(waiting)
        if known[state] < accesses:
            continue
        if results <= state.memory:
            return accesses
        for raw, more in _steps(state, pairs, inputs, places):
            after, spent = _needed(raw, pairs), accesses + more
            if known.get(after, spent + 1) > spent:
                known[after] = spent
                heappush(waiting, (spent + left(after), next(turn), spent, after))
    raise AssertionError("the chip is too small")


def _operands(name: str, pair: tuple[int, int]) -> tuple[Value, Value]:
    """Return the operands of a product, or of dS."""
    query, key = pair
    first, second = {"s": ("q", "k"), "p": ("do", "v"), "t": ("s", "p"), **SUMS}[name]
    numbers = {"q": (query,), "do": (query,), "k": (key,), "v": (key,)}
    return (first, *numbers.get(first, pair)), (second, *numbers.get(second, pair))


def _steps(
    state: State, pairs: list[tuple[int, int]], inputs: frozenset[Value], places: int
) -> Iterator[tuple[State, int]]:
    """List what may follow: a value is stored no earlier than it leaves, and leaves no earlier than its place is used.

    Two sums of one gradient are joined, and a complete one is stored, at once: both free a place, at no further cost.
    """
    chip, memory, formed = state
    sums = sorted((value for value in chip if value[0] in SUMS), key=lambda value: value[:2])
    for one, other in pairwise(sums):
        if one[:2] == other[:2]:
            yield State(chip - {one, other} | {(*one[:2], one[2] | other[2])}, memory, formed), 0
            return
    for value in sums:
        if _complete(value, pairs):
            yield State(chip - {value}, memory | {value}, formed), 1
            return
    for pair in pairs:
        for name in ("s", "p", "t", *SUMS):
            operands = _operands(name, pair)
            if (name, *pair) in formed or not chip.issuperset(operands):
                continue
            value = (name, *pair) if name not in SUMS else (name, pair[name != "dq"], frozenset([pair]))
            after = formed | {(name, *pair)}
            if len(chip) < places:
                yield State(chip | {value}, memory, after), 0
            for operand in operands:
                yield State(chip - {operand} | {value}, memory, after), 0
                if operand not in inputs and operand not in memory:
                    yield State(chip - {operand} | {value}, memory | {operand}, after), 1
    if len(chip) == places:
        for value in chip:
            if value in inputs or value in memory:
                yield State(chip - {value}, memory, formed), 0
            else:
                yield State(chip - {value}, memory | {value}, formed), 1
        return
    wanted = _uses(formed, pairs)
    for value in (inputs | memory) - chip:
        if value in wanted or (value[0] in SUMS and not _complete(value, pairs)):
            kept = memory - {value} if value[0] in SUMS else memory  # a sum is loaded to be joined
            yield State(chip | {value}, kept, formed), 1


def _complete(value: Value, pairs: list[tuple[int, int]]) -> bool:
    """Return whether a sum has the products of all its pairs."""
    return bool(len(value[2]) == sum(pair[value[0] != "dq"] == value[1] for pair in pairs))


def _uses(formed: frozenset[Value], pairs: list[tuple[int, int]]) -> set[Value]:
    """Return the operands of all that is not formed yet."""
    return {
        operand for pair in pairs for name in ("s", "p", "t", *SUMS) if (name, *pair) not in formed
        for operand in _operands(name, pair)
    }  # fmt: skip


def _needed(state: State, pairs: list[tuple[int, int]]) -> State:
    """Drop the values that no further operation needs: operands used up, and sums that are a part of another sum."""
    chip, memory, formed = state
    uses = _uses(formed, pairs)
    sums = [value for value in chip | memory if value[0] in SUMS]

    def needed(value: Value) -> bool:
        if value[0] in SUMS:
            return not any(other[:2] == value[:2] and other[2] > value[2] for other in sums)
        return value in uses

    return State(frozenset(filter(needed, chip)), frozenset(filter(needed, memory)), formed)
