"""Hold the serving model against published end-to-end figures, by kind of figure.

    python benchmarks/serving_accuracy.py [--rows KIND [--held-out]]

The rows are those of tests/measured/serving.csv (in sight) and serving_held_out.csv, as benchmarks/serving_split.py
divided them. A row that the library refuses counts as an error of 100 %. A naive estimate stands beside the model: the
bytes of weights and cache over the bandwidth, or the FLOPs over 60 % of the peak, whichever takes longer. The spread
between engines is the median difference between two engines on one set-up: no model of "the engine" can do better.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from iomodel.devices.device import Hardware, hardware  # noqa: E402
from iomodel.devices.edits import capacity  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from iomodel.models.registry import ModelSpec, list_models, model  # noqa: E402
from iomodel.planning.figures import figures  # noqa: E402
from iomodel.planning.memory import fit  # noqa: E402
from iomodel.planning.service import OVERHEAD, Service, as_service  # noqa: E402
from iomodel.planning.step.layout import Layout  # noqa: E402
from iomodel.workloads.dtypes import WEIGHT_SIZE  # noqa: E402

MEASURED = ROOT / "tests" / "measured"
KINDS = ("tpot", "throughput", "fp4", "moe", "engine ttft", "served ttft", "kv tokens")
PEAK = 0.6
"""Share of the peak in the naive estimate [-]."""
WEIGHTS = {"nvfp4": "nvfp4", "fp4": "nvfp4", "fp8": "fp8", "fp8_block": "fp8", "int8": "int8", "int4": "int4-g32"}
UTILIZATION = 0.9
"""Default of the engines [-]."""


@dataclass(frozen=True)
class Judged:
    """A published figure, the predicted one, and the naive one; None if the library refuses the row."""

    row: dict[str, str]
    predicted: float | None
    naive: float
    reason: str = ""

    @property
    def measured(self) -> float:
        return float(self.row["value"])

    @property
    def error(self) -> float:
        """Signed error; times that are too short and rates that are too high are both the optimistic side."""
        return -1.0 if self.predicted is None else self.predicted / self.measured - 1


def rows(name: str) -> list[dict[str, str]]:
    with (MEASURED / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def configs() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((MEASURED / "serving_models.json").read_text(encoding="utf-8"))
    return data


@cache
def spec(name: str) -> ModelSpec:
    return model(name if name in list_models() else configs()[name])


def engine(row: dict[str, str]) -> str:
    return row["engine"].lower().replace("tensorrt-llm", "trtllm").split()[0].strip(",")


def layout(row: dict[str, str]) -> Layout:
    """Return the layout of a row: attention is divided among `tp` ranks, experts among `ep`."""
    tensor, experts = int(row["tp"] or 1), int(row["ep"] or 1)
    return Layout(tensor_parallel=tensor, pipeline_parallel=int(row["pp"] or 1), expert_parallel=experts)


def kv_dtype(row: dict[str, str]) -> str | None:
    """Return the type of the cache: as stated, else fp8 under TensorRT-LLM with narrow weights, else the model's."""
    if row["kv_dtype"]:
        return row["kv_dtype"]
    return "fp8" if engine(row) == "trtllm" and row["gemm"] in ("fp8", "fp8_block", "nvfp4", "fp4") else None


def service(row: dict[str, str]) -> Service:
    types = {"dtype": None, "weight_dtype": WEIGHTS.get(row["gemm"]), "kv_dtype": kv_dtype(row), "page_size": None}
    prompt, output = int(row["input"] or 1024), int(row["output"] or 1024)
    utilization = float(row["memory_utilization"] or UTILIZATION)
    return as_service(spec(row["model"]), prompt, output, layout(row), types, utilization, OVERHEAD)


def predicted(row: dict[str, str]) -> float:
    """Ask the library for the figure of a row."""
    served, device = service(row), hardware(row["gpu"])
    if row["kind"] == "kv tokens":
        memory = fit(served, device)
        return memory.left / memory.token_bytes
    batch = int(row["concurrency"]) if row["concurrency"] else fit(served, device).fits
    reached = figures(served, device, batch)
    if row["kind"] == "tpot":
        return reached.tpot
    return reached.ttft if "ttft" in row["kind"] else reached.tokens_per_second


