"""Twenty public results of benchmarks, judged end to end, and what was wrong in each prediction.

    python -m benchmarks.judged_runs [--row N] [--write]

The results are those of tests/measured/judged_runs.csv, which was committed before any was predicted, and are read as
their programs wrote them; the device and, where it is not shipped, the model are stated. No parameter is chosen by
them. With --write the table of docs/judged-results.csv is written.
"""

from __future__ import annotations

import argparse
import csv
import sys
from math import exp, log
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_newcomer import spec  # noqa: E402
from iomodel.planning.judge_run import FIGURES, JudgedFigure, JudgedRun, judge_run  # noqa: E402

MEASURED = ROOT / "tests" / "measured"
TABLE = ROOT / "docs" / "judged-results.csv"
SHOWN = ("ttft", "tpot", "tokens_per_second")
HEADER = ("set-up", *(f"{FIGURES[name][0]} [{FIGURES[name][1]}]" for name in SHOWN), "inside", "what was wrong")


def listed() -> list[dict[str, str]]:
    """List the results with their sources."""
    with (MEASURED / "judged_runs.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def judged(row: dict[str, str]) -> JudgedRun:
    """Judge a result."""
    stated = {"model": spec(row["model"])} if row["model"] else {}
    return judge_run(MEASURED / "judged" / row["file"], row["device"] or None, **stated)  # type: ignore[arg-type]


def cells(row: dict[str, str], answer: JudgedRun) -> tuple[str, ...]:
    """Write the row of the table: each figure as measured, and as predicted with its error."""
    setting = answer.setting
    load = f"{setting['clients']:,} clients" if "clients" in setting else f"{setting['load']:g}/s"
    model = row["model"] or answer.model
    kinds = ", ".join(str(setting[name]) for name in ("engine", "precision") if name in setting) or "vllm"
    setup = f"{model}, {answer.layout.devices} x {answer.hardware}, {kinds}, {load}, "
    figures = {each.name: each for each in answer.figures}
    shown = [_figure(figures.get(name)) for name in SHOWN]
    inside = sum(each.inside for each in answer.figures)
    return f"{setup}{setting['prompt']} + {setting['output']}", *shown, f"{inside} of {len(figures)}", row["finding"]


def _figure(each: JudgedFigure | None) -> str:
    if each is None:
        return ""
    factor = FIGURES[each.name][2]
    return f"{factor * each.measured:,.4g} | {factor * each.predicted:,.4g} ({100 * each.error:+.0f} %)"


def main() -> None:
    """Print the table, and the median error of each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", type=int, help="this result alone")
    parser.add_argument("--write", action="store_true", help="write the table of the docs")
    given = parser.parse_args()
    table: list[tuple[str, ...]] = []
    errors: dict[str, list[tuple[float, bool]]] = {}
    for number, row in enumerate(listed()):
        if given.row in (None, number):
            answer = judged(row)
            table.append(cells(row, answer))
            print(" | ".join(table[-1]), flush=True)
            for each in answer.figures:
                errors.setdefault(each.name, []).append((log(each.predicted / each.measured), each.inside))
    for name, found in errors.items():
        size = exp(median(abs(error) for error, _ in found)) - 1
        sign = exp(median(error for error, _ in found)) - 1
        inside = sum(within for _, within in found)
        print(f"{FIGURES[name][0]}: {size:.1%} in the median, {sign:+.1%}, {inside} of {len(found)} in the interval")
    if given.write:
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *table])


if __name__ == "__main__":
    main()
