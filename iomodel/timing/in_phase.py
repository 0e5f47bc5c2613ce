"""Traffic that leaves each cache where the blocks of a kernel run in phase: the estimates used for time.

In phase, each wave of blocks streams each of its sets, the tiles that some blocks share, once. Consecutive blocks of a
set continue it in the next wave. Sets that take turns are in every wave, and are fetched again by each unless the cache
holds all of them. Numbers may be arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from iomodel.common.arithmetic import anywhere, ceil_div, floor_div, larger, pick, smaller
from iomodel.devices.rates import Rates
from iomodel.nests.execution import Fastest
from iomodel.timing.kernel_work import KernelWork, TensorTraffic


class Caches(NamedTuple):
    """Capacities of the L2, of a cache behind it, and of the L2 for what all SMs read [B]; slices of the L2 [-]."""

    l2: int | None
    slices: int = 1
    last: int | None = None
    for_all: int | None = None

    @classmethod
    def of(cls, rates: Rates) -> Caches:
        """Return the caches of a device."""
        return cls(rates.l2_capacity, rates.l2_slices, rates.llc_capacity, rates.l2_for_all)


class Turns(NamedTuple):
    """Sets that take turns in a grid: calls of the batch, one after the other, and the heads of each [-]."""

    batch: Any = 1
    heads: Any = 1
    grouped: bool = False

    @classmethod
    def of(cls, fastest: Fastest, batch: Any, heads: Any) -> Turns | None:
        """Return the sets of a grid whose heads count fastest; None if the blocks of a head are consecutive."""
        return None if fastest == "tiles" else cls(batch, heads, fastest == "heads of a slice")

    def in_sections(self, section: Any) -> Turns:
        """Return the turns of sections of so many heads, which may be of several calls."""
        every = self.batch * self.heads
        own = smaller(section, every)
        return Turns(ceil_div(every, own), own)


def streamed_bytes(demand: KernelWork, caches: Caches, at_once: Any, turns: Turns | None = None) -> Any:
    """Estimate the DRAM traffic of blocks in phase [B].

    The estimate never falls with a smaller cache or fewer concurrent blocks. Without an L2 cache every request
    goes to DRAM. Waves that walk the keys up and down in turn find those at the turn: all that the cache holds of
    the tensors that they stream, shared out by size.
    """
    if caches.last is None:
        return leaving_bytes(demand, caches, at_once, turns)
    return _behind(demand, caches.l2, caches.last, 1, at_once, turns)


def leaving_bytes(demand: KernelWork, caches: Caches, at_once: Any, turns: Turns | None = None) -> Any:
    """Estimate the traffic that leaves the L2, or all its slices, with blocks in phase [B]."""
    return _behind(demand, caches.l2, caches.l2, caches.slices, at_once, turns)


def _behind(
    demand: KernelWork, l2: int | None, capacity: int | None, slices: int, at_once: Any, turns: Turns | None
) -> Any:
    if demand.streamed is not None:
        return demand.streamed
    if l2 is None or capacity is None or at_once is None:
        return demand.requested_bytes
    if turns is not None and not anywhere(demand.parts > 1):
        return sum(_in_turns(moved, demand.blocks, capacity, slices, at_once, turns) for moved in demand.moved)
    walked: Any = 0
    if demand.serpentine:
        walked = sum(
            pick(moved.requested > moved.distinct, ceil_div(moved.distinct, moved.instances), 0)
            for moved in demand.moved
        )
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


def _in_turns(moved: TensorTraffic, blocks: Any, whole: int, slices: int, at_once: Any, turns: Turns) -> Any:
    if not anywhere(moved.requested > moved.distinct):
        return moved.distinct
    among = larger(1, floor_div(moved.instances, turns.batch))
    own = _of_a_slice(among, turns, slices)
    fetched = moved.requested
    if not moved.again:
        waves = turns.batch * ceil_div(ceil_div(blocks, turns.batch), at_once)
        touched = floor_div(slices * waves * own * moved.requested, blocks)  # blocks of a wave walk equally far
        fetched = smaller(fetched, larger(moved.distinct, touched))
    once = larger(moved.distinct, floor_div(slices * own * moved.distinct, among))
    fits = moved.distinct * own * slices <= whole * moved.instances
    return pick(fits, smaller(fetched, once), fetched)


def _of_a_slice(among: Any, turns: Turns, slices: int) -> Any:
    """Count the sets that the blocks of a slice share [-]."""
    if slices == 1:
        return among
    if turns.grouped:
        return smaller(among, ceil_div(among, slices))
    common: Any = 1
    for parts in range(2, slices + 1):
        if slices % parts == 0:
            common = pick(ceil_div(turns.heads, parts) * parts == turns.heads, parts, common)
    return smaller(among, ceil_div(turns.heads, common))
