"""Published serving figures as a newcomer asks for them: one call of `plan`, with what the row states of its set-up.

The layout, the number of devices and the lengths are those of the row, the clients of a server are `clients` (those
that do not fit wait, as in the engine) and the requests of a rate `batch`, weights have the precision of the row, and
under TensorRT-LLM with weights in 8 or 4 bits the cache is in fp8. Nothing else is given, and the engine only on
request. A training step is asked with the options of its row.

On request too, rates of the pages of TensorRT-LLM are asked as their command runs: one call of `simulate` with the
engine "trtllm-bench", the number of requests that the page states, its share of the memory, and the cache of its
checkpoint or its options.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from iomodel.errors import IOModelError
from iomodel.models.registry import ModelSpec, list_models, model
from iomodel.planning.intervals import FEW, SHARE, kind_of_model, tpot_interval, ttft_interval
from iomodel.planning.plan import plan
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from iomodel.planning.training.train_step import train_step

MEASURED = Path(__file__).resolve().parents[1] / "tests" / "measured"
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
WEIGHTS = {"nvfp4": "nvfp4", "fp4": "nvfp4", "fp8": "fp8", "fp8_block": "fp8", "int8": "int8", "int4": "int4-g32"}
RELEASED = ("gpt-oss", "deepseek")
"""Models released in few bits, whose rows with fp8 or fp4 are asked as released."""
FILES = {
    "serving.csv": "open",
    "serving_held_out.csv": "judging",
    "serving_more.csv": "",
    "serving_pages.csv": "",
}
"""Files of rows with the role of all rows; of the last two each row has its own."""
AXES = ("kind", "gpu", "engine", "precision")
PAGED = ("moe", "fp4", "throughput")
"""Kinds of rows with rates."""
REQUESTS = {
    (128, 128): 30000, (128, 2048): 3000, (128, 4096): 1500, (1000, 2000): 1500, (2048, 128): 3000, (2048, 2048): 1500,
    (5000, 500): 1500, (1000, 1000): 3000, (500, 2000): 3000, (20000, 2000): 1000, (1024, 1024): 3000,
    (1024, 8192): 1500, (8192, 1024): 1500, (32768, 1024): 1000, (1024, 32768): 1000,
}  # fmt: skip
"""Requests of a run of TensorRT-LLM by prompt and output: docs/source/performance/perf-overview.md at commit 00f3768,
and the page at 03e27c7 for lengths of 1,024 and more, "Preparing a Dataset"."""
MOST_REQUESTS = 3000
PAGE_SHARE = 0.95
"""Share of the free memory that the pages give the cache "in many cases" [-]."""


@dataclass(frozen=True)
class Asked:
    """A row with the predicted figure, None if the library refuses it; `error` is signed, predicted over measured."""

    row: dict[str, str]
    predicted: float | None
    reason: str = ""

    @property
    def error(self) -> float:
        return -1.0 if self.predicted is None else self.predicted / float(self.row["value"]) - 1

    def of(self, axis: str) -> str:
        """Return the group of the row along an axis."""
        if axis == "kind":
            return kind(self.row)
        if axis == "engine":
            return engine(self.row)
        if axis == "precision":
            return self.row.get("precision") or self.row["gemm"].removesuffix("_block") or "bf16"
        return self.row[axis]


def engine(row: dict[str, str]) -> str:
    """Name the engine of a row in its command."""
    return row["engine"].lower().replace("tensorrt-llm", "trtllm").split()[0].strip(",")


def kind(row: dict[str, str]) -> str:
    """Name the kind of a row; times per token by clients, two nodes and hybrids apart."""
    group = row.get("group")
    if group in ("two nodes", "hybrid rate", "training"):
        return str(group)
    if row["kind"] != "tpot":
        return row["kind"]
    clients = int(row["concurrency"])
    return "tpot, 1 or 2 clients" if clients < 3 else "tpot, < 16" if clients < 16 else "tpot, 16+"


def rows(roles: Iterable[str]) -> list[dict[str, str]]:
    """List the usable rows with one of some roles."""
    wanted, listed = set(roles), []
    for name, role in FILES.items():
        with (MEASURED / name).open(newline="", encoding="utf-8") as file:
            listed += [row for row in csv.DictReader(file) if not row["excluded"] and (role or row["role"]) in wanted]
    return listed


@cache
def spec(name: str) -> ModelSpec:
    """Return the model of a row: a shipped one, or one by its configuration."""
    configs = json.loads((MEASURED / "serving_models.json").read_text(encoding="utf-8"))
    return model(name if name in list_models() else configs[name])


def arguments(row: dict[str, str], named: bool = False) -> dict[str, Any]:
    """Return the arguments of a plan; `named` gives it the engine."""
    narrow = row["gemm"] or row.get("precision", "")
    released = row["model"].startswith(RELEASED) and not (
        narrow in ("nvfp4", "fp4") and row["model"].startswith("deepseek")
    )
    fp8_cache = row.get("kv_dtype") or ("fp8" if engine(row) == "trtllm" and narrow in WEIGHTS else None)
    tensor, experts = int(row["tp"] or 1), int(row["ep"] or 1)
    if row["note"].startswith("attention data parallelism"):
        tensor, experts = 1, int(row["gpus"]) // int(row["pp"] or 1)
    nodes = row.get("devices_per_node")
    layout = Layout(
        tensor_parallel=tensor,
        pipeline_parallel=int(row["pp"] or 1),
        expert_parallel=experts,
        devices_per_node=int(nodes) if nodes else None,
    )
    asked: dict[str, Any] = {
        "prompt": int(row["input"] or 1024),
        "output": int(row["output"] or 1024),
        "layout": layout,
        "weight_dtype": None if released else WEIGHTS.get(narrow),
        "kv_dtype": fp8_cache,
    }
    if row.get("memory_utilization"):
        asked["memory_utilization"] = float(row["memory_utilization"])
    if row["concurrency"] and kind(row) not in ("hybrid rate",):
        asked["clients" if row["kind"] in ("served ttft", "tpot") else "batch"] = int(row["concurrency"])
    if named:
        asked["engine"] = ENGINES.get(engine(row))
    return asked


def paged(row: dict[str, str]) -> bool:
    """Check for a rate of a page of TensorRT-LLM, whose run has a stated number of requests."""
    return row["source"].startswith("NVIDIA/TensorRT-LLM@0") and not row["concurrency"] and row["kind"] in PAGED


def run_rate(row: dict[str, str]) -> float:
    """Simulate the run of a page from its first request to its last [1/s]."""
    asked = arguments(row)
    lengths = asked["prompt"], asked["output"]
    asked.pop("memory_utilization", None)
    found = simulate(
        spec(row["model"]),
        row["gpu"],
        engine="trtllm-bench",
        requests=REQUESTS.get(lengths, MOST_REQUESTS),
        memory_utilization=PAGE_SHARE,
        **{**asked, "kv_dtype": page_cache(row)},
    )
    return found.tokens_per_second


def page_cache(row: dict[str, str]) -> str | None:
    """Return the type of the cache on a page of TensorRT-LLM: that of its options, or of NVIDIA's checkpoint."""
    name, narrow = row["model"], row["gemm"].removesuffix("_block")
    if name.startswith("gpt-oss"):
        return None if row["gpu"].startswith(("h100", "h200")) else "fp8"
    if name.startswith("deepseek") or narrow in ("nvfp4", "fp4"):
        return "fp8"
    return "fp8" if narrow == "fp8" and row["kind"] != "moe" else None


