"""The simulated L2: cases by hand, a slow machine that must agree with it, and laws of every cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import l2_simulation
from tests.support.l2_simulation import (
    TIMINGS,
    Block,
    Cache,
    Pace,
    Timing,
    Traffic,
    causal,
    draw,
    full,
    schedule,
    simulate,
    simulated,
    traffic,
)

LOCK = TIMINGS["lock step"]


class Stack:
    """What was touched, latest first: a datum is in the cache if what was touched since, and it, fit."""

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.data: list[tuple[str, float]] = []

    def touch(self, name: str, size: float) -> bool:
        names = [other for other, _ in self.data]
        place = names.index(name) if name in names else None
        hit = place is not None and sum(size for _, size in self.data[: place + 1]) <= self.capacity
        if place is not None:
            del self.data[place]
        self.data.insert(0, (name, size))
        return hit


def brute_force(blocks: Sequence[Block], cache: Cache, pace: Pace) -> Traffic:
    """The same machine without a heap, a sorted trace or evictions: what is due first, first."""
    stack, misses, fetched = Stack(cache.capacity), 0, (-1.0, set[str]())
    slots: list[list[Any]] = [
        [start, -1, 0] for start in pace.starts
    ]  # when it is due, with which block, and at which step
    waiting = list(range(len(blocks)))
    while any(block >= 0 for _, block, _ in slots) or waiting:
        slot = min((s for s in slots if s[1] >= 0 or waiting), key=lambda s: (s[0], s[1]))
        now, number, step = slot
        if now != fetched[0]:
            fetched = (now, set())
        if number >= 0 and step == 0:
            stack.touch(f"queries {number}", cache.q)
        if number >= 0 and step < len(blocks[number].tiles):
            tile = f"set {blocks[number].kv} tile {blocks[number].tiles[step]}"
            misses += not stack.touch(tile, cache.tile) and tile not in fetched[1]
            fetched[1].add(tile)
            slot[:] = [now + pace.steps[number][step], number, step + 1]
        else:
            if number >= 0:
                stack.touch(f"output {number}", cache.o)
            slot[1:] = [waiting.pop(0) if waiting else -1, 0]
    return traffic(blocks, cache, misses)


walks = st.lists(st.integers(0, 5), max_size=6, unique=True) | st.integers(0, 6).map(range)
grids = st.lists(st.builds(Block, st.integers(0, 3), walks), max_size=12)
caches = st.builds(Cache, st.integers(0, 40), st.sampled_from([1, 2, 4]), st.integers(0, 3), st.integers(0, 3))
timings = st.sampled_from([*TIMINGS.values(), Timing(0.3, 0.2, 2.0)])
slots_, seeds = st.integers(1, 6), st.integers(0, 2**32)


def at_pace(blocks: Sequence[Block], slots: int, timing: Timing, seed: int) -> Pace:
    return draw(blocks, slots, timing, np.random.default_rng(seed))


def tiles_touched(blocks: Sequence[Block]) -> int:
    return len({(block.kv, tile) for block in blocks for tile in block.tiles})


def test_the_witness_knows_nothing_of_the_package() -> None:
    assert "iomodel" not in Path(l2_simulation.__file__).read_text()


@pytest.mark.parametrize(
    ("capacity", "misses"),
    [(3, 3), (2, 6)],  # tiles 0 1 2 0 1 2: a cache of two drops each tile just before it is asked for
)
def test_one_slot_walks_twice(capacity: int, misses: int) -> None:
    assert simulated(full(1, 2, 3), 1, Cache(capacity), LOCK).kv_misses == misses


def test_walking_back_meets_the_tiles_that_are_still_there() -> None:
    blocks = [Block(0, [0, 1, 2]), Block(0, [2, 1, 0])]
    assert simulated(blocks, 1, Cache(2), LOCK).kv_misses == 4  # 0 1 2, then 2 and 1 hit


@pytest.mark.parametrize("capacity", [0, 1])
def test_blocks_in_lock_step_fetch_together(capacity: int) -> None:
    assert simulated(full(2, 2, 3), 4, Cache(capacity), LOCK).kv_misses == 6


@pytest.mark.parametrize(
    ("capacity", "misses"),
    [(1, 6), (2, 4), (3, 3)],  # 0, then 1 0, then 2 1, then 2: a cache of two drops 1 for 2 as 0 was asked for later
)
def test_a_block_one_step_behind_needs_room_for_the_step_between(capacity: int, misses: int) -> None:
    late = Pace([0, 1], [[1, 1, 1], [1, 1, 1]])
    assert simulate(full(1, 2, 3), Cache(capacity), late).kv_misses == misses


@pytest.mark.parametrize(
    ("capacity", "misses"),
    [(3, 4), (4, 2)],  # q t0 t1 o, q t0 t1 o: since t0, the cache has seen t0 t1 o q
)
def test_queries_and_output_take_room(capacity: int, misses: int) -> None:
    found = simulated(full(1, 2, 2), 1, Cache(capacity, q=1, o=1), LOCK)
    assert (found.kv_misses, found.q_reads, found.o_writes, found.private) == (misses, 2, 2, 4)


def test_output_and_queries_have_their_own_sizes() -> None:
    room = {
        (q, o): [simulated(full(1, 2, 2), 1, Cache(c, 2, q, o), LOCK).kv_misses for c in (4, 6, 7, 8)]
        for q, o in ((3, 0), (0, 3), (2, 0), (0, 2), (1, 2))
    }  # 4 for the two tiles, and q + o
    assert room == {
        (3, 0): [8, 8, 4, 4],
        (0, 3): [8, 8, 4, 4],
        (2, 0): [8, 4, 4, 4],
        (0, 2): [8, 4, 4, 4],
        (1, 2): [8, 8, 4, 4],
    }


@pytest.mark.parametrize(("capacity", "misses"), [(2, 3), (3, 2)])
def test_queries_are_read_when_a_block_starts(capacity: int, misses: int) -> None:
    """Between the two visits of one block a second one starts, and does not end."""
    blocks, pace = [Block(0, [0, 0]), Block(1, [0])], Pace([0, 0.5], [[1, 1], [5]])
    assert simulate(blocks, Cache(capacity, q=1, o=3), pace).kv_misses == misses


def test_a_datum_larger_than_the_cache_empties_it() -> None:
    assert simulated(full(1, 2, 2), 1, Cache(3, q=4), LOCK).kv_misses == 4


def test_two_waves_share_a_set() -> None:
    """Sets a a b, then b: two slots run a a, then b b; three run a a b, then b."""
    blocks = [Block(0, range(2)), Block(0, range(2)), Block(1, range(2)), Block(1, range(2))]
    assert simulated(blocks, 2, Cache(0), LOCK).kv_misses == 4
    # a0 b0 a1 b1, b0 b1: b0 comes back over a1 b1, b1 over b0
    assert [simulated(blocks, 3, Cache(c), LOCK).kv_misses for c in (1, 2, 3)] == [6, 5, 4]


def test_a_slot_takes_the_next_block_when_its_own_ends() -> None:
    blocks = [Block(0, range(n)) for n in (3, 1, 0, 1, 2)]
    begins = [instants[0] for instants in schedule(at_pace(blocks, 2, LOCK, 0))]
    assert begins == [0, 0, 1, 1, 2]
    assert [instants[0] for instants in schedule(Pace([7, 9, 2, 3], [[1]] * 5))] == [2, 3, 3, 4, 4]


def test_the_sum_of_sizes() -> None:
    found = simulated(full(2, 3, 5), 3, Cache(20, tile=2, q=1, o=3), LOCK)
    assert found == Traffic(kv_misses=20, kv_accesses=60, q_reads=6, o_writes=18)
    assert found.hit_rate == pytest.approx(2 / 3)
    assert simulated([], 3, Cache(20), LOCK).hit_rate == 0


def test_masked_grids() -> None:
    assert [list(b.tiles) for b in causal(1, 1, 2, 4)] == [[0, 1], [0, 1, 2, 3]]
    assert [list(b.tiles) for b in causal(1, 1, 4, 2)] == [[0], [0], [0, 1], [0, 1]]
    assert [len(b.tiles) for b in causal(1, 2, 2, 4, descending=True)] == [4, 2, 4, 2]
    assert [list(b.tiles) for b in causal(1, 1, 3, 3, window=2)] == [[0], [0, 1], [1, 2]]
    assert [b.kv for b in causal(2, 2, 2, 4)] == [0, 0, 0, 0, 1, 1, 1, 1]


@given(grid=grids, slots=slots_, timing=timings, seed=seeds)
def test_a_pace_keeps_to_its_timing(grid: list[Block], slots: int, timing: Timing, seed: int) -> None:
    pace = at_pace(grid, slots, timing, seed)
    longest = max((len(block.tiles) for block in grid), default=0)
    assert all(0 <= start <= timing.start * longest for start in pace.starts)
    for block, steps in zip(grid, pace.steps, strict=True):
        assert len(steps) == len(block.tiles)
        assert all(abs(step - 1) <= (1 + timing.step) * (1 + timing.speed) - 1 + 1e-12 for step in steps)


def test_a_pace_goes_as_far_as_its_timing_lets_it() -> None:
    def spread(data: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
        return round(min(data), 2), round(float(np.mean(data)), 2), round(max(data), 2)

    blocks = full(50, 40, 50)
    each, whole, late = (at_pace(blocks, 5000, timing, 1) for timing in (Timing(0.3), Timing(0, 0.2), Timing(start=1)))
    assert spread(np.concatenate(each.steps)) == (0.7, 1.0, 1.3)
    assert spread([float(np.mean(steps)) for steps in each.steps]) == pytest.approx(
        (1, 1, 1), abs=0.1
    )  # each step anew
    assert spread([float(np.mean(steps)) for steps in whole.steps]) == pytest.approx(
        (0.8, 1, 1.2), abs=0.011
    )  # all steps of a block alike
    assert spread(late.starts) == pytest.approx((0, 25, 50), abs=0.5)
    assert list(late.starts) == at_pace(blocks, 5000, Timing(start=1), 1).starts
    assert list(late.starts) != at_pace(blocks, 5000, Timing(start=1), 2).starts


@given(grid=grids, slots=slots_, cache=caches, timing=timings, seed=seeds)
def test_a_machine_without_a_heap_agrees(
    grid: list[Block], slots: int, cache: Cache, timing: Timing, seed: int
) -> None:
    pace = at_pace(grid, slots, timing, seed)
    assert simulate(grid, cache, pace) == brute_force(grid, cache, pace)


@pytest.mark.parametrize("capacity", range(0, 60, 6))
def test_a_machine_without_a_heap_agrees_on_many_accesses_at_an_instant(capacity: int) -> None:
    grid, cache = full(5, 7, 6), Cache(capacity, 1, 1, 1)
    pace = at_pace(grid, 8, LOCK, 0)
    assert simulate(grid, cache, pace) == brute_force(grid, cache, pace)


@given(grid=grids, slots=slots_, cache=caches, timing=timings, seed=seeds)
def test_misses_lie_between_the_tiles_and_the_accesses(
    grid: list[Block], slots: int, cache: Cache, timing: Timing, seed: int
) -> None:
    found = simulated(grid, slots, cache, timing, seed)
    assert cache.tile * tiles_touched(grid) <= found.kv_misses <= found.kv_accesses


@given(grid=grids, slots=slots_, cache=caches, timing=timings, seed=seeds)
def test_a_boundless_cache_misses_each_tile_once(
    grid: list[Block], slots: int, cache: Cache, timing: Timing, seed: int
) -> None:
    boundless = Cache(float("inf"), cache.tile, cache.q, cache.o)
    assert simulated(grid, slots, boundless, timing, seed).kv_misses == cache.tile * tiles_touched(grid)


@given(grid=grids, slots=slots_, cache=caches, timing=timings, seed=seeds, more=st.integers(0, 20))
def test_misses_never_rise_with_the_capacity(
    grid: list[Block], slots: int, cache: Cache, timing: Timing, seed: int, more: int
) -> None:
    larger = Cache(cache.capacity + more, cache.tile, cache.q, cache.o)
    assert (
        simulated(grid, slots, larger, timing, seed).kv_misses <= simulated(grid, slots, cache, timing, seed).kv_misses
    )


@given(sets=st.integers(1, 6), sharers=st.integers(1, 9), tiles=st.integers(1, 6), slots=st.integers(1, 12))
def test_in_lock_step_a_wave_fetches_a_set_once(sets: int, sharers: int, tiles: int, slots: int) -> None:
    blocks = full(sets, sharers, tiles)
    waves = {(number // slots, block.kv) for number, block in enumerate(blocks)}
    assert simulated(blocks, slots, Cache(0), LOCK).kv_misses == tiles * len(waves)


@given(grid=grids, slots=slots_, cache=caches, timing=timings, seed=seeds, factor=st.integers(1, 5))
def test_the_unit_of_size_does_not_matter(
    grid: list[Block], slots: int, cache: Cache, timing: Timing, seed: int, factor: int
) -> None:
    scaled = Cache(*(factor * size for size in (cache.capacity, cache.tile, cache.q, cache.o)))
    one, other = (simulated(grid, slots, c, timing, seed) for c in (cache, scaled))
    assert other.kv_misses == factor * one.kv_misses
