"""Packed documents: one sequence of several documents that do not see each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from iomodel.common.arithmetic import floor_sums
from iomodel.common.validation import LARGEST, as_integer
from iomodel.errors import InputError, shown
from iomodel.workloads.masks.tabulated import Spans, Tabulated, TileCounts, exact, runs

_SHOWN = 8
"""Most documents listed in a repr."""


def _lengths(lengths: Any) -> tuple[int, ...]:
    """Validate positive integers with a sum up to the largest length, or raise InputError."""
    values = lengths.tolist() if isinstance(lengths, np.ndarray) else lengths
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray) or not values:
        raise InputError(f"lengths: {shown(lengths)} given; allowed: the length of each document, such as [3, 5]")
    checked = tuple(as_integer(f"document {i}", value) for i, value in enumerate(values))
    if sum(checked) > LARGEST:
        raise InputError(f"lengths: a sum of {sum(checked)} given; allowed: a sum from 1 to 10^18")
    return checked


def lengths_of(field: str, offsets: Any) -> list[int]:
    """Return the differences of cumulative lengths, from 0 on, empty ones too; InputError names the field.

    >>> lengths_of("cu_seqlens_q", [0, 2, 2])
    [2, 0]
    >>> lengths_of("cu_seqlens_q", [0, 2, 1])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: cu_seqlens_q: 1 given after 2; allowed: lengths added up, from 0 on, such as [0, 3, 8]
    """
    wanted = "allowed: lengths added up, from 0 on, such as [0, 3, 8]"
    values = offsets.tolist() if hasattr(offsets, "tolist") else offsets
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray) or len(values) < 2:
        raise InputError(f"{field}: {shown(offsets)} given; {wanted}")
    ends = [as_integer(f"{field} {i}", value, least=0) for i, value in enumerate(values)]
    if ends[0]:
        raise InputError(f"{field}: {ends[0]} given first; {wanted}")
    for before, after in pairwise(ends):
        if after < before:
            raise InputError(f"{field}: {after} given after {before}; {wanted}")
    if not ends[-1]:
        raise InputError(f"{field}: {ends[-1]} given last; {wanted}")
    return [after - before for before, after in pairwise(ends)]


class Documents(Tabulated):
    """Documents packed into one sequence; a position sees the positions of its document.

    Queries and keys are the same sequence, so q_len = kv_len = sum(lengths).

    Parameters
    ----------
    lengths : sequence of int
        Length of each document, in order [positions].
    causal : bool
        Restrict each position to its document up to itself.

    Raises
    ------
    InputError
        There is no document, or a length is not a positive integer.

    Examples
    --------
    >>> mask = Documents([3, 5], causal=True)
    >>> mask.tiles("query", 4, 2, q_len=8, kv_len=8)  # queries 0-3 visit the keys 0-3, queries 4-7 the keys 2-7
    TileCounts(pairs=5, inner_rows=10, outer_rows=20, area=40, live_outer_tiles=2, live_outer_rows=8)
    >>> mask.visible_pairs(q_len=8, kv_len=8)
    21
    """

    by_position = ("lengths", "causal")

    lengths: Annotated[tuple[int, ...], BeforeValidator(_lengths)]
    causal: Annotated[bool, Field(strict=True)] = False

    if TYPE_CHECKING:

        def __init__(self, lengths: Sequence[int] | NDArray[Any], causal: bool = False) -> None: ...

    @classmethod
    def of_offsets(cls, cu_seqlens: Sequence[int] | NDArray[Any], causal: bool = False) -> Documents:
        """Build the mask from cumulative lengths, as kernels take them for packed sequences (`cu_seqlens`).

        Empty documents are left out.

        >>> Documents.of_offsets([0, 3, 3, 8]).lengths
        (3, 5)
        """
        return cls([*filter(None, lengths_of("cu_seqlens", cu_seqlens))], causal)

    @cached_property
    def total(self) -> int:
        """Number of positions of all documents [positions]."""
        return sum(self.lengths)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """First position of each document, followed by the end of the last."""
        return np.cumsum([0, *self.lengths], dtype=np.int64)

    def check(self, q_len: int, kv_len: int) -> None:
        """Raise InputError unless the documents fill the queries and the keys."""
        q_len, kv_len = as_integer("q_len", q_len), as_integer("kv_len", kv_len)
        if not self.total == q_len == kv_len:
            raise InputError(
                f"mask: documents of {self.total} positions given for q_len = {q_len} and kv_len = {kv_len}; "
                f"allowed: three equal numbers, such as q_len = kv_len = {self.total}"
            )

    def visible_pairs(self, q_len: int, kv_len: int) -> int:
        """Count the visible pairs of a query and a key [-]."""
        self.check(q_len, kv_len)
        return sum(n * (n + 1) // 2 if self.causal else n * n for n in self.lengths)

    def seen(self, q_len: int, kv_len: int) -> NDArray[np.bool_]:
        """Compute the mask element by element, for small sizes: q_len x kv_len bytes."""
        self.check(q_len, kv_len)
        document = np.repeat(np.arange(len(self.lengths)), self.lengths)
        same: NDArray[np.bool_] = document[:, None] == document[None, :]
        return np.tril(same) if self.causal else same

    def spans(self, axis: str, first: int, last: int, q_len: int, kv_len: int) -> Spans:  # noqa: ARG002
        """Return the positions of `axis` that the positions first .. last of the other axis see: no hole is left."""
        if not self.causal:
            return [(self._start(first), self._end(last))]
        return [(self._start(first), last + 1) if axis == "key" else (first, self._end(last))]

    def ranges(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first key that each position sees, and the end of its keys."""
        document = np.searchsorted(self._starts, positions, side="right")
        return self._starts[document - 1], positions + 1 if self.causal else self._starts[document]

    def _count(self, block_q: int, block_kv: int, q_len: int, kv_len: int, group: int) -> tuple[TileCounts, TileCounts]:
        """Count by runs of query tiles; the work grows with the number of documents, not with their length.

        The key tiles visited by a query tile are consecutive. Its positions p .. r touch consecutive documents; visible
        are the first of them from its start, all in between, and the last one from its start to its end, or to r if
        causal. Each piece begins where the previous one ends, so the visible keys are an interval, and every key tile
        from that of the first visible key to that of the last contains a visible key. With the roles exchanged, the
        query tiles that see a key tile are consecutive too: from that of its first key (if causal) or document to
        that of its last.
        """
        rows, missing_q, missing_k = q_len * group, -(q_len * group) % block_q, -kv_len % block_kv
        q_tiles, k_tiles = -(-rows // block_q), -(-kv_len // block_kv)
        bounds = exact(self._starts, rows + block_q, group * block_kv, q_tiles * k_tiles)
        first, tiles, low, high = runs(bounds[:-1] * group, rows, block_q)
        if self.causal:  # the last seen key of tile i is that of its last row, min((i + 1) block_q, rows) - 1
            last_row = np.minimum((first + 1) * block_q, rows) - 1
            tops = floor_sums(tiles, group * block_kv, block_q, last_row)
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
        """Return the first position of the document at a position."""
        return int(self._starts[np.searchsorted(self._starts, position, side="right") - 1])

    def _end(self, position: int) -> int:
        """Return the end of the document at a position."""
        return int(self._starts[np.searchsorted(self._starts, position, side="right")])

    def __repr__(self) -> str:
        number = len(self.lengths)
        listed = self.lengths if number <= _SHOWN else f"<{number} documents, {self.total} positions>"
        return f"Documents(lengths={listed}, causal={self.causal})"

    __str__ = __repr__
