r"""L2 cache misses of a grid of thread blocks: exact for blocks in phase, bounded otherwise.

A grid runs its blocks in order, a fixed number at a time. Consecutive blocks share a *set*: the keys and values of a
head, which each of them walks tile by tile. Wave w touches :math:`k_w` sets and fetches each of them once. The set that
it shares with the next wave is fetched again except for the tiles still in a least-recently-used cache: between two
visits to tile j of T, the tiles of all live sets and the private data of the blocks pass,

.. math:: t\,(T + (k_w - 1)(T - 1 - j) + (k_{w+1} - 1)\,j) + P_w\,o + P_{w+1}\,q

bytes, with tiles of t bytes, queries of q and an output of o, and :math:`P_w` blocks in the wave. (At the first tile
only one block of the next wave has read its queries, and no more tiles of the other sets have passed than T - 1.)

Where the waves walk the tiles up and down in turn, the tile r places from the turn is visited again after

.. math:: t\,(1 + (k_w + k_{w+1} - 1)\,r) + P_w\,o + P_{w+1}\,q

bytes: W waves over one set of N bytes fetch :math:`N + (W - 1)(N - C)` of them through a cache of C, where W N would be
fetched in one direction (o = q = 0).

Real blocks drift. A visit to a tile that another block has visited shortly before still hits if it is within the share
x of a walk that the cache holds, :math:`k T t (1 - (1 - x)^m) + x\,private = C` for m blocks that share a set. None of
m - 1 others at independent positions is that near with probability :math:`(1 - x)^{m - 1}` (Che, Tung and Wang 2002,
IEEE JSAC 20:7, for the retention time of a cache).

No cache and no order of the visits do without the following fetches. If at most q blocks of a set run at once, of its
n blocks :math:`\lceil n / q \rceil` run one after the other, as the graph of intervals in time is perfect. Each of them
walks N bytes, of which the cache of C bytes held at most C before, so the set is fetched
:math:`N + (\lceil n / q \rceil - 1)(N - C)^+` times at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, gcd
from typing import NamedTuple

from iomodel.common.arithmetic import floor_sum


class Waves(NamedTuple):
    """Equal waves: their number, blocks and sets, those of the next wave, and True if that wave continues a set."""

    times: int
    blocks: int
    sets: int
    next_blocks: int
    next_sets: int
    shared: bool


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
    serpentine : bool
        True if every second wave walks the tiles from the last to the first.
    among, run : int
        Sets that take turns, and consecutive blocks of a set in its turn [-]. By default the blocks of a set are
        consecutive.
    grouped : bool
        True if the blocks of a turn are renumbered, so that each slice of the cache has those of consecutive sets.
    """

    sets: int
    sharers: int
    tiles: int
    slots: int
    tile: float = 1.0
    queries: float = 0.0
    output: float = 0.0
    requested: float | None = None
    serpentine: bool = False
    among: int = 1
    run: int = 1
    grouped: bool = False

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

    @property
    def live(self) -> int:
        """Most sets of the blocks that run at once, in phase, or the sets that take turns [-]."""
        return max(wave.sets for wave in self.waves) if self.among == 1 else self.among

    @property
    def in_turns(self) -> int:
        """Most sets of so many consecutive blocks as there are slots, among the sets that take turns [-]."""
        return min(self.among, (min(self.slots, self.blocks) - 2) // self.run + 2)

    @property
    def fetches(self) -> int:
        """Sets that the waves touch, each counted in each wave [-]."""
        if self.among == 1:
            return sum(wave.times * wave.sets for wave in self.waves)
        turns, own = self.sets // self.among, self.among * self.sharers
        aligned = (turns - 1) // (self.slots // gcd(own, self.slots))  # ends of turns at the end of a wave
        waves = -(-self.blocks // self.slots) + turns - 1 - aligned
        return min(self.blocks, waves * self.in_turns)

    @property
    def at_once(self) -> int:
        """Blocks of a set that run at once, in phase [-]."""
        running = min(self.slots, self.blocks)
        return min(self.sharers, running) if self.among == 1 else max(1, running // self.in_turns)

    @property
    def most_at_once(self) -> int:
        """Most blocks of a set that run at once, where sets take turns at durations within a factor of two [-].

        While a block runs, each other slot starts at most two blocks, so that all that run at a time are among 2 s - 1
        consecutive ones for s slots.
        """
        most = min(self.sharers, self.slots)
        if self.among == 1:
            return most
        turns, rest = divmod(2 * self.slots - 1, self.among * self.run)
        return min(most, turns * self.run + min(rest, self.run))

    @cached_property
    def waves(self) -> tuple[Waves, ...]:
        """Waves of blocks, alike ones counted together in O(log) steps; the last has no next one."""
        slots, sharers = self.slots, self.sharers
        whole, rest = divmod(self.blocks, slots)
        number = whole + (rest > 0)

        def sets(start: int, blocks: int) -> int:
            return (start + blocks - 1) // sharers - start // sharers + 1

        groups = []
        pairs = max(0, whole - 1)  # full waves that a full one follows; they differ by their start within a set
        if pairs:
            marks = {0, sharers}
            for shift in (slots - 1, slots, slots + 1, 2 * slots - 1):
                marks |= {-shift % sharers, (1 - shift) % sharers}
            ends = sorted(marks)
            for low, high in pairwise(ends):
                count = floor_sum(pairs, sharers, slots, -low) - floor_sum(pairs, sharers, slots, -high)
                if count:
                    after = low + slots
                    groups.append(
                        Waves(count, slots, sets(low, slots), slots, sets(after, slots), after % sharers != 0)
                    )
        if rest and whole:
            start = (whole - 1) * slots
            shared = whole * slots % sharers != 0
            groups.append(Waves(1, slots, sets(start, slots), rest, sets(whole * slots, rest), shared))
        last = rest or slots
        groups.append(Waves(1, last, sets((number - 1) * slots, last), 0, 0, False))
        return tuple(groups)


def lock_step_bytes(grid: SharedTiles, capacity: float) -> float:
    """Compute the misses of tiles for blocks in phase, exactly [B].

    >>> grid = SharedTiles(sets=1, sharers=4, tiles=10, slots=2)  # two waves over one set of ten tiles
    >>> lock_step_bytes(grid, capacity=9), lock_step_bytes(grid, capacity=10)
    (20.0, 10.0)
    >>> grid = SharedTiles(sets=1, sharers=4, tiles=10, slots=2, serpentine=True)
    >>> lock_step_bytes(grid, capacity=9)  # the second wave finds nine tiles
    11.0
    """
    most, t = grid.tiles - 1, grid.tile
    if grid.among > 1:
        return _in_turns(grid, capacity)
    kept = 0
    for wave in grid.waves:
        if not wave.shared:
            continue
        if grid.serpentine:
            kept += wave.times * _turning(grid, wave, capacity)
            continue
        base = t * (grid.tiles + (wave.sets - 1) * most)
        slope = t * (wave.next_sets - wave.sets)
        room = capacity - wave.blocks * grid.output - wave.next_blocks * grid.queries
        if slope == 0:
            tiles = most if base <= room else 0
        elif slope > 0:
            tiles = min(max(floor((room - base) / slope), 0), most)
        else:
            tiles = grid.tiles - min(max(ceil((room - base) / slope), 1), grid.tiles)
        first = base + wave.blocks * grid.output + grid.queries <= capacity
        kept += wave.times * (tiles + first)
    return t * float(sum(wave.times * wave.sets for wave in grid.waves) * grid.tiles - kept)


def _in_turns(grid: SharedTiles, capacity: float) -> float:
    """Compute the misses of sets that take turns, in phase: a wave finds what the wave before left of its sets [B].

    The count is exact if a wave has whole turns and does not reach beyond the sets that take turns.
    """
    sets, blocks = grid.in_turns, min(grid.slots, grid.blocks)
    if sets < grid.among:  # a set is visited again when all others have been
        sets, blocks = grid.among, grid.among * grid.run
    needed = sets * grid.tiles * grid.tile + blocks * (grid.output + grid.queries)
    return grid.distinct if needed <= capacity else min(grid.requests, grid.fetches * grid.tiles * grid.tile)


def _turning(grid: SharedTiles, wave: Waves, capacity: float) -> int:
    """Count the tiles that the next wave finds, as it walks back from where a wave has ended [-]."""
    room = capacity - grid.tile - wave.blocks * grid.output
    if room < grid.queries:  # the first block of the next wave has read its queries, the others not yet
        return 0
    step = grid.tile * (wave.sets + wave.next_sets - 1)
    return 1 + min(max(floor((room - wave.next_blocks * grid.queries) / step), 0), grid.tiles - 1)


def tile_bytes(grid: SharedTiles, capacity: float) -> tuple[float, float]:
    """Bound the misses of tiles for any order and drift of the blocks [B].

    The lower bound is what no cache avoids. The upper bound held in 3,899 of 3,900 runs of a simulation
    (`benchmarks/l2.py`).

    >>> tile_bytes(SharedTiles(sets=2, sharers=4, tiles=10, slots=2), capacity=100)
    (20.0, 20.0)
    >>> tile_bytes(SharedTiles(sets=2, sharers=4, tiles=10, slots=2), capacity=7)[0]  # two blocks one after the other
    26.0
    """
    low, requests = _least(grid, capacity), grid.requests
    live, running = grid.live, min(grid.slots, grid.blocks)
    private_size = grid.queries + grid.output
    walk = requests / grid.blocks  # average visits per block
    private = running * private_size * grid.tiles * grid.tile / walk if walk else 0.0
    # Blocks that drift run beside those of one more set, or of the sets that take turns next. A tile that few blocks of
    # a set visit is met again after the private data of the others has passed.
    crowd = min(grid.sets, live + (1 if grid.among == 1 else live)) * grid.tiles * grid.tile
    passed = private if grid.requested is None else max(private, grid.sharers * private_size)
    if grid.among > 1:
        # Of blocks of the turn before and of the next, or of a turn of all sets.
        passed = max(passed, 2 * private, grid.among * grid.run * private_size)
    if crowd + passed <= capacity:
        return low, low
    if capacity < (live if grid.among == 1 else grid.in_turns) * grid.tile + private_size:
        return low, requests
    share = _remembered(capacity, crowd, grid.at_once, private)
    fetched = grid.tiles * grid.tile * float(grid.fetches)
    again = (requests - grid.distinct) * (1 - share) ** (grid.at_once - 1)
    return low, max(low, min(requests, fetched + again))


def _least(grid: SharedTiles, capacity: float) -> float:
    """Compute the misses of tiles that no cache and no drift avoid [B]."""
    set_size = grid.tiles * grid.tile
    visited = grid.sharers * grid.sets * set_size
    if grid.requested is not None and grid.requested < visited:  # not every block walks the entire set
        return grid.distinct
    in_sequence = -(-grid.sharers // max(1, grid.most_at_once))
    return float(grid.sets * (set_size + (in_sequence - 1) * max(0.0, set_size - capacity)))


def _remembered(capacity: float, footprint: float, sharers: int, private: float) -> float:
    """Compute the share of a walk that the cache holds, by bisection [-]."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        filled = footprint * (1 - (1 - middle) ** sharers) + private * middle
        low, high = (middle, high) if filled <= capacity else (low, middle)
    return low
