"""Load balance of thread blocks: the inner tiles visited by each outer tile, and the time of the SM that ends last.

Blocks start in the order that the execution declares, each on the first free slot. The time of the last block lies
between two bounds that take a number of steps independent of the number of blocks; the estimate is their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.common.band import Band
from iomodel.nests.execution import Order
from iomodel.timing.edge_visits import EdgeVisits
from iomodel.timing.listed_visits import ListedVisits
from iomodel.timing.start_order import Lengths, dealt_in_turn, list_scheduled
from iomodel.workloads.masks.spans import band_of
from iomodel.workloads.window import Window


class Rows(Protocol):
    """The numbers of a call that its grid depends on; they may be arrays."""

    @property
    def batch(self) -> Any:
        """Sequences."""

    @property
    def heads(self) -> Any:
        """Query heads."""

    @property
    def q_len(self) -> Any:
        """Queries."""

    @property
    def kv_len(self) -> Any:
        """Keys."""

    @property
    def group(self) -> Any:
        """Query heads of a key head."""

    @property
    def mask(self) -> Any:
        """The mask."""

    @property
    def page_size(self) -> Any:
        """Rows of a page of keys and values; None without pages."""


class GridRows(NamedTuple):
    """The numbers and the mask of many calls of one kind, for their grids."""

    q_len: Any
    kv_len: Any
    group: Any
    mask: Any
    batch: Any = 1
    heads: Any = 1
    page_size: Any = None


MOST_TILES = 512
"""Outer tiles that are all counted; of more, this many evenly spaced ones stand for their neighbours [-]."""


@dataclass(frozen=True)
class Spread:
    """Inner tiles visited by each outer tile [-], in descending order, as runs of (visits, outer tiles).

    `ends` has the visits of the first and of the last outer tile in the order of the grid.

    >>> Spread(((8, 2), (4, 2))).total
    24
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
        return sum(larger(1, visits) * many for visits, many in self.runs)

    @cached_property
    def blocks(self) -> int:
        """Number of outer tiles [-]."""
        return sum(many for _, many in self.runs)

    @property
    def alike(self) -> bool:
        """True if all outer tiles visit as many."""
        return len(self.runs) == 1

    @cached_property
    def columns(self) -> tuple[Any, Any]:
        """Visits of each run, and outer tiles up to its end, as arrays [-]."""
        visits, many = (np.array(column, dtype=np.float64) for column in zip(*self.runs, strict=True))
        return visits, np.cumsum(many)

    def levels(self, copies: int, units: int) -> tuple[Any, Any]:
        """Return numbers of blocks that some SM has, and the visits that each of these has at least [-]."""
        visits, before = self.columns
        return np.floor((before * copies - 1) / units) + 1, visits

    def ranked(self, rank: Any) -> Any:
        """Count the visits of the outer tile with so many longer ones before it."""
        visits, before = self.columns
        return visits[np.minimum(np.searchsorted(before, rank, side="right"), len(visits) - 1)]


Visits = Spread | EdgeVisits | ListedVisits
"""Visits of the outer tiles of a grid."""


