"""Speeds of llama.cpp on GeForce GPUs, planned and published.

    python benchmarks/llama_cpp.py [--judging] [--rows]

The rows are those of tests/measured/llama_cpp.csv, whose roles were set before any was predicted; no parameter was
chosen on them. Each is one call of `plan` with ``engine="llama.cpp"``, one request and the weights of the row: tokens
that follow each other from an empty cache ("tg"), or the prompt ("pp"). The release, of May 2024, computes attention
without a fused kernel by default.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import iomodel  # noqa: E402

MEASURED = ROOT / "tests" / "measured" / "llama_cpp.csv"


def rows(role: str) -> list[dict[str, str]]:
    """Read the rows of a role."""
    with MEASURED.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["role"] == role]


def predicted(row: dict[str, str]) -> float:
    """Return the planned tokens per second of a row."""
    tokens, decodes = int(row["tokens"]), row["test"] == "tg"
    lengths = {"prompt": 1, "output": tokens - 1} if decodes else {"prompt": tokens - 1, "output": 1}
    weights = {"weight_dtype": row["weights"], "kv_dtype": "fp16", "engine": "llama.cpp"}
    layout = iomodel.Layout(pipeline_parallel=int(row["count"]))
    plan = iomodel.plan(row["model"], row["device"], **lengths, **weights, batch=1, layout=layout)
    return 1 / plan.tpot if decodes else (tokens - 1) / plan.figures.ttft_alone


def main() -> None:
    """Print the errors of the working rows, or of the judging ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judging", action="store_true", help="the rows that judge")
    parser.add_argument("--rows", action="store_true", help="every row")
    given = parser.parse_args()
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("judging" if given.judging else "working"):
        ratio = predicted(row) / float(row["tokens_per_second"])
        ratios[row["test"], f"{row['count']} GPU"].append(ratio)
        if given.rows:
            print(f"{ratio:5.2f}", *row.values())
    print("| figure | devices | rows | median | 90th percentile | sign |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for (test, devices), values in sorted(ratios.items()):
        errors = np.abs(np.array(values) - 1)
        print(f"| {test} | {devices} | {len(values)} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} | "
              f"{np.median(values) - 1:+.1%} |")  # fmt: skip


if __name__ == "__main__":
    main()
