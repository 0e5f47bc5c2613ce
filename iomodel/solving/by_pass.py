"""Calls in both directions as two passes: the names of their tiles, and the options that the forward pass chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from iomodel.common.frozen_dict import FrozenDict
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.solving.question import Question

BACKWARD = "bwd_"
"""Prefix of a tile of the backward pass whose name the forward pass has too."""
T = TypeVar("T")


def in_whole(names: Sequence[str], direction: str, tile: str) -> str:
    """Return the name of a tile of a pass in a call of both, whose tiles have `names`.

    >>> in_whole(("block_q", "bwd_block_q"), "backward", "block_q")
    'bwd_block_q'
    """
    return BACKWARD + tile if direction == "backward" and BACKWARD + tile in names else tile


def joined(names: Sequence[str], passes: Mapping[str, Mapping[str, Any]]) -> FrozenDict[str, Any]:
    """Join the tiles of both passes, without warps and stages: each kernel takes its fastest launch."""
    tiles = {
        in_whole(names, direction, tile): size
        for direction, sizes in passes.items()
        for tile, size in sizes.items()
        if tile not in LAUNCH_NAMES
    }
    return FrozenDict({name: tiles[name] for name in names if name in tiles})


def of_pass(direction: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tiles of one pass by their plain names, from those of a call in both directions."""
    if direction != "backward":
        return dict(sizes)
    return {**sizes, **{name.removeprefix(BACKWARD): sizes[name] for name in sizes if name.startswith(BACKWARD)}}


def in_turn(
    question: Question, choose: Callable[[Question], tuple[T, Mapping[str, Any]]]
) -> tuple[dict[str, T], dict[str, Any]]:
    """Choose for the forward and then for the backward pass, which takes what the first chose of options of both.

    `choose` returns an answer and the options chosen; all options are returned beside the answers by direction.
    """
    options, answers = dict(question.options), {}
    for direction in question.passes:
        answers[direction], chosen = choose(question.choosing(options).each_pass[direction])
        options = {**chosen, **options}
    return answers, options
