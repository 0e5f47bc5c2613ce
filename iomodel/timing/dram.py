"""Traffic of a kernel behind the caches of a device: the estimate used for time, and its lower and upper bound.

Each byte once <= DRAM traffic <= bytes that leave the L2 <= requests of the thread blocks. Tensors that a kernel moves
once are DRAM traffic; tensors streamed repeatedly by its blocks may be served by the L2 cache
(:mod:`iomodel.timing.l2`, :mod:`iomodel.timing.l2_slices`), or by a last-level cache behind it.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any, NamedTuple

from iomodel.common.elementwise import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.devices.rates import Rates
from iomodel.timing.balance import spread
from iomodel.timing.kernel_work import KernelWork, TensorTraffic
from iomodel.timing.l2 import SharedTiles, lock_step_bytes
from iomodel.timing.l2_slices import behind_bytes, sliced_bytes, sliced_lock_step
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention


class Caches(NamedTuple):
    """Capacities of the L2 and of a cache behind it [B]; slices of the L2, and its parts that may copy a line [-]."""

    l2: int | None
    slices: int = 1
    last: int | None = None
    partitions: int = 1

    @classmethod
    def of(cls, rates: Rates) -> Caches:
        """Return the caches of a device."""
        return cls(rates.l2_capacity, rates.l2_slices, rates.llc_capacity, rates.l2_partitions)


def streamed_bytes(demand: KernelWork, caches: Caches, at_once: Any) -> Any:
    """Estimate the DRAM traffic of blocks in phase, one set of keys against the entire last cache [B].

    The work and the blocks at once may be arrays.

    The estimate never falls with a smaller cache or fewer concurrent blocks. Without an L2 cache every request
    goes to DRAM. Waves that walk the keys up and down in turn find those at the turn: all that the cache holds of
    the tensors that they stream, shared out by size.
    """
    if demand.streamed is not None:
        return demand.streamed
    if caches.l2 is None or at_once is None:
        return demand.requested_bytes
    walked: Any = 0
    if demand.serpentine:
        walked = sum(
            pick(moved.requested > moved.distinct, ceil_div(moved.distinct, moved.instances), 0)
            for moved in demand.moved
        )
    capacity, slices = (caches.l2, caches.slices) if caches.last is None else (caches.last, 1)
    return sum(_streamed(moved, demand.blocks, capacity, slices, at_once, walked) for moved in demand.moved)


def _streamed(moved: TensorTraffic, blocks: Any, whole: int, slices: int, at_once: Any, walked: Any) -> Any:
    if not anywhere(moved.requested > moved.distinct):
        return moved.distinct
    again = moved.requested  # a second pass of a block finds nothing in the cache
    copies: Any = 1
    capacity = whole
    if slices > 1:  # each slice fetches the instances of its blocks
        copies, capacity = larger(1, smaller(slices, floor_div(blocks, moved.instances))), floor_div(whole, slices)
    if not moved.again:
        waves = ceil_div(blocks, at_once)
        fetched = floor_div(moved.distinct * (copies * moved.instances + slices * (waves - 1)), moved.instances)
        found = floor_div(
            slices * (waves - 1) * moved.distinct * smaller(capacity, walked), moved.instances * larger(1, walked)
        )
        again = smaller(again, larger(moved.distinct, fetched - found))
    # One instance stays in the cache while it is streamed.
    return pick(moved.distinct <= capacity * moved.instances, smaller(again, copies * moved.distinct), again)


class Dram(NamedTuple):
    """Traffic of a kernel starting with empty caches: bounds of the DRAM traffic, its value for blocks in phase [B].

    `leaving` has the bounds of what leaves the L2, which is the DRAM traffic if no cache is behind.
    """

    low: int
    high: int
    lock_step: int | None
    leaving: tuple[int, int]


def dram(
    demand: KernelWork,
    workload: Attention | VarlenAttention | None,
    packed: bool,
    caches: Caches,
    at_once: int | None,
    fastest: str = "tiles",
) -> Dram:
    """Bound the traffic; compute it for blocks in phase only if all blocks of a grid walk the same tiles."""
    low, requests = demand.distinct_bytes, demand.requested_bytes
    if workload is None:  # no grid over queries and keys
        most = max(low, requests)
        return Dram(low, most, None, (low, most))
    if demand.sequences:
        each = [dram(part, call, packed, caches, at_once, fastest) for part, call in demand.sequences]
        leaving = sum(part.leaving[0] for part in each), sum(part.leaving[1] for part in each)
        return Dram(sum(part.low for part in each), sum(part.high for part in each), None, leaving)
    assert isinstance(workload, Attention)
    again = [moved for moved in demand.moved if moved.requested > moved.distinct]
    if not again:
        return Dram(low, low, low, (low, low))
    if caches.l2 is None or at_once is None:
        return Dram(low, requests, None, (low, requests))
    once = sum(moved.requested for moved in demand.moved if moved.requested == moved.distinct)
    grid = _grid(demand, again, once, workload, packed, at_once, fastest)
    if grid is None:
        kept = _kept(demand, again, caches.l2 / caches.partitions, caches.slices, at_once)
        at_last = kept or (caches.last is not None and _kept(demand, again, caches.last, 1, at_once))
        return Dram(low, low if at_last else requests, None, (low, low if kept else requests))
    return _of_grid(grid, once, requests - once, low, caches, workload.mask == "full")


def _kept(demand: KernelWork, again: list[TensorTraffic], capacity: float, slices: int, at_once: int) -> bool:
    """Check that a cache holds what all running blocks pass over again."""
    if slices > 1 and any(moved.instances < demand.blocks for moved in again):
        return False  # blocks of several slices share an instance
    return sum(moved.distinct / moved.instances for moved in again) * min(at_once, demand.blocks) <= capacity


def _of_grid(grid: SharedTiles, once: int, requested: int, low: int, caches: Caches, alike: bool) -> Dram:
    """Bound the traffic of a grid; bytes that its blocks move once come on top."""
    assert caches.l2 is not None
    least, most = sliced_bytes(grid, caches.l2, caches.slices)
    if caches.partitions > 1:  # each may hold a copy of every tile
        most = sliced_bytes(grid, caches.l2 / caches.partitions, caches.slices)[1]
    least_leaving = max(low, once + min(requested, floor(least)))
    leaving = least_leaving, max(least_leaving, once + min(requested, ceil(most)))
    lowest, highest = leaving
    if caches.last is not None:
        least, most = behind_bytes(grid, most, caches.l2, caches.last, caches.slices)
        lowest = max(low, once + min(requested, floor(least)))
        highest = max(lowest, min(highest, once + min(requested, ceil(most))))
    together = None
    if alike:
        behind = caches.last is not None
        fetched = (
            lock_step_bytes(grid, caches.last or 0) if behind else sliced_lock_step(grid, caches.l2, caches.slices)
        )
        together = min(highest, max(lowest, once + min(requested, round(fetched))))
    return Dram(lowest, highest, together, leaving)


def _grid(
    demand: KernelWork,
    again: list[TensorTraffic],
    once: int,
    workload: Attention,
    packed: bool,
    at_once: int,
    fastest: str,
) -> SharedTiles | None:
    """Describe the blocks that divide the outer tiles of a head as a grid; None for other kernels."""
    if demand.outer is None or demand.inner is None or any(moved.again for moved in again):
        return None
    axis, tile = demand.outer
    seen = spread(workload, axis, tile, demand.inner, packed)
    rows = {"query": workload.q_len * (workload.group if packed else 1), "key": workload.kv_len}
    trips = -(-rows["key" if axis == "query" else "query"] // demand.inner)
    sharers, parts = seen.blocks, demand.parts
    heads = max(1, demand.blocks // (sharers * parts))
    sets, among, run = heads, 1, 1
    instances = min(moved.instances for moved in again)
    own = heads // instances
    if fastest != "tiles" and parts == 1 and instances > workload.batch:
        sets, sharers = heads // max(1, own), sharers * max(1, own)
        among, run = max(1, instances // workload.batch), max(1, own)
    elif workload.batch == 1 and own > 1:  # only then are heads that share keys consecutive
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
        among=among,
        run=run,
        grouped=among > 1 and fastest == "heads of a slice",
    )