def predicted(row: dict[str, str], named: bool = False, runs: bool = False) -> float:
    """Ask the library for the figure of a row; `runs` asks rates of pages as their command runs."""
    if runs and paged(row) and row["pp"] in ("", "1"):
        return run_rate(row)
    if row["kind"] == "training":
        options = json.loads(row["options"])
        batch, micro, seq_len = (int(row[name]) for name in ("batch", "micro_batch", "seq_len"))
        options["framework"] = row["engine"]
        trained = train_step(spec(row["model"]), row["gpu"], batch=batch, micro_batch=micro, seq_len=seq_len, **options)
        return trained.tokens_per_second_per_device
    planned = plan(spec(row["model"]), row["gpu"], **arguments(row, named))
    if row["kind"] == "kv tokens":
        return planned.memory.left / planned.memory.token_bytes
    if row["kind"] == "tpot":
        return planned.tpot
    if row["kind"].endswith("ttft"):
        return planned.ttft
    return planned.tokens_per_second


def asked(roles: Iterable[str], named: bool = False, runs: bool = False) -> list[Asked]:
    """Predict every usable row with one of some roles."""
    results = []
    for row in rows(roles):
        try:
            results.append(Asked(row, predicted(row, named, runs)))
        except IOModelError as error:
            results.append(Asked(row, None, str(error)))
    return results


