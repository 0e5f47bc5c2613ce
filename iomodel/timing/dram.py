"""DRAM traffic of a kernel behind the L2 cache: the estimate used for time, and its lower and upper bound.

Each byte once <= DRAM traffic <= requests of the thread blocks. Tensors that a kernel moves once are DRAM traffic;
tensors streamed repeatedly by its blocks may be served by the L2 cache (:mod:`iomodel.timing.l2`).
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from iomodel.common.elementwise import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.timing.balance import spread
from iomodel.timing.kernel_work import KernelWork, TensorTraffic
from iomodel.timing.l2 import SharedTiles, lock_step_bytes, tile_bytes
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention


def streamed_bytes(demand: KernelWork, l2_capacity: int | None, at_once: Any) -> Any:
    """Estimate the DRAM traffic of blocks in phase, one set of keys against the entire L2 cache [B].

    The work and the blocks at once may be arrays.

    The estimate never falls with a smaller L2 cache or fewer concurrent blocks. Without an L2 cache every request
    goes to DRAM. Waves that walk the keys up and down in turn find those at the turn: all that the L2 cache holds of
    the tensors that they stream, shared out by size.
    """
    if demand.streamed is not None:
        return demand.streamed
    if l2_capacity is None or at_once is None:
        return demand.requested_bytes
    walked: Any = 0
    if demand.serpentine:
        walked = sum(
            pick(moved.requested > moved.distinct, ceil_div(moved.distinct, moved.instances), 0)
            for moved in demand.moved
        )
    return sum(_streamed(moved, demand.blocks, l2_capacity, at_once, walked) for moved in demand.moved)


def _streamed(moved: TensorTraffic, blocks: Any, capacity: int, at_once: Any, walked: Any) -> Any:
    if not anywhere(moved.requested > moved.distinct):
        return moved.distinct
    again = moved.requested  # a second pass of a block finds nothing in the cache
    if not moved.again:
        waves = ceil_div(blocks, at_once)
        fetched = floor_div(moved.distinct * (moved.instances + waves - 1), moved.instances)
        found = floor_div((waves - 1) * moved.distinct * smaller(capacity, walked), moved.instances * larger(1, walked))
        again = smaller(again, larger(moved.distinct, fetched - found))
    # One instance stays in the L2 cache while it is streamed.
    return pick(moved.distinct <= capacity * moved.instances, moved.distinct, again)


class Dram(NamedTuple):
    """DRAM traffic of a kernel starting with an empty L2 cache: bounds, and the value for blocks in phase [B]."""

    low: int
    high: int
    lock_step: int | None


def dram(
    demand: KernelWork,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    l2_capacity: int | None,
    at_once: int | None,
) -> Dram:
    """Bound the DRAM traffic; compute it for blocks in phase only if all blocks of a grid walk the same tiles."""
    if workload is None:  # no grid over queries and keys
        return Dram(demand.distinct_bytes, max(demand.distinct_bytes, demand.requested_bytes), None)
    if demand.sequences:
        each = [dram(part, call, packed, l2_capacity, at_once) for part, call in demand.sequences]
        return Dram(sum(part.low for part in each), sum(part.high for part in each), None)
    assert isinstance(workload, Attention)
    low = demand.distinct_bytes
    again = [moved for moved in demand.moved if moved.requested > moved.distinct]
    if not again:
        return Dram(low, low, low)
    if l2_capacity is None or at_once is None:
        return Dram(low, demand.requested_bytes, None)
    once = sum(moved.requested for moved in demand.moved if moved.requested == moved.distinct)
    grid = _grid(demand, again, once, workload, packed, at_once)
    requested = sum(moved.requested for moved in again)
    if grid is None:
        live = sum(moved.distinct / moved.instances for moved in again) * min(at_once, demand.blocks)
        return Dram(low, low if live <= l2_capacity else once + requested, None)
    most = min(requested, ceil(tile_bytes(grid, l2_capacity)[1]))
    together = None
    if workload.mask == "full":
        together = max(low, once + min(requested, round(lock_step_bytes(grid, l2_capacity))))
    return Dram(low, max(low, once + most), together)


def _grid(
    demand: KernelWork, again: list[TensorTraffic], once: int, workload: Attention, packed: bool, at_once: int
) -> SharedTiles | None:
    """Describe the blocks that divide the outer tiles of a head as a grid; None for other kernels."""
    if demand.outer is None or demand.inner is None or any(moved.again for moved in again):
        return None
    axis, tile = demand.outer
    seen = spread(workload, axis, tile, demand.inner, packed)
    rows = {"query": workload.q_len * (workload.group if packed else 1), "key": workload.kv_len}
    trips = -(-rows["key" if axis == "query" else "query"] // demand.inner)
    sharers, parts = seen.blocks, demand.parts
    sets = max(1, demand.blocks // (sharers * parts))
    own = sets // min(moved.instances for moved in again)
    if workload.batch == 1 and own > 1:  # only then are heads that share keys consecutive
        sets, sharers = sets // own, sharers * own
    size = sum(moved.distinct / moved.instances for moved in again)
    return SharedTiles(
        sets=sets * parts,
        sharers=sharers,
        tiles=-(-trips // parts),
        slots=at_once,
        tile=size / trips,
        queries=once / demand.blocks,
        requested=float(sum(moved.requested for moved in again)),
        serpentine=demand.serpentine,
    )
