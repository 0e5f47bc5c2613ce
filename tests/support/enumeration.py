"""What a mask visits, by looking into every pair of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Expr

from iomodel.counting.bands import Count
from iomodel.counting.mask_kind import PAGES


def enumerated(seen: np.ndarray, u: int, v: int) -> dict[str, int]:
    """The counts of tiles of u rows over tiles of v columns of a mask, row by row."""
    found = dict.fromkeys(("live_outer_tiles", "live_outer_rows", "pairs", "outer_rows", "inner_rows", "area"), 0)
    for i in range(0, seen.shape[0], u):
        strip = seen[i : i + u]
        if strip.any():
            found["live_outer_tiles"] += 1
            found["live_outer_rows"] += strip.shape[0]
        for j in range(0, seen.shape[1], v):
            tile = strip[:, j : j + v]
            if tile.any():
                found["pairs"] += 1
                found["outer_rows"] += tile.shape[0]
                found["inner_rows"] += tile.shape[1]
                found["area"] += tile.size
    return found


def turns(seen: np.ndarray, u: int, v: int) -> dict[str, int]:
    """The tiles of v columns where a walk of u rows begins that goes back from where the one before has ended."""
    found, last = {"kept_pairs": 0, "kept_rows": 0}, -1
    for number, i in enumerate(range(0, seen.shape[0], u)):
        visited = [j for j in range(0, seen.shape[1], v) if seen[i : i + u, j : j + v].any()]
        if number % 2:
            visited.reverse()
        if visited and visited[0] == last:
            found["kept_pairs"] += 1
            found["kept_rows"] += min(v, seen.shape[1] - last)
        last = visited[-1] if visited else -1
    return found


def pages_of(keys: slice, page: int, kv_len: int) -> int:
    """Pages that these keys lie in."""
    return len({key // page for key in range(keys.start, min(keys.stop, kv_len))})


def pages(seen: np.ndarray, u: int, v: int, page: int, rows: int | None = None) -> int:
    """Pages of the columns that tiles of u of so many rows visit, one visit after the other; `seen` may have more."""
    touched = [pages_of(slice(j, j + v), page, seen.shape[1]) for j in range(0, seen.shape[1], v)]
    strips = [seen[i : i + u].any(axis=0) for i in range(0, rows or seen.shape[0], u)]
    return sum(touched[j] for strip in strips for j in range(len(touched)) if strip[j * v : (j + 1) * v].any())


Sighted = Callable[[bool, int], np.ndarray]
"""A mask, [queries, keys], with or without the left side of a window, and with so many rows after the last query."""


def with_counts(formula: Expr, seen: np.ndarray, page: int = 1, sighted: Sighted | None = None) -> Expr:
    """A formula at a point, with the counts that have no formula of their own enumerated; `seen` is [queries, keys]."""

    def value(node: Any) -> int:
        quantity, outer, u, v, group = str(node.args[0]), str(node.args[1]), *map(int, node.args[2:])
        for (left, padded), name in PAGES.items():
            if quantity == name:
                shown = seen
                if not left or padded:
                    assert sighted is not None
                    shown = sighted(left, u if padded else 0)
                return pages(np.repeat(shown, group, axis=0), u, v, page, len(seen) * group)
        rows = np.repeat(seen, group, axis=0)
        return enumerated(rows if outer == "query" else rows.T, u, v)[quantity]

    return formula.xreplace({node: value(node) for node in formula.atoms(Count)})
