"""Load balance of thread blocks: the number of inner tiles visited by each outer tile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from iomodel.common.band import Band
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.spans import band_of


@dataclass(frozen=True)
class Spread:
    """Inner tiles visited by each outer tile [-], in descending order, as runs of (visits, outer tiles)."""

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
        """Number of outer tiles [-]."""
        return sum(many for _, many in self.runs)

    def makespan(self, copies: int, units: int) -> float:
        """Bound the visits of the busiest SM, for a number of copies of each outer tile, under ideal balance [-].

        Some SM has j + 1 of the j `units` + 1 longest blocks (pigeonhole), and an average SM has its share. Both bounds
        grow with every block, and scheduling the longest blocks first comes close to them.

        >>> Spread(((8, 2), (4, 2))).makespan(1, 3)
        8.0
        """
        bound, before = self.total * copies / units, 0
        for visits, many in self.runs:
            before += many * copies
            full = (before - 1) // units  # the last j for which block j `units` is in this run or an earlier one
            bound = max(bound, (full + 1) * visits)
        return bound


def merged(spreads: Iterable[tuple[Spread, int]]) -> Spread:
    """Merge spreads, each with a number of copies of its outer tiles.

    >>> merged([(Spread(((8, 1), (4, 1))), 2), (Spread(((4, 3),)), 1)])
    Spread(runs=((8, 2), (4, 5)))
    """
    runs: Counter[int] = Counter()
    for part, copies in spreads:
        for visits, count in part.runs:
            runs[visits] += count * copies
    return Spread(tuple(sorted(runs.items(), reverse=True)))


def spread(workload: Attention, outer: str, u: int, v: int, packed: bool = False) -> Spread:
    """Count the inner tiles that the tiles of `outer` ("query" or "key") visit, in tiles of u and v rows.

    With a mask given by data, every tile is assumed to visit all inner tiles.

    >>> spread(Attention(q_len=512, head_dim=64, mask="causal"), "query", 128, 64)
    Spread(runs=((8, 1), (6, 1), (4, 1), (2, 1)))
    """
    group = workload.group if packed else 1
    rows = {"query": workload.q_len * group, "key": workload.kv_len}
    inner = "key" if outer == "query" else "query"
    band = band_of(workload.mask, workload.q_len, workload.kv_len)
    if band is None or workload.mask == "full":
        blocks, longest = -(-rows[outer] // u), -(-rows[inner] // v)
        return Spread(((longest, blocks),))
    if outer == "query":
        return _staircase(rows[outer], rows[inner], u, v, (group, 1), band)
    return _staircase(rows[outer], rows[inner], u, v, (1, group), band.transposed())


@lru_cache(maxsize=4096)
def _staircase(rows: int, inner: int, u: int, v: int, groups: tuple[int, int], band: Band) -> Spread:
    outer_rows, inner_rows = groups
    start: Any = np.arange(0, rows, u, dtype=np.int64)
    end = np.minimum(start + u, rows) - 1
    low, high = band.span(start // outer_rows, end // outer_rows, inner // inner_rows)
    visited = np.where(high > low, (high * inner_rows - 1) // v - low * inner_rows // v + 1, 0)
    visits, many = np.unique(visited, return_counts=True)
    return Spread(tuple(zip(visits[::-1].tolist(), many[::-1].tolist(), strict=True)))
