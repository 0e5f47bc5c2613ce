"""Choices: the tiles, the launch and the options of a call, which a caller gives in one mapping or by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_mapping
from iomodel.counting.options import check_options, known_options
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.workloads.workload import Workload

EXAMPLE = "{'block_q': 128, 'block_kv': 64}"
"""Tiles in messages."""


class ChosenTiles(FrozenDict[str, int]):
    """Tiles that a search chose, with the options that it chose for them: a verb that takes both applies both.

    >>> import iomodel
    >>> d = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128)
    >>> s = iomodel.solve("split_kv", d, "h100-sxm5")
    >>> iomodel.cost("split_kv", d, s.tiles).hbm_bytes == s.cost.hbm_bytes
    True
    """

    def __init__(self, tiles: Mapping[str, int], chosen: Mapping[str, Any]) -> None:
        super().__init__(tiles)
        self.chosen = FrozenDict(chosen)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.chosen)


def split_choice(
    algorithm: AlgorithmLike, tiles: Mapping[str, Any] | None, options: Mapping[str, Any], example: str = EXAMPLE
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Separate the tiles and launch settings from the options, each given in `tiles` or by name.

    The tiles are None where none are given. Raise InputError for a name with two values.

    >>> split_choice("split_kv", {"block_q": 64, "splits": 4}, {"block_kv": 128, "packed": True})
    ({'block_q': 64, 'block_kv': 128}, {'splits': 4, 'packed': True})
    """
    given = None if tiles is None else as_mapping("tiles", tiles, example)
    by_name = [name for name in options if name in TILE_NAMES or name in LAUNCH_NAMES]
    apart = [] if given is None else [name for name in given if not (name in TILE_NAMES or name in LAUNCH_NAMES)]
    if not by_name and not apart and not isinstance(tiles, ChosenTiles):
        return given, dict(options)
    mixed, others = given or {}, {name: value for name, value in options.items() if name not in by_name}
    known = known_options([algorithm]) if apart else {}
    chosen = {name: _switch(mixed.pop(name), known[name]) for name in apart if name in known}
    moved = bool(chosen)
    once(chosen, others)
    if isinstance(tiles, ChosenTiles):
        chosen = {**tiles.chosen, **chosen}
    flat = {name: options[name] for name in options if name in by_name}
    once(mixed, flat)
    mixed |= flat
    return (mixed if mixed or (given is not None and not moved) else None), {**chosen, **others}


def _switch(value: Any, default: Any) -> Any:
    """Return a switch that a list of choices holds as 0 or 1 as a bool."""
    return bool(value) if isinstance(default, bool) and type(value) is int and value in (0, 1) else value


def once(inside: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    """Raise InputError for a name with one value in a mapping of tiles and another beside it."""
    for name in inside.keys() & beside.keys():
        if inside[name] is not beside[name] and shown(inside[name]) != shown(beside[name]):
            raise InputError(
                f"{name}: {shown(inside[name])} given in tiles and {shown(beside[name])} by name; allowed: one of them"
            )


def chosen_options(
    algorithm: AlgorithmLike, workload: Workload, options: Mapping[str, Any], searched: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Select the options that differ from the defaults of an algorithm for a call, and those that were searched."""
    defaults = check_options(find_algorithm(algorithm), {}, True, workload.direction, workload.features)
    return {
        name: value
        for name, value in options.items()
        if name in searched or name not in defaults or defaults[name] != value
    }