@dataclass(frozen=True)
class Grid:
    """Blocks of a grid: the visits of its outer tiles, the copies of each, and the SMs; copies may be an array.

    A Spread belongs to one set of outer tiles, so that its copies are one number. `parts` has the grids of sequences
    of different lengths that make up this one, in turn.
    """

    tiles: Visits
    copies: Any
    units: int
    parts: tuple[Grid, ...] = ()

    def busiest(
        self,
        order: Order = "grid",
        section: Any = 1,
        *,
        visit: Any = 1.0,
        block: Any = 0.0,
        shares: Sequence[Any] = (1.0,),
        most: Any = None,
    ) -> Any:
        """Estimate the time of the SM that ends last [s]; times may be arrays.

        Parameters
        ----------
        order : {"grid", "descending", "longest first", "persistent", "paired"}
            Order in which blocks start.
        section : int
            Copies whose blocks of a tile start together [-]; 1 if the copies start one after the other.
        visit, block : float
            Time of a visit, and of a block in addition to its visits, on an SM of their own [s].
        shares : sequence of float
            Time of a visit with 1, 2, ... blocks at once on an SM, over that of one alone [-]. Fewer blocks at once
            are taken where they end earlier.
        most : int, optional
            Blocks at once on an SM, up to the number of shares, which is the default [-].

        >>> Grid(Spread(((8, 2), (4, 2))), 1, 3).busiest("longest first")
        8.0
        >>> Grid(Spread(((4, 1), (3, 1), (2, 1), (1, 1)), (1, 4)), 1, 2).busiest()  # 1 + 3 and 2 + 4
        6.0
        """
        tiles, most = self.tiles, len(shares) if most is None else most
        alike = tiles.alike
        same: Any = None
        if anywhere(alike):
            each = ceil_div(tiles.blocks * self.copies, self.units)
            same = equal(each, [tiles.longest * visit * share + block for share in shares], most)
            if not isinstance(alike, np.ndarray):
                return same
        if order == "paired":
            paired = self._in_pairs(visit, block, shares, most)
            return paired if same is None else pick(alike, same, paired)
        deep, visits = self.levels
        if isinstance(tiles, Spread) and np.ndim(visit):
            deep, visits = deep[:, None], visits[:, None]
        alone = visits * visit
        end: Any = np.inf
        taken = alone * shares[0]
        at_most = smaller(most, deep[-1])
        deepest = int(at_most.max() if isinstance(at_most, np.ndarray) else at_most)
        for many in range(1, max(1, min(len(shares), deepest)) + 1):
            if many > 1:
                taken = np.where(deep >= many, alone * shares[many - 1], taken)
            forced = ((taken + block) * deep).max(axis=0)
            work = (tiles.total * visit * shares[many - 1] + tiles.blocks * block) * self.copies / self.units
            low = larger(work, forced)
            if order != "longest first":
                waits = tiles.blocks * self.copies > self.units * many
                if anywhere(waits):
                    low = pick(waits, larger(low, self._in_order(order, section, many, visit, block, shares)), low)
            end = pick((many == 1) | (many <= at_most), smaller(end, low), end)
        if self.parts and order != "longest first":
            end = smaller(end, self._in_turn(visit, block, shares, most, end))
        if same is not None:
            end = pick(alike, same, end)
        return end if np.ndim(end) else float(end)

    def _in_pairs(self, visit: Any, block: Any, shares: Sequence[Any], most: Any) -> Any:
        """Compute the time of blocks that take a tile from either end, and so have as many visits each [s].

        >>> Grid(Spread(((4, 1), (3, 1), (2, 1), (1, 1)), (1, 4)), 1, 1).busiest("paired")
        10.0
        """
        tiles = self.tiles
        pairs = ceil_div(tiles.blocks, 2)
        each = larger(tiles.longest, 2 * tiles.total / tiles.blocks)
        lengths = [each * visit * share + smaller(tiles.blocks, 2) * block for share in shares]
        return equal(ceil_div(pairs * self.copies, self.units), lengths, most)

    def _in_turn(self, visit: Any, block: Any, shares: Sequence[Any], most: Any, end: Any) -> Any:
        """Sum the times of the parts, a bound: a block starts no later than in a launch of its own sequence.

        The sum is not taken where the longest blocks of the parts alone take longer than `end` [s].
        """
        longest = sum(part.tiles.longest for part in self.parts) * visit * shares[0] + len(self.parts) * block
        if not anywhere(longest < end):
            return end
        return sum(part.busiest("grid", visit=visit, block=block, shares=shares, most=most) for part in self.parts)

    @cached_property
    def levels(self) -> tuple[Any, Any]:
        """Numbers of blocks that some SM has, and the visits that each of these has at least [-]."""
        return self.tiles.levels(self.copies, self.units)

    def _in_order(self, order: Order, section: Any, many: int, visit: Any, block: Any, shares: Sequence[Any]) -> Any:
        """Estimate the end of blocks that start in a declared order, so many at once on an SM [s]."""
        share = visit * shares[many - 1]
        if order == "persistent":
            return dealt_in_turn(self.tiles, self.copies, self.units * many, many * share, many * block)
        # A block that starts last has its SM to itself once its neighbours have ended, on average half way.
        slow, late = visit * (shares[0] + many * shares[many - 1]) / 2, block * (1 + many) / 2
        lengths = Lengths(share, block, many * share, many * block, slow, late)
        descending, mixed = order == "descending", bool(self.parts)
        return list_scheduled(self.tiles, self.copies, self.units, many, section, descending, lengths, mixed)


