"""Hold the serving model against published end-to-end figures, by kind of figure.

    python benchmarks/serving_accuracy.py [--rows KIND [--held-out]]
    python benchmarks/serving_accuracy.py --newcomer [--judging] [--engine] [--runs]

The rows are those of tests/measured/serving.csv (calibration) and serving_held_out.csv, as benchmarks/serving_split.py
divided them. A row that the library refuses counts as an error of 100 %. A naive estimate stands beside the model: the
bytes of weights and cache over the bandwidth, or the FLOPs over 60 % of the peak, whichever takes longer. The spread
between engines is the median difference between two engines on one set-up: no model of "the engine" can do better.

With `--newcomer`, each row of these files and of serving_more.csv is one call of `plan`, as serving_newcomer.py states:
rows that choose parameters, and with `--judging` those that only judge.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_newcomer import ENGINES, MOST_REQUESTS, REQUESTS, WEIGHTS, engine, quantile  # noqa: E402
from benchmarks.serving_newcomer import report as newcomer  # noqa: E402
from iomodel.devices.device import Hardware, hardware  # noqa: E402
from iomodel.devices.edits import capacity  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from iomodel.models.registry import ModelSpec, list_models, model  # noqa: E402
from iomodel.planning.replica_figures import figures  # noqa: E402
from iomodel.planning.service import Service, as_service  # noqa: E402
from iomodel.planning.simulation.simulate import simulate  # noqa: E402
from iomodel.planning.step.layout import Layout  # noqa: E402
from iomodel.planning.steps import ReplicaSteps  # noqa: E402
from iomodel.workloads.dtypes import WEIGHT_SIZE  # noqa: E402

MEASURED = ROOT / "tests" / "measured"
KINDS = ("tpot", "throughput", "fp4", "moe", "engine ttft", "served ttft", "kv tokens")
SHORTEST = 0.8
"""Shortest length of a request, as a share of the longest [-]."""
PEAK = 0.6
"""Share of the peak in the naive estimate [-]."""
TUNED = ("NVIDIA/TensorRT-LLM@00f3", "NVIDIA/TensorRT-LLM@03e2")
"""Pages that give the cache 95 % of the free memory "in many cases"."""
UTILIZATION = 0.9
"""Default of the engines [-]."""
RATES = ("throughput", "fp4", "moe")
BENCH = "trtllm-bench"
"""Engine of rates without a number of clients."""
UNGROUPED = re.compile(r"TensorRT-LLM@\S+ .*\(v0\.[67]\b")
"""Sources of releases of TensorRT-LLM that decode without grouped heads."""


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


def layout(row: dict[str, str]) -> Layout:
    """Return the layout of a row: attention is divided among `tp` ranks, or data parallel as its note says."""
    tensor, experts = int(row["tp"] or 1), int(row["ep"] or 1)
    if row["note"].startswith("attention data parallelism"):
        tensor, experts = 1, int(row["gpus"])
    return Layout(tensor_parallel=tensor, pipeline_parallel=int(row["pp"] or 1), expert_parallel=experts)


def kv_dtype(row: dict[str, str]) -> str | None:
    """Return the type of the cache: as stated, else fp8 under TensorRT-LLM with narrow weights, else the model's."""
    if row["kv_dtype"]:
        return row["kv_dtype"]
    if row["kind"] == "moe" and "KV fp8" not in row["note"]:
        return None  # the options on the page set an fp8 cache for DeepSeek and GPT-OSS alone
    return "fp8" if engine(row) == "trtllm" and row["gemm"] in ("fp8", "fp8_block", "nvfp4", "fp4") else None


def service(row: dict[str, str]) -> Service:
    types = {"dtype": None, "weight_dtype": WEIGHTS.get(row["gemm"]), "kv_dtype": kv_dtype(row), "page_size": None}
    prompt, output = int(row["input"] or 1024), int(row["output"] or 1024)
    utilization = float(row["memory_utilization"]) if row["memory_utilization"] else None
    if row["source"].startswith(TUNED):
        utilization = 0.95
    name = BENCH if not row["concurrency"] and row["kind"] in RATES else ENGINES.get(engine(row))
    tokens = re.search(r"max_model_len (\d+)", row["note"])  # vLLM 0.6 takes a whole prompt in one step
    budget = int(tokens[1]) if tokens else None
    return as_service(
        spec(row["model"]),
        prompt,
        output,
        layout(row),
        **types,
        memory_utilization=utilization,
        engine=name,
        step_tokens=budget,
    )