def naive(row: dict[str, str]) -> float:
    """Estimate the figure of a row from bytes over bandwidth and FLOPs over 60 % of the peak."""
    shape, device, devices = spec(row["model"]), hardware(row["gpu"]), int(row["gpus"])
    weight = WEIGHTS.get(row["gemm"], "bf16")
    weights = float(shape.parameters * WEIGHT_SIZE[weight])
    token = float(shape.kv_bytes_per_token()) * (0.5 if kv_dtype(row) == "fp8" else 1)
    room = devices * capacity(device) * float(row["memory_utilization"] or UTILIZATION) - weights
    if row["kind"] == "kv tokens":
        return room / token
    prompt, output = int(row["input"]), int(row["output"])
    known = rates(device, "bf16")
    peak = _peak(device, weight) * PEAK * devices
    prefill = 2 * shape.active_parameters * prompt / peak
    if "ttft" in row["kind"]:
        return prefill
    batch = int(row["concurrency"] or max(1, room // (token * (prompt + output))))
    active = min(weights, weights * batch * shape.active_parameters / shape.parameters)
    moved = active + batch * token * (prompt + output / 2)
    step = max(moved / (known.hbm_peak * devices), 2 * shape.active_parameters * batch / peak)
    tpot = step + batch * prefill / max(1, output - 1)
    return tpot if row["kind"] == "tpot" else batch / tpot


def _peak(device: Hardware, weight: str) -> float:
    peaks = device.compute.peak
    figure = {"nvfp4": peaks.fp4, "fp8": peaks.fp8, "int8": peaks.int8}.get(weight) or peaks.bf16
    return float(figure.value) if figure is not None else 0.0


def judged(name: str, kinds: Iterable[str] = KINDS) -> list[Judged]:
    """Predict every row of a file that can judge."""
    results = []
    for row in rows(name):
        if row["excluded"] or row["kind"] not in kinds:
            continue
        try:
            results.append(Judged(row, predicted(row), naive(row)))
        except IOModelError as error:
            results.append(Judged(row, None, naive(row), str(error)))
    return results


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread() -> tuple[int, float]:
    """Compare engines on one set-up: the number of pairs, and the median difference of their times per output token."""
    same = defaultdict(list)
    for row in rows("serving.csv") + rows("serving_held_out.csv"):
        if row["kind"] == "tpot" and not row["excluded"]:
            precision = row["gemm"].removesuffix("_block")
            keys = ("model", "gpu", "gpus", "tp", "pp", "ep", "attention_dp", "concurrency", "input", "output")
            same[precision, *(row[key] for key in keys)].append(row)
    found = []
    for group in same.values():
        for one, other in combinations(group, 2):
            if engine(one) != engine(other):
                low, high = sorted((float(one["value"]), float(other["value"])))
                found.append(high / low - 1)
    return len(found), median(found) if found else 0.0


def lines(name: str, results: list[Judged]) -> list[str]:
    """Write one row of the table for each kind."""
    written = []
    for kind in KINDS:
        some = [result for result in results if result.row["kind"] == kind]
        if not some:
            continue
        errors = [abs(result.error) for result in some]
        simple = [abs(result.naive / result.measured - 1) for result in some]
        answered = [result.error for result in some if result.predicted is not None]
        sign = median(answered) if answered else float("nan")
        refused = sum(result.predicted is None for result in some)
        written.append(
            f"| {kind} | {name} | {len(some)} | {refused} | {median(errors):.1%} | {quantile(errors, 0.9):.1%} | "
            f"{sign:+.1%} | {median(simple):.1%} | {quantile(simple, 0.9):.1%} |".replace("%", " %")
        )
    return written


def report(kinds: Iterable[str] = KINDS) -> list[str]:
    """Build the table by kind, held-out rows first, and the spread between engines."""
    head = "| figure | rows | number | refused | median error | 90th percentile | median sign | naive: median | 90th |"
    table = [head, "| --- | --- | " + "---: | " * 6 + "---: |"]
    both = {"held out": judged("serving_held_out.csv", kinds), "in sight": judged("serving.csv", kinds)}
    for kind in kinds:
        for name, results in both.items():
            table += lines(name, [result for result in results if result.row["kind"] == kind])
    pairs, typical = spread()
    return [
        *table,
        "",
        f"Two engines on one set-up differ by {100 * typical:.0f} % in the median ({pairs} pairs, tpot).",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", choices=KINDS, help="print every row in sight of a kind")
    parser.add_argument("--held-out", action="store_true", help="with --rows: the held-out rows")
    options = parser.parse_args()
    if options.rows is None:
        print("\n".join(report()))
        return
    name = "serving_held_out.csv" if options.held_out else "serving.csv"
    for result in sorted(judged(name, (options.rows,)), key=lambda result: result.error):
        row = result.row
        shape = f"tp{row['tp']} ep{row['ep']} {row['input']}/{row['output']} c{row['concurrency']}"
        told = "refused" if result.predicted is None else f"{result.predicted:.5g}"
        print(f"{result.error:+7.1%} {result.measured:10.5g} {told:>10} {row['curve']} {shape} {result.reason[:90]}")


if __name__ == "__main__":
    main()
