"""Sizes of the tiles that an algorithm takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.alphabet import FOLLOWS, LAUNCH_NAMES


def tile_sizes(algorithm: AlgorithmLike, names: Sequence[str], tiles: Mapping[str, Any]) -> dict[str, int]:
    """Return a size for each tile that an algorithm takes; launch settings (warps, stages) change no count."""
    own: dict[str, Any] = {}
    for name, size in tiles.items():
        if name in LAUNCH_NAMES:
            as_integer(name, size)
        else:
            own[name] = size
    return {name: as_integer(name, size) for name, size in with_followers(algorithm, names, own).items()}


def with_followers(algorithm: AlgorithmLike, names: Sequence[str], tiles: Mapping[str, Any]) -> dict[str, Any]:
    """Return a size for every tile; a missing follower takes the size of the tile that it follows."""
    for name in tiles:
        if name not in names:
            raise UnknownNameError(f"tile of {algorithm}", name, names)
    sizes: dict[str, Any] = {}
    for name in names:
        source, at = (tiles, name) if name in tiles else (sizes, FOLLOWS.get(name, name))
        if at in source:
            sizes[name] = source[at]
    if len(sizes) < len(names):
        missing = [name for name in names if name not in sizes and FOLLOWS.get(name) not in names]
        raise _missing(algorithm, missing, any_given=bool(tiles))
    return sizes


def _missing(algorithm: AlgorithmLike, names: Sequence[str], *, any_given: bool) -> InputError:
    hint = "" if any_given else "; iomodel.solve finds tiles, iomodel.lower_bounds needs none"
    tile, number = ("this tile", "an integer") if len(names) == 1 else ("these tiles", "integers")
    return InputError(f"{', '.join(names)}: {algorithm} needs {tile}; allowed: {number} from 1 up, such as 128{hint}")
