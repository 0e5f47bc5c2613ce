"""What one kernel asks of each resource of a GPU: numbers for what a clock needs beside the exact counts.

Full tiles where the matrix instructions pad a ragged one, thread blocks, trips of the innermost loop, bytes by tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from iomodel.tensors import key, query
from iomodel.workload import Attention

SCORES = frozenset({query.name, key.name})


@dataclass(frozen=True)
class Product:
    """A matrix product on a tile: how often, its axes m, n, k and their extents in full tiles [rows]."""

    runs: int
    axes: tuple[str, str, str]
    extents: tuple[int, int, int]

    @property
    def flops(self) -> int:
        """FLOPs with every tile full [FLOP]."""
        m, n, k = self.extents
        return 2 * m * n * k * self.runs


@dataclass(frozen=True)
class Moved:
    """The reads or the writes of a tensor in one kernel: bytes asked for, bytes that it has, how many there are of it.

    `again` says that one block goes over it several times.
    """

    name: str
    requested: int
    distinct: int
    instances: int
    again: bool


@dataclass(frozen=True)
class Demand:
    """What one kernel asks for, over all batches and heads.

    Attributes
    ----------
    products : tuple of Product
        Matrix products.
    exps, scores, gradients, randoms : int
        Special-function results; scores that a softmax goes over, those whose gradient is taken; random numbers [-].
    exps_once : int
        Those of the results that a block takes once, not with its trips [-].
    staged : int
        Bytes that trips beside matrix products load to shared memory; what a block loads once is part of what a block
        costs [B].
    atomic_bytes : int
        Bytes added atomically [B].
    moved : tuple of Moved
        Traffic by tensor.
    blocks : int
        Thread blocks [-].
    trips : int
        Trips of innermost loops that multiply [-].
    outer, inner : tuple of (axis, tile) or None
        The loop that blocks share out and the masked one inside it.
    parts : int
        Blocks that share an outer tile.
    footprint : int
        What a block occupies on chip [B].
    streamed : int or None
        DRAM bytes that the clock reckons with, where it is known how blocks that run together share operands [B].
    sequences : tuple of (Demand, Attention)
        The parts of a launch over sequences of different lengths.
    """

    title: str
    products: tuple[Product, ...]
    exps: int
    scores: int
    gradients: int
    randoms: int
    staged: int
    atomic_bytes: int
    moved: tuple[Moved, ...]
    blocks: int
    trips: int
    outer: tuple[str, int] | None
    inner: int | None
    parts: int
    exps_once: int = 0
    footprint: int = 0
    streamed: int | None = None
    sequences: tuple[tuple[Demand, Attention], ...] = ()

    @cached_property
    def flops(self) -> int:
        """Matrix FLOPs with every tile full [FLOP]."""
        return sum(product.flops for product in self.products)

    @cached_property
    def requested_bytes(self) -> int:
        """What the thread blocks ask of the memory system [B]."""
        return sum(moved.requested for moved in self.moved)

    @cached_property
    def distinct_bytes(self) -> int:
        """Each byte that the kernel touches counted once [B]."""
        return sum(moved.distinct for moved in self.moved)
