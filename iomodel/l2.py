r"""What an L2 leaves of the requests of a grid of thread blocks: exactly in lock step, within bounds otherwise.

A grid runs its blocks in order, so many at a time. Blocks in a row share a *set*: the keys and values of a head,
which each of them walks tile by tile. Wave w touches :math:`k_w` sets and fetches each of them once. The set that it
shares with the next wave is fetched again but for the tiles that a least-recently-used cache still holds: between two
visits to tile j of T there pass the tiles of all sets that are live, and what the blocks have of their own,

.. math:: t\,(T + (k_w - 1)(T - 1 - j) + (k_{w+1} - 1)\,j) + P_w\,o + P_{w+1}\,q

bytes, with tiles of t bytes, queries of q and an output of o, and :math:`P_w` blocks in the wave. (At the first tile
only one block of the next wave has read its queries, and no more tiles of the other sets have passed than T - 1.)

Real blocks drift. Then a visit to a tile that another block has made shortly before still hits: within the share x of a
walk that the cache remembers, which it fills with what is live, :math:`k T t (1 - (1 - x)^m) + x\,private = C` for m
blocks that share a set. Of m - 1 others at places of their own, none is that near with probability
:math:`(1 - x)^{m - 1}` (Che, Tung and Wang 2002, IEEE JSAC 20:7, for the time that a cache remembers).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.errors import InputError

MOST_WAVES = 2**24
"""Waves of blocks are looked at one by one; so many take some seconds."""


@dataclass(frozen=True)
class Grid:
    """Blocks that share sets of tiles.

    Attributes
    ----------
    sets, sharers : int
        Sets, and blocks in a row that share one [-].
    tiles : int
        Tiles of a set [-].
    slots : int
        Blocks that run at a time [-].
    tile, queries, output : float
        Size of a tile; of what a block reads first and writes last, all its own [B].
    requested : float or None
        What all blocks ask of the tiles, where they do not visit every one [B].
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
        """All blocks [-]."""
        return self.sets * self.sharers

    @property
    def distinct(self) -> float:
        """Each tile once [B]."""
        return self.sets * self.tiles * self.tile

    @property
    def requests(self) -> float:
        """What the blocks ask of the tiles [B]."""
        return self.blocks * self.tiles * self.tile if self.requested is None else self.requested

    @cached_property
    def waves(self) -> tuple[Any, Any, Any]:
        """For each wave: its blocks, the sets that it touches, whether the next one goes on with its last set."""
        if self.blocks > MOST_WAVES * self.slots:
            raise InputError(
                f"batch, heads, q_len: {self.blocks:,} thread blocks follow from them; allowed with an L2: "
                f"up to {MOST_WAVES * self.slots:,}"
            )
        start = np.arange(0, self.blocks, self.slots, dtype=np.int64)
        end = np.minimum(start + self.slots, self.blocks)
        return end - start, (end - 1) // self.sharers - start // self.sharers + 1, end % self.sharers != 0


def lock_step_bytes(grid: Grid, capacity: float) -> float:
    """Bytes of tiles that miss where all blocks step together: exact [B].

    >>> grid = Grid(sets=1, sharers=4, tiles=10, slots=2)  # two waves over one set of ten tiles
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


def tile_bytes(grid: Grid, capacity: float) -> tuple[float, float]:
    """The least and the most bytes of tiles that miss, whatever the order and the drift of the blocks [B].

    The least is each tile once. The most holds in all but some hundredth of the cases of a simulation.

    >>> tile_bytes(Grid(sets=2, sharers=4, tiles=10, slots=2), capacity=100)
    (20.0, 20.0)
    """
    low, requests = grid.distinct, grid.requests
    _, sets, _ = grid.waves
    live, running = int(sets.max()), min(grid.slots, grid.blocks)
    own = grid.queries + grid.output
    walk = requests / grid.blocks  # what a block visits on average
    private = running * own * grid.tiles * grid.tile / walk if walk else 0.0
    footprint = live * grid.tiles * grid.tile
    if footprint + private <= capacity:
        return low, low
    if capacity < live * grid.tile + own:
        return low, requests
    sharers = min(grid.sharers, running)
    share = _remembered(capacity, footprint, sharers, private)
    fetched = grid.tiles * grid.tile * float(sets.sum())
    return low, max(low, min(requests, fetched + (requests - low) * (1 - share) ** (sharers - 1)))


def _remembered(capacity: float, footprint: float, sharers: int, private: float) -> float:
    """The share of a walk that the cache remembers, by bisection [-]."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        filled = footprint * (1 - (1 - middle) ** sharers) + private * middle
        low, high = (middle, high) if filled <= capacity else (low, middle)
    return low
