"""Misses of an L2 of private slices, which thread blocks are dealt to in turn by their numbers.

Slice i of S runs blocks i, i + S, i + 2 S, ... on its share of the slots, through its share of the capacity. Blocks
that share a set meet in a cache only within their slice, so a set whose blocks are consecutive is fetched by S slices.
Of H heads whose blocks take turns, a slice has those whose numbers agree modulo gcd(H, S), or H / S consecutive ones if
the kernel renumbers them so.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from iomodel.timing.l2 import SharedTiles, lock_step_bytes, tile_bytes


def in_slice(grid: SharedTiles, slices: int, up: bool = True) -> SharedTiles:
    """Return the blocks of one slice, with numbers that are no divisors rounded up or down.

    >>> in_slice(SharedTiles(sets=64, sharers=256, tiles=1024, slots=256), 8)  # a head's blocks are consecutive
    SharedTiles(sets=64, sharers=32, tiles=1024, slots=32, tile=1.0, queries=0.0, output=0.0, requested=None, \
serpentine=False, among=1, run=1, grouped=False)
    >>> apart = in_slice(SharedTiles(sets=64, sharers=256, tiles=1024, slots=256, among=64), 8)
    >>> apart.sets, apart.sharers, apart.among  # eight heads to each slice
    (8, 256, 8)
    """
    if slices == 1:
        return grid
    slots, requested = max(1, grid.slots // slices), grid.requested
    if requested is not None:
        requested = requested / slices
    sets, sharers, among, run = grid.sets, grid.sharers, grid.among, grid.run
    if among > 1 and grid.grouped and among * run % slices == 0:
        heads = among * run // slices
        if heads % run == 0:  # whole sets
            own = heads // run
        elif run % heads == 0:  # a share of a set
            own, run = 1, heads
        else:
            own, run = min(among, -(-heads // run) + 1), 1
        sets, sharers, slices, among = sets // among * own, sharers * among, slices * own, own
    elif among > 1:
        heads = among * run
        common = gcd(heads, slices)
        own = min(among, heads // common)
        sets, sharers = sets // among * own, sharers * among
        among, run = own, run // slices if common == slices and run % slices == 0 else 1
        slices = slices * own
    elif sharers < slices:
        sets, sharers = sets * sharers, 1
        sets = max(1, -(-sets // slices) if up else sets // slices)
        slices = 1
    sharers = max(1, -(-sharers // slices) if up else sharers // slices)
    return replace(grid, sets=sets, sharers=sharers, slots=slots, requested=requested, among=among, run=run)


def sliced_bytes(grid: SharedTiles, capacity: float, slices: int) -> tuple[float, float]:
    """Bound what leaves all slices of an L2 of this capacity, for any order and drift of the blocks [B].

    >>> grid = SharedTiles(sets=2, sharers=4, tiles=10, slots=4)
    >>> sliced_bytes(grid, 100, 1), sliced_bytes(grid, 100, 2)  # both slices fetch both sets
    ((20.0, 20.0), (40.0, 40.0))
    """
    if slices == 1:
        return tile_bytes(grid, capacity)
    own = capacity / slices
    low = slices * tile_bytes(in_slice(grid, slices, up=False), own)[0]
    if grid.among == 1:
        low = max(low, min(slices, grid.sharers) * grid.distinct)
    if grid.grouped and not _divided(grid, slices):
        low = grid.distinct
    if grid.requested is not None and grid.requested < grid.sets * grid.sharers * grid.tiles * grid.tile:
        low = grid.distinct  # a slice need not have a block that walks the entire set
    low = min(low, grid.requests)
    return low, max(low, min(grid.requests, slices * tile_bytes(in_slice(grid, slices), own)[1]))


def behind_bytes(grid: SharedTiles, leaving: float, capacity: float, last: float, slices: int) -> tuple[float, float]:
    """Bound the misses of a cache behind the slices; at most `leaving` bytes reach it [B].

    Slices whose blocks differ in length drift apart, so their sets are in it at once only if it holds all of them.
    """
    low, most = tile_bytes(grid, capacity + last)[0], grid.requests
    if slices == 1 or grid.requested is None or grid.requested >= grid.blocks * grid.tiles * grid.tile:
        most = tile_bytes(grid, last)[1]
    elif grid.distinct + grid.blocks * (grid.queries + grid.output) <= last:
        most = grid.distinct
    return low, max(low, min(leaving, most))


def _divided(grid: SharedTiles, slices: int) -> bool:
    """Check that each slice has whole sets of a renumbered turn, or a share of one."""
    heads, rest = divmod(grid.among * grid.run, slices)
    return rest == 0 and (heads % grid.run == 0 or grid.run % heads == 0)


def sliced_lock_step(grid: SharedTiles, capacity: float, slices: int) -> float:
    """Compute the misses of all slices for blocks in phase [B], exact if the slices have the same numbers of blocks."""
    return min(grid.requests, slices * lock_step_bytes(in_slice(grid, slices), capacity / slices))
