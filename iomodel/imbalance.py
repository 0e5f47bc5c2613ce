"""How many inner tiles each outer tile visits: what makes one thread block longer than another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from iomodel.workload import Attention, Window


@dataclass(frozen=True)
class Spread:
    """How many inner tiles each outer tile visits [-], the most first, as runs of (visits, outer tiles)."""

    runs: tuple[tuple[int, int], ...]

    @property
    def longest(self) -> int:
        """Visits of the longest outer tile [-]."""
        return self.runs[0][0]

    @property
    def total(self) -> int:
        """Visits of all outer tiles [-]."""
        return sum(visits * many for visits, many in self.runs)

    @property
    def blocks(self) -> int:
        """Outer tiles [-]."""
        return sum(many for _, many in self.runs)

    def makespan(self, copies: int, units: int) -> float:
        """Visits of the busiest of so many SMs, for so many copies of each outer tile, as well balanced as can be [-].

        Of the j `units` + 1 longest blocks some SM has j + 1 (pigeonhole); on average an SM has its share. Both grow
        with every block, and handing the longest blocks out first comes near to them.

        >>> Spread(((8, 2), (4, 2))).makespan(1, 3)
        8.0
        """
        bound, before = self.total * copies / units, 0
        for visits, many in self.runs:
            before += many * copies
            full = (before - 1) // units  # the last j for which block j `units` is one of these, or longer
            bound = max(bound, (full + 1) * visits)
        return bound


def merged(spreads: Iterable[tuple[Spread, int]]) -> Spread:
    """Several of them as one, each with so many copies of its outer tiles.

    >>> merged([(Spread(((8, 1), (4, 1))), 2), (Spread(((4, 3),)), 1)])
    Spread(runs=((8, 2), (4, 5)))
    """
    runs: Counter[int] = Counter()
    for one, copies in spreads:
        for visits, many in one.runs:
            runs[visits] += many * copies
    return Spread(tuple(sorted(runs.items(), reverse=True)))


def spread(workload: Attention, outer: str, u: int, v: int, packed: bool = False) -> Spread:
    """Inner tiles that the tiles of `outer` ("query" or "key") visit, in tiles of u and v rows.

    A mask given by data is taken to let the longest tile visit all there is.

    >>> spread(Attention(q_len=512, head_dim=64, mask="causal"), "query", 128, 64)
    Spread(runs=((8, 1), (6, 1), (4, 1), (2, 1)))
    """
    group = workload.group if packed else 1
    rows = {"query": workload.q_len * group, "key": workload.kv_len}
    inner = "key" if outer == "query" else "query"
    band = _band(workload)
    if band is None:
        blocks, longest = -(-rows[outer] // u), -(-rows[inner] // v)
        return Spread(((longest, blocks),))
    first, last = band if outer == "query" else (_minus(band[1]), _minus(band[0]))
    groups = (group, 1) if outer == "query" else (1, group)
    return _staircase(rows[outer], rows[inner], u, v, groups, first, last)


def _minus(bound: int | None) -> int | None:
    return None if bound is None else -bound


def _band(workload: Attention) -> tuple[int | None, int | None] | None:
    """What a query sees, from its own position: the first and the last key, None where unbounded."""
    mask = workload.mask
    if mask == "causal":
        return None, workload.kv_len - workload.q_len
    if not isinstance(mask, Window):
        return None
    offset = 0 if mask.align == "top-left" else workload.kv_len - workload.q_len
    left = None if mask.left is None else offset - mask.left
    return left, None if mask.right is None else offset + mask.right


@lru_cache(maxsize=4096)
def _staircase(
    rows: int, inner: int, u: int, v: int, groups: tuple[int, int], first: int | None, last: int | None
) -> Spread:
    outer_rows, inner_rows = groups
    start: Any = np.arange(0, rows, u, dtype=np.int64)
    end = np.minimum(start + u, rows) - 1
    low = 0 if first is None else np.maximum(0, (start // outer_rows + first) * inner_rows)
    high = inner - 1 if last is None else np.minimum(inner - 1, (end // outer_rows + last + 1) * inner_rows - 1)
    visited = np.broadcast_to(np.where(high >= low, high // v - low // v + 1, 0), start.shape)
    found, many = np.unique(visited, return_counts=True)
    return Spread(tuple(zip(found[::-1].tolist(), many[::-1].tolist(), strict=True)))