def equal(deep: Any, lengths: Sequence[Any], most: Any) -> Any:
    """Compute the time of an SM with so many equal blocks: as many at once as fit, then the rest [s]."""
    end = deep * lengths[0]
    of_rest: Any = None
    for many in range(2, len(lengths) + 1):
        full = floor_div(deep, many)
        rest = deep - full * many
        time = full * many * lengths[many - 1]
        if not isinstance(rest, np.ndarray):
            time = time + (rest * lengths[int(rest) - 1] if rest else 0.0)
        else:
            if of_rest is None:
                each = (left * length for left, length in enumerate(lengths, 1))
                of_rest = np.stack(np.broadcast_arrays(np.zeros(rest.shape), *each))
                places = np.indices(of_rest.shape[1:], sparse=True)
            time = time + of_rest[(rest.astype(np.intp), *places)]
        end = pick(many <= smaller(most, deep), smaller(end, time), end)
    return end


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


def spread(workload: Rows, outer: str, u: int, v: int, packed: bool = False) -> Spread:
    """Count the inner tiles that the tiles of `outer` ("query" or "key") visit, in tiles of u and v rows.

    With a mask given by data, every tile is assumed to visit all inner tiles.

    >>> import iomodel
    >>> spread(iomodel.Attention(q_len=512, head_dim=64, mask="causal"), "query", 128, 64).runs
    ((8, 1), (6, 1), (4, 1), (2, 1))
    """
    group = workload.group if packed else 1
    rows = {"query": workload.q_len * group, "key": workload.kv_len}
    inner = "key" if outer == "query" else "query"
    band = band_of(workload.mask, workload.q_len, workload.kv_len)
    if band is None or (band.first is None and band.last is None):
        blocks, longest = ceil_div(rows[outer], u), ceil_div(rows[inner], v)
        return Spread(((longest, blocks),))
    if outer == "query":
        return _enumerated(rows[outer], rows[inner], u, v, (group, 1), band)
    return _enumerated(rows[outer], rows[inner], u, v, (1, group), band.transposed())


def visits(workload: Rows, outer: str, u: Any, v: Any, packed: bool = False) -> Visits:
    """Count the visits of the outer tiles, by a formula where the mask has one edge; lengths and tiles may be arrays.

    >>> import iomodel
    >>> call = iomodel.Attention(q_len=512, head_dim=64, mask="causal")
    >>> float(visits(call, "query", 128, 64).total), spread(call, "query", 128, 64).total
    (20.0, 20)
    """
    band = None if workload.mask == "full" else band_of(workload.mask, workload.q_len, workload.kv_len)
    group = workload.group if packed else 1
    if band is None:
        found = None
    elif outer == "query":
        found = EdgeVisits.under(band, workload.q_len * group, workload.kv_len, u, v, group, 1)
    else:
        found = EdgeVisits.under(band.transposed(), workload.kv_len, workload.q_len, u, v, 1, group)
    return spread(workload, outer, u, v, packed) if found is None else found


def needs_list(workload: Any) -> bool:
    """Check that the visits of the tiles of a call follow no formula: its mask is a window with two edges."""
    mask = workload.mask
    return isinstance(mask, Window) and mask.left is not None and mask.right is not None


@lru_cache(maxsize=512)  # an entry has up to MOST_TILES runs, some 50 KiB
def _enumerated(rows: int, inner: int, u: int, v: int, groups: tuple[int, int], band: Band) -> Spread:
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