def predicted(row: dict[str, str]) -> float:
    """Ask the library for the figure of a row."""
    served, device = service(row), hardware(row["gpu"])
    if row["kind"] == "kv tokens":
        memory = served.memory(device)
        return memory.left / memory.token_bytes
    if row["note"].startswith("a whole batch is prefilled at once"):
        return static_rate(ReplicaSteps(served, device), int(row["concurrency"]), ungrouped(row, served, device))
    if not row["concurrency"]:
        return offline_rate(row, served)
    if row["kind"] == "served ttft":
        return served_ttft(row, served)
    batch = int(row["concurrency"])
    reached = figures(served, device, batch)
    if row["kind"] == "tpot":
        return reached.tpot
    return reached.ttft


def asked_again(served: Service) -> dict[str, Any]:
    """Return the options of a service for another verb."""
    types = {name: value for name, value in served.types.items() if name != "page_size"}
    engine = None if served.engine is None else served.engine.asked
    return {"layout": served.layout, "engine": engine, **types}


def offline_rate(row: dict[str, str], served: Service) -> float:
    """Simulate the run of a page: all requests are there at the start, under the limits of the benchmark [1/s]."""
    return simulate(
        served.model,
        row["gpu"],
        prompt=served.prompt,
        output=served.output,
        requests=REQUESTS.get((int(row["input"]), int(row["output"])), MOST_REQUESTS),
        memory_utilization=served.memory_utilization,
        **asked_again(served),
    ).tokens_per_second


def served_ttft(row: dict[str, str], served: Service) -> float:
    """Simulate the clients of a row: a closed loop with lengths of 80 to 100 %, ten requests for each client [s].

    These are the settings of InferenceMAX (github.com/InferenceMAX/InferenceMAX, benchmarks/), the runs of which
    aiconfigurator lists.
    """
    draw = np.random.default_rng(0)
    clients = int(row["concurrency"])
    lengths = {
        name: draw.integers(int(SHORTEST * most), most + 1, 10 * clients).tolist()
        for name, most in (("prompt", served.prompt), ("output", served.output))
    }
    shared = {"concurrency": clients, "requests": 10 * clients, **asked_again(served)}
    return simulate(served.model, row["gpu"], arrivals=lengths, policy="prefill-first", **shared).ttft.mean


def static_rate(steps: ReplicaSteps, batch: int, attention: ReplicaSteps | None = None) -> float:
    """Compute the output tokens per second of a batch that is prefilled at once and then decoded to its end [1/s].

    `attention` has the steps whose attention is that of the engine, if it is not the one of the service.
    """
    step = steps.decode_seconds(batch)
    if attention is not None:
        middle = sum(steps.service.contexts) // 2
        step += attention.decode(batch, middle).attention_seconds - steps.decode(batch, middle).attention_seconds
    seconds = steps.prefill(batch=batch).seconds + steps.service.steps * step
    return batch * steps.service.output / seconds


def ungrouped(row: dict[str, str], served: Service, device: Hardware) -> ReplicaSteps | None:
    """Return the steps of a model in which each query head reads keys of its own, for engines that decode so.

    TensorRT-LLM has a decoding kernel that shares the keys of a group of heads from 0.8 on: 2.4 and 1.9 times the
    throughput of Llama 2 70B on one and eight H200 (docs/source/blogs/XQA-kernel.md of its repository).
    """
    if not UNGROUPED.search(row["source"]):
        return None
    config = configs().get(row["model"])
    if config is None or config["num_key_value_heads"] == config["num_attention_heads"]:
        return None
    apart = model({**config, "num_key_value_heads": config["num_attention_heads"]})
    return ReplicaSteps(replace(served, model=apart), device)


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


def judged(name: str, kinds: Iterable[str] = KINDS, every: int = 1) -> list[Judged]:
    """Predict every row of a file that can judge, or one in `every` of them."""
    results = []
    for row in [row for row in rows(name) if not row["excluded"] and row["kind"] in kinds][::every]:
        try:
            results.append(Judged(row, predicted(row), naive(row)))
        except IOModelError as error:
            results.append(Judged(row, None, naive(row), str(error)))
    return results


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
    both = {"held out": judged("serving_held_out.csv", kinds), "calibration": judged("serving.csv", kinds)}
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
    parser.add_argument("--rows", choices=KINDS, help="print every calibration row of a kind")
    parser.add_argument("--held-out", action="store_true", help="with --rows: the held-out rows")
    parser.add_argument("--newcomer", action="store_true", help="ask each row as one call of plan")
    parser.add_argument("--judging", action="store_true", help="with --newcomer: the rows that judge")
    parser.add_argument("--engine", action="store_true", help="with --newcomer: name the engine")
    parser.add_argument("--runs", action="store_true", help="with --newcomer: rates of pages as their command runs")
    options = parser.parse_args()
    if options.newcomer:
        roles = ("judging",) if options.judging else ("open", "left out in turn")
        print("\n".join(newcomer(roles, options.engine, options.runs)))
        return
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
