"""Hold the L2 model against a simulated cache: exact in lock step, and how often the interval contains what drifts.

    python benchmarks/l2.py [--grids 200] [--seed 1] [--small | --slices | --drift]

Grids as of GPUs: 40 to 304 SMs, one to three blocks each, an L2 of 4 to 126 MB, head dimensions 64 to 256, 512 to 64k
tokens, small enough to simulate; a third of them each without a mask, and causal with key tiles in either order.
With `--small`, grids that no GPU runs: down to one slot and one tile, heads that share a set, with and without private
data, in a cache around the size of what is live. With `--slices`, what leaves two to eight private slices of an L2, and
a cache behind them, for consecutive blocks of a set and for sets that take turns. With `--drift`, what leaves the
slices of an MI355X for the two grids of `flydsl` in `tests/measured/bytes.csv`, at several degrees of drift (minutes).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iomodel.timing.l2 import SharedTiles, lock_step_bytes, tile_bytes
from iomodel.timing.l2_slices import behind_bytes, sliced_bytes
from tests.support.l2_simulation import (
    TIMINGS,
    Block,
    Cache,
    Timing,
    causal,
    draw,
    full,
    in_turns,
    simulate,
    simulate_levels,
    simulated,
)
from tests.timing.test_l2_slices import random_case

ORDERS = ("full", "ascending", "descending")


def case(rng: np.random.Generator, order: str, steps: int = 60_000) -> tuple[SharedTiles, list[Block], float]:
    """A grid, its blocks, and the capacity of the L2 [B]."""
    while True:
        head_dim, tokens = int(rng.choice([64, 128, 256])), int(2 ** rng.uniform(9, 16))
        rows, keys = int(rng.choice([64, 128])), int(rng.choice([32, 64, 128]))
        sharers, tiles = -(-tokens // rows), -(-tokens // keys)
        heads = int(2 ** rng.uniform(0, 8))
        if heads * sharers * tiles <= steps:
            break
    slots = int(rng.integers(40, 305) * rng.integers(1, 4))
    capacity = float(rng.choice([4, 6, 25, 40, 50, 60, 126])) * 2**20 * rng.choice([1, 1, 0.25])
    blocks = full(heads, sharers, tiles)
    if order != "full":
        blocks = causal(heads, 1, sharers, tiles, descending=order == "descending")
    tile = float(2 * keys * head_dim * 2)
    own = float(rows * head_dim * 2)
    asked = tile * sum(len(block.tiles) for block in blocks)
    return SharedTiles(heads, sharers, tiles, slots, tile, own, own, asked), blocks, capacity


def small_case(rng: np.random.Generator, order: str, steps: int = 60_000) -> tuple[SharedTiles, list[Block], float]:
    """A grid of another shape, its blocks, and the capacity of the cache [-]."""
    while True:
        sets, heads, rows, tiles = (int(np.exp(rng.uniform(0, np.log(most)))) for most in (40, 8, 40, 100))
        if 4 <= sets * heads * rows * tiles <= steps:
            break
    slots = int(np.exp(rng.uniform(0, np.log(80))))
    queries, output = (float(size) for size in rng.choice([0, 0, 1, 8], 2))
    blocks = full(sets, heads * rows, tiles)
    if order != "full":
        blocks = causal(sets, heads, rows, tiles, descending=order == "descending")
    asked = None if order == "full" else 8.0 * sum(len(block.tiles) for block in blocks)
    grid = SharedTiles(sets, heads * rows, tiles, slots, 8.0, queries, output, asked)
    live = 8 * tiles * max(wave.sets for wave in grid.waves)
    return grid, blocks, live * float(rng.choice([1, np.exp(rng.uniform(np.log(0.05), np.log(3)))], p=[0.25, 0.75]))


def sliced(grids: int, seed: int) -> None:
    """Count how often the intervals contain what leaves the slices, and the cache behind them."""
    rng = np.random.default_rng(seed)
    inside, below = {"slices": 0, "cache behind": 0}, 0
    widths: dict[str, list[float]] = {level: [] for level in inside}
    for number in range(grids):
        grid, blocks, capacity, slices = random_case(rng, steps=20_000)
        last = capacity * float(np.exp(rng.uniform(np.log(0.5), np.log(16))))
        low, high = sliced_bytes(grid, capacity, slices)
        ends = {"slices": (low, high), "cache behind": behind_bytes(grid, high, capacity, last, slices)}
        for level, (bottom, top) in ends.items():
            widths[level].append(top / bottom)
        for timing in TIMINGS.values():
            cache = Cache(capacity, grid.tile, grid.queries, grid.output)
            found = simulate_levels(blocks, grid.slots, cache, slices, last, timing, seed=number)
            for seen, (level, (bottom, top)) in zip(found, ends.items(), strict=True):
                below += seen < bottom * (1 - 1e-9)
                inside[level] += bottom * (1 - 1e-9) <= seen <= top * (1 + 1e-9)
    runs = grids * len(TIMINGS)
    for level, done in inside.items():
        quantiles = ", ".join(f"{np.quantile(widths[level], q):.2f}" for q in (0.5, 0.75, 0.9))
        print(f"{level}: {done} of {runs} runs inside; high / low at 50, 75, 90 %: {quantiles}")
    print(f"below a lower end: {below} runs")


def drifted(seed: int) -> None:
    """Simulate one of eight slices of 4 MiB, on 32 slots; 64 heads of 65,536 tokens and head dimension 128 [GB]."""
    cache = Cache(4 * 2**20, tile=2 * 64 * 128 * 2, q=256 * 128 * 2, o=256 * 128 * 2)
    grids = {"heads fastest": in_turns(8, 8, 1, 256, 1024), "tiles fastest": full(64, 32, 1024)}
    timings = {"lock step": Timing(), "steps 30 %": Timing(step=0.3)}
    timings |= {f"speeds {share} %": Timing(speed=share / 100) for share in (0.2, 0.5, 1, 2, 5)}
    for name, timing in timings.items():
        found = {}
        for order, blocks in grids.items():
            seen = simulate(blocks, cache, draw(blocks, 32, timing, np.random.default_rng(seed)))
            found[order] = f"{8 * (seen.kv_misses + seen.private) / 1e9:,.1f} GB"
        print(f"{name:14}", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--slices", action="store_true")
    parser.add_argument("--drift", action="store_true")
    given = parser.parse_args()
    if given.drift:
        drifted(given.seed)
        return
    if given.slices:
        sliced(given.grids, given.seed)
        return
    rng = np.random.default_rng(given.seed)
    worst, widths = 0.0, []
    inside = {(name, order): [0, 0] for name in TIMINGS for order in ORDERS}
    for number in range(given.grids):
        order = ORDERS[number % 3]
        grid, blocks, capacity = (small_case if given.small else case)(rng, order)
        low, high = tile_bytes(grid, capacity)
        widths.append(high / low)
        for name, timing in TIMINGS.items():
            seen = simulated(
                blocks, grid.slots, Cache(capacity, grid.tile, grid.queries, grid.output), timing, seed=number
            ).kv_misses
            counts = inside[name, order]
            counts[0] += low <= seen <= high * (1 + 1e-9)
            counts[1] += 1
            if name == "lock step" and order == "full":
                worst = max(worst, abs(lock_step_bytes(grid, capacity) / seen - 1))
    print(f"lock step, no mask: worst error {worst:.1%}")
    print(f"{'inside the interval':20}" + "".join(f"{order:>12}" for order in ORDERS))
    for name in TIMINGS:
        shares = (inside[name, order] for order in ORDERS)
        print(f"{name:20}" + "".join(f"{done / max(1, every):12.1%}" for done, every in shares))
    done, every = (sum(counts[i] for counts in inside.values()) for i in (0, 1))
    quantiles = ", ".join(f"{np.quantile(widths, q):.2f}" for q in (0.5, 0.75, 0.9))
    print(f"all: {done / every:.2%} of {every} runs; high / low at 50, 75, 90 %: {quantiles}")


if __name__ == "__main__":
    main()
