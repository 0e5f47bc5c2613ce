"""Results of MLPerf Inference, planned and published.

    python benchmarks/mlperf.py [--judging] [--rows]

The rows are those of tests/measured/mlperf.csv, whose roles were set before any was predicted. Each is one call of
:func:`iomodel.plan` with the devices, the precision and the engine of the submission, the mean lengths of the data set,
and the limits of the scenario as targets; the layout and the batch are those of the search. The figure is the rate of
tokens. The limits of MLPerf are those of the 99th percentile, the targets of a plan those of the mean.
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
from iomodel.planning.formatting import layout_text  # noqa: E402

MEASURED = ROOT / "tests" / "measured" / "mlperf.csv"
NAMED = ("round", "scenario", "model", "device", "count", "precision", "engine", "tokens_per_second")
"""Columns of a row that is printed."""


def rows(role: str) -> list[dict[str, str]]:
    """Read the rows of a role."""
    with MEASURED.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["role"] == role]


def planned(row: dict[str, str]) -> iomodel.Plan:
    """Plan a row."""
    limits = {name: float(row[f"{name}_limit"]) for name in ("ttft", "tpot") if row[f"{name}_limit"]}
    lengths = {name: round(float(row[given])) for name, given in (("prompt", "input"), ("output", "output"))}
    types = {"precision": row["precision"], "engine": row["engine"]}
    return iomodel.plan(row["model"], row["device"], count=int(row["count"]), **lengths, **types, **limits)


def main() -> None:
    """Print the errors of the working rows, or of the judging ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judging", action="store_true", help="the rows that judge")
    parser.add_argument("--rows", action="store_true", help="every row")
    given = parser.parse_args()
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("judging" if given.judging else "working"):
        try:
            reached = planned(row)
        except iomodel.IOModelError as error:
            print("refused:", *(row[name] for name in NAMED), str(error)[:200])
            continue
        ratio = reached.tokens_per_second / float(row["tokens_per_second"])
        for group in (("all models", row["scenario"]), (row["model"], row["scenario"])):
            ratios[group].append(ratio)
        if given.rows:
            print(f"{ratio:5.2f}", *(row[name] for name in NAMED), layout_text(reached.layout))
    print("| model | scenario | rows | median | 90th percentile | sign |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for (model, scenario), values in sorted(ratios.items()):
        errors = np.abs(np.array(values) - 1)
        print(f"| {model} | {scenario} | {len(values)} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} | "
              f"{np.median(values) - 1:+.1%} |")  # fmt: skip


if __name__ == "__main__":
    main()
