"""DRAM traffic of a kernel behind the L2: what a clock reckons with, and the least and the most there can be.

Three levels: each byte once <= DRAM <= what the thread blocks ask for. Tensors that a kernel moves once are DRAM
traffic; those that its blocks stream again and again are what the L2 is for (:mod:`iomodel.l2`).
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from iomodel.demand import Demand, Moved
from iomodel.imbalance import spread
from iomodel.l2 import Grid, lock_step_bytes, tile_bytes
from iomodel.workload import Attention, VarlenAttention


def streamed_bytes(demand: Demand, l2_capacity: int | None, at_once: int | None) -> int:
    """DRAM bytes that the clock reckons with: lock step, one set of keys against the whole L2 [B].

    It never falls with less L2 or fewer blocks at once. Without an L2 every request is one to DRAM.
    """
    if demand.streamed is not None:
        return demand.streamed
    if l2_capacity is None or at_once is None:
        return demand.requested_bytes
    return sum(_streamed(moved, demand.blocks, l2_capacity, at_once) for moved in demand.moved)


def _streamed(moved: Moved, blocks: int, capacity: int, at_once: int) -> int:
    if moved.distinct <= capacity * moved.instances:  # one instance stays in the L2 while it is streamed
        return moved.distinct
    if moved.again:  # a block that goes over it again finds nothing left
        return moved.requested
    waves = -(-blocks // at_once)
    return min(moved.requested, moved.distinct * (moved.instances + waves - 1) // moved.instances)


class Dram(NamedTuple):
    """DRAM traffic of a kernel that finds the L2 empty: within bounds, and in lock step where there is such [B]."""

    low: int
    high: int
    lock_step: int | None


def dram(
    demand: Demand,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    l2_capacity: int | None,
    at_once: int | None,
) -> Dram:
    """The least and the most; in lock step only where all blocks of a grid walk the same tiles."""
    if workload is None:  # no grid over queries and keys
        return Dram(demand.distinct_bytes, max(demand.distinct_bytes, demand.requested_bytes), None)
    if demand.sequences:
        each = [dram(part, call, packed, l2_capacity, at_once) for part, call in demand.sequences]
        return Dram(sum(one.low for one in each), sum(one.high for one in each), None)
    assert isinstance(workload, Attention)
    low = demand.distinct_bytes
    again = [moved for moved in demand.moved if moved.requested > moved.distinct]
    if not again:
        return Dram(low, low, low)
    if l2_capacity is None or at_once is None:
        return Dram(low, demand.requested_bytes, None)
    once = sum(moved.requested for moved in demand.moved if moved.requested == moved.distinct)
    grid = _grid(demand, again, once, workload, packed, at_once)
    asked = sum(moved.requested for moved in again)
    if grid is None:
        live = sum(moved.distinct / moved.instances for moved in again) * min(at_once, demand.blocks)
        return Dram(low, low if live <= l2_capacity else once + asked, None)
    most = min(asked, ceil(tile_bytes(grid, l2_capacity)[1]))
    together = None
    if workload.mask == "full":
        together = max(low, once + min(asked, round(lock_step_bytes(grid, l2_capacity))))
    return Dram(low, max(low, once + most), together)


def _grid(
    demand: Demand, again: list[Moved], once: int, workload: Attention, packed: bool, at_once: int
) -> Grid | None:
    """The blocks that share out the outer tiles of a head, as a grid; None for a kernel of another kind."""
    if demand.outer is None or demand.inner is None or any(moved.again for moved in again):
        return None
    axis, tile = demand.outer
    seen = spread(workload, axis, tile, demand.inner, packed)
    rows = {"query": workload.q_len * (workload.group if packed else 1), "key": workload.kv_len}
    trips = -(-rows["key" if axis == "query" else "query"] // demand.inner)
    sharers, parts = seen.blocks, demand.parts
    sets = max(1, demand.blocks // (sharers * parts))
    own = sets // min(moved.instances for moved in again)
    if workload.batch == 1 and own > 1:  # heads that share keys follow on each other only then
        sets, sharers = sets // own, sharers * own
    size = sum(moved.distinct / moved.instances for moved in again)
    return Grid(
        sets=sets * parts,
        sharers=sharers,
        tiles=-(-trips // parts),
        slots=at_once,
        tile=size / trips,
        queries=once / demand.blocks,
        requested=float(sum(moved.requested for moved in again)),
    )
