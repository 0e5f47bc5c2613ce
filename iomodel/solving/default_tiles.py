"""Default tiles of an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InfeasibleError, InputError
from iomodel.placement.shipped_tile import shipped_tile
from iomodel.solving.by_pass import in_turn, joined
from iomodel.solving.question import Choice, Question, best_choice
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import VarlenAttention


@lru_cache(maxsize=1024)
def default_tiles(question: Question) -> Choice:
    """Return the default tiles of :func:`iomodel.estimate`, with the options that go with them.

    The default is the tile that the implementation ships for the call, else the tiles of :func:`iomodel.solve`.
    Standard attention has no default tiles: each operand makes one ideal pass.
    """
    if not question.bound({}, tiled=False).tiles:
        return FrozenDict({}), dict(question.options)
    if not isinstance(question.call, Call):
        return _textbook_choice(question)
    if question.call.direction == "both":
        passes, options = in_turn(question, default_tiles)
        return joined(question.bound(options).tiles, passes), options
    failure: InfeasibleError | None = None
    for kernels in question.kernels:
        asked = question.by(kernels)
        shipped = shipped_choice(asked)
        if shipped is not None:
            return shipped
        from iomodel.solving.fastest import solve_fastest  # for a kernel that ships no tile of the call

        try:
            best = solve_fastest(asked)
        except InfeasibleError as error:
            failure = failure or error
        except InputError:
            if question.implementation is not None:
                raise
        else:
            return best.tiles, {**question.options, **{name: best.options[name] for name in best.searched}}
    if failure is not None:
        raise failure
    return _textbook_choice(question, question.implementation is None)


def _textbook_choice(question: Question, searches: bool = True) -> Choice:
    from iomodel.solving.descent import textbook_choice  # for a call that no kernel runs

    return textbook_choice(question, searches)


def shipped_choice(question: Question) -> Choice | None:
    """Return the shipped tile of a call with the fastest of the options that the kernels choose; None if none fits."""
    call = question.call
    assert isinstance(call, Attention | VarlenAttention)

    def tile(chosen: Mapping[str, Any]) -> Mapping[str, int] | None:
        return shipped_tile(question.library, call, question.device, chosen)

    return best_choice(question, tile)
