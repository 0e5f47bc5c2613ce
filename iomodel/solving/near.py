"""Search of the fastest tiles where no bound holds: tiles that are far apart first, then those near the fastest.

Tiles are columns of sizes. Two sizes move at once: memory that one of them leaves is room for the other, so that a
descent along one size at a time ends before the fastest tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from iomodel.solving.certificate import TIE

KEPT = 3
"""Fastest tiles near which others are tried."""
FINER = 16
"""Steps to which a power of two is divided near the fastest tiles [-]."""


def grid(sizes: Iterable[Sequence[int]]) -> Any:
    """Lay out every combination of sizes in columns.

    >>> grid([[1, 2], [8, 16]]).tolist()
    [[1, 1, 2, 2], [8, 16, 8, 16]]
    """
    each = np.meshgrid(*(np.array(size, dtype=np.int64) for size in sizes), indexing="ij")
    return np.stack(each).reshape(len(each), -1)


def around(size: int, step: int) -> list[int]:
    """List sizes from half of a size to twice as much, multiples of a step.

    >>> around(64, 16), around(256, 64)
    ([32, 48, 64, 80, 96, 112, 128], [128, 192, 256, 320, 384, 448, 512])
    """
    power = 1 << size.bit_length() - 1
    finer, wider = (step * max(1, power // (parts * step)) for parts in (FINER, FINER // 2))
    return [*range(step * max(1, size // (2 * step)), size, finer), *range(size, 2 * size + 1, wider)]


def planes(start: Mapping[str, int], sizes: Mapping[str, Sequence[int]], pairs: Iterable[tuple[str, ...]]) -> Any:
    """Lay out the tiles in which two sizes of one differ.

    >>> planes({"u": 1, "v": 1, "w": 1}, {"u": [1, 2], "v": [1, 3], "w": [1]}, [("u", "v")]).tolist()
    [[1, 1, 2, 2], [1, 3, 1, 3], [1, 1, 1, 1]]
    """
    laid = (grid(sizes[name] if name in pair else [size] for name, size in start.items()) for pair in pairs)
    return np.concatenate([*laid], axis=1)


def search(
    first: Any, times: Callable[[Any], Any], near: Callable[[Sequence[int]], Any], apart: int = 0
) -> tuple[Any, Any]:
    """Time columns of tiles, then those near the fastest, as long as one of these is faster by half a tie.

    The other half is left for a choice of tiles that takes a known one where it ties.

    A time is infinite where a tile does not fit. The tiles near which others are tried differ in the row `apart`: those
    that differ in it are rarely near each other. The columns and the times of all are returned, in the order in which
    they were timed.
    """
    tiles, seconds = [first], [times(first)]
    least, best = np.inf, seconds[0].min(initial=np.inf)
    while best < least / (1 + TIE / 2):
        least = best
        tiles.append(np.concatenate([near(start) for start in _fastest(tiles[-1], seconds[-1], apart)], axis=1))
        seconds.append(times(tiles[-1]))
        best = min(best, seconds[-1].min())
    return np.concatenate(tiles, axis=1), np.concatenate(seconds)


def _fastest(tiles: Any, seconds: Any, apart: int) -> list[tuple[int, ...]]:
    """List some of the fastest tiles, no two of which have the same first two sizes or are alike in a row."""
    found: list[tuple[int, ...]] = []
    seen: set[Any] = set()
    order = seconds.argsort(kind="stable")
    for place in order[np.isfinite(seconds[order])].tolist():
        alike = {("row", int(tiles[apart, place])), tuple(tiles[:2, place].tolist())}
        if not alike & seen:
            seen |= alike
            found.append(tuple(tiles[:, place].tolist()))
            if len(found) == KEPT:
                break
    return found