def quantile(values: Iterable[float], share: float) -> float:
    """Interpolate a quantile of some values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def table(results: Iterable[Asked], axis: Callable[[Asked], str]) -> Iterator[str]:
    """Write a row for each group: number, refused, median, 90th percentile and median sign of the errors."""
    groups: dict[str, list[Asked]] = defaultdict(list)
    for result in results:
        groups[axis(result)].append(result)
    for name, some in sorted(groups.items()):
        errors = [abs(result.error) for result in some]
        signs = [result.error for result in some if result.predicted is not None]
        sign = f"{median(signs):+.1%}" if signs else ""
        refused = sum(result.predicted is None for result in some)
        figures = f"{len(some)} | {refused} | {median(errors):.1%} | {quantile(errors, 0.9):.1%} | {sign}"
        yield f"| {name} | {figures} |".replace("%", " %")


def intervals(results: Iterable[Asked]) -> Iterator[str]:
    """Write the 10th and 90th percentile of measured over predicted times of each kind, extended to the prediction."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if result.predicted is None or kind(result.row).split()[0].rstrip(",") not in ("tpot", "served", "engine"):
            continue
        name = kind_of_model(spec(result.row["model"]))
        if result.row["kind"] == "tpot":
            name += ", few" if int(result.row["concurrency"]) < FEW else ", many"
        figure = "tpot" if result.row["kind"] == "tpot" else "ttft"
        ratios[f"{figure}, {name}"].append(1 / (1 + result.error))
    for name, found in sorted(ratios.items()):
        low, high = min(1.0, quantile(found, (1 - SHARE) / 2)), max(1.0, quantile(found, (1 + SHARE) / 2))
        yield f"{name}: {low:.2f} to {high:.2f} ({len(found)} rows)"


def covered(results: Iterable[Asked]) -> Iterator[str]:
    """Write the share of rows of each kind whose measured time lies in the interval of the plan."""
    inside: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        if result.predicted is None or kind(result.row) in ("two nodes", "hybrid rate", "training"):
            continue
        measured, shape = float(result.row["value"]), spec(result.row["model"])
        if result.row["kind"] == "tpot":
            low, high = tpot_interval(shape, int(result.row["concurrency"]), result.predicted)
        elif result.row["kind"].endswith("ttft"):
            low, high = ttft_interval(shape, result.predicted)
        else:
            continue
        inside[kind(result.row)].append(low <= measured <= high)
    for name, flags in sorted(inside.items()):
        yield f"{name}: {sum(flags)} of {len(flags)} rows within the interval"


def report(roles: Iterable[str], named: bool = False, runs: bool = False) -> Iterator[str]:
    """Write the tables: by kind, and within each kind of times and rates by device, engine and precision."""
    results = asked(roles, named, runs)
    for axis in AXES:
        yield f"| {axis} | rows | refused | median error | 90th percentile | median sign |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        yield from table(
            results, lambda one, axis=axis: one.of(axis) if axis == "kind" else f"{one.of('kind')}: {one.of(axis)}"
        )  # type: ignore[misc]
        yield ""
    yield from intervals(results)
    yield from covered(results)
