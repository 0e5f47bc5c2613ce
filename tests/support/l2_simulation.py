"""A simulated L2: the thread blocks of a grid walk their key/value tiles through one least-recently-used cache.

It knows no formula and imports nothing of the package, so that it can witness for what the package says of a cache.

A grid is a list of blocks. `slots` of them run at a time, in the order of the list; a slot whose block ends takes the
next one. A block reads its queries, visits its tiles, one a step, and writes its output; queries and output are its
own, each moves once, and both take room in the cache. The cache is fully associative. Blocks that ask for one tile at
the same instant are served together, whatever the capacity. Time does not depend on hits, so one `Pace` gives one
order of accesses for every capacity: misses never rise with it.

Sizes are in any common unit; integers (or binary fractions) keep the sums exact.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np


@dataclass(frozen=True)
class Block:
    """The key/value set that it reads, and the tiles of that set in the order of the visits."""

    kv: int
    tiles: Sequence[int]


@dataclass(frozen=True)
class Cache:
    """Its capacity; the sizes of a tile (a K tile with its V tile), and of the queries and the output of a block."""

    capacity: float
    tile: float = 1
    q: float = 0
    o: float = 0


@dataclass(frozen=True)
class Timing:
    """How far from lock step: a step takes 1 +- `step`, times 1 +- `speed` of its block, uniformly at random.

    A slot starts at random within `start` times the length of a mean block.
    """

    step: float = 0.0
    speed: float = 0.0
    start: float = 0.0


TIMINGS = {
    "lock step": Timing(),
    "tiny jitter": Timing(step=0.02),
    "jitter": Timing(step=0.3),
    "speed 5 %": Timing(speed=0.05),
    "speed 20 %": Timing(speed=0.2),
    "random starts": Timing(speed=0.3, start=1.0),
}


@dataclass(frozen=True)
class Pace:
    """When each slot starts, and what each step of each block takes."""

    starts: Sequence[float]
    steps: Sequence[Sequence[float] | np.ndarray]


@dataclass(frozen=True)
class Traffic:
    """What DRAM moves, in the unit of the sizes: key/value reads of the misses, of all accesses, and private data."""

    kv_misses: float
    kv_accesses: float
    q_reads: float
    o_writes: float

    @property
    def private(self) -> float:
        return self.q_reads + self.o_writes

    @property
    def hit_rate(self) -> float:
        """Of the key/value accesses; 0 if there are none."""
        return 1 - self.kv_misses / self.kv_accesses if self.kv_accesses else 0.0


def full(sets: int, sharers: int, tiles: int) -> list[Block]:
    """`sharers` consecutive blocks visit all tiles of each set."""
    return [Block(g, range(tiles)) for g in range(sets) for _ in range(sharers)]


def up_and_down(blocks: Sequence[Block], slots: int) -> list[Block]:
    """The same blocks, of which those of every second wave of so many visit their tiles from the last to the first."""
    return [Block(block.kv, block.tiles[:: -1 if n // slots % 2 else 1]) for n, block in enumerate(blocks)]


def in_turns(sets: int, among: int, run: int, rows: int, tiles: int, order: str = "full") -> list[Block]:
    """Blocks of so many sets take turns, `run` of each at a time, `rows` times; then those of the next sets.

    In ascending or descending order the blocks of a turn see as many tiles as under a causal mask.
    """
    ends = [tiles if order == "full" else -(-(row + 1) * tiles // rows) for row in range(rows)]
    return [
        Block(first + g, range(end))
        for first in range(0, sets, among)
        for end in ends[:: -1 if order == "descending" else 1]
        for g in range(among)
        for _ in range(run)
    ]


def causal(
    sets: int, heads: int, rows: int, tiles: int, descending: bool = False, window: int | None = None
) -> list[Block]:
    """`rows` blocks a head, of which the last sees every tile, or the last `window` of those that end where it ends."""
    ends = [-(-(row + 1) * tiles // rows) for row in range(rows)]
    walks = [range(0 if window is None else max(0, end - window), end) for end in ends]
    return [Block(g, walk) for g in range(sets) for _ in range(heads) for walk in walks[:: -1 if descending else 1]]


def draw(blocks: Sequence[Block], slots: int, timing: Timing, rng: np.random.Generator) -> Pace:
    """A pace at random."""
    mean = sum(len(block.tiles) for block in blocks) / max(len(blocks), 1)
    starts = rng.uniform(0, timing.start * mean, slots)
    speeds = rng.uniform(1 - timing.speed, 1 + timing.speed, len(blocks))
    steps = [
        speed * rng.uniform(1 - timing.step, 1 + timing.step, len(block.tiles))
        for block, speed in zip(blocks, speeds, strict=True)
    ]
    return Pace(starts.tolist(), steps)


def schedule(pace: Pace) -> list[np.ndarray]:
    """For each block the instants at which its steps begin, and at which it ends."""
    free = list(pace.starts)
    heapify(free)
    found = []
    for steps in pace.steps:
        instants = np.cumsum([free[0], *steps])  # adds from left to right, as a clock does
        heapreplace(free, float(instants[-1]))
        found.append(instants)
    return found


def simulate(blocks: Sequence[Block], cache: Cache, pace: Pace) -> Traffic:
    """What the grid moves, its accesses sorted by time and, at one instant, by block."""
    stride = 1 + max((max(block.tiles) for block in blocks if block.tiles), default=0)
    times, keys = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for number, (block, instants) in enumerate(zip(blocks, schedule(pace), strict=True)):
        times.append(np.concatenate((instants[:1], instants)))
        walk = block.kv * stride + np.asarray(block.tiles, dtype=np.int64)
        keys.append(np.concatenate(([-2 * number - 1], walk, [-2 * number - 2])))  # queries, tiles, output
    when, what = np.concatenate(times), np.concatenate(keys)
    order = np.argsort(when, kind="stable")

    held: OrderedDict[int, float] = OrderedDict()
    asked: dict[int, float] = {}
    used, misses = 0.0, 0
    for now, key in zip(when[order].tolist(), what[order].tolist(), strict=True):
        if key in held:
            held.move_to_end(key)
        else:
            size = cache.tile if key >= 0 else cache.q if key % 2 else cache.o
            misses += key >= 0 and asked.get(key) != now
            held[key] = size
            used += size
            while used > cache.capacity:
                used -= held.popitem(last=False)[1]
        asked[key] = now
    return traffic(blocks, cache, misses)


def simulate_levels(
    blocks: Sequence[Block], slots: int, cache: Cache, slices: int, last: float, timing: Timing, seed: int = 0
) -> tuple[float, float]:
    """What leaves private slices of a cache, and a cache of capacity `last` behind them: key/value reads of the misses.

    Block n runs in slice n modulo their number, each of which has its share of the slots and of the capacity. Queries
    and outputs pass through both levels. Slices that ask for one tile at the same instant are served together.
    """
    rng = np.random.default_rng(seed)
    accesses = []
    for part in range(slices):
        numbers = range(part, len(blocks), slices)
        own = [blocks[n] for n in numbers]
        instants = schedule(draw(own, max(1, slots // slices), timing, rng))
        for n, block, times in zip(numbers, own, instants, strict=True):
            accesses.append((float(times[0]), n, part, ("q", n)))
            accesses += [(float(now), n, part, (block.kv, tile)) for now, tile in zip(times, block.tiles, strict=False)]
            accesses.append((float(times[-1]), n, part, ("o", n)))
    levels = [OrderedDict[object, float]() for _ in range(slices + 1)]
    used, asked, misses = [0.0] * (slices + 1), [dict[object, float]() for _ in range(slices + 1)], [0, 0]
    accesses.sort(key=lambda access: access[:2])
    for now, _, part, key in accesses:
        size = {"q": cache.q, "o": cache.o}.get(key[0], cache.tile)  # type: ignore[call-overload]
        for level, capacity in ((part, cache.capacity / slices), (slices, last)):
            held = levels[level]
            before, asked[level][key] = asked[level].get(key), now
            if key in held:
                held.move_to_end(key)
                break
            held[key] = size
            used[level] += size
            while used[level] > capacity:
                used[level] -= held.popitem(last=False)[1]
            if before == now:
                break
            misses[level == slices] += key[0] not in ("q", "o")
    return cache.tile * misses[0], cache.tile * misses[1]


def traffic(blocks: Sequence[Block], cache: Cache, misses: int) -> Traffic:
    """The sizes of what was counted."""
    accesses = sum(len(block.tiles) for block in blocks)
    return Traffic(cache.tile * misses, cache.tile * accesses, cache.q * len(blocks), cache.o * len(blocks))


def simulated(blocks: Sequence[Block], slots: int, cache: Cache, timing: Timing, seed: int = 0) -> Traffic:
    """What the grid moves at a pace drawn with this seed."""
    return simulate(blocks, cache, draw(blocks, slots, timing, np.random.default_rng(seed)))
