"""What the sources of kernels do otherwise than the papers, as one object, and the statistics of rows in HBM."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iomodel.testing.machine import FloatArray, Machine

from .grid import Program, Sight, Visit, row_mask, sight
from .masks import BoolArray

Rows = slice


@dataclass(frozen=True)
class Written:
    """The switches, each off by default, and the order of the keys."""

    padded_statistics: bool = False  # statistics are moved for whole tiles of rows
    masked_loads: bool = False  # keys after the last one that a query tile sees are not loaded
    eager_loads: bool = False  # the stationary tile is loaded also where nothing is seen
    unskipped_window: bool = False  # keys before the window are masked, their tiles visited
    padded_queries: bool = False  # rows that pad the last query tile see keys
    bias_vector: bool = False  # the bias is the same for all queries
    two_statistics: bool = False  # m and l in place of LSE
    value_slabs: bool = False  # columns of V and O a slab at a time
    drop_empty_splits: bool = False  # a split without keys leaves nothing
    combine_one_split: bool = False  # one split is combined too
    delta_twice: bool = False  # D is loaded by both calls for dQ
    order: str = "plain"  # "serpentine": up the keys and down again, from one query tile to the next


PLAIN = Written()


class Statistics:
    """One number in fp32 for each row: LSE, m, l, D. Padded, the tiles of a program follow each other whole."""

    def __init__(self, machine: Machine, Q: FloatArray, K: FloatArray, packed: bool, written: Written) -> None:
        self.hbm = machine.hbm
        self.batch, self.heads, self.q_len, _ = Q.shape
        self.kv_heads = K.shape[1]
        self.packed, self.padded = packed, written.padded_statistics

    def alloc(self, name: str, *tiles: int, data: FloatArray | None = None, parts: Sequence[int] = ()) -> None:
        """Allocate one, for tiles of any of these numbers of rows, perhaps with what an earlier pass has left."""
        shape: tuple[int, ...] = (self.batch, self.heads, self.q_len)
        if self.padded:
            length = self.q_len * (self.heads // self.kv_heads if self.packed else 1)
            programs = self.kv_heads if self.packed else self.heads
            shape = self.batch, programs, max(-(-length // tile) * tile for tile in tiles)
            if data is not None:
                padded = np.zeros(shape)
                padded[..., :length] = self.by_program(data)
                data = padded
        self.hbm.alloc(name, (*parts, *shape), data, "fp32")

    def by_program(self, data: FloatArray) -> FloatArray:
        """[batch, heads, q_len] as [batch, programs, rows]."""
        if not self.packed:
            return data
        grouped = data.reshape(self.batch, self.kv_heads, -1, self.q_len)
        return grouped.swapaxes(2, 3).reshape(self.batch, self.kv_heads, -1)

    def store(
        self, name: str, program: Program, rows: Rows, tile: int, values: FloatArray, part: Sequence[int] = ()
    ) -> None:
        """Store a tile of rows."""
        if not self.padded:
            self.hbm.store(name, (*part, *program.rows(rows)), values)
            return
        whole = np.zeros(tile)
        whole[: len(values)] = values
        self.hbm.store(name, (*part, *self.at(program), slice(rows.start, rows.start + tile)), whole)

    def load(self, name: str, program: Program, rows: Rows, tile: int) -> FloatArray:
        """Load a tile of rows."""
        if not self.padded:
            return self.hbm.load(name, program.rows(rows))
        return self.hbm.load(name, (*self.at(program), slice(rows.start, rows.start + tile)))[: rows.stop - rows.start]

    def at(self, program: Program) -> tuple[int, int]:
        """The place of a program."""
        assert self.packed or program.head is not None
        return program.batch, program.kv_head if program.head is None else program.head

    def value(self, name: str) -> FloatArray | None:
        """One of them, as [batch, heads, q_len]; None if it was never allocated."""
        if name not in self.hbm.arrays:
            return None
        array = self.hbm.arrays[name]
        if not self.padded:
            return array
        length = self.q_len * (self.heads // self.kv_heads if self.packed else 1)
        array = array[..., :length]
        if self.packed:
            grouped = array.reshape(self.batch, self.kv_heads, self.q_len, -1)
            return grouped.swapaxes(2, 3).reshape(self.batch, self.heads, self.q_len)
        return array


def in_order(tiles: list[tuple[slice, list[Visit]]], written: Written) -> list[tuple[slice, list[Visit]]]:
    """The query tiles with their key tiles in the order of the walk, of every second one from the last to the first."""
    if written.order == "plain":
        return tiles
    return [(rows, visited[::-1] if number % 2 else visited) for number, (rows, visited) in enumerate(tiles)]


def turned(last: Visit | None, visit: Visit, written: Written) -> bool:
    """Whether a walk begins at the key tile where that of the query tile before has ended, which is still on chip."""
    if written.order == "plain" or last is None:
        return False
    return last.rows.stop == visit.rows.start and last.keys == visit.keys


def masks_of(
    Q: FloatArray,
    K: FloatArray,
    *,
    left: int | None,
    right: int | None,
    align: str,
    packed: bool,
    seen: BoolArray | None,
    written: Written,
    block_q: int,
) -> tuple[BoolArray, Sight]:
    """Which key each row of a program sees, and what a kernel that skips tiles of `block_q` rows takes it to see."""
    exact = row_mask(Q, K, left=left, right=right, align=align, packed=packed, seen=seen)
    as_read = sight(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, more=block_q,
        unskipped_window=written.unskipped_window, padded_queries=written.padded_queries,
        masked_loads=written.masked_loads,
    )  # fmt: skip
    return exact, as_read
