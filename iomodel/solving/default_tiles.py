"""Default tiles of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.nests.implementation import Implementation
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.by_pass import in_turn, joined
from iomodel.solving.question import Choice, Question, TimedChoice, best_choice
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention


def default_tiles(question: Question) -> Choice:
    """Return the default tiles of :func:`iomodel.estimate`, with the options that go with them."""
    return default_launch(question)[1]


@lru_cache(maxsize=1024)
def default_launch(question: Question) -> tuple[Question, Choice]:
    """Return a question of the implementation that is taken by default, with its default tiles and options.

    The default is the tile that the implementation ships for the call, else the tiles of :func:`iomodel.solve`.
    Standard attention has no default tiles: each operand makes one ideal pass.
    """
    if not question.bound({}, tiled=False).tiles:
        return question, (FrozenDict({}), dict(question.options))
    if not isinstance(question.call, Call):
        return question, _textbook_choice(question)
    if question.call.direction == "both":
        kernels: dict[str, str | Implementation | None] = {}

        def launch(part: Question) -> Choice:
            asked, choice = default_launch(part)
            kernels[part.call.direction] = asked.implementation
            return choice

        passes, options = in_turn(question, launch)
        tiles = joined(question.bound(options).tiles, passes)
        return replace(question, by_pass=FrozenDict(kernels)), (tiles, options)
    return question.by_first(_launch)


def _launch(question: Question) -> tuple[Question, Choice]:
    """Return the default tiles of one implementation, or of the textbook's machine."""
    if question.kernels:
        return question, as_launched(question).choice
    return question, _textbook_choice(question, question.implementation is None)


@lru_cache(maxsize=1024)
def as_launched(question: Question) -> TimedChoice:
    """Return the tile that an implementation ships for a call, else its fastest, with its options and time.

    Raises
    ------
    InfeasibleError, InputError
        No tile fits, or no option is allowed.
    """
    shipped = shipped_choice(question)
    if shipped is not None:
        return shipped
    from iomodel.solving.fastest import solve_fastest  # for a kernel that ships no tile of the call

    best = solve_fastest(question)
    assert best.seconds is not None
    options = {**question.options, **{name: best.options[name] for name in best.searched}}
    return TimedChoice(best.tiles, options, best.seconds)


def _textbook_choice(question: Question, searches: bool = True) -> Choice:
    from iomodel.solving.descent import textbook_choice  # for a call that no kernel runs

    return textbook_choice(question, searches)


@lru_cache(maxsize=1024)
def shipped_choice(question: Question) -> TimedChoice | None:
    """Return the shipped tile of a call with the options that its library chooses; None if none fits.

    They are the splits of the rule of the library, and the fastest of what it has no rule for.
    """
    call = question.call
    assert isinstance(call, Attention | VarlenAttention)

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        return shipped_tile(question.library, call, question.device, chosen)

    return best_choice(question, tile, ruled=True)
