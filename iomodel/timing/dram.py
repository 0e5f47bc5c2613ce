"""Lower and upper bound of the traffic of a kernel behind the caches of a device.

Each byte once <= DRAM traffic <= bytes that leave the L2 <= requests of the thread blocks. Tensors that a kernel moves
once are DRAM traffic; tensors streamed repeatedly by its blocks may be served by the L2 cache
(:mod:`iomodel.timing.l2`, :mod:`iomodel.timing.l2_slices`), or by a last-level cache behind it. The estimate used for
time is in :mod:`iomodel.timing.in_phase`.
"""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from iomodel.timing.balance import spread
from iomodel.timing.in_phase import Caches
from iomodel.timing.kernel_work import KernelWork, TensorTraffic
from iomodel.timing.l2 import SharedTiles, lock_step_bytes
from iomodel.timing.l2_slices import behind_bytes, sliced_bytes, sliced_lock_step
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention


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
    section: int = 1,
) -> Dram:
    """Bound the traffic; compute it for blocks in phase only if all blocks of a grid walk the same tiles.

    The heads of a section take turns. Bounds of sections that do not divide the heads enclose those of heads one after
    the other and those of all heads in turn.
    """
    low, requests = demand.distinct_bytes, demand.requested_bytes
    if workload is None:  # no grid over queries and keys
        most = max(low, requests)
        return Dram(low, most, None, (low, most))
    if demand.sequences:
        each = [dram(part, call, packed, caches, at_once, fastest, section) for part, call in demand.sequences]
        leaving = sum(part.leaving[0] for part in each), sum(part.leaving[1] for part in each)
        return Dram(sum(part.low for part in each), sum(part.high for part in each), None, leaving)
    assert isinstance(workload, Attention)
    again = [moved for moved in demand.moved if moved.requested > moved.distinct]
    if not again:
        return Dram(low, low, low, (low, low))
    if fastest == "heads of a section":
        every = workload.batch * (workload.heads // workload.group if packed else workload.heads)
        if section > 1 and every % min(section, every):
            ends = [dram(demand, workload, packed, caches, at_once, each) for each in ("tiles", "heads")]
            leaving = min(end.leaving[0] for end in ends), max(end.leaving[1] for end in ends)
            return Dram(min(end.low for end in ends), max(end.high for end in ends), None, leaving)
    if caches.l2 is None or at_once is None:
        return Dram(low, requests, None, (low, requests))
    once = sum(moved.requested for moved in demand.moved if moved.requested == moved.distinct)
    grid = _grid(demand, again, once, workload, packed, at_once, fastest, section)
    if grid is None:
        kept = _kept(demand, again, caches.for_all or caches.l2, caches.slices, at_once)
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
    if caches.for_all is not None and caches.for_all < caches.l2:  # partitions hold copies of tiles
        most = sliced_bytes(grid, caches.for_all, caches.slices)[1]
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
    section: int,
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
    if fastest in ("heads", "heads of a slice") and parts == 1 and instances > workload.batch:
        sets, sharers = heads // max(1, own), sharers * max(1, own)
        among, run = max(1, instances // workload.batch), max(1, own)
    elif fastest == "heads of a section" and parts == 1 and section > max(1, own):
        sets, sharers = heads // max(1, own), sharers * max(1, own)
        among, run = min(sets, section // max(1, own)), max(1, own)
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
