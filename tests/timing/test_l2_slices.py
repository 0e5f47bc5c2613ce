"""Private slices of an L2, and a cache behind them, against a simulation that shares nothing with the bounds."""

from __future__ import annotations

from dataclasses import replace
from math import exp, gcd, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.timing.l2 import SharedTiles, lock_step_bytes, tile_bytes
from iomodel.timing.l2_slices import behind_bytes, in_slice, sliced_bytes, sliced_lock_step
from tests.support.l2_simulation import TIMINGS, Block, Cache, causal, full, in_turns, simulate_levels

LOCK_STEP = TIMINGS["lock step"]


def cache(grid: SharedTiles, capacity: float) -> Cache:
    return Cache(capacity, grid.tile, grid.queries, grid.output)


@given(
    sets=st.integers(1, 6),
    sharers=st.integers(1, 6),
    tiles=st.integers(1, 12),
    slots=st.integers(1, 8),
    slices=st.integers(1, 5),
    room=st.floats(0, 1.2),
)
def test_consecutive_blocks_in_phase_are_counted_exactly(
    sets: int, sharers: int, tiles: int, slots: int, slices: int, room: float
) -> None:
    grid = SharedTiles(sets, sharers * slices, tiles, slots * slices, 4, 3, 1)
    capacity = slices * int(room * sets * (tiles * 4 + sharers * 4))
    seen, _ = simulate_levels(full(sets, grid.sharers, tiles), grid.slots, cache(grid, capacity), slices, 0, LOCK_STEP)
    assert sliced_lock_step(grid, capacity, slices) == seen


@given(
    among=st.integers(2, 6),
    groups=st.integers(1, 3),
    rows=st.integers(1, 4),
    waves=st.integers(1, 3),
    tiles=st.integers(1, 12),
    slices=st.integers(1, 3),
    room=st.floats(0, 1.5),
)
def test_sets_that_take_turns_in_phase_are_counted_exactly(
    among: int, groups: int, rows: int, waves: int, tiles: int, slices: int, room: float
) -> None:
    """A wave has whole turns of the sets of its slice, and the sets of the next turns start with a wave."""
    heads = among * slices
    grid = SharedTiles(heads * groups, rows * waves, tiles, heads * rows, 4, among=heads)
    capacity = slices * int(room * among * tiles * 4)
    blocks = in_turns(grid.sets, heads, 1, grid.sharers, tiles)
    seen, _ = simulate_levels(blocks, grid.slots, cache(grid, capacity), slices, 0, LOCK_STEP)
    assert sliced_lock_step(grid, capacity, slices) == seen


@given(
    among=st.integers(2, 40),
    run=st.integers(1, 4),
    rows=st.integers(1, 6),
    batch=st.integers(1, 3),
    s=st.integers(1, 9),
)
def test_a_slice_has_the_sets_of_its_blocks(among: int, run: int, rows: int, batch: int, s: int) -> None:
    grid = SharedTiles(among * batch, rows * run, 3, 16 * s, among=among, run=run)
    blocks = in_turns(grid.sets, among, run, rows, 3)
    sets = [{block.kv for block in blocks[part::s]} for part in range(s)]
    most = batch * in_slice(grid, s).among
    assert max(map(len, sets)) <= most
    if rows >= s // gcd(among * run, s) and (run == 1 or run % s == 0):
        assert min(map(len, sets)) == most


def random_case(rng: np.random.Generator, steps: int = 8_000) -> tuple[SharedTiles, list[Block], float, int]:
    """A grid of consecutive blocks or of sets that take turns, with a capacity around what is live in the slices."""
    while True:
        among, run = int(rng.choice([1, 1, 2, 4, 8, 12, 16])), int(rng.choice([1, 1, 2, 8]))
        groups, rows = (int(exp(rng.uniform(0, log(most)))) for most in (30 if among == 1 else 3, 120))
        tiles = int(exp(rng.uniform(0, log(200))))
        sets, sharers = among * groups, rows * run
        if 4 <= sets * sharers * tiles <= steps:
            break
    slices = int(rng.choice([2, 4, 6, 8]))
    slots = slices * int(exp(rng.uniform(0, log(40))))
    queries, output = (int(size) for size in rng.integers(0, 17, 2) * rng.integers(0, 2, 2))
    order = str(rng.choice(["full", "ascending", "descending"]))
    if among > 1:
        blocks = in_turns(sets, among, run, rows, tiles, order)
    elif order == "full":
        blocks = full(sets, sharers, tiles)
    else:
        blocks = causal(sets, run, rows, tiles, descending=order == "descending")
    asked = 8.0 * sum(len(block.tiles) for block in blocks)
    runs = run if among > 1 else 1
    grid = SharedTiles(sets, sharers, tiles, slots, 8, queries, output, asked, among=among, run=runs)
    own = in_slice(grid, slices)
    needed = slices * (8 * tiles * own.live + (queries + output) * min(own.slots, own.blocks))
    return grid, blocks, needed * float(rng.choice([1, exp(rng.uniform(log(0.02), log(3)))])), slices


