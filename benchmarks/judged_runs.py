"""Twenty public results of benchmarks, each written as a file of InferenceMAX and judged end to end.

    python benchmarks/judged_runs.py [--row N]

The results are all set-ups of tests/measured/serving_held_out.csv that state both the time per output token and that
to the first token in a server: a rule that was fixed before any was judged. No parameter is chosen by them.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_newcomer import spec  # noqa: E402
from iomodel.planning.judge_run import JudgedRun, judge_run  # noqa: E402

ROWS = ROOT / "tests" / "measured" / "serving_held_out.csv"
SETUP = ("source", "engine", "model", "gpu", "tp", "ep", "gemm", "concurrency", "input", "output")


def results() -> list[dict[str, object]]:
    """List the results as InferenceMAX writes them."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    with ROWS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["excluded"] and row["kind"] in ("tpot", "served ttft"):
                found.setdefault(tuple(row[name] for name in SETUP), {})[row["kind"]] = float(row["value"])
    return [_as_file(dict(zip(SETUP, setup, strict=True)), times) for setup, times in found.items() if len(times) == 2]


def _as_file(setup: dict[str, str], times: dict[str, float]) -> dict[str, object]:
    clients, output = int(setup["concurrency"]), int(setup["output"])
    latency = times["served ttft"] + (output - 1) * times["tpot"]
    devices = int(setup["tp"])
    rate = clients * output / latency / devices
    return {
        "hw": setup["gpu"], "tp": devices,
        "ep": int(setup["ep"]), "conc": clients, "isl": int(setup["input"]), "osl": output, "model": setup["model"],
        "framework": setup["engine"].split()[0], "precision": setup["gemm"].removesuffix("_block"),
        "tput_per_gpu": rate * (1 + int(setup["input"]) / output), "mean_ttft": times["served ttft"],
        "mean_tpot": times["tpot"],
    }  # fmt: skip


def judged(result: dict[str, object]) -> JudgedRun:
    """Write a result to a file and judge it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        path.write_text(json.dumps(result), encoding="utf-8")
        return judge_run(path, model=spec(str(result["model"])))


def line(result: dict[str, object], answer: JudgedRun) -> str:
    """Write the row of the table of the docs."""
    figures = {each.name: each for each in answer.figures}
    cells = []
    for name in ("ttft", "tpot"):
        each = figures[name]
        mark = "" if each.inside else " *"
        cells.append(f"{1e3 * each.measured:.1f} | {1e3 * each.predicted:.1f}{mark}")
    setup = f"{result['model']}, {result['precision']}, TP {result['tp']}" + (
        f", EP {result['ep']}" if result["ep"] != 1 else ""
    )
    near = answer.explained[0] if answer.explained and not answer.inside else ""
    lengths = f"{result['isl']} + {result['osl']}"
    return f"| {setup} | {result['hw']}, {result['framework']} | {lengths} | {' | '.join(cells)} | {near} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--row", type=int)
    chosen = parser.parse_args().row
    for number, result in enumerate(results()):
        if chosen in (None, number):
            print(line(result, judged(result)), flush=True)


if __name__ == "__main__":
    main()
