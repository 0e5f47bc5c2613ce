"""Visits of outer tiles under a mask with one edge (causal, or a window without a left or right side), in closed form.

Tile after tile, the visits of such a mask never fall, or never rise. Their order, their sum and the visits at a rank
therefore need no list of tiles, and hold for arrays of lengths and tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.common.arithmetic import ceil, floor, floor_sum_of, larger, pick, smaller
from iomodel.common.band import Band

LEVELS = 8
"""Numbers of blocks on an SM that are all looked at; with more, no single block decides [-]."""


@dataclass(frozen=True)
class EdgeVisits:
    """Visits of outer tiles of u rows, in tiles of v inner rows, under a mask with one edge; numbers or arrays.

    Attributes
    ----------
    rising : bool
        True if later outer tiles see more, False if they see less.
    rows : float or array
        Outer rows, of which `group` see the same inner rows.
    inner : float or array
        Inner positions, of `inner_group` rows each.
    u, v : float or array
        Rows of an outer and of an inner tile.
    shift : float or array
        Inner position of the edge beside outer position 0.
    """

    rising: bool
    rows: Any
    inner: Any
    u: Any
    v: Any
    group: Any
    inner_group: Any
    shift: Any

    @classmethod
    def under(
        cls, band: Band, rows: Any, inner: Any, u: Any, v: Any, group: Any, inner_group: Any
    ) -> EdgeVisits | None:
        """Return the visits under a band; None if it has two edges, or none."""
        if (band.first is None) == (band.last is None):
            return None
        rising = band.last is not None
        numbers = (rows, inner, u, v, group, inner_group, band.last + 1 if band.last is not None else band.first)
        return cls(rising, *(n.astype(np.float64) if isinstance(n, np.ndarray) else float(n) for n in numbers))

    @cached_property
    def blocks(self) -> Any:
        """Number of outer tiles [-]."""
        return ceil(self.rows / self.u)

    @cached_property
    def all_inner(self) -> Any:
        """Number of inner tiles [-]."""
        return ceil(self.inner * self.inner_group / self.v)

    def visits(self, tile: Any) -> Any:
        """Count the inner tiles that an outer tile visits."""
        if self.rising:
            rows = smaller((tile + 1) * self.u, self.rows) - 1
            seen = smaller(larger(self._position(rows) + self.shift, 0), self.inner)
            return ceil(self._inner_tiles(seen))
        before = larger(self._position(tile * self.u) + self.shift, 0)
        return pick(before >= self.inner, 0.0, self.all_inner - floor(self._inner_tiles(before)))

    def _position(self, rows: Any) -> Any:
        return rows if self._single(self.group) else floor(rows / self.group)

    def _inner_tiles(self, positions: Any) -> Any:
        return (positions if self._single(self.inner_group) else positions * self.inner_group) / self.v

    @staticmethod
    def _single(group: Any) -> bool:
        return not isinstance(group, np.ndarray) and bool(group == 1)

    def ranked(self, rank: Any) -> Any:
        """Count the visits of the tile with so many longer ones before it."""
        return self.visits(self.blocks - 1 - rank if self.rising else rank)

    @property
    def longest(self) -> Any:
        """Visits of the longest outer tile [-]."""
        return self.ranked(0.0)

    @cached_property
    def ends(self) -> tuple[Any, Any]:
        """Visits of the first and of the last outer tile in the order of the grid [-]."""
        return self.visits(0.0 * self.blocks), self.visits(self.blocks - 1)

    @property
    def alike(self) -> Any:
        """True if all outer tiles visit as many."""
        return self.ends[0] == self.ends[1]

    @cached_property
    def _zones(self) -> tuple[Any, Any]:
        """The first tiles past which the edge has entered, and left, the inner rows."""
        edge, leaving = 1 - self.shift, self.inner - self.shift
        if self.rising:  # a tile is as long as its last row sees
            found = [ceil((place * self.group + 1) / self.u) - 1 for place in (edge, leaving)]
        else:
            found = [ceil(place * self.group / self.u) for place in (edge, leaving)]
        entered, left = (smaller(larger(place, 0), self.blocks) for place in found)
        if self.rising:  # a ragged last tile may end before the edge
            entered = pick(self.visits(self.blocks - 1) == 0, self.blocks, entered)
        return entered, larger(entered, left)

    @cached_property
    def total(self) -> Any:
        """Visits of all outer tiles [-]."""
        entered, left = self._zones
        if self.rising:
            alike = self.blocks - 1  # all tiles of u rows; the last one may be ragged
            entered, left = smaller(entered, alike), smaller(left, alike)
            return self._up_to_edge(entered, left) + (alike - left) * self.all_inner + self.visits(alike)
        return left * self.all_inner - self._up_to_edge(entered, left)

    def _up_to_edge(self, first: Any, last: Any) -> Any:
        """Sum the inner tiles before the edge, whole ones where they are not visited, over a range of outer tiles."""
        # floor((floor(rows / group) + shift) * inner_group / v) is one floor, because one of the groups is 1.
        place, more = (first + 1, self.v - 1) if self.rising else (first, 0)
        start = (place * self.u - self.rising) * self.inner_group + self.shift * self.group * self.inner_group
        step, size = self.u * self.inner_group, self.v * self.group
        return floor_sum_of(last - first, size, step, start + more * self.group)

    @cached_property
    def shares(self) -> Any:
        """Visits that share the work [-]; an outer tile without any still moves its rows, and counts as one."""
        entered, left = self._zones
        return self.total + (entered if self.rising else self.blocks - left)

    def levels(self, copies: Any, units: int) -> tuple[Any, Any]:
        """Return numbers of blocks that some SM has, and the visits that each of these has at least [-]."""
        deepest = ceil(self.blocks * copies / units)
        entered, left = self._zones
        level = (self.blocks - left if self.rising else entered) * copies
        full = larger(floor((level - 1) / units) + 1, 1)
        few = np.arange(1.0, LEVELS + 1).reshape(-1, *(1,) * np.ndim(deepest))
        deep = np.concatenate([smaller(few, deepest), [full], [deepest]])
        return deep, self.ranked(floor((deep - 1) * units / copies))
