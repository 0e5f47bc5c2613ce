r"""L2 cache misses of a grid of thread blocks: exact for blocks in phase, bounded otherwise.

A grid runs its blocks in order, a fixed number at a time. Consecutive blocks share a *set*: the keys and values of a
head, which each of them walks tile by tile. Wave w touches :math:`k_w` sets and fetches each of them once. The set that
it shares with the next wave is fetched again except for the tiles still in a least-recently-used cache: between two
visits to tile j of T, the tiles of all live sets and the private data of the blocks pass,

.. math:: t\,(T + (k_w - 1)(T - 1 - j) + (k_{w+1} - 1)\,j) + P_w\,o + P_{w+1}\,q

bytes, with tiles of t bytes, queries of q and an output of o, and :math:`P_w` blocks in the wave. (At the first tile
only one block of the next wave has read its queries, and no more tiles of the other sets have passed than T - 1.)

Real blocks drift. A visit to a tile that another block has visited shortly before still hits if it is within the share
x of a walk that the cache holds, :math:`k T t (1 - (1 - x)^m) + x\,private = C` for m blocks that share a set. None of
m - 1 others at independent positions is that near with probability :math:`(1 - x)^{m - 1}` (Che, Tung and Wang 2002,
IEEE JSAC 20:7, for the retention time of a cache).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.errors import InputError

MOST_WAVES = 2**24
"""Most waves of blocks, which are evaluated one by one in some seconds."""


@dataclass(frozen=True)
class SharedTiles:
    """A grid of blocks that share sets of tiles.

    Attributes
    ----------
    sets, sharers : int
        Sets, and consecutive blocks per set [-].
    tiles : int
        Tiles per set [-].
    slots : int
        Concurrent blocks [-].
    tile, queries, output : float
        Size of a tile, and of the private data that a block reads first and writes last [B].
    requested : float or None
        Requests of all blocks for tiles, if they do not visit every tile [B].
    """

    sets: int
    sharers: int
    tiles: int
    slots: int
    tile: float = 1.0
    queries: float = 0.0
    output: float = 0.0
    requested: float | None = None

    @property
    def blocks(self) -> int:
        """Number of blocks [-]."""
        return self.sets * self.sharers

    @property
    def distinct(self) -> float:
        """Bytes of each tile once [B]."""
        return self.sets * self.tiles * self.tile

    @property
    def requests(self) -> float:
        """Requests of all blocks for tiles [B]."""
        return self.blocks * self.tiles * self.tile if self.requested is None else self.requested

    @cached_property
    def waves(self) -> tuple[Any, Any, Any]:
        """Per wave: its blocks, the sets that it touches, and whether the next wave continues with its last set."""
        if self.blocks > MOST_WAVES * self.slots:
            raise InputError(
                f"batch, heads, q_len: {self.blocks:,} thread blocks given; allowed with an L2 cache: "
                f"up to {MOST_WAVES * self.slots:,}"
            )
        start = np.arange(0, self.blocks, self.slots, dtype=np.int64)
        end = np.minimum(start + self.slots, self.blocks)
        return end - start, (end - 1) // self.sharers - start // self.sharers + 1, end % self.sharers != 0


def lock_step_bytes(grid: SharedTiles, capacity: float) -> float:
    """Compute the misses of tiles for blocks in phase, exactly [B].

    >>> grid = SharedTiles(sets=1, sharers=4, tiles=10, slots=2)  # two waves over one set of ten tiles
    >>> lock_step_bytes(grid, capacity=9), lock_step_bytes(grid, capacity=10)
    (20.0, 10.0)
    """
    blocks, sets, shared = grid.waves
    fetched = float(sets.sum()) * grid.tiles * grid.tile
    here, then = np.flatnonzero(shared), np.flatnonzero(shared) + 1
    if not len(here):
        return fetched
    most, t = grid.tiles - 1, grid.tile
    base = t * (grid.tiles + (sets[here] - 1) * most)
    slope = t * (sets[then] - sets[here])
    room = capacity - blocks[here] * grid.output - blocks[then] * grid.queries
    rising = slope > 0
    steps = (room - base) / np.where(slope == 0, 1, slope)
    kept = np.select(
        [slope == 0, rising],
        [np.where(base <= room, most, 0), np.clip(np.floor(steps), 0, most)],
        grid.tiles - np.clip(np.ceil(steps), 1, grid.tiles),
    )
    first = base + blocks[here] * grid.output + grid.queries <= capacity
    return fetched - t * float(kept.sum() + first.sum())


def tile_bytes(grid: SharedTiles, capacity: float) -> tuple[float, float]:
    """Bound the misses of tiles for any order and drift of the blocks [B].

    The lower bound is each tile once. The upper bound held in about 99 % of the cases of a simulation.

    >>> tile_bytes(SharedTiles(sets=2, sharers=4, tiles=10, slots=2), capacity=100)
    (20.0, 20.0)
    """
    low, requests = grid.distinct, grid.requests
    _, sets, _ = grid.waves
    live, running = int(sets.max()), min(grid.slots, grid.blocks)
    private_size = grid.queries + grid.output
    walk = requests / grid.blocks  # average visits per block
    private = running * private_size * grid.tiles * grid.tile / walk if walk else 0.0
    footprint = live * grid.tiles * grid.tile
    if footprint + private <= capacity:
        return low, low
    if capacity < live * grid.tile + private_size:
        return low, requests
    sharers = min(grid.sharers, running)
    share = _remembered(capacity, footprint, sharers, private)
    fetched = grid.tiles * grid.tile * float(sets.sum())
    return low, max(low, min(requests, fetched + (requests - low) * (1 - share) ** (sharers - 1)))


def _remembered(capacity: float, footprint: float, sharers: int, private: float) -> float:
    """Compute the share of a walk that the cache holds, by bisection [-]."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        filled = footprint * (1 - (1 - middle) ** sharers) + private * middle
        low, high = (middle, high) if filled <= capacity else (low, middle)
    return low
