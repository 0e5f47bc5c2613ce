"""Divide the published serving figures into calibration rows and held-out rows, whole curves at a time.

    python benchmarks/serving_split.py FIGURES.json [--more]

A curve has the rows of one source, engine, model, device and precision: every concurrency, length and layout, and both
of its metrics. For each kind of figure in turn, the curves that no earlier kind has assigned are sorted by the SHA-256
of their names, and the first half, rounded up, is held out. So the choice depends on no value and on no prediction.
Rows that repeat another row are dropped; rows that cannot judge a prediction are kept with the reason.

With `--more`, the file holds set-ups that the first one lacks, all of which had been predicted once when they were
collected. They go to serving_more.csv with a role. A set-up is an engine, a model, a device and a precision; it has one
role in all kinds. In each kind of figure with at least four set-ups, precisions aside, half of them are "judging", by
the same rule. The set-ups of other kinds are "left out in turn": each is judged by parameters read off without it.

serving_pages.csv has the rows of the two pages of TensorRT-LLM that the other files lack. A set-up with a rate in those
has the role that it has there; of the others of each kind, half are "judging" by the same rule (`page_roles`).
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
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
MORE_COLUMNS = (
    "id", "role", "group", "setup", "kind", "source", "source_row", "engine", "model", "gpu", "gpus", "tp", "pp", "ep",
    "attention_dp", "devices_per_node", "precision", "gemm", "concurrency", "input", "output", "batch", "micro_batch",
    "seq_len", "options", "published_tpot", "value", "unit", "note", "excluded",
)  # fmt: skip
MORE = ("two nodes", "hybrid rate", "training", "moe", "served ttft", "tpot")
"""Groups of the second file, in the order in which their set-ups are assigned."""
FEWEST = 4
"""Fewest set-ups of a group, precisions aside, that are divided; those of a smaller group are left out in turn [-]."""
LEFT_OUT = "left out in turn"
SETTING = ("gpus", "tp", "pp", "ep", "attention_dp", "concurrency", "input", "output")


def kind_of(row: dict[str, Any]) -> str:
    """Name the kind of a figure."""
    if row["metric"] == "TPOT":
        return "tpot"
    if row["kind"] == "training":
        return "training"
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


def group_of(row: dict[str, Any]) -> str:
    """Name the group of a row of the second file, in which set-ups are divided."""
    if row["kind"] == "training":
        return "training"
    if row["devices_per_node"]:
        return "two nodes"
    kind = kind_of(row)
    if kind in ("throughput", "fp4", "moe"):
        return "hybrid rate" if row["model"].startswith("qwen3.6") else "moe"
    return kind


def setup_of(row: dict[str, Any]) -> str:
    """Name the set-up of a row: the released MXFP4 of gpt-oss has several names in the sources."""
    precision = "mxfp4" if (row["model"] or "").startswith("gpt-oss") else row["precision"] or "bf16"
    return " | ".join([engine_of(row), row["model"] or row["model_published"], row["gpu"], precision])


def roles(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Choose the role of each set-up of the second file, by name."""
    role: dict[str, str] = {}
    usable = [row for row in rows if not row["excluded"]]
    for group in MORE:
        setups = {row["setup"] for row in usable if row["group"] == group} - role.keys()
        ordered = sorted(setups, key=lambda setup: hashlib.sha256(setup.encode()).hexdigest())
        judging = -(-len(ordered) // 2)
        few = len({row["setup"].rpartition(" | ")[0] for row in usable if row["group"] == group}) < FEWEST
        for place, setup in enumerate(ordered):
            role[setup] = LEFT_OUT if few else "judging" if place < judging else "open"
    return role


def page_roles(rows: list[dict[str, Any]], known: dict[str, str]) -> dict[str, str]:
    """Choose the role of each set-up of the pages, by name unless it has one in the other files."""
    role: dict[str, str] = {}
    for kind in sorted({row["kind"] for row in rows}):
        setups = {row["setup"] for row in rows if row["kind"] == kind}
        free = sorted(setups - known.keys(), key=lambda setup: hashlib.sha256(setup.encode()).hexdigest())
        role |= {setup: known[setup] for setup in setups & known.keys()}
        role |= {setup: "judging" if 2 * place < len(free) else "open" for place, setup in enumerate(free)}
    return role


def more(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Build the rows of the second file with their roles."""
    rows = []
    for row in figures["rows"]:
        row = {"devices_per_node": "", "precision": "", "moe": "", "model_published": "", "gemm": "", **row}
        new = {column: "" if row.get(column) is None else row[column] for column in MORE_COLUMNS}
        new |= {"setup": setup_of(row), "group": group_of(row), "kind": kind_of(row), "engine": row["measured_with"]}
        rows.append({**new, "excluded": excluded(row), "options": json.dumps(row.get("options", {}))})
    role = roles(rows)
    return [{**row, "role": "" if row["excluded"] else role[row["setup"]]} for row in rows]


def write(name: str, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    with (MEASURED / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    figures = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    known = json.loads((MEASURED / "serving_models.json").read_text(encoding="utf-8"))
    if sys.argv[2:] == ["--more"]:
        rows = more(figures)
        write("serving_more.csv", MORE_COLUMNS, rows)
        models({**known, **{row["model"]: figures["configs"].get(row["model"]) for row in rows}})
        return
    rows = table(figures)
    chosen = held_out(rows)
    for name, wanted in (("serving.csv", False), ("serving_held_out.csv", True)):
        write(name, COLUMNS, (row for row in rows if (row["curve"] in chosen) is wanted))
    models(figures["configs"])


def models(configs: dict[str, Any]) -> None:
    """Write the configurations of models that the package does not ship."""
    missing = {name: config for name, config in configs.items() if config and name not in list_models()}
    text = json.dumps(missing, indent=1, sort_keys=True)
    (MEASURED / "serving_models.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
