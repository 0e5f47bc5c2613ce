"""One warm solve against exhaustive search, and one warm cost against the same formula in plain Python.

    python benchmarks/solve_and_cost.py [--repeats 15]

Medians in one run, printed as ratios: absolute times are those of the machine, ratios travel. Exhaustive search
costs every aligned tile that fits, with the same compiled formulas as the solver. It is run once per case.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

from rich.console import Console
from rich.table import Table

import iomodel

LLAMA = {"heads": 32, "kv_heads": 8, "head_dim": 128, "mask": "causal"}
TILES = {"block_q": 128, "block_kv": 64}


def timed(call: Callable[[], object], repeats: int) -> float:
    """Median time of a call [s], after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def exhaustive(w: iomodel.Attention, budget: int, step: int, bytes_: bool) -> int:
    """The least traffic over every flash2 tile that fits [B], one cost after the other."""
    from iomodel.counting.bound_call import BoundCall

    tally = BoundCall.bind("flash2", w, {}).compiled
    outputs = [tally.formulas.hbm_bytes, tally.formulas.footprint_bytes if bytes_ else tally.formulas.footprint]
    from iomodel.counting.evaluation.compiled import Compiled

    compiled = Compiled(outputs, tally.compiled.compiled.inputs)
    best = None
    for u in range(step, w.q_len + step, step):
        fitted = False
        for v in range(step, w.kv_len + step, step):
            traffic, footprint = compiled.scalars(*w.point, u, v)
            if footprint > budget:
                break
            fitted = True
            best = traffic if best is None or traffic < best else best
        if not fitted:
            break
    assert best is not None
    return best


def by_hand(n: int, d: int, heads: int, block_q: int, block_kv: int) -> int:
    """Traffic of causal flash2 [B] written straight down: one loop over the query tiles."""
    visited = 0
    for i in range(-(-n // block_q)):
        last = min(n, (i + 1) * block_q)
        visited += min(n, -(-last // block_kv) * block_kv)
    return heads * (2 * (2 * n * d + 2 * d * visited) + 4 * n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="timed calls per median (default 15)")
    repeats = parser.parse_args().repeats
    table = Table(title="medians of one run")
    for column in ("question", "iomodel [us]", "other [us]", "ratio", "other is"):
        table.add_column(column, justify="left" if column in ("question", "other is") else "right")
    gpu = iomodel.hardware("h100-sxm5")
    memory = {"sram_bytes": gpu.sram_per_block, "alignment": 16}
    for n in (8192, 2**20):
        w = iomodel.Attention(q_len=n, **LLAMA)
        cases: list[tuple[str, dict[str, object], int, int, bool]] = [
            ("shared memory of an H100, multiples of 16", memory, gpu.sram_per_block, 16, True),
            ("M = 51,200 elements", {"sram_elements": 51200}, 51200, 1, False),
        ]
        for label, budget, amount, step, bytes_ in cases:
            ours = timed(lambda w=w, budget=budget: iomodel.solve("flash2", w, **budget), repeats)
            start = time.perf_counter()
            least = exhaustive(w, amount, step, bytes_)
            other = time.perf_counter() - start
            assert iomodel.solve("flash2", w, **budget).cost.hbm_bytes == least
            row = (f"solve flash2 causal N={n:,}, {label}", ours, other, "exhaustive search")
            table.add_row(row[0], f"{ours * 1e6:,.0f}", f"{other * 1e6:,.0f}", f"{other / ours:,.1f}", row[3])
    for n in (8192, 2**20):
        w = iomodel.Attention(q_len=n, **LLAMA)
        ours = timed(lambda w=w: iomodel.cost("flash2", w, TILES), 20 * repeats)
        other = timed(lambda n=n: by_hand(n, 128, 32, 128, 64), repeats)
        assert iomodel.cost("flash2", w, TILES).hbm_bytes == by_hand(n, 128, 32, 128, 64)
        table.add_row(
            f"cost flash2 causal N={n:,}", f"{ours * 1e6:,.1f}", f"{other * 1e6:,.1f}", f"{other / ours:,.1f}",
            "a loop over query tiles",
        )  # fmt: skip
    for direction in ("forward", "backward"):
        calls = [iomodel.Attention(q_len=8192 + n, direction=direction, **LLAMA) for n in range(20 * repeats + 1)]
        rest = iter(calls)  # a call keeps its numbers
        ours = timed(lambda rest=rest: iomodel.lower_bounds(next(rest), sram_elements=51_200), 20 * repeats)
        other = timed(lambda w=calls[0]: iomodel.cost("flash2", w, TILES), 20 * repeats)
        table.add_row(f"lower_bounds causal {direction}", f"{ours * 1e6:,.1f}", f"{other * 1e6:,.1f}",
                      f"{other / ours:,.1f}", "one cost")  # fmt: skip
    points = 1_000_000
    import numpy as np

    w = iomodel.Attention(q_len=8192, **LLAMA)
    formula = iomodel.expressions("flash2", mask="causal").hbm_bytes
    lengths = np.random.default_rng(0).integers(1, 2**17, points)
    point = {**w.numbers, "q_len": lengths, "kv_len": lengths, "block_q": 128, "block_kv": 64}
    array = timed(lambda: iomodel.theory.evaluate(formula, point), 3) / points
    scalar = timed(lambda: iomodel.cost("flash2", w, TILES), 20 * repeats)
    table.add_row(f"one of {points:,} lengths as an array", f"{array * 1e6:,.2f}", f"{scalar * 1e6:,.1f}",
                  f"{scalar / array:,.1f}", "one cost at a time")  # fmt: skip
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
