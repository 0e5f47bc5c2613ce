"""Put the questions of the held-out serving rows to aiconfigurator and llm-analysis, and compare the errors.

    python benchmarks/serving_peers.py --ask [--environments FOLDER]  # installs both, each into its own environment
    python benchmarks/serving_peers.py                                # the table, from the stored answers

The answers stand in tests/measured/serving_peers.csv with the versions of the peers. benchmarks/peer_answers.py says
how each is asked. A row that a peer refuses is left out of the comparison with this peer and counted as refused.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import venv
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_accuracy import (  # noqa: E402
    KINDS,
    MEASURED,
    RATES,
    REQUESTS,
    UTILIZATION,
    WEIGHTS,
    Judged,
    configs,
    engine,
    judged,
    kv_dtype,
    layout,
    quantile,
    rows,
    service,
    spec,
)
from iomodel.devices.device import hardware  # noqa: E402
from iomodel.devices.edits import capacity  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.planning.step.links import link  # noqa: E402

HELD_OUT = "serving_held_out.csv"
ANSWERS = MEASURED / "serving_peers.csv"
VERSIONS = {"aiconfigurator": "0.12.0", "llm-analysis": "0.2.2"}
BITS = {"nvfp4": 4, "mxfp4": 4, "int4-g32": 4, "fp8": 8, "int8": 8}


def shape(name: str) -> dict[str, int] | None:
    """Return a model as llm-analysis states one: equal layers of plain attention and one MLP of two products."""
    layers = set(spec(name).layers)
    layer = next(iter(layers))
    attention, mlp = layer.attention, layer.mlp
    plain = len(layers) == 1 and attention is not None and attention.kv_lora_rank is None and mlp is not None
    if not plain or attention.heads * attention.head_dim != spec(name).hidden_size or mlp.shared_experts:
        return None
    width = mlp.expert_intermediate_size or mlp.intermediate_size
    told = {"num_layers": len(spec(name).layers), "n_head": attention.heads, "num_key_value_heads": attention.kv_heads}
    told |= {"hidden_dim": spec(name).hidden_size, "vocab_size": spec(name).vocab_size}
    told["ffn_embed_dim"] = width * 3 // 2 if mlp.gated else width  # its MLP has two products, a gated one three
    return told | ({"moe_num_experts": mlp.experts, "moe_top_k": mlp.experts_per_token} if mlp.experts else {})


@cache
def sheet(name: str) -> dict[str, float]:
    """Return the figures of a device's data sheet in bytes and operations per second."""
    device = hardware(name)
    peaks = device.compute.peak
    bf16 = rates(device, "bf16").peak
    eight = float(peaks.fp8.value) if peaks.fp8 is not None and peaks.fp8.value else 2 * bf16
    four = float(peaks.fp4.value) if peaks.fp4 is not None and peaks.fp4.value else eight
    told = {"capacity": capacity(device), "bandwidth": rates(device, "bf16").hbm_peak, "link": link(device)}
    return {**told, "bf16": bf16, "8 bits": eight, "4 bits": four}


def question(row: dict[str, str]) -> dict[str, Any]:
    """State a row in plain numbers and words, as both peers are asked it."""
    ranks = layout(row)
    experts = any(layer.mlp is not None and layer.mlp.experts for layer in spec(row["model"]).layers)
    static = row["note"].startswith("a whole batch is prefilled at once")
    limited = row["kind"] in RATES and not row["concurrency"]
    tokens, requests = service(row).limits(hardware(row["gpu"])) if limited else (None, None)
    return {
        "id": row["id"],
        "kind": row["kind"],
        "engine": engine(row),
        "model": row["model"],
        "config": configs().get(row["model"], {}),
        "shape": shape(row["model"]),
        "experts": experts,
        "gpu": row["gpu"],
        "device": sheet(row["gpu"]),
        "tensor": ranks.tensor_parallel,
        "pipeline": ranks.pipeline_parallel,
        "expert": ranks.expert_parallel,
        "replicas": int(row["gpus"]) // (ranks.tensor_parallel * ranks.pipeline_parallel),
        "gemm": row["gemm"],
        "moe": row["moe"],
        "weight_bits": BITS.get(WEIGHTS.get(row["gemm"], row["gemm"]), 16),
        "kv_bytes": 1 if kv_dtype(row) == "fp8" else 2,
        "clients": int(row["concurrency"]) if row["concurrency"] else None,
        "static": static,
        "requests": REQUESTS.get((int(row["input"]), int(row["output"]))),
        "most": requests,
        "step_tokens": tokens,
        "prompt": int(row["input"] or 1024),
        "output": int(row["output"] or 1024),
        "utilization": service(row).memory_utilization or UTILIZATION,
    }


def ask(folder: Path) -> None:
    """Install each peer into an environment of its own, put all questions to it, and store the answers."""
    questions = json.dumps([question(row) for row in rows(HELD_OUT) if not row["excluded"]])
    answers = {}
    for peer, version in VERSIONS.items():
        place = folder / peer
        if not place.exists():
            venv.create(place, with_pip=True)
        python = str(place / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{peer}=={version}"], check=True)
        command = [python, str(ROOT / "benchmarks" / "peer_answers.py"), peer]
        done = subprocess.run(command, input=questions, text=True, stdout=subprocess.PIPE, check=True)
        answers[peer] = json.loads(done.stdout)
    with ANSWERS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "peer", "version", "value", "refused"])
        for peer, told in answers.items():
            for name, value in told.items():
                both = ("", value) if isinstance(value, str) else (f"{value:.6g}", "")
                writer.writerow([name, peer, VERSIONS[peer], *both])


@cache
def answered(peer: str) -> dict[str, float]:
    """Return the stored answers of a peer by the names of the rows, refusals left out."""
    with ANSWERS.open(newline="", encoding="utf-8") as file:
        return {row["id"]: float(row["value"]) for row in csv.DictReader(file) if row["peer"] == peer and row["value"]}


def line(kind: str, peer: str, results: list[Judged]) -> str:
    """Write a row of the table: the errors on the rows of a kind that a peer answers."""
    some = [result for result in results if result.row["kind"] == kind]
    answers = answered(peer)
    both = [result for result in some if result.row["id"] in answers]
    if not both:
        return f"| {kind} | {peer} | 0 of {len(some)} | | | |"

    def told(errors: list[float]) -> str:
        return f"{100 * median(errors):.1f} / {100 * quantile(errors, 0.9):.1f} %"

    theirs = told([abs(answers[result.row["id"]] / result.measured - 1) for result in both])
    ours = told([abs(result.error) for result in both])
    naive = told([abs(result.naive / result.measured - 1) for result in both])
    return f"| {kind} | {peer} | {len(both)} of {len(some)} | {ours} | {theirs} | {naive} |"


def report(kinds: tuple[str, ...] = KINDS) -> list[str]:
    """Build the table: by planner and kind, on the rows that the planner answers."""
    results = judged(HELD_OUT, kinds)
    table = ["| figure | planner | rows | iomodel | the planner | naive |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    return [*table, *(line(kind, peer, results) for peer in VERSIONS for kind in kinds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ask", action="store_true", help="install the peers and ask them anew")
    parser.add_argument("--environments", type=Path, help="folder of their environments; a temporary one by default")
    options = parser.parse_args()
    if options.ask:
        with tempfile.TemporaryDirectory() as temporary:
            ask(options.environments or Path(temporary))
    print("\n".join(report()))


if __name__ == "__main__":
    main()