def test_the_intervals_contain_what_leaves_the_slices_and_the_cache_behind() -> None:
    """In at least 99 of 100 random cases, over all timings and orders; never below the lower ends."""
    rng, inside, every = np.random.default_rng(0), 0, 0
    for number in range(100):
        grid, blocks, capacity, slices = random_case(rng)
        last = capacity * float(exp(rng.uniform(log(0.5), log(16))))
        low, high = sliced_bytes(grid, capacity, slices)
        least, most = behind_bytes(grid, high, capacity, last, slices)
        for name, timing in TIMINGS.items():
            seen, behind = simulate_levels(blocks, grid.slots, cache(grid, capacity), slices, last, timing, seed=number)
            assert low <= seen * (1 + 1e-9), name
            assert least <= behind * (1 + 1e-9), name
            inside += (seen <= high * (1 + 1e-9)) + (behind <= most * (1 + 1e-9))
            every += 2
    assert inside >= 0.99 * every


def test_one_slice_is_one_cache() -> None:
    grid = SharedTiles(5, 7, 11, 13, 2, 3, 1)
    assert in_slice(grid, 1) == grid
    assert sliced_bytes(grid, 50, 1) == tile_bytes(grid, 50)
    assert sliced_lock_step(grid, 50, 1) == lock_step_bytes(grid, 50)


def test_a_set_whose_blocks_are_few_is_fetched_by_as_many_slices() -> None:
    grid = SharedTiles(sets=10, sharers=2, tiles=5, slots=80)
    assert sliced_bytes(grid, 1e9, 8) == (10 * 2 * 5, 10 * 2 * 5)


def renumbered(grid: SharedTiles, slices: int) -> list[Block]:
    """The blocks of sets that take turns, of which each slice has those of consecutive heads."""
    heads = grid.among * grid.run
    return [
        Block(first + (turn % slices * (heads // slices) + turn // slices) // grid.run, range(grid.tiles))
        for first in range(0, grid.sets, grid.among)
        for _ in range(grid.sharers // grid.run)
        for turn in range(heads)
    ]


@given(
    own=st.integers(1, 6),
    run=st.integers(1, 8),
    rows=st.integers(1, 5),
    batch=st.integers(1, 2),
    slices=st.integers(2, 8),
    slots=st.integers(1, 6),
    room=st.floats(0, 1.5),
)
def test_renumbered_heads(own: int, run: int, rows: int, batch: int, slices: int, slots: int, room: float) -> None:
    among = own * slices if own * slices % run else own * slices // run
    grid = SharedTiles(among * batch, rows * run, 6, slots * slices, 4, among=among, run=run, grouped=True)
    if among == 1 or among * run % slices:
        return
    capacity = room * slices * in_slice(grid, slices).live * 6 * 4
    low, high = sliced_bytes(grid, capacity, slices)
    blocks = renumbered(grid, slices)
    sets = [{block.kv for block in blocks[part::slices]} for part in range(slices)]
    assert max(map(len, sets)) <= batch * in_slice(grid, slices).among
    for timing in ("lock step", "jitter", "speed 20 %"):
        seen, _ = simulate_levels(blocks, grid.slots, cache(grid, capacity), slices, 0, TIMINGS[timing])
        assert low <= seen * (1 + 1e-9)
        if capacity >= slices * 6 * 4 * len(sets[0]):
            assert seen <= high * (1 + 1e-9)


@pytest.mark.parametrize("device", ["mi300x", "mi355x"])
def test_the_order_of_blocks_decides_what_leaves_the_slices(device: str) -> None:
    """With long heads each slice fetches all of consecutive blocks, and each wave those of heads that take turns."""
    w = iomodel.Attention(heads=64, q_len=65_536, head_dim=128, dtype="bf16")
    tiles, keys = {"block_q": 128, "block_kv": 128}, 2 * 64 * 65_536 * 128 * 2
    ck = iomodel.kernels.implementation("flash2", "ck")
    execution = {"forward": replace(ck.execution["forward"], fastest="tiles")}
    found = {
        name: iomodel.estimate("flash2", w, device, tiles, implementation=kernels, packed=False)
        for name, kernels in (("heads", ck), ("tiles", replace(ck, execution=execution)), ("slice", "triton-amd"))
    }
    for e in found.values():
        assert e.dram_bytes[0] <= e.l2_bytes[0]
        assert e.dram_bytes[1] <= e.l2_bytes[1] <= e.requested_bytes
        assert "leaving the L2, at most" in str(e)
    assert found["tiles"].l2_bytes[0] >= 8 * keys
    assert found["heads"].l2_bytes[0] > found["tiles"].l2_bytes[0]
    for name in ("heads", "slice"):  # K and V of a head fit the last cache, those of all heads do not
        together = found[name].lock_step_bytes
        assert together is not None
        assert together > 10 * keys
    assert found["tiles"].lock_step_bytes == pytest.approx(2 * keys, rel=0.01)


def test_renumbered_heads_that_share_keys_share_a_slice() -> None:
    """Eight groups of eight heads on eight slices: each has the keys of one, which its heads share."""
    w = iomodel.Attention(heads=64, kv_heads=8, q_len=4096, head_dim=128, dtype="bf16")
    tiles = {"block_q": 128, "block_kv": 128}
    once, eight_times = (
        iomodel.estimate("flash2", w, "mi300x", tiles, implementation=name, packed=False)
        for name in ("triton-amd", "ck")
    )
    assert once.l2_bytes[0] == once.dram_bytes[0]
    assert eight_times.l2_bytes[0] - once.l2_bytes[0] == 7 * 2 * 8 * 4096 * 128 * 2
