"""The default kernel of a call on a device, and its default tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any

from iomodel.algorithms import kernel_names
from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import Implementation
from iomodel.placement.front_ends import launched_first
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.by_pass import in_turn, joined
from iomodel.solving.certificate import TIE
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
    if not question.untiled.tiles:
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
        tiles = joined(question.adding(options).bound.tiles, passes)
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


@lru_cache(maxsize=1024)
def ranked_kernels(question: Question) -> tuple[Implementation, ...]:
    """Order the implementations that run a call, the default one first, then the others by their times.

    The time of an implementation is that of :func:`iomodel.estimate`: at the tile and the options that its library
    takes for the call, and at its fastest tile where the library has no rule. Of several within `TIE` of the fastest
    the first in the order of declaration is the default. Kernels that libraries launch where no other runs the call
    come last. Without the rates of a time, the order is that of declaration.
    """
    usual, others = launched_first(question.kernels)
    if len(usual) > 1 and isinstance(question.call, Call) and question.rated:
        times = {known: _seconds(question.by(known)) for known in usual}
        least = min(times.values())
        if least == inf:  # none of them fits
            return (*usual, *others)
        first = next(known for known in usual if times[known] <= least * (1 + TIE))
        usual = [first, *sorted((known for known in usual if known is not first), key=times.__getitem__)]
    return (*usual, *others)


def check_kernels(question: Question) -> None:
    """Raise InputError for a call that kernels of the algorithm run, but none of them on this device.

    Simulated devices have no kernels, and so have algorithms that declare none.
    """
    if question.implementation is None and not question.memory and question.lacks_kernels:
        raise InputError(absence(question))


def check_other_types(question: Question) -> None:
    """Raise InputError for a call that no kernel runs on this device in any type of 16 bits with rates."""
    if isinstance(question.call, Call):
        for name in ("bf16", "fp16"):
            call = question.call.model_copy(update={"dtype": name, "kv_dtype": name})
            asked = replace(question, call=call)
            if asked.rated:
                check_kernels(asked)
                asked.ranked  # noqa: B018 - raises for kernels that do not run there


def absence(question: Question) -> str:
    """State that no kernel runs a call on a device, with the nearest kernel that does, and the reason.

    Of schedules of the same kernels within `TIE`, the one that the name of the kernels means is named.
    """
    times = {other: _seconds(other.by(other.library)) for other in question.others}
    least = min(times.values(), default=inf)
    near = [other for other, seconds in times.items() if seconds <= (1 + TIE) * least]
    meant = (other for other in near if kernel_names()[other.library.name][0] == other.algorithm.name)
    best = next(meant, next(iter(near), None))
    nearest = "nor has another algorithm" if best is None else f"{best.library.name}: {best.algorithm.name!r}"
    for_call = "" if question.refusal is None else f" this call ({question.refusal}) on"
    return (
        f"algorithm: {question.algorithm.title} has no kernel for{for_call} {question.device.name}; {nearest}; "
        "allowed: implementation='textbook', an idealised machine"
    )


def _seconds(question: Question) -> float:
    try:
        return as_launched(question).seconds
    except (InfeasibleError, InputError):
        return inf
