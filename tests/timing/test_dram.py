"""Laws of DRAM traffic: waves that share a cache, ends of the interval, kernels in sequence."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm
from iomodel.timing.dram import dram
from iomodel.timing.in_phase import Caches, streamed_bytes
from iomodel.timing.kernel_time import Launched, Setting, kernel_time
from iomodel.timing.kernel_work import KernelWork, TensorTraffic
from iomodel.timing.kernel_work_sum import added, together
from iomodel.timing.l2 import SharedTiles, tile_bytes
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.totals import dram_interval, leaving_interval
from iomodel.timing.work_at_point import demands
from tests.support.inside import PIPELINED, BoundCall, as_device, kind_of, rates

TILES = {"block_q": 64, "block_kv": 32}


def work(w: Any, name: str = "flash2") -> KernelWork:
    """The work of the one kernel of a call."""
    bound = BoundCall.bind(name, w, {})
    (demand,) = demands(algorithm(name), kind_of(w), bound.structure, PIPELINED).at(w, w, bound.options, TILES)
    return demand


def stream(instances: int, blocks: int, distinct: int = 1 << 20) -> KernelWork:
    """A kernel whose blocks all stream one tensor, of so many instances."""
    moved = TensorTraffic("K", distinct * blocks // instances, distinct, instances, False)
    return replace(work(iomodel.Attention(q_len=64, head_dim=64)), moved=(moved,), blocks=blocks, serpentine=False)


@pytest.mark.parametrize("instances", [1, 2, 5, 8])
def test_one_wave_fetches_each_byte_once(instances: int) -> None:
    demand = stream(instances, blocks=40)
    assert streamed_bytes(demand, Caches(1), 40) == demand.distinct_bytes


@pytest.mark.parametrize("instances", [1, 2, 5, 8])
def test_an_instance_that_fits_the_cache_is_fetched_once(instances: int) -> None:
    """The instances are streamed one after the other, so that they need not fit together."""
    demand = stream(instances, blocks=40)
    assert streamed_bytes(demand, Caches(demand.distinct_bytes // instances + 1), 2) == demand.distinct_bytes
    assert streamed_bytes(demand, Caches(demand.distinct_bytes // instances - 1), 2) > demand.distinct_bytes


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_without_room_in_the_cache_the_upper_end_is_what_is_requested(mask: Any) -> None:
    w = iomodel.Attention(heads=3, q_len=1000, head_dim=64, mask=mask)
    demand = work(w)
    found = dram(demand, w, False, Caches(1), 1)
    assert found.high == demand.requested_bytes
    if mask == "causal":
        assert found.low == demand.distinct_bytes
    else:  # blocks that run one after the other find at most one byte of K and V
        walks = 3 * (-(-1000 // 64) - 1)
        assert demand.requested_bytes - walks <= found.low < found.high


def test_the_work_of_sequences_adds_up() -> None:
    parts = [work(iomodel.Attention(q_len=n, head_dim=64)) for n in (500, 1000, 70, 500)]
    whole = added(parts)
    for name in ("flops", "exps", "scores", "staged", "blocks", "trips", "requested_bytes", "distinct_bytes"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    assert whole.footprint == max(part.footprint for part in parts)


def test_sequences_add_up_at_both_ends() -> None:
    calls = [iomodel.Attention(q_len=n, head_dim=64) for n in (500, 1000, 70)]
    parts = [work(call) for call in calls]
    whole = iomodel.VarlenAttention(q_lens=[call.q_len for call in calls], head_dim=64)
    found = dram(together(list(zip(parts, calls, strict=True))), whole, False, Caches(1), 1)
    each = [dram(part, call, False, Caches(1), 1) for part, call in zip(parts, calls, strict=True)]
    assert (found.low, found.high) == tuple(sum(getattr(one, end) for one in each) for end in ("low", "high"))
    assert found.high == sum(part.requested_bytes for part in parts)


@pytest.mark.parametrize(
    ("group", "slots", "capacity"), [(4, 3, 20_000), (4, 5, 100_000), (2, 1, 60_000), (8, 7, 150_000)]
)
def test_heads_that_share_keys_are_one_head_of_more_queries(group: int, slots: int, capacity: int) -> None:
    """Blocks in phase walk the same keys, whether their rows are of one head or of several that share K and V."""
    several = iomodel.Attention(heads=group, kv_heads=1, q_len=256, kv_len=1024, head_dim=64)
    single = iomodel.Attention(q_len=256 * group, kv_len=1024, head_dim=64)
    found = [dram(work(w), w, False, Caches(capacity), slots) for w in (several, single)]
    assert found[0] == found[1]
    assert found[0].lock_step is not None
    assert found[0].low <= found[0].lock_step


def test_a_walk_that_two_blocks_share_is_half_remembered() -> None:
    """Che's equation k T t (1 - (1 - x)^m) = C for m = 2 and C = 3/4 k T t: x = 1/2, and (1 - x)^(m - 1) = 1/2 miss.

    Two sets are live, as a block that is ahead of the other has begun the next set.
    """
    grid = SharedTiles(sets=4, sharers=2, tiles=1000, slots=2)
    fetched, requests, low = 4 * 1000, 4 * 2 * 1000, 4 * 1000
    assert tile_bytes(grid, 1500) == pytest.approx((low, min(requests, fetched + (requests - low) / 2)), rel=1e-6)


def kernel(distinct: int, high: int) -> Any:
    return SimpleNamespace(distinct_bytes=distinct, dram_bytes=(distinct, high), l2_bytes=(distinct, high + 1))


def test_a_cache_can_keep_what_one_kernel_writes_and_the_next_reads() -> None:
    """As many bytes as it holds are neither written back nor read again: twice the capacity between two kernels."""
    capacity = 1000
    assert dram_interval([kernel(capacity, 5000)] * 2, 0, 10_000, capacity) == (0, 10_000)
    assert dram_interval([kernel(capacity, 5000)] * 3, 0, 10_000, capacity)[0] == 0
    assert dram_interval([kernel(3 * capacity, 5000)] * 2, 0, 10_000, capacity) == (4 * capacity, 10_000)
    assert dram_interval([kernel(capacity, 5000)] * 2, 0, 20_000, None) == (2 * capacity, 10_000)
    assert leaving_interval([kernel(3 * capacity, 5000)] * 2, 0, 20_000, capacity) == (4 * capacity, 10_002)


def test_blocks_at_once_count_whether_they_share_an_sm_or_not() -> None:
    w = iomodel.Attention(heads=16, q_len=8192, head_dim=128)
    demand, known = work(w), replace(rates(as_device("a100-sxm4-80gb"), "bf16"), l2_capacity=1 << 20)

    def streamed(units: int, blocks: int) -> int:
        launched = Launched(blocks_per_sm=blocks)
        timed = kernel_time(demand, Setting(replace(known, units=units), PIPELINED, DEFAULT, w), launched)
        return timed.streamed_bytes

    assert streamed(10, 4) == streamed(20, 2) == streamed(40, 1) < streamed(10, 1)


@pytest.mark.parametrize("capacity", [20_000, 300_000, 2_000_000])
@pytest.mark.parametrize(("heads", "kv_heads"), [(8, 8), (8, 4), (6, 6)])
def test_sections_lie_between_heads_one_by_one_and_all_in_turn(capacity: int, heads: int, kv_heads: int) -> None:
    """A section of one head has consecutive blocks; a section of all of them has the heads in turn."""
    w = iomodel.Attention(heads=heads, kv_heads=kv_heads, q_len=512, kv_len=512, head_dim=64)
    demand, caches, slots = work(w), Caches(capacity), 16
    of = {name: dram(demand, w, False, caches, slots, name) for name in ("tiles", "heads")}
    assert dram(demand, w, False, caches, slots, "heads of a section", 1) == of["tiles"]
    assert dram(demand, w, False, caches, slots, "heads of a section", heads) == of["heads"]
    assert dram(demand, w, False, caches, slots, "heads of a section", 2 * heads) == of["heads"]
    some = dram(demand, w, False, caches, slots, "heads of a section", 4)
    assert some.high <= max(one.high for one in of.values())
    if heads == 6:  # two heads are left for the last section
        assert (some.low, some.high) == (min(one.low for one in of.values()), max(one.high for one in of.values()))


def test_copies_in_partitions_raise_the_upper_end_alone() -> None:
    """What all SMs read has the capacity that a benchmark found, or that of one partition."""
    w = iomodel.Attention(heads=8, q_len=4096, kv_len=4096, head_dim=64)
    demand, whole = work(w), 8 * 2**20
    ends = [dram(demand, w, False, Caches(whole, for_all=size), 64, "heads") for size in (whole // 2, 6 * 2**20, whole)]
    assert ends[0].high > ends[1].high > ends[2].high
    assert ends[2] == dram(demand, w, False, Caches(whole), 64, "heads")
    assert len({end.low for end in ends}) == 1


def test_the_capacity_for_all_is_measured_or_that_of_a_partition() -> None:
    measured, none = rates(as_device("h200-sxm"), "bf16"), rates(as_device("h100-pcie"), "bf16")
    assert measured.l2_for_all == 37_000_000
    assert none.l2_capacity is not None
    assert none.l2_for_all == none.l2_capacity // 2
    assert rates(as_device("l4"), "bf16").l2_for_all == rates(as_device("l4"), "bf16").l2_capacity
