"""Hold the L2 model against a simulated cache: exact in lock step, and how often the interval contains what drifts.

    python benchmarks/l2.py [--grids 200] [--seed 1] [--small]

Grids as of GPUs: 40 to 304 SMs, one to three blocks each, an L2 of 4 to 126 MB, head dimensions 64 to 256, 512 to 64k
tokens, small enough to simulate; a third of them each without a mask, and causal with key tiles in either order.
With `--small`, grids that no GPU runs: down to one slot and one tile, heads that share a set, with and without private
data, in a cache around the size of what is live.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iomodel.timing.l2 import SharedTiles, lock_step_bytes, tile_bytes
from tests.support.l2_simulation import TIMINGS, Block, Cache, causal, full, simulated

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
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
