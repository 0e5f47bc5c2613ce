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
TRAFFIC: list[tuple[str, str, Any, str]] = [
    ("flash2, full", "flash2", "full", "forward"),
    ("flash2, causal", "flash2", "causal", "forward"),
    ("flash2, window of 4096", "flash2", iomodel.Window(left=4095, right=0), "forward"),
    ("flash2 backward, causal", "flash2", "causal", "backward"),
    ("flash3 both, causal", "flash3", "causal", "both"),
    ("standard, full", "standard", "full", "forward"),
]
WINDOW = iomodel.Window(left=4095, right=0)
TIME: list[tuple[str, str, Any, str, int]] = [
    ("flash2 on A100, full", "flash2", "full", "a100-sxm4-80gb", 1),
    ("flash2 on A100, causal", "flash2", "causal", "a100-sxm4-80gb", 1),
    ("flash3 on H100, causal", "flash3", "causal", "h100-sxm5", 1),
    ("flash2 on A100, window of 4096", "flash2", WINDOW, "a100-sxm4-80gb", 10),
    ("flash3 on H100, window of 4096", "flash3", WINDOW, "h100-sxm5", 20),
    ("split_kv on H100, decoding", "split_kv", "full", "h100-sxm5", 10),
    ("split_kv on H100, up to 8 queries, causal", "split_kv", "causal", "h100-sxm5", 20),
]
"""Rows of times: algorithm, mask, device, and the part of the problems that is solved."""


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


def solved(
    table: Table, label: str, name: str, device: str, fields: dict[str, Any], kind: dict[str, Any], objective: Any,
    loop: int, repeats: int,
) -> None:  # fmt: skip
    """Solve the problems as arrays and the first of them one by one, and add a row."""
    asked = {**kind, "objective": objective}
    alone_by = {"objective": "time"} if objective == "time" else {"implementation": "textbook"}
    iomodel.solve_array(
        name,
        None,
        device,
        **{field: values[:2] for field, values in fields.items()},
        **asked,
        implementation="textbook",
    )  # warm
    seconds, found = best(
        lambda: iomodel.solve_array(name, None, device, **fields, **asked, implementation="textbook"), repeats
    )
    rows = zip(*(values[:loop] for values in fields.values()), strict=True)
    calls = [iomodel.Attention(**dict(zip(fields, map(int, row), strict=True)), **kind) for row in rows]
    each, alone = best(lambda: [iomodel.solve(name, w, device, **alone_by) for w in calls], repeats)
    equal = sum(
        dict(one.tiles) == {tile: int(sizes[i]) for tile, sizes in found.tiles.items()}
        and one.cost.hbm_bytes == found.hbm_bytes[i]
        for i, one in enumerate(alone)
    )
    many, single = len(fields["q_len"]) / seconds, len(calls) / each
    table.add_row(label, f"{many:,.0f}", f"{single:,.0f}", f"{many / single:,.0f}", f"{equal:,} of {len(calls):,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200_000, help="problems solved as arrays (default 200,000)")
    parser.add_argument("--loop", type=int, default=1000, help="of these, solved one by one (default 1000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the best counts (default 3)")
    given = parser.parse_args()
    timed = given.problems // 10
    tables = []
    for title in (
        f"{given.problems:,} problems of least traffic on {DEVICE}",
        f"up to {timed:,} problems of least time",
    ):
        tables.append(Table(title=title))
        for column in ("question", "arrays [1/s]", "one by one [1/s]", "ratio", "equal"):
            tables[-1].add_column(column, justify="left" if column == "question" else "right")
    for label, name, mask, direction in TRAFFIC:
        fields = problems(given.problems, 50_000 if name == "standard" else 2**17)  # its softmax holds a row of S
        kind = {"mask": mask, "direction": direction}
        solved(tables[0], label, name, DEVICE, fields, kind, "traffic", given.loop, given.repeats)
    for label, name, mask, device, fewer in TIME:
        draw, count = np.random.default_rng(1), max(2, timed // fewer)
        fields = {**problems(count, 2**15), "head_dim": draw.choice([64, 128], count)}
        if name == "split_kv":
            fields["q_len"] = np.ones(count, dtype=np.int64) if mask == "full" else draw.integers(1, 9, count)
        solved(tables[1], label, name, device, fields, {"mask": mask}, "time", given.loop // 10, given.repeats)
    for table in tables:
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
