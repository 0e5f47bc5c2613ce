"""How the heads, rows and keys of a workload are cut: programs, row tiles, and the key tiles they visit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iomodel.testing.machine import FloatArray

from .masks import BoolArray, visible

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """One pass over the rows of one batch and head, or of one batch and group of packed heads."""

    batch: int
    kv_head: int
    length: int  # rows
    head: int | None = None  # the query head, whose queries are the rows
    heads: IntArray | None = None  # or, packed, the query head of each row
    queries: IntArray | None = None  # and its query

    def rows(self, rows: slice) -> tuple[int, int, slice] | tuple[int, IntArray, IntArray]:
        """Where the rows lie in a tensor [batch, heads, q_len, ...]."""
        if self.heads is not None and self.queries is not None:
            return self.batch, self.heads[rows], self.queries[rows]
        assert self.head is not None
        return self.batch, self.head, rows

    def keys(self, keys: slice) -> tuple[int, int, slice]:
        """Where the keys lie in a tensor [batch, kv_heads, kv_len, ...]."""
        return self.batch, self.kv_head, keys

    @property
    def heads_here(self) -> slice:
        """The query heads of the program: one, or the packed group."""
        if self.heads is not None:
            return slice(int(self.heads.min()), int(self.heads.max()) + 1)
        assert self.head is not None
        return slice(self.head, self.head + 1)

    def heads_of(self, rows: slice) -> IntArray:
        """The query heads of some rows, each once."""
        return np.unique(self.positions(rows)[0])

    def positions(self, rows: slice) -> tuple[IntArray, IntArray]:
        """The query head and the query of each row."""
        if self.heads is not None and self.queries is not None:
            return self.heads[rows], self.queries[rows]
        queries = np.arange(self.length)[rows]
        return np.full_like(queries, self.heads_here.start), queries

    def member(self, rows: slice) -> IntArray:
        """Which of the program's query heads each row belongs to, from 0."""
        heads, _ = self.positions(rows)
        member: IntArray = heads - self.heads_here.start
        return member


@dataclass(frozen=True)
class Visit:
    """A tile with a visible pair in it."""

    rows: slice
    keys: slice
    hidden: BoolArray  # the pairs to mask inside the tile
    loaded: slice  # the keys that are loaded
    masked: bool = False  # by a mask of the load


@dataclass(frozen=True)
class Sight:
    """What a kernel takes a row to see when it skips tiles and masks loads, where that is not what the row sees."""

    seen: BoolArray  # by rows, those after the last one too
    padded: bool = False  # the rows that pad a tile count
    clipped: bool = False  # keys are loaded up to the last one that the tile sees


def split(length: int, block: int) -> list[slice]:
    """Cut a length into blocks; the last is ragged, not padded."""
    return [slice(start, min(start + block, length)) for start in range(0, length, block)]


def programs(Q: FloatArray, K: FloatArray, packed: bool) -> list[Program]:
    """One program for each query head, or for each key head when its group of query heads is packed.

    Packed, row r of a key head is query r // G of the group's head r % G: all heads of a query are
    neighbours, so that a tile of rows covers few queries and K and V are streamed once for the group.
    """
    batch, heads, q_len, _ = Q.shape
    group = heads // K.shape[1]
    if packed:
        row = np.arange(q_len * group)
        return [
            Program(b, h, len(row), heads=h * group + row % group, queries=row // group)
            for b in range(batch)
            for h in range(K.shape[1])
        ]
    return [Program(b, h // group, q_len, head=h) for b in range(batch) for h in range(heads)]


def row_mask(
    Q: FloatArray,
    K: FloatArray,
    *,
    left: int | None,
    right: int | None,
    align: str,
    packed: bool,
    seen: BoolArray | None = None,
) -> BoolArray:
    """Which key each row of a program sees; the same for all programs. `seen` [N_q, N_k] replaces the window."""
    if seen is None:
        seen = visible(Q.shape[2], K.shape[2], left, right, align)
    return np.repeat(seen, Q.shape[1] // K.shape[1], axis=0) if packed else seen


def sight(
    Q: FloatArray,
    K: FloatArray,
    *,
    left: int | None,
    right: int | None,
    align: str,
    packed: bool,
    seen: BoolArray | None = None,
    more: int,
    unskipped_window: bool,
    padded_queries: bool,
    masked_loads: bool,
) -> Sight:
    """The sight of a kernel whose source reads so; `more` rows are in a tile."""
    group = Q.shape[1] // K.shape[1] if packed else 1
    if seen is None:
        seen = visible(Q.shape[2], K.shape[2], None if unskipped_window else left, right, align, more)
    return Sight(np.repeat(seen, group, axis=0), padded_queries, masked_loads)


def visits(
    seen: BoolArray, block_q: int, block_kv: int, as_read: Sight | None = None
) -> list[tuple[slice, list[Visit]]]:
    """The row tiles, each with the key tiles it visits: those where it sees at least one key.

    A tile without a visible pair is skipped; one that holds a pair is moved and computed whole.
    """
    as_read = as_read or Sight(seen)
    keys, tiles = split(seen.shape[1], block_kv), []
    for i in split(seen.shape[0], block_q):
        strip = as_read.seen[i.start : i.start + block_q if as_read.padded else i.stop].any(axis=0)
        last = 1 + int(np.flatnonzero(strip)[-1]) if as_read.clipped and strip.any() else len(strip)
        visited = [
            Visit(i, j, ~seen[i, j], slice(j.start, min(j.stop, last)), as_read.clipped) for j in keys if strip[j].any()
        ]
        tiles.append((i, visited))
    return tiles
