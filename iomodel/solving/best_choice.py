"""The fastest of the options that the kernels of an implementation choose per call, at given tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import IOModelError
from iomodel.solving.question import Question

Choice = tuple[Mapping[str, int], Mapping[str, Any]]
"""Tiles, and the options that go with them."""


def best_choice(question: Question, tile: Callable[[Mapping[str, Any]], Mapping[str, int] | None]) -> Choice | None:
    """Return the fastest of the options that the kernels choose, at the tile under each; None if no tile fits."""
    best: tuple[float, Choice | None] = (inf, None)
    for searched in question.choices():
        chosen = {**question.options, **searched}
        sizes = tile(chosen)
        if sizes is None:
            continue
        try:
            timed = question.launched(sizes, searched)
        except IOModelError:
            continue
        if timed.seconds < best[0]:
            best = timed.seconds, (FrozenDict(timed.tiles), chosen)
    return best[1]
