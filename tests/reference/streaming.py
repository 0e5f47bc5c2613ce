"""The running softmax of FlashAttention-2 (Dao 2023, arXiv:2307.08691, Algorithm 1) over rows gathered from anywhere.

Methods that choose which keys a query sees, or change what the keys are, share this inner loop; it has no features and
writes no LSE by itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from iomodel.testing.machine import FloatArray, Machine

from .grid import IntArray
from .masks import BoolArray, finite, logsumexp, reciprocal

Where = slice | IntArray
Visited = Sequence[tuple[Where, BoolArray | None]]
"""Key tiles of a row tile, each with its pairs to hide, if any."""


def ceil(n: int, block: int) -> int:
    """How many blocks cover a length."""
    return -(-n // block)


def length(where: Where) -> int:
    """How many rows."""
    return where.stop - where.start if isinstance(where, slice) else len(where)


class Streamed:
    """O, l, m and the tile of scores of a tile of `n` rows, in buffers of `block_q` rows and `block_kv` keys."""

    def __init__(self, machine: Machine, n: int, d_v: int, block_q: int, block_kv: int) -> None:
        self.machine = machine
        self.o = machine.sram.alloc("O", (block_q, d_v), "fp32")[:n]
        self.l = machine.sram.alloc("l", (block_q,), "fp32")[:n]
        self.m = machine.sram.alloc("m", (block_q,), "fp32")[:n]
        self.tile = machine.sram.alloc("S", (block_q, block_kv), "fp32")[:n]
        self.o[:], self.l[:], self.m[:] = 0.0, 0.0, -np.inf

    def scores(self, q: FloatArray, k: FloatArray, hidden: BoolArray | None = None) -> FloatArray:
        """Fill the tile of scores, scaled by 1 / sqrt(width of q), -inf where hidden; return it."""
        s = self.tile[:, : len(k)]
        s[:] = self.machine.matmul(q, k.T) / np.sqrt(q.shape[1])
        if hidden is not None:
            s[hidden] = -np.inf
        return s

    def add(self, s: FloatArray, v: FloatArray) -> None:
        """Take a tile of scores and its values into the running sums; P overwrites S."""
        m_new = np.maximum(self.m, s.max(axis=1))
        base = finite(m_new)
        factor = self.machine.exp(self.m - base)
        s[:] = self.machine.exp(s - base[:, None])
        self.l[:] = factor * self.l + s.sum(axis=1)
        self.m[:] = m_new
        self.o[:] = factor[:, None] * self.o + self.machine.matmul(s, v)

    def output(self) -> FloatArray:
        """O / l; 0 for the rows that saw nothing."""
        return self.o * reciprocal(self.l)[:, None]

    def lse(self) -> FloatArray:
        """The log-sum-exp of each row; -inf for those that saw nothing."""
        return logsumexp(self.m, self.l)


def attend(
    machine: Machine,
    tiles: Sequence[tuple[Where, Visited]],
    head: tuple[Any, ...],
    kv_head: tuple[Any, ...],
    *,
    block_q: int,
    block_kv: int,
    q: str = "Q",
    k: str = "K",
    v: str = "V",
    o: str = "O",
) -> None:
    """Run one head: each tile of rows over the key tiles it visits; the names are those of the tensors in HBM.

    Rows are loaded at [*head, rows], keys and values at [*kv_head, keys]; the output is stored at the rows' places.
    A tile that visits nothing loads no queries.
    """
    hbm, sram = machine.hbm, machine.sram
    d, d_v = hbm.arrays[q].shape[-1], hbm.arrays[v].shape[-1]
    for rows, visited in tiles:
        q_tile = sram.alloc(q, (block_q, d))[: length(rows)]
        streamed = Streamed(machine, length(rows), d_v, block_q, block_kv)
        k_tile, v_tile = sram.alloc(k, (block_kv, d)), sram.alloc(v, (block_kv, d_v))
        if visited:
            q_tile[:] = hbm.load(q, (*head, rows))
        for keys, hidden in visited:
            n = length(keys)
            k_tile[:n] = hbm.load(k, (*kv_head, keys))
            v_tile[:n] = hbm.load(v, (*kv_head, keys))
            s = streamed.scores(q_tile, k_tile[:n], hidden)
            streamed.add(s, v_tile[:n])
        hbm.store(o, (*head, rows), streamed.output())
        sram.free()
