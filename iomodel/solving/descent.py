"""Tiles of least time on the textbook's machine: those of a call on a device without a kernel for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import PACKED, TEXTBOOK
from iomodel.solving.question import Choice, Question, best_choice
from iomodel.solving.solution import Solution
from iomodel.solving.textbook import solve_textbook
from iomodel.timing.totals import seconds_of
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.linear import Linear
from iomodel.workloads.varlen import VarlenAttention

STARTS = (1, 2, 4, 8)
"""Multiples of the smallest tiles at which further descents start."""
LARGEST = 1024
"""The largest power of two tried for a tile, unless the start of the descent is larger [rows]."""
FINER = 8
"""Steps to which a power of two is divided in the last descent [-]."""


def textbook_choice(question: Question, searches: bool = True) -> Choice:
    """Choose the tiles of a call on the textbook's machine, with the options that go with them.

    They are the tiles of least traffic, under the fastest packing and numbers that the algorithm has searched unless
    `searches` is False. The tiles of an approximation, and of a workload other than attention, change little traffic,
    but the number of concurrent blocks: a coordinate descent over powers of two, and over the numbers that the
    algorithm has searched, starts from the tiles of least traffic and from small tiles; another one, over the sizes
    between, from where each of them ends.
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
    """Descend to tiles and numbers of `searched` that no replacement of one of them makes faster."""
    algorithm, options, asked = question.algorithm, dict(question.options), question.by(TEXTBOOK)
    names = asked.bound.tiles
    numbers = {name: sizes for name, sizes in algorithm.searched.items() if name not in options}
    step = question.budget.alignment

    @cache
    def seconds(*sizes: int) -> float:
        point = dict(zip((*names, *numbers), sizes, strict=True))
        chosen, tiles = ({name: point[name] for name in each} for each in (numbers, names))
        try:
            return asked.launched(tiles, chosen).seconds
        except (InfeasibleError, InputError):
            return inf

    def powers(name: str, _: int) -> Iterator[int]:
        size = step
        while name in names and size <= max(LARGEST, start[name]):
            yield size
            size *= 2
        yield from numbers.get(name, ())

    def between(name: str, best: int) -> Iterator[int]:
        finer = step * max(1, best // (FINER * step))
        return iter(range(step * max(1, best // (2 * step)), 2 * best, finer) if name in names else ())

    def descended(
        best: dict[str, int], candidates: Callable[[str, int], Iterator[int]]
    ) -> tuple[float, dict[str, int]]:
        least, changed = seconds(*best.values()), True
        while changed:
            changed = False
            for name, chosen in best.items():
                for size in candidates(name, chosen):
                    other = {**best, name: size}
                    time = seconds(*other.values())
                    if time < least:
                        least, changed, best = time, True, other
        return least, best

    # All kernels share an SM by the largest footprint: a descent from large tiles alone would stay there.
    unsearched = {name: algorithm.options[name] for name in numbers}
    points = [{name: start[name] for name in names}, *(dict.fromkeys(names, step * times) for times in STARTS)]
    ends = (descended({**point, **unsearched}, powers)[1] for point in points)
    finer = [descended(dict(end), between) for end in {tuple(end.items()) for end in ends}]
    best = min(finer, key=lambda found: (found[0], *found[1].values()))[1]
    return FrozenDict({name: best[name] for name in names}), {**options, **{name: best[name] for name in numbers}}
