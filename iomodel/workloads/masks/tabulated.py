"""Common base of masks given by data: tile counts, and runs of tiles with equal visibility.

A table of blocks or a list of documents splits each axis into segments. Only the tiles that contain the start of a
segment differ from their neighbours, so the time of a count grows with the table, not with the sequence. No formula is
involved: every count is summed in int64 if it provably fits, else in Python integers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from iomodel.common.cache import BoundedCache
from iomodel.common.validation import Model, as_choice, as_integer

Axis = Literal["query", "key"]
Spans = list[tuple[int, int]]
"""Half-open intervals in order, none of them empty."""
_REMEMBERED = 1024
"""Cached counts per mask, of about 1 KiB each."""


class TileCounts(NamedTuple):
    """Counts of a mask over two tiled axes, as defined by `iomodel.counting.bands.Visits`; exact integers."""

    pairs: int
    """Visited pairs of tiles [-]: those with a visible pair of positions."""
    inner_rows: int
    """Inner rows visited, summed over the outer tiles [rows]."""
    outer_rows: int
    """Outer rows visited, summed over the inner tiles [rows]."""
    area: int
    """Elements of the visited pairs of tiles, clipped to the tensor [elements]."""
    live_outer_tiles: int
    """Outer tiles with a visible pair [-]."""
    live_outer_rows: int
    """Rows of the outer tiles with a visible pair [rows]."""


class Tabulated(Model):
    """A mask without a formula; its visited tiles are counted from its data.

    Masks are frozen values: equal data give equal masks with equal hashes in every process.
    """

    def tiles(self, outer: Axis, u: int, v: int, q_len: int, kv_len: int, group: int = 1) -> TileCounts:
        """Count the visited tiles.

        Parameters
        ----------
        outer : {"query", "key"}
            The stationary axis.
        u, v : int
            Tiles of the outer and of the inner axis [rows]; either may be longer than its axis.
        q_len, kv_len : int
            Queries and keys [positions].
        group : int
            Rows per query [rows]: row r of the query axis is query r // group (packed GQA). A key is one row.

        Raises
        ------
        InputError
            The axis is unknown, a size is not a positive integer, or the mask has other lengths.
        """
        as_choice("outer", outer, ("query", "key"))
        u, v, group = as_integer("u", u), as_integer("v", v), as_integer("group", group)
        self.check(q_len, kv_len)
        block_q, block_kv = (u, v) if outer == "query" else (v, u)
        point = block_q, block_kv, q_len, kv_len, group
        return self._known.get(point, lambda: self._count(*point))[outer == "key"]

    @abstractmethod
    def check(self, q_len: int, kv_len: int) -> None:
        """Raise InputError unless the mask matches these numbers of queries and keys [positions]."""

    @abstractmethod
    def visible_pairs(self, q_len: int, kv_len: int) -> int:
        """Count the visible pairs of a query and a key [-]."""

    @abstractmethod
    def seen(self, q_len: int, kv_len: int) -> NDArray[np.bool_]:
        """Compute the mask element by element, for small sizes: q_len x kv_len bytes."""

    @abstractmethod
    def spans(self, axis: str, first: int, last: int, q_len: int, kv_len: int) -> Spans:
        """Return the positions of `axis` that the positions first .. last of the other axis see."""

    @abstractmethod
    def _count(self, block_q: int, block_kv: int, q_len: int, kv_len: int, group: int) -> tuple[TileCounts, TileCounts]:
        """Count with the queries outside, and with the keys outside."""

    @cached_property
    def _known(self) -> BoundedCache[tuple[TileCounts, TileCounts]]:
        return BoundedCache(_REMEMBERED)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Copy the mask with some fields changed, and validate the copy."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **(update or {})})

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in type(self).model_fields)


class TileRuns(NamedTuple):
    """Runs of consecutive tiles whose first rows share one segment and whose last rows share another; the last tile is
    a run.
    """

    first: NDArray[Any]
    """First tile of each run [-]."""
    tiles: NDArray[Any]
    """Tiles of each run [-]; a run of several tiles lies inside one segment."""
    low: NDArray[np.intp]
    """Segment of the first row of its tiles."""
    high: NDArray[np.intp]
    """Segment of the last row of its tiles."""


def runs(starts: NDArray[Any], rows: int, tile: int) -> TileRuns:
    """Split an axis of `rows` rows in tiles of `tile` rows into runs; segments start at the rows `starts`, first 0.

    >>> runs(np.array([0, 5, 12]), rows=20, tile=2).first  # rows 4 and 5 lie in two segments; tile 9 is the last
    array([0, 2, 3, 6, 9])
    """
    trips = -(-rows // tile)
    # Neighbours i and i + 1 are equal if no segment starts in tile i + 1, nor in tile i after its first row.
    first = np.unique(np.concatenate([starts // tile, -(-starts // tile), starts[:1] + (trips - 1)]))
    first = first[first < trips]
    tiles = np.diff(first, append=np.asarray(trips, dtype=first.dtype))
    last_row = np.minimum((first + 1) * tile, rows) - 1
    low, high = (np.searchsorted(starts, row, side="right") - 1 for row in (first * tile, last_row))
    return TileRuns(first, tiles, low, high)


def exact(starts: NDArray[np.int64], *bounds: int) -> NDArray[Any]:
    """Return the numbers in a type that holds values up to these bounds: int64, else Python integers."""
    return starts if max(bounds) < 2**62 else starts.astype(object)
