"""Hold the time of a layer of experts against public tables of measured kernels, by device, engine and type.

    python benchmarks/experts.py [--judging] [--by kernel|tokens|shape]

The rows are those of tests/measured/experts.csv. Each is one layer of a model with its widths and experts on one
device, asked as a prefill of as many tokens under the engine of the row: the sum of the parts from the choice of the
experts to the sum of their results. Working rows choose parameters, judging rows (whole shapes) only judge. The
naive estimate beside it takes the bytes of the experts hit over the bandwidth or their FLOPs over 60 % of the peak,
whichever takes longer.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_newcomer import ENGINES, quantile  # noqa: E402
from iomodel.devices.device import hardware  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from iomodel.models.registry import ModelSpec, model  # noqa: E402
from iomodel.planning.step.expert_loads import approximate_experts_hit  # noqa: E402
from iomodel.planning.step.step import step  # noqa: E402
from iomodel.workloads.dtypes import WEIGHT_SIZE  # noqa: E402

MEASURED = ROOT / "tests" / "measured" / "experts.csv"
WEIGHTS = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}  # fmt: skip
"""Types of the weights by those of the tables."""
BESIDE = ("router", "shared")
"""First words of parts of the layer that the tables leave out."""
PEAK = 0.6
"""Share of the peak in the naive estimate [-]."""
Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class Judged:
    """A measured time with the predicted and the naive one [s]; None if the library refuses the row."""

    row: dict[str, str]
    predicted: float | None
    naive: float

    @property
    def measured(self) -> float:
        return float(self.row["us"]) * 1e-6

    @property
    def error(self) -> float:
        """Signed error: predicted over measured time, less one."""
        return -1.0 if self.predicted is None else self.predicted / self.measured - 1


def rows(role: str) -> list[dict[str, str]]:
    """List the rows with a role."""
    with MEASURED.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["role"] == role]


def shape(row: dict[str, str]) -> Shape:
    """Return the widths of a row and of an expert, and the experts of a token and of the layer."""
    names = ("hidden", "intermediate", "experts_per_token", "experts")
    return tuple(int(row[name]) for name in names)  # type: ignore[return-value]


@cache
def layer(widths: Shape, in_blocks: bool) -> ModelSpec:
    """Return a model of one layer with experts."""
    hidden, intermediate, per_token, experts = widths
    config: dict[str, Any] = {
        "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": hidden,
        "intermediate_size": intermediate, "moe_intermediate_size": intermediate, "num_experts": experts,
        "num_experts_per_tok": per_token, "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 1024, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "decoder_sparse_step": 1, "mlp_only_layers": [], "max_position_embeddings": 1 << 20, "hidden_act": "silu",
    }  # fmt: skip
    if in_blocks:
        config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    return model(config)


@cache
def parts(device: str, engine: str, dtype: str, widths: Shape, tokens: int) -> dict[str, float]:
    """Time the parts of a layer of experts [s]."""
    in_blocks = dtype == "fp8_block"
    weights = None if in_blocks or dtype == "bfloat16" else WEIGHTS[dtype]
    timed = step(
        layer(widths, in_blocks),
        device,
        q_len=tokens,
        kv_len=tokens,
        logits="none",
        weight_dtype=weights,
        engine=engine,
    )
    names = [part.name for part in timed.parts]
    experts = timed.parts[names.index("choose experts") :]
    return {part.name: part.seconds for part in experts if not part.name.startswith(BESIDE)}


def asked(row: dict[str, str]) -> str:
    """Return the engine whose kernels a row has: CUTLASS's are those of TensorRT-LLM's benchmark."""
    engine = ENGINES[row["engine"]]
    return "trtllm-bench" if engine == "tensorrt-llm" and "cutlass" in row["kernel"] else engine


def naive(row: dict[str, str]) -> float:
    """Estimate the time of a row from bytes over bandwidth and FLOPs over 60 % of the peak [s]."""
    hidden, intermediate, per_token, experts = shape(row)
    weights, tokens = WEIGHTS[row["dtype"]], int(row["tokens"])
    device = hardware(row["device"])
    hit = approximate_experts_hit(experts, per_token, tokens)
    moved = 3 * hidden * intermediate * hit * WEIGHT_SIZE[weights]
    peaks = device.compute.peak
    figure = {"nvfp4": peaks.fp4, "fp8": peaks.fp8}.get(weights) or peaks.bf16
    peak = float(figure.value) if figure is not None else rates(device, "bf16").peak
    flops = 6 * hidden * intermediate * per_token * tokens
    return float(max(moved / rates(device, "bf16").hbm_peak, flops / (PEAK * peak)))


def judged(role: str) -> list[Judged]:
    """Predict every row with a role."""
    results = []
    for row in rows(role):
        try:
            found = parts(row["device"], asked(row), row["dtype"], shape(row), int(row["tokens"]))
            results.append(Judged(row, sum(found.values()), naive(row)))
        except IOModelError:
            results.append(Judged(row, None, naive(row)))
    return results


def group(row: dict[str, str], by: str) -> str:
    """Name the group of a row in a table."""
    architecture = hardware(row["device"]).architecture
    kind = {"kernel": row["kernel"], "tokens": row["tokens"], "shape": "x".join(map(str, shape(row)))}[by]
    if by == "kernel":
        return f"{architecture} {row['engine']} {row['dtype']} {kind}"
    return f"{architecture} {row['dtype']} {kind}"


def report(role: str, by: str) -> Iterator[str]:
    """Write a row for each group: number, refused, errors and sign of the library and of the naive estimate."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for result in judged(role):
        groups[group(result.row, by)].append(result)
        groups[f"all of {hardware(result.row['device']).architecture}"].append(result)
        groups["all"].append(result)
    yield "| rows | number | refused | median error | 90th percentile | median sign | naive: median | 90th |"
    yield "| --- | " + "---: | " * 7
    for name, some in sorted(groups.items()):
        errors = [abs(one.error) for one in some]
        simple = [abs(one.naive / one.measured - 1) for one in some]
        signs = [one.error for one in some if one.predicted is not None]
        sign = f"{median(signs):+.1%}" if signs else ""
        figures = f"{median(errors):.1%} | {quantile(errors, 0.9):.1%} | {sign} | {median(simple):.1%}"
        refused = sum(one.predicted is None for one in some)
        yield f"| {name} | {len(some)} | {refused} | {figures} | {quantile(simple, 0.9):.1%} |".replace("%", " %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judging", action="store_true", help="the rows that judge")
    parser.add_argument("--by", choices=("kernel", "tokens", "shape"), default="kernel", help="groups of the table")
    options = parser.parse_args()
    print("\n".join(report("judging" if options.judging else "working", options.by)))


if __name__ == "__main__":
    main()
