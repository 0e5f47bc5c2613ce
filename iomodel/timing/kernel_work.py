"""Work of one kernel on each resource of a GPU, beyond the exact counts.

Ragged tiles are padded as by the matrix instructions; thread blocks, trips of the innermost loop and bytes by tensor
are included. Every number may be an array of floats instead, over the points of many calls or tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from iomodel.workloads.attention import Attention

SCORES = frozenset({"query", "key"})


@dataclass(frozen=True)
class MatrixWork:
    """A matrix product on a tile: repetitions, axes m, n, k, and their extents in full tiles [rows]."""

    runs: int
    axes: tuple[str, str, str]
    extents: tuple[int, int, int]

    @property
    def flops(self) -> int:
        """FLOPs with every tile full [FLOP]."""
        m, n, k = self.extents
        return 2 * m * n * k * self.runs


@dataclass(frozen=True)
class TensorTraffic:
    """Reads or writes of a tensor in one kernel: requested bytes, distinct bytes, number of instances.

    `again` is True if one block passes over the tensor several times, `along` if it has the axis of the outer loop.
    """

    name: str
    requested: int
    distinct: int
    instances: int
    again: bool
    along: bool = False


@dataclass(frozen=True)
class KernelWork:
    """Work of one kernel over all batches and heads.

    Attributes
    ----------
    products : tuple of MatrixWork
        Matrix products.
    exps, scores, gradients, randoms : int
        Special-function results; scores in softmaxes, and in their gradients; random numbers [-].
    exps_once : int
        Special-function results computed once per block instead of per trip [-].
    staged : int
        Bytes loaded to shared memory in trips with matrix products; loads once per block are part of the cost of a
        block [B].
    atomic_bytes : int
        Bytes added to sums in HBM, atomically or in a fixed order [B].
    moved : tuple of TensorTraffic
        Traffic by tensor.
    blocks : int
        Thread blocks [-].
    trips : int
        Trips of innermost loops that multiply [-].
    outer, inner : tuple of (axis, tile) or None
        Loop divided among blocks, and the masked loop inside it.
    parts : int
        Blocks that share an outer tile.
    footprint : int
        On-chip memory of a block [B].
    streamed : int or None
        DRAM traffic, if the sharing of operands by concurrent blocks is known [B].
    sequences : tuple of (KernelWork, Attention)
        Parts of a launch over sequences of different lengths.
    strided : bool
        Loads and stores single elements.
    serpentine : bool
        True if the streamed tensors are walked up and down in turn.
    ordered : bool
        True if the blocks that add to a tile of a sum take turns.
    single_keys : int
        Longest row whose elements are loaded and stored one by one in any case [keys].
    """

    title: str
    products: tuple[MatrixWork, ...]
    exps: int
    scores: int
    gradients: int
    randoms: int
    staged: int
    atomic_bytes: int
    moved: tuple[TensorTraffic, ...]
    blocks: int
    trips: int
    outer: tuple[str, int] | None
    inner: int | None
    parts: int
    exps_once: int = 0
    footprint: int = 0
    streamed: int | None = None
    sequences: tuple[tuple[KernelWork, Attention], ...] = ()
    strided: bool = False
    serpentine: bool = False
    single_keys: int = 0
    ordered: bool = False

    @cached_property
    def memo(self) -> dict[str, Any]:
        """Cache of values that other modules derive from the work, shared by all launches."""
        return {}

    def repeated(self, times: Any) -> KernelWork:
        """Repeat products and softmax so many times, as warps without rows of their own do."""
        products = tuple(replace(product, runs=product.runs * times) for product in self.products)
        return replace(self, products=products, exps=self.exps * times, scores=self.scores * times)

    @property
    def reduces_rows(self) -> bool:
        """True if all products sum over queries or keys, so that their loads have a loop to hide in."""
        return bool(self.products) and all(product.axes[2] in SCORES for product in self.products)

    @cached_property
    def flops(self) -> int:
        """Matrix FLOPs with every tile full [FLOP]."""
        return sum(product.flops for product in self.products)

    @cached_property
    def requested_bytes(self) -> int:
        """Bytes requested by the thread blocks [B]."""
        return sum(moved.requested for moved in self.moved)

    @cached_property
    def distinct_bytes(self) -> int:
        """Distinct bytes touched by the kernel [B]."""
        return sum(moved.distinct for moved in self.moved)
