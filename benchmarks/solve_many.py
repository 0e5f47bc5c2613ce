"""The solver on arrays of problems against a loop of warm solves, on unique random problems, one core.

    python benchmarks/solve_many.py [--problems 200000] [--loop 1000]

Rates are problems per second of processor time, the best of a few runs of the one and of as many of the other; the
ratio is of the two in one run. Every problem has lengths, widths, heads and a batch of its own. The loop is over the
first of the same problems, and its answers are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import iomodel

DEVICE = "h100-sxm5"
CASES: list[tuple[str, str, Any, str]] = [
    ("flash2, full", "flash2", "full", "forward"),
    ("flash2, causal", "flash2", "causal", "forward"),
    ("flash2, window of 4096", "flash2", iomodel.Window(left=4095, right=0), "forward"),
    ("flash2 backward, causal", "flash2", "causal", "backward"),
    ("flash3 both, causal", "flash3", "causal", "both"),
    ("standard, full", "standard", "full", "forward"),
]


def problems(count: int, longest: int) -> dict[str, Any]:
    """Unique calls: no two share their lengths, widths, heads and batch."""
    draw = np.random.default_rng(0)
    kv_heads = draw.choice([1, 2, 4, 8], count)
    return {
        "q_len": draw.integers(1, longest + 1, count),
        "kv_len": draw.integers(1, longest + 1, count),
        "head_dim": draw.integers(64, 257, count),
        "heads": kv_heads * draw.integers(1, 17, count),
        "kv_heads": kv_heads,
        "batch": draw.integers(1, 129, count),
    }


def best(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of a few calls [s], and what the last returned."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return min(times), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200_000, help="problems solved as arrays (default 200,000)")
    parser.add_argument("--loop", type=int, default=1000, help="of these, solved one by one (default 1000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the best counts (default 3)")
    given = parser.parse_args()
    table = Table(title=f"{given.problems:,} problems on {DEVICE}")
    for column in ("question", "arrays [1/s]", "one by one [1/s]", "ratio", "equal"):
        table.add_column(column, justify="left" if column == "question" else "right")
    for label, name, mask, direction in CASES:
        fields = problems(given.problems, 50_000 if name == "standard" else 2**17)  # its softmax holds a row of S
        some = {field: values[: given.loop] for field, values in fields.items()}
        kind = {"mask": mask, "direction": direction}
        iomodel.solve_many(name, DEVICE, **{field: values[:2] for field, values in fields.items()}, **kind)
        seconds, found = best(lambda f=fields, n=name, k=kind: iomodel.solve_many(n, DEVICE, **f, **k), given.repeats)
        calls = [
            iomodel.Attention(**dict(zip(some, map(int, row), strict=True)), **kind)
            for row in zip(*some.values(), strict=True)
        ]
        each, alone = best(lambda c=calls, n=name: [iomodel.solve(n, w, DEVICE) for w in c], given.repeats)
        equal = sum(
            dict(one.tiles) == {tile: int(sizes[i]) for tile, sizes in found.tiles.items()}
            and one.cost.hbm_bytes == found.hbm_bytes[i]
            and one.certificate.least_hbm_bytes == found.least_hbm_bytes[i]
            for i, one in enumerate(alone)
        )
        rates = given.problems / seconds, len(calls) / each
        table.add_row(
            label, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{rates[0] / rates[1]:,.0f}", f"{equal:,} of {len(calls):,}"
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
