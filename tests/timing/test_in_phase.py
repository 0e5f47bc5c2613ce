"""What leaves each cache with blocks in phase, against a simulation of waves, and the time that it takes."""

from __future__ import annotations

from random import Random

import pytest

import iomodel
from iomodel import hardware
from iomodel.timing.in_phase import Caches, Turns, leaving_bytes, streamed_bytes
from tests.support.device_edits import edited
from tests.timing.test_dram import stream

SIZE = 1000


def simulated(batch: int, heads: int, group: int, tiles: int, slots: int, slices: int, held: int, grouped: bool) -> int:
    """Bytes fetched by waves of a grid that counts heads first, then tiles, then the calls of the batch.

    A slice keeps the sets of a call, of SIZE bytes each, if it holds `held` of them and the call has no more there.
    """
    fetched = 0
    order = [(call, tile, head) for call in range(batch) for tile in range(tiles) for head in range(heads)]
    if grouped:  # slice i has the heads from i times its share on
        own = heads // slices
        order = [(call, tile, head % slices * own + head // slices) for call, tile, head in order]
    sets = [{} for _ in range(slices)]
    for number, (call, _, head) in enumerate(order):
        sets[number % slices].setdefault(call, set()).add(head // group)
    kept: set[tuple[int, int, int]] = set()
    for call in range(batch):  # waves of one call
        first = call * tiles * heads
        for start in range(0, tiles * heads, slots):
            wave = range(first + start, first + min(start + slots, tiles * heads))
            for where, own_set in {(number % slices, order[number][2] // group) for number in wave}:
                fits = len(sets[where][call]) <= held
                if not fits or (where, call, own_set) not in kept:
                    fetched += SIZE
                kept.add((where, call, own_set))
    return fetched


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_sets_that_take_turns_leave_what_waves_fetch(seed: int, grouped: bool) -> None:
    """Equal where a wave has whole turns; heads of a slice share out evenly."""
    draw = Random(seed)
    slices, group, batch = draw.choice([1, 2, 4]), draw.choice([1, 2, 4]), draw.choice([1, 2, 3])
    heads = slices * group * draw.choice([1, 2, 3])
    turns, tiles = draw.choice([1, 2, 3]), draw.choice([1, 2, 5, 6])
    slots, held = heads * turns, draw.choice([0, 2, 100])
    demand = stream(batch * heads // group, batch * heads * tiles, SIZE * batch * heads // group)
    found = leaving_bytes(
        demand,
        Caches(max(1, held * SIZE * slices), slices),
        slots,
        Turns(batch, heads, grouped),
    )
    assert found == simulated(batch, heads, group, tiles, slots, slices, held, grouped and slices > 1)


def test_a_cache_behind_the_slices_meets_all_heads_at_once() -> None:
    """Eight heads in turn on two slices: each slice passes over its four, the cache behind over all eight."""
    demand = stream(8, 8 * 10, 8 * SIZE)
    caches, turns = Caches(4 * SIZE, 2, last=8 * SIZE - 1), Turns(1, 8)
    assert leaving_bytes(demand, caches, 16, turns) == 5 * 8 * SIZE  # two slices of two sets each do not hold four
    assert streamed_bytes(demand, caches, 16, turns) == 5 * 8 * SIZE
    assert streamed_bytes(demand, caches._replace(last=8 * SIZE), 16, turns) == 8 * SIZE


CALL = iomodel.Attention(heads=64, q_len=8192, head_dim=128, dtype="bf16")
TILES = {"block_q": 128, "block_kv": 128}


def test_what_leaves_the_slices_takes_the_time_of_the_last_cache() -> None:
    device = hardware("mi300x")
    slow = edited(device, {"measured.llc_bandwidth": 2e11})
    times = [iomodel.estimate("flash2", CALL, one, TILES, implementation="ck") for one in (device, slow)]
    leaving = [time.breakdown["llc"] * rate for time, rate in zip(times, (1.19e13, 2e11), strict=True)]
    assert leaving[0] == pytest.approx(leaving[1])
    assert times[0].limited_by == "matrix"
    assert times[1].limited_by == "llc"
    start = times[1].parameters.block_clocks / 2 / times[1].rates.clock  # of the first blocks
    assert times[1].seconds == pytest.approx(times[1].breakdown["llc"] + times[1].breakdown["launch"] + start)
    low, high = times[0].l2_bytes
    assert low <= leaving[0] <= high


def test_a_last_cache_without_a_bandwidth_is_left_out() -> None:
    device = edited(hardware("mi300x"), {"memory.llc.bandwidth": None, "measured.llc_bandwidth": None})
    found = iomodel.estimate("flash2", CALL, device, TILES, implementation="ck")
    assert "llc" not in found.breakdown
    assert "the time of the last-level cache (no bandwidth on file)" in found.left_out


def test_a_peak_alone_is_taken_at_the_declared_share() -> None:
    device = edited(hardware("mi300x"), {"measured.llc_bandwidth": None})
    found = iomodel.estimate("flash2", CALL, device, TILES, implementation="ck")
    assert any("last-level cache at 69 %" in text for text in found.assumed)


def test_the_order_of_the_grid_decides_what_leaves_the_slices() -> None:
    """A launch of many heads: consecutive blocks of a head are in all slices, the blocks of a head in turn in one."""
    demand = stream(64, 64 * 64, 64 * SIZE)
    caches = Caches(8 * 8 * SIZE, 8)  # a slice holds the eight heads that it has
    assert leaving_bytes(demand, caches, 256) == 8 * 64 * SIZE
    assert leaving_bytes(demand, caches, 256, Turns(1, 64)) == 64 * SIZE
