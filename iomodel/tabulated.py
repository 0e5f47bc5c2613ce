"""What the masks given by data share: the counts they answer with, and runs of tiles that see alike.

A table of blocks or a list of documents cuts each axis into segments. Of the tiles of an axis, only those that hold
the start of a segment differ from their neighbours, so a count takes a time that grows with the table, not with
the sequence. No formula takes part: every count is summed in int64 where it provably fits, else in Python integers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from iomodel.errors import InputError, UnknownNameError
from iomodel.validation import Model, as_integer

Axis = Literal["query", "key"]
_REMEMBERED = 1024
"""Counts that a mask keeps, of about 1 KiB each."""


class TileCounts(NamedTuple):
    """The counts of a mask over two tiled axes, as `iomodel.masks.Visits` defines them; exact Python integers."""

    pairs: int
    """Visited pairs of tiles [-]: those that hold a visible pair of positions."""
    inner_rows: int
    """Inner rows visited, summed over the outer tiles [rows]."""
    outer_rows: int
    """Outer rows visited, summed over the inner tiles [rows]."""
    area: int
    """Elements of the visited pairs of tiles, clipped to the tensor [elements]."""
    live_outer_tiles: int
    """Outer tiles that see something [-]."""
    live_outer_rows: int
    """Rows of the outer tiles that see something [rows]."""


class Tabulated(Model):
    """A mask that no formula describes: its visited tiles are counted from its data.

    A frozen value: equal data are equal masks, with equal hashes, in every process.
    """

    def __init__(self, /, *values: Any, **fields: Any) -> None:
        names = list(type(self).model_fields)
        if len(values) > len(names):
            allowed = ", ".join(names)
            raise InputError(f"{type(self).__name__}: {len(values)} values given; allowed: {len(names)} ({allowed})")
        super().__init__(**dict(zip(names, values, strict=False)), **fields)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def tiles(self, outer: Axis, u: int, v: int, q_len: int, kv_len: int, group: int = 1) -> TileCounts:
        """What the mask visits.

        Parameters
        ----------
        outer : {"query", "key"}
            The stationary axis.
        u, v : int
            Tiles of the outer and of the inner axis [rows]; either may be longer than its axis.
        q_len, kv_len : int
            Queries and keys [positions].
        group : int
            Rows of a query [rows]: row r of the query axis is query r // group (packed GQA). A key is one row.

        Raises
        ------
        InputError
            The axis is unknown, a size no positive integer, or the mask made for other lengths.
        """
        if not isinstance(outer, str) or outer not in ("query", "key"):
            raise UnknownNameError("outer", outer, ["query", "key"])
        u, v, group = as_integer("u", u), as_integer("v", v), as_integer("group", group)
        self.check(q_len, kv_len)
        block_q, block_kv = (u, v) if outer == "query" else (v, u)
        point = block_q, block_kv, q_len, kv_len, group
        if point not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[point] = self._count(*point)
        return self._known[point][outer == "key"]

    @abstractmethod
    def check(self, q_len: int, kv_len: int) -> None:
        """Raise InputError unless the mask is made for these numbers of queries and keys [positions]."""

    @abstractmethod
    def visible_pairs(self, q_len: int, kv_len: int) -> int:
        """Pairs of a query and a key that it sees [-]."""

    @abstractmethod
    def seen(self, q_len: int, kv_len: int) -> NDArray[np.bool_]:
        """Which query sees which key, element by element: q_len x kv_len bytes, for small sizes."""

    @abstractmethod
    def _count(self, block_q: int, block_kv: int, q_len: int, kv_len: int, group: int) -> tuple[TileCounts, TileCounts]:
        """The counts with the queries outside, and with the keys outside."""

    @cached_property
    def _known(self) -> dict[tuple[int, ...], tuple[TileCounts, TileCounts]]:
        return {}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with some fields changed, validated like any other mask."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **(update or {})})

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in type(self).model_fields)


class Runs(NamedTuple):
    """Consecutive tiles whose first rows lie in one segment, and whose last rows do; the last tile is a run."""

    first: NDArray[Any]
    """First tile of each run [-]."""
    tiles: NDArray[Any]
    """Tiles of each run [-]; a run of several tiles lies inside one segment."""
    low: NDArray[np.intp]
    """Segment of the first row of its tiles."""
    high: NDArray[np.intp]
    """Segment of the last row of its tiles."""


def runs(starts: NDArray[Any], rows: int, tile: int) -> Runs:
    """The runs of an axis of `rows` rows in tiles of `tile` rows; segments start at the rows `starts`, the first at 0.

    >>> runs(np.array([0, 5, 12]), rows=20, tile=2).first  # rows 4 and 5 lie in two segments; tile 9 is the last
    array([0, 2, 3, 6, 9])
    """
    trips = -(-rows // tile)
    # Neighbours i and i + 1 see alike where no segment starts in tile i + 1, nor in tile i behind its first row.
    first = np.unique(np.concatenate([starts // tile, -(-starts // tile), starts[:1] + (trips - 1)]))
    first = first[first < trips]
    tiles = np.diff(first, append=np.asarray(trips, dtype=first.dtype))
    last_row = np.minimum((first + 1) * tile, rows) - 1
    low, high = (np.searchsorted(starts, row, side="right") - 1 for row in (first * tile, last_row))
    return Runs(first, tiles, low, high)


def exact(starts: NDArray[np.int64], *bounds: int) -> NDArray[Any]:
    """The same numbers in a type that holds whatever these bounds limit: int64, else Python integers."""
    return starts if max(bounds) < 2**62 else starts.astype(object)
