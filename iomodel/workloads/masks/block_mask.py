"""Block-sparse masks: a boolean per block of queries and block of keys."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import PlainSerializer, PlainValidator

from iomodel.common.validation import Count, as_integer
from iomodel.errors import InputError, shown
from iomodel.workloads.masks.tabulated import Spans, Tabulated, TileCounts, TileRuns, exact, runs

BLOCKS = tuple(1 << power for power in range(8))
"""Sizes of blocks that are tried for a mask with a value per query and key [positions]."""
HIDDEN = -1e4
"""Largest number that hides a score to which it is added, as in masks for fp16."""
_ALLOWED = "allowed: a 2-D table of True and False (or 1 and 0), by blocks of queries and blocks of keys"


def _table(blocks: Any) -> NDArray[np.bool_]:
    """Convert a table to a read-only boolean array, or raise InputError."""
    try:
        table = np.asarray(blocks)
    except (ValueError, MemoryError):  # ragged, nested too deep, or a long range
        raise InputError(f"blocks: {shown(blocks)} is not an array; {_ALLOWED}, every row of the same length") from None
    if table.ndim != 2 or not table.size:
        raise InputError(f"blocks: shape {table.shape} given; {_ALLOWED}")
    if table.dtype.kind not in "biu":
        raise InputError(f"blocks: entries of type {table.dtype} given; {_ALLOWED}, such as blocks != 0")
    truth = table.astype(bool)
    wrong = np.argwhere(truth != table)
    if len(wrong):
        row, column = map(int, wrong[0])
        raise InputError(f"blocks: {table[row, column]} given in [{row}, {column}]; {_ALLOWED}, such as blocks != 0")
    return np.frombuffer(truth.tobytes(), dtype=bool).reshape(table.shape)


def _visible(mask: Any) -> Any:
    """Convert a mask that is added to scores to booleans; others are returned unchanged."""
    try:
        values = np.asarray(mask)
    except (ValueError, MemoryError):
        return mask
    if values.dtype.kind != "f":
        return values
    hidden = values <= HIDDEN
    if not (hidden | (values == 0)).all():
        wrong = values[~(hidden | (values == 0))][0]
        raise InputError(f"mask: {wrong:g} given; allowed: 0 where a query sees a key, and -inf where it does not")
    return ~hidden


def _even(table: NDArray[np.bool_], size: int, axis: int) -> bool:
    """Check that runs of some rows, or columns, of a table are equal."""
    turned = table if axis == 0 else table.T
    return bool((turned == turned[np.arange(len(turned)) // size * size]).all())


def _written(table: NDArray[np.bool_]) -> list[list[int]]:
    rows: list[list[int]] = table.astype(np.uint8).tolist()
    return rows


class BlockMask(Tabulated):
    """A block-sparse mask: query i sees key j iff blocks[i // block_q, j // block_kv].

    The blocks belong to the mask; the tiles of a kernel need not be commensurate with them.

    Parameters
    ----------
    blocks : array-like of bool
        Shape [ceil(q_len / block_q), ceil(kv_len / block_kv)]; 0 and 1 are accepted too.
    block_q, block_kv : int
        Queries and keys per block [positions]; the last block may be shorter.

    Raises
    ------
    InputError
        The table is not 2-D, is empty, or contains anything but booleans; a size is not a positive integer.

    Examples
    --------
    >>> mask = BlockMask([[1, 0], [0, 1]], block_q=4, block_kv=4)
    >>> mask.tiles("query", 2, 8, q_len=8, kv_len=7)  # four query tiles, each visiting the single key tile
    TileCounts(pairs=4, inner_rows=28, outer_rows=8, area=56, live_outer_tiles=4, live_outer_rows=8)
    >>> mask.visible_pairs(q_len=8, kv_len=7)
    28

    References
    ----------
    Dao et al., FlashAttention, arXiv:2205.14135, section 3.3 and Proposition 4.
    """

    by_position = ("blocks", "block_q", "block_kv")

    blocks: Annotated[NDArray[np.bool_], PlainValidator(_table), PlainSerializer(_written)]
    block_q: Count
    block_kv: Count

    if TYPE_CHECKING:

        def __init__(self, blocks: ArrayLike, block_q: int, block_kv: int) -> None: ...

    @classmethod
    def tree(cls, parents: Sequence[int], cached: int = 0) -> BlockMask:
        """Build the mask of a tree of drafted tokens, verified in one call behind a cache.

        A drafted token sees all cached keys, itself, and its ancestors.

        Parameters
        ----------
        parents : sequence of int
            For each drafted token the place of an earlier one that it continues, or -1 if it continues the cache.
        cached : int
            Keys before the tree [positions].

        Returns
        -------
        BlockMask
            For a call with q_len = len(parents) and kv_len = cached + len(parents).

        Raises
        ------
        InputError
            There is no token, a parent is no earlier token, or `cached` is negative.

        Examples
        --------
        >>> BlockMask.tree([-1, 0, 0, 2], cached=1).blocks.astype(int).tolist()
        [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1]]

        References
        ----------
        Miao et al., SpecInfer, arXiv:2305.09781, section 4.2 (tree attention).
        """
        before = as_integer("cached", cached, least=0)
        if not isinstance(parents, Sequence | np.ndarray) or isinstance(parents, str | bytes) or not len(parents):
            raise InputError(f"parents: {shown(parents)} given; allowed: the parent of each token, such as [-1, 0, 0]")
        table = np.zeros((len(parents), before + len(parents)), dtype=bool)
        table[:, :before] = True
        for i, value in enumerate(parents):
            parent = as_integer(f"parent {i}", value, least=-1)
            if parent >= i:
                raise InputError(f"parents: {parent} given for token {i}; allowed: -1, or an earlier token")
            if parent >= 0:
                table[i] |= table[parent]
            table[i, before + i] = True
        return cls(table, block_q=1, block_kv=1)

    @classmethod
    def of(cls, mask: Any) -> BlockMask:
        """Build a mask from one value per query and key, as frameworks have it, in the largest blocks that are exact.

        Parameters
        ----------
        mask : array-like or sparse array
            Shape [q_len, kv_len]: booleans, True where a query sees a key; or numbers that are added to the scores, 0
            where it does and minus infinity, or at most -10,000, where it does not. A sparse array of SciPy, or of any
            library with `toarray`, has its stored entries visible.

        Raises
        ------
        InputError
            The mask is not 2-D, or has values between these.

        Examples
        --------
        >>> import numpy as np
        >>> mask = BlockMask.of(np.kron(np.eye(4, dtype=bool), np.ones((8, 8), dtype=bool)))
        >>> mask.block_q, mask.block_kv, mask.visible_pairs(32, 32)
        (8, 8, 256)
        """
        sparse = hasattr(mask, "toarray")
        dense = _table(mask.toarray() != 0 if sparse else _visible(mask))
        sizes = [max(size for size in BLOCKS if _even(dense, size, axis)) for axis in (0, 1)]
        return cls(dense[:: sizes[0], :: sizes[1]], block_q=sizes[0], block_kv=sizes[1])

    def check(self, q_len: int, kv_len: int) -> None:
        """Raise InputError unless the table has one row per block of queries and one column per block of keys."""
        q_len, kv_len = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
        needed = -(-q_len // self.block_q), -(-kv_len // self.block_kv)
        if self.blocks.shape != needed:
            raise InputError(
                f"mask: blocks of shape {self.blocks.shape} given; allowed: shape {needed}, "
                f"for q_len = {q_len} in blocks of {self.block_q} and kv_len = {kv_len} in blocks of {self.block_kv}"
            )

    def visible_pairs(self, q_len: int, kv_len: int) -> int:
        """Count the visible pairs of a query and a key [-]: the area at tiles equal to the blocks."""
        return self.tiles("query", self.block_q, self.block_kv, q_len, kv_len).area

    def seen(self, q_len: int, kv_len: int) -> NDArray[np.bool_]:
        """Compute the mask element by element, for small sizes: q_len x kv_len bytes."""
        q_len, kv_len = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
        self.check(q_len, kv_len)
        expanded: NDArray[np.bool_] = self.blocks[
            np.arange(q_len)[:, None] // self.block_q, np.arange(kv_len)[None, :] // self.block_kv
        ]
        return expanded

    def spans(self, axis: str, first: int, last: int, q_len: int, kv_len: int) -> Spans:
        """Return the positions of `axis` that the positions first .. last of the other axis see."""
        table, own, other, length = (
            (self.blocks, self.block_q, self.block_kv, kv_len)
            if axis == "key"
            else (self.blocks.T, self.block_kv, self.block_q, q_len)
        )
        seen = table[first // own : last // own + 1].any(axis=0)
        edges = np.flatnonzero(np.diff(seen, prepend=False, append=False)).tolist()
        return [(a * other, min(b * other, length)) for a, b in zip(edges[::2], edges[1::2], strict=True)]

    def _count(self, block_q: int, block_kv: int, q_len: int, kv_len: int, group: int) -> tuple[TileCounts, TileCounts]:
        q, q_kinds = _runs(self.blocks.shape[0], self.block_q * group, q_len * group, block_q)
        k, k_kinds = _runs(self.blocks.shape[1], self.block_kv, kv_len, block_kv)
        strips = union(self._bits, q.low, q.high)  # by query runs; the bits are blocks of keys
        visited = union(transposed(strips, self.blocks.shape[1]), k.low, k.high)  # by key runs; the bits are query runs
        pairs = q_rows = k_rows = area = 0
        for q_tiles, q_each, q_runs in q_kinds:
            hits = np.bitwise_count(visited & packed(q_runs[None, :])).sum(axis=1, dtype=np.int64)
            for k_tiles, k_each, k_runs in k_kinds:
                n = int(hits[k_runs].sum())
                pairs += n * q_tiles * k_tiles
                q_rows += n * q_each * k_tiles
                k_rows += n * q_tiles * k_each
                area += n * q_each * k_each
        by_query = TileCounts(pairs, k_rows, q_rows, area, *_live(strips, q_kinds))
        return by_query, TileCounts(pairs, q_rows, k_rows, area, *_live(visited, k_kinds))

    @cached_property
    def _bits(self) -> NDArray[np.uint64]:
        return packed(self.blocks)

    @cached_property
    def _digest(self) -> int:
        content = int.from_bytes(hashlib.sha256(self._bits.data).digest()[:8])
        return hash((self.blocks.shape, self.block_q, self.block_kv, content))

    def __hash__(self) -> int:
        return self._digest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockMask):
            return NotImplemented
        same = (self.block_q, self.block_kv, hash(self)) == (other.block_q, other.block_kv, hash(other))
        return same and np.array_equal(self.blocks, other.blocks)

    def __repr__(self) -> str:
        rows, columns = self.blocks.shape
        live = np.count_nonzero(self.blocks)
        return f"BlockMask(blocks=<{rows} x {columns}, {live} live>, block_q={self.block_q}, block_kv={self.block_kv})"

    __str__ = __repr__


# Tiles per run, rows per run, and a selector of the runs with these two numbers.
_Kind = tuple[int, int, NDArray[np.bool_]]


def _runs(blocks: int, block: int, rows: int, tile: int) -> tuple[TileRuns, list[_Kind]]:
    """Split an axis with equal blocks into runs, and group them into kinds: at most four, and the last run."""
    starts = exact(np.arange(blocks), rows + tile)
    axis_runs = runs(starts * block, rows, tile)
    last = np.arange(len(axis_runs.first)) == len(axis_runs.first) - 1
    kinds = [(int(n), int(n) * tile, (axis_runs.tiles == n) & ~last) for n in np.unique(axis_runs.tiles[:-1])]
    return axis_runs, [*kinds, (1, rows - int(axis_runs.first[-1]) * tile, last)]


def _live(bits: NDArray[np.uint64], kinds: list[_Kind]) -> tuple[int, int]:
    """Count the tiles with a visible pair, and their rows."""
    live = bits.any(axis=1)
    numbers = [(int(np.count_nonzero(live & member)), tiles, rows) for tiles, rows, member in kinds]
    return sum(n * tiles for n, tiles, _ in numbers), sum(n * rows for n, _, rows in numbers)


_BATCH = 4096
"""Rows unpacked at a time, a multiple of the word size."""


def packed(table: NDArray[Any]) -> NDArray[np.uint64]:
    """Pack each row into bits, padded with zeros to full words."""
    octets = np.packbits(table, axis=1)
    padded = np.zeros((len(octets), -(-octets.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(np.uint64)


def transposed(bits: NDArray[np.uint64], columns: int) -> NDArray[np.uint64]:
    """Transpose a bit table in batches, without unpacking all of it."""
    parts = (bits[i : i + _BATCH].view(np.uint8) for i in range(0, len(bits), _BATCH))
    return np.concatenate([packed(np.unpackbits(part, axis=1, count=columns).T) for part in parts], axis=1)


def union(bits: NDArray[np.uint64], low: NDArray[np.intp], high: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Compute the union of the rows low .. high for each pair, from two overlapping unions of 2^k rows.

    >>> union(packed(np.eye(3, dtype=bool)), np.array([0]), np.array([2]))[0] == packed(np.ones((1, 3)) > 0)[0]
    array([ True])
    """
    unions = np.empty((len(low), bits.shape[1]), dtype=np.uint64)
    levels = np.frexp(high - low + 1)[1] - 1
    for level in range(int(levels.max()) + 1):
        if level:
            bits = bits[: -(2 ** (level - 1))] | bits[2 ** (level - 1) :]
        chosen = levels == level
        unions[chosen] = bits[low[chosen]] | bits[high[chosen] - 2**level + 1]
    return unions
