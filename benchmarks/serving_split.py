"""Divide the published serving figures into calibration rows and held-out rows, whole curves at a time.

    python benchmarks/serving_split.py FIGURES.json

A curve has the rows of one source, engine, model, device and precision: every concurrency, length and layout, and both
of its metrics. For each kind of figure in turn, the curves that no earlier kind has assigned are sorted by the SHA-256
of their names, and the first half, rounded up, is held out. So the choice depends on no value and on no prediction.
Rows that repeat another row are dropped; rows that cannot judge a prediction are kept with the reason.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from iomodel.models.registry import list_models

MEASURED = Path(__file__).resolve().parents[1] / "tests" / "measured"
KINDS = ("kv tokens", "engine ttft", "fp4", "moe", "throughput", "served ttft", "tpot")
COLUMNS = (
    "id", "kind", "curve", "source", "source_row", "engine", "model", "gpu", "gpus", "tp", "pp", "ep", "attention_dp",
    "gemm", "moe", "kv_dtype", "concurrency", "input", "output", "memory_utilization", "value", "unit", "note",
    "excluded",
)  # fmt: skip
SETTING = ("gpus", "tp", "pp", "ep", "attention_dp", "concurrency", "input", "output")


def kind_of(row: dict[str, Any]) -> str:
    """Name the kind of a figure."""
    if row["metric"] == "TPOT":
        return "tpot"
    if row["metric"] == "TTFT":
        return "engine ttft" if row["concurrency"] == 1 and row["output"] == 1 else "served ttft"
    if row["metric"] == "KV cache capacity":
        return "kv tokens"
    if row["moe"]:
        return "moe"
    return "fp4" if row["gemm"] in ("fp4", "nvfp4") else "throughput"


def engine_of(row: dict[str, Any]) -> str:
    """Name the engine of a row without its version."""
    return re.split(r"[ ,]", row["measured_with"].strip())[0].lower().replace("tensorrt-llm", "trtllm")


def curve_of(row: dict[str, Any]) -> str:
    """Name the curve of a row."""
    source = re.split(r"[@ ,]", row["source"])[0]
    return " | ".join([source, engine_of(row), row["model"] or row["model_published"], row["gpu"], row["gemm"]])


def excluded(row: dict[str, Any]) -> str:
    """State why a row cannot judge a prediction, or return an empty string."""
    if row["suspect"]:
        return str(row["suspect"])
    if row["kind"] == "disaggregated":
        return "prefill and decode on separate devices, whose numbers are not stated"
    if row["model"] is None:
        return "the model has no published configuration on file"
    return "the number of devices is not stated" if row["gpus"] is None else ""


def table(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Build the rows of both files, without repetitions."""
    rows, seen = [], set()
    for row in figures["rows"]:
        kind = kind_of(row)
        same = (kind, curve_of(row), row["measured_with"], *(row[key] for key in SETTING), row["value"])
        if same in seen:
            continue
        seen.add(same)
        new = {column: row.get(column) for column in COLUMNS}
        new |= {"kind": kind, "curve": curve_of(row), "engine": row["measured_with"].strip(), "excluded": excluded(row)}
        rows.append({key: "" if value is None else value for key, value in new.items()})
    return rows


def held_out(rows: list[dict[str, Any]]) -> set[str]:
    """Choose the held-out curves."""
    chosen: set[str] = set()
    assigned: set[str] = set()
    for kind in KINDS:
        curves = {row["curve"] for row in rows if row["kind"] == kind and not row["excluded"]} - assigned
        ordered = sorted(curves, key=lambda curve: hashlib.sha256(curve.encode()).hexdigest())
        chosen |= set(ordered[: -(-len(ordered) // 2)])
        assigned |= curves
    return chosen


def main() -> None:
    figures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows = table(figures)
    chosen = held_out(rows)
    for name, wanted in (("serving.csv", False), ("serving_held_out.csv", True)):
        with (MEASURED / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for row in rows if (row["curve"] in chosen) is wanted)
    missing = {name: config for name, config in figures["configs"].items() if name not in list_models()}
    models = json.dumps(missing, indent=1, sort_keys=True)
    (MEASURED / "serving_models.json").write_text(models + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
