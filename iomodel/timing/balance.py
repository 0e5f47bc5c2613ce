"""Load balance of thread blocks: the inner tiles visited by each outer tile, and the time of the SM that ends last.

Blocks start in the order that the execution declares, each on the first free slot. The time of the last block lies
between two bounds that take a number of steps independent of the number of blocks; the estimate is their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from iomodel.common.band import Band
from iomodel.nests.execution import Order
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.spans import band_of

MOST_TILES = 512
"""Outer tiles that are all counted; of more, this many evenly spaced ones stand for their neighbours [-]."""


@dataclass(frozen=True)
class Spread:
    """Inner tiles visited by each outer tile [-], in descending order, as runs of (visits, outer tiles).

    `ends` has the visits of the first and of the last outer tile in the order of the grid.
    """

    runs: tuple[tuple[int, int], ...]
    ends: tuple[int, int] | None = None

    @property
    def longest(self) -> int:
        """Visits of the longest outer tile [-]."""
        return self.runs[0][0]

    @cached_property
    def total(self) -> int:
        """Visits of all outer tiles [-]."""
        return sum(visits * many for visits, many in self.runs)

    @cached_property
    def shares(self) -> int:
        """Visits that share the work [-]; an outer tile without any still moves its rows, and counts as one."""
        return sum(max(1, visits) * many for visits, many in self.runs)

    @cached_property
    def blocks(self) -> int:
        """Number of outer tiles [-]."""
        return sum(many for _, many in self.runs)

    @cached_property
    def columns(self) -> tuple[Any, Any]:
        """Visits of each run, and outer tiles up to its end, as arrays [-]."""
        visits, many = (np.array(column, dtype=np.float64) for column in zip(*self.runs, strict=True))
        return visits, np.cumsum(many)

    def busiest(
        self,
        copies: int,
        units: int,
        order: Order = "grid",
        *,
        visit: float = 1.0,
        block: float = 0.0,
        shares: Sequence[float] = (1.0,),
    ) -> float:
        """Estimate the time of the SM that ends last, for a number of copies of each outer tile [s].

        Parameters
        ----------
        copies, units : int
            Copies of each outer tile, and SMs [-].
        order : {"grid", "longest first"}
            Order in which blocks start.
        visit, block : float
            Time of a visit, and of a block in addition to its visits, on an SM of their own [s].
        shares : sequence of float
            Time of a visit with 1, 2, ... blocks at once on an SM, over that of one alone [-]. Fewer blocks at once are
            taken where they end earlier.

        >>> Spread(((8, 2), (4, 2))).busiest(1, 3, "longest first")
        8.0
        >>> Spread(((4, 1), (3, 1), (2, 1), (1, 1)), (1, 4)).busiest(1, 2)  # 1 + 3 and 2 + 4
        6.333333333333333
        """
        if len(self.runs) == 1:
            return _equal(-(-self.blocks * copies // units), [self.longest * visit * share + block for share in shares])
        visits, before = self.columns
        deep = np.floor((before * copies - 1) / units) + 1  # some SM has as many blocks of this length or a longer one
        most = int(min(len(shares), deep[-1]))
        each = visit * np.asarray(shares[:most])
        ends = []
        for many in range(1, most + 1):
            taken = np.minimum(deep, many).astype(np.int64) - 1
            forced = float(((visits * each[taken] + block) * deep).max())
            low = max((self.total * visit * shares[many - 1] + self.blocks * block) * copies / units, forced)
            if order == "grid" and self.blocks * copies > units * many:
                low = self._in_order(many, copies, units, visit, block, shares, low)
            ends.append(low)
        return min(ends)

    def _in_order(
        self, many: int, copies: int, units: int, visit: float, block: float, shares: Sequence[float], low: float
    ) -> float:
        """Estimate the end of blocks that start in the order of the grid, so many at once on an SM [s].

        `low` is the end at the best order.
        """
        # A block that starts last has its SM to itself once its neighbours have ended, on average half way.
        slow = visit * (shares[0] + many * shares[many - 1]) / 2
        queue = self._queued(copies, units, visit * shares[many - 1], block)
        high = max(start + visits * slow + block * (1 + many) / 2 for start, visits in queue)
        return (low + 2 * max(low, high)) / 3  # as for lengths spread evenly from 0, of which an SM has many

    def _queued(self, copies: int, units: int, visit: float, block: float) -> Iterator[tuple[float, int]]:
        """List the latest start [s] and the visits of the blocks that may end last, in the order of the grid.

        A block starts by the time at which all SMs together have done the work before it (Graham 1969, SIAM J. Appl.
        Math. 17:416), and by the time at which as many blocks of the first wave have ended as wait before it.
        """
        first, last = self.ends or (self.longest, self.longest)
        blocks = self.blocks * copies
        work = (self.total * visit + self.blocks * block) * copies
        before_last, before_copy = work - last * visit - block, work * (copies - 1) / copies
        for visits, place, done in ((last, blocks, before_last), (first, blocks - self.blocks + 1, before_copy)):
            waits = (place - units) / units  # share of the first wave that has ended
            if waits <= 0:
                yield 0.0, visits
            elif waits < 1:
                lengths, tiles = self.columns
                ended = float(lengths[int(np.searchsorted(tiles, (1 - waits) * tiles[-1], side="left"))])
                yield min(done / units, ended * visit + block), visits
            else:
                yield done / units, visits


def _equal(deep: int, lengths: Sequence[float]) -> float:
    """Compute the time of an SM with so many equal blocks: as many at once as fit, then the rest [s]."""
    times = []
    for many in range(1, min(len(lengths), deep) + 1):
        full, rest = divmod(deep, many)
        times.append(full * many * lengths[many - 1] + (rest * lengths[rest - 1] if rest else 0.0))
    return min(times)


def merged(spreads: Iterable[tuple[Spread, int]]) -> Spread:
    """Merge spreads, each with a number of copies of its outer tiles.

    >>> merged([(Spread(((8, 1), (4, 1)), (4, 8)), 2), (Spread(((4, 3),)), 1)])
    Spread(runs=((8, 2), (4, 5)), ends=(4, 8))
    """
    runs: Counter[int] = Counter()
    ends = []
    for part, copies in spreads:
        ends.append(part.ends or (part.longest, part.longest))
        for visits, count in part.runs:
            runs[visits] += count * copies
    return Spread(tuple(sorted(runs.items(), reverse=True)), (max(e[0] for e in ends), max(e[1] for e in ends)))


def spread(workload: Attention, outer: str, u: int, v: int, packed: bool = False) -> Spread:
    """Count the inner tiles that the tiles of `outer` ("query" or "key") visit, in tiles of u and v rows.

    With a mask given by data, every tile is assumed to visit all inner tiles.

    >>> spread(Attention(q_len=512, head_dim=64, mask="causal"), "query", 128, 64).runs
    ((8, 1), (6, 1), (4, 1), (2, 1))
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
    tiles = -(-rows // u)
    exact = tiles <= MOST_TILES
    places = range(tiles) if exact else _sample(tiles)
    kind: Any = np.int64 if max(rows, inner) < 1 << 60 else object
    start: Any = np.array(places, dtype=kind) * u
    end = np.minimum(start + u, rows) - 1
    low, high = band.span(start // outer_rows, end // outer_rows, inner // inner_rows)
    visited = np.where(high > low, (high * inner_rows - 1) // v - low * inner_rows // v + 1, 0)
    ends = int(visited[0]), int(visited[-1])
    if exact:
        visits, many = np.unique(visited, return_counts=True)
        return Spread(tuple(zip(visits[::-1].tolist(), many[::-1].tolist(), strict=True)), ends)
    runs: Counter[int] = Counter()
    for place, count in enumerate(visited.tolist()):
        runs[int(count)] += tiles * (place + 1) // MOST_TILES - tiles * place // MOST_TILES
    return Spread(tuple(sorted(runs.items(), reverse=True)), ends)


def _sample(tiles: int) -> list[int]:
    """Choose evenly spaced tiles, the first and the last among them."""
    return [place * (tiles - 1) // (MOST_TILES - 1) for place in range(MOST_TILES)]
