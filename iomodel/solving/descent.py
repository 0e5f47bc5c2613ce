"""Tiles of least time on the textbook's machine: those of a call on a device without a kernel for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.requirements import met, numbers_of
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import PACKED, TEXTBOOK
from iomodel.solving.near import around, grid, planes, search
from iomodel.solving.question import Choice, Question, best_choice
from iomodel.solving.solution import Solution
from iomodel.solving.textbook import solve_textbook
from iomodel.timing.totals import seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention

LARGEST = 1024
"""The largest power of two tried for a tile, unless the tile of least traffic is larger [rows]."""


def textbook_choice(question: Question, searches: bool = True) -> Choice:
    """Choose the tiles of a call on the textbook's machine, with the options that go with them.

    They are the tiles of least traffic, under the fastest packing and numbers that the algorithm has searched unless
    `searches` is False. The tiles of an approximation, and of a workload other than attention, change little traffic,
    but the number of concurrent blocks: powers of two are timed beside the tiles of least traffic, and then the sizes
    and the numbers that the algorithm has searched near the fastest.
    """
    algorithm, call = question.algorithm, question.call
    if searches and isinstance(call, Attention | VarlenAttention) and algorithm.searched and not algorithm.approximates:
        fastest = _fastest_of_least_traffic(question)
        if fastest is not None:
            return fastest
    tiles = _least_traffic(question).tiles
    descends = not isinstance(call, Call) or (algorithm.approximates and isinstance(call, Attention))
    if descends and question.min_block_kv is None:
        return _quicker(tiles, question)
    return tiles, dict(question.options)


def solve_on_textbook(question: Question) -> Solution | None:
    """Solve a call on a device without a kernel for it, as :func:`iomodel.solve` does without an objective.

    It returns None where the least traffic decides alone: on a device without the rates of a time, and for a call
    whose tiles and options :func:`textbook_choice` does not search.
    """
    algorithm, call = question.algorithm, question.call
    plain = isinstance(call, Call) and not (algorithm.searched or algorithm.approximates)
    if plain or isinstance(call, Linear):
        return None
    if not question.rated:
        return None
    tiles, chosen = textbook_choice(question)
    solution = _least_traffic(question.choosing(chosen), faster=tiles)
    launched = question.by(TEXTBOOK).choosing(chosen).launched(tiles)
    return replace(
        solution,
        known_seconds=seconds_of(launched.times, question.parameters),
        searched=tuple(name for name in chosen if name not in question.options),
    )


def _least_traffic(question: Question, faster: Mapping[str, int] | None = None) -> Solution:
    """Solve for the tiles of least traffic in the memory of a device."""
    notes = (question.no_kernel,)
    return solve_textbook(question, notes=notes, faster=faster)


def _fastest_of_least_traffic(question: Question) -> Choice | None:
    """Return the fastest of the searched numbers and of packing, each at its tiles of least traffic in one memory."""

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        try:
            return _least_traffic(question.choosing(chosen)).tiles
        except (InfeasibleError, InputError):  # a split of less than a tile of keys, too
            return None

    best = best_choice(question.by(replace(TEXTBOOK, searched={**question.algorithm.searched, **PACKED})), tile)
    return None if best is None else best.choice


def _quicker(start: Mapping[str, int], question: Question) -> Choice:
    """Search the fastest tiles, and numbers of `searched`, near powers of two and near a start.

    All kernels share an SM by the largest footprint, so that small tiles may be faster than those of least traffic.
    """
    algorithm, options, asked = question.algorithm, dict(question.options), question.by(TEXTBOOK)
    names = tuple(asked.bound.tiles)
    numbers = {name: sizes for name, sizes in algorithm.searched.items() if name not in options}
    every, step, clock = (*names, *numbers), question.budget.alignment, asked.timer().clock
    known = {**numbers_of(algorithm, question.call), **asked.bound.options}
    unsearched = {name: algorithm.options[name] for name in numbers}

    def seconds(tiles: Any) -> Any:
        point = dict(zip(every, tiles, strict=True))
        sizes, chosen = ({name: point[name] for name in each} for each in (names, numbers))
        return np.where(met(algorithm, {**known, **point}), clock.in_one_memory(sizes, chosen), np.inf)

    def near(tile: Sequence[int]) -> Any:
        sizes = {name: around(size, step) for name, size in zip(names, tile, strict=False)}
        return planes(
            dict(zip(every, tile, strict=True)), {**sizes, **numbers}, combinations(every, min(2, len(every)))
        )

    def powers(name: str) -> list[int]:
        most = max(LARGEST, start[name])
        return [step << power for power in range((most // step).bit_length())]

    given = grid([[size] for size in (*(start[name] for name in names), *unsearched.values())])
    first = grid([*map(powers, names), *([number] for number in unsearched.values())])
    tiles, times = search(np.concatenate([given, first], axis=1), seconds, near)
    best = dict(zip(every, tiles[:, np.lexsort((*tiles[::-1], times))[0]].tolist(), strict=True))
    return FrozenDict({name: best[name] for name in names}), {**options, **{name: best[name] for name in numbers}}
