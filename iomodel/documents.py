"""Packed documents: one sequence of many documents, none of which sees another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from iomodel.errors import InputError, shown
from iomodel.tabulated import Tabulated, TileCounts, exact, runs
from iomodel.validation import LARGEST, as_integer

_SHOWN = 8
"""Documents that a repr lists one by one."""


def _lengths(given: Any) -> tuple[int, ...]:
    """Positive integers whose sum is a length, or InputError."""
    values = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray) or not values:
        raise InputError(f"lengths: {shown(given)} given; allowed: the length of each document, such as [3, 5]")
    found = tuple(as_integer(f"document {i}", value) for i, value in enumerate(values))
    if sum(found) > LARGEST:
        raise InputError(f"lengths: a sum of {sum(found)} given; allowed: a sum from 1 to {LARGEST}")
    return found


class Documents(Tabulated):
    """Documents packed into one sequence: a position sees the positions of its own document.

    Queries and keys are the same sequence, so q_len = kv_len = sum(lengths).

    Parameters
    ----------
    lengths : sequence of int
        Length of each document, in order [positions].
    causal : bool
        Whether a position sees its document up to itself only.

    Raises
    ------
    InputError
        There is no document, or a length is no positive integer.

    Examples
    --------
    >>> mask = Documents([3, 5], causal=True)
    >>> mask.tiles("query", 4, 2, q_len=8, kv_len=8)  # queries 0-3 visit the keys 0-3, queries 4-7 the keys 2-7
    TileCounts(pairs=5, inner_rows=10, outer_rows=20, area=40, live_outer_tiles=2, live_outer_rows=8)
    >>> mask.visible_pairs(q_len=8, kv_len=8)
    21
    """

    lengths: Annotated[tuple[int, ...], BeforeValidator(_lengths)]
    causal: Annotated[bool, Field(strict=True)] = False

    if TYPE_CHECKING:

        def __init__(self, lengths: Sequence[int] | NDArray[Any], causal: bool = False) -> None: ...

    @cached_property
    def total(self) -> int:
        """Positions of all documents [positions]."""
        return sum(self.lengths)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first position of each document, then the end of the last."""
        return np.cumsum([0, *self.lengths], dtype=np.int64)

    def check(self, q_len: int, kv_len: int) -> None:
        """Raise InputError unless the documents fill the queries, and the keys."""
        q_len, kv_len = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
        if not self.total == q_len == kv_len:
            raise InputError(
                f"mask: documents of {self.total} positions given for q_len = {q_len} and kv_len = {kv_len}; "
                f"allowed: the same number three times, such as q_len = kv_len = {self.total}"
            )

    def visible_pairs(self, q_len: int, kv_len: int) -> int:
        """Pairs of a query and a key that it sees [-]."""
        self.check(q_len, kv_len)
        return sum(n * (n + 1) // 2 if self.causal else n * n for n in self.lengths)

    def seen(self, q_len: int, kv_len: int) -> NDArray[np.bool_]:
        """Which query sees which key, element by element: q_len x kv_len bytes, for small sizes."""
        self.check(q_len, kv_len)
        document = np.repeat(np.arange(len(self.lengths)), self.lengths)
        same: NDArray[np.bool_] = document[:, None] == document[None, :]
        return np.tril(same) if self.causal else same

    def _count(self, block_q: int, block_kv: int, q_len: int, kv_len: int, group: int) -> tuple[TileCounts, TileCounts]:
        """By runs of query tiles: the steps grow with the number of documents, not with their length.

        The key tiles that a query tile visits are consecutive. Its positions p .. r touch consecutive documents; seen
        are the first of these from its start, all between them, and the last one from its start to its end, or to r
        if causal. Each piece begins where the one before it ends, so the seen keys are an interval, and every key
        tile from that of its first key to that of its last one holds a seen key. With the roles exchanged, so are
        the query tiles that a key tile is seen by: those of its first key (if causal) or document to its last one's.
        """
        rows, missing_q, missing_k = q_len * group, -(q_len * group) % block_q, -kv_len % block_kv
        q_tiles, k_tiles = -(-rows // block_q), -(-kv_len // block_kv)
        bounds = exact(self._starts, rows + block_q, group * block_kv, q_tiles * k_tiles)
        first, tiles, low, high = runs(bounds[:-1] * group, rows, block_q)
        if self.causal:  # the last seen key of tile i is that of its last row, min((i + 1) block_q, rows) - 1
            last_row = np.minimum((first + 1) * block_q, rows) - 1
            tops = _floor_sums(tiles, group * block_kv, block_q, last_row)
        else:
            tops = (bounds[high + 1] - 1) // block_kv * tiles
        pairs = int((tops - bounds[low] // block_kv * tiles + tiles).sum())

        # The last tile of an axis may be short. It visits the last tile of the other axis, and all from some tile on.
        first_key_tile = self._start((q_tiles - 1) * block_q // group) // block_kv
        last_key = (k_tiles - 1) * block_kv
        first_q_tile = (last_key if self.causal else self._start(last_key)) * group // block_q
        k_rows = block_kv * pairs - missing_k * (q_tiles - first_q_tile)
        q_rows = block_q * pairs - missing_q * (k_tiles - first_key_tile)
        area = block_q * k_rows - missing_q * (kv_len - first_key_tile * block_kv)
        by_query = TileCounts(pairs, k_rows, q_rows, area, q_tiles, rows)
        return by_query, TileCounts(pairs, q_rows, k_rows, area, k_tiles, kv_len)

    def _start(self, position: int) -> int:
        """The first position of the document at a position."""
        return int(self._starts[np.searchsorted(self._starts, position, side="right") - 1])

    def __repr__(self) -> str:
        number = len(self.lengths)
        listed = self.lengths if number <= _SHOWN else f"<{number} documents, {self.total} positions>"
        return f"Documents(lengths={listed}, causal={self.causal})"

    __str__ = __repr__


def _floor_sums(n: Any, m: Any, a: Any, b: Any) -> NDArray[Any]:
    """`iomodel.floorsum.floor_sum` for many n and b >= 0 at once; there is no sympy behind it."""
    n, m, a, b = np.broadcast_arrays(n, np.asarray(m, dtype=n.dtype), np.asarray(a, dtype=n.dtype), b)
    total: NDArray[Any] = np.zeros_like(n)
    while True:
        total = total + a // m * (n * (n - 1) // 2) + b // m * n
        a, b = a % m, b % m
        top = a * n + b
        live = top >= m
        if not live.any():
            return total
        n, b, m, a = top // m, top % m, np.where(live, a, 1), m
