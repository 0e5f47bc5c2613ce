"""Hold layers of serving engines against public tables of measured kernels, by device, engine and type.

    python benchmarks/layers.py encoders|experts|latents|linear|recurrent [--judging] [--by kernel|size|shape]

The rows are those of tests/measured: `encoder_attention.csv`, `experts.csv`, `latent_attention.csv`,
`linear_layers.csv` and `recurrent_layers.csv`. A layer of experts is asked as a prefill of as many tokens under the
engine of the row: the sum of the parts from the choice of the experts to the sum of their results. Attention of an
encoder is asked by its kernel, that on latents as a part of a step. A linear layer is its product and the quantisation
of its rows. A recurrent layer is its convolution and the update of its states, of prompts or of one token: the kernels
of a setting together. Working rows choose parameters, judging rows (whole shapes) only judge. The naive estimate beside
it takes the bytes over the bandwidth or the FLOPs over 60 % of the peak, whichever takes longer.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving_newcomer import ENGINES, quantile  # noqa: E402
from iomodel.devices.device import Hardware, hardware  # noqa: E402
from iomodel.devices.rates import rates  # noqa: E402
from iomodel.errors import IOModelError  # noqa: E402
from iomodel.models.registry import ModelSpec, model  # noqa: E402
from iomodel.planning.step.expert_loads import approximate_experts_hit  # noqa: E402
from iomodel.planning.step.setting import stored  # noqa: E402
from iomodel.planning.step.step import step  # noqa: E402
from iomodel.planning.step.step_arguments import MULTIPLIED, ROW_TYPE  # noqa: E402
from iomodel.studies.estimate import estimate  # noqa: E402
from iomodel.timing.layer_clock import IN_BLOCKS, layer_clock  # noqa: E402
from iomodel.timing.parameters import DEFAULT  # noqa: E402
from iomodel.workloads.attention import Attention  # noqa: E402
from iomodel.workloads.call import ELEMENT_SIZE  # noqa: E402
from iomodel.workloads.dtypes import WEIGHT_SIZE  # noqa: E402
from iomodel.workloads.elementwise import Elementwise  # noqa: E402
from iomodel.workloads.linear import Linear  # noqa: E402

MEASURED = ROOT / "tests" / "measured"
WEIGHTS = {
    "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4", "int8_wo": "int8", "int4_wo": "int4-g128",
}  # fmt: skip
"""Types of the weights by those of the tables."""
BESIDE = ("router", "shared")
"""First words of parts of the layer that the tables leave out."""
COPIES = 5
"""Weights that the collection of linear layers takes in turn, so that they come from DRAM where the L2 is small [-]."""
PEAK = 0.6
"""Share of the peak in the naive estimate [-]."""
Row = dict[str, str]


class Kind(NamedTuple):
    """A table of layers: its file, what tells settings, shapes and sizes of rows apart, and both estimates [s]."""

    file: str
    setting: tuple[str, ...]
    shape: tuple[str, ...]
    size: tuple[str, ...]
    named: tuple[str, ...]
    predicted: Callable[[Row], float]
    naive: Callable[[Row], float]


@dataclass(frozen=True)
class Judged:
    """A measured time with the predicted and the naive one [s]; None if the library refuses the row."""

    row: Row
    predicted: float | None
    naive: float

    @property
    def measured(self) -> float:
        return float(self.row["us"]) * 1e-6

    @property
    def error(self) -> float:
        """Signed error: predicted over measured time, less one."""
        return -1.0 if self.predicted is None else self.predicted / self.measured - 1


def numbers(row: Row, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return some numbers of a row."""
    return tuple(int(row[name]) for name in names)


def roofline(device: Hardware, weights: str, moved: float, flops: float) -> float:
    """Estimate a time from bytes over bandwidth and FLOPs over 60 % of the peak [s]."""
    peaks = device.compute.peak
    figure = {"nvfp4": peaks.fp4, "fp8": peaks.fp8}.get(weights) or peaks.bf16
    peak = float(figure.value) if figure is not None else rates(device, "bf16").peak
    return float(max(moved / rates(device, "bf16").hbm_peak, flops / (PEAK * peak)))


SHAPE = ("hidden", "intermediate", "experts_per_token", "experts")


@cache
def layer_of_experts(widths: tuple[int, ...], in_blocks: bool) -> ModelSpec:
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


def alone() -> AbstractContextManager[object]:
    """Time the products of steps as those of kernels that run alone, which no limit of power holds for minutes."""
    return patch.object(sys.modules[step.__module__], "SERVED", 1.0)


def experts(row: Row) -> float:
    """Time a layer of experts under the engine whose kernels it has [s].

    CUTLASS's kernels are those of TensorRT-LLM's benchmark.
    """
    in_blocks = row["dtype"] == "fp8_block"
    engine, tokens = ENGINES[row["engine"]], int(row["tokens"])
    with alone():
        timed = step(
            layer_of_experts(numbers(row, SHAPE), in_blocks),
            row["device"],
            q_len=tokens,
            kv_len=tokens,
            logits="none",
            weight_dtype=None if in_blocks or row["dtype"] == "bfloat16" else WEIGHTS[row["dtype"]],
            engine="trtllm-bench" if engine == "tensorrt-llm" and "cutlass" in row["kernel"] else engine,
        )
    first = [part.name for part in timed.parts].index("choose experts")
    return sum(part.seconds for part in timed.parts[first:] if not part.name.startswith(BESIDE))


def naive_experts(row: Row) -> float:
    """Estimate the time of a layer of experts from the weights of the experts hit and its FLOPs [s]."""
    hidden, intermediate, per_token, count = numbers(row, SHAPE)
    weights, tokens = WEIGHTS[row["dtype"]], int(row["tokens"])
    hit = approximate_experts_hit(count, per_token, tokens)
    moved = 3 * hidden * intermediate * hit * WEIGHT_SIZE[weights]
    return roofline(hardware(row["device"]), weights, moved, 6 * hidden * intermediate * per_token * tokens)


def linear(row: Row) -> float:
    """Time a linear layer as engines call it: the quantisation of its rows, and its product [s]."""
    clock = layer_clock(hardware(row["device"]), DEFAULT, True)
    rows, width, outputs = numbers(row, ("rows", "in_features", "out_features"))
    weights, scales = stored(WEIGHTS[row["dtype"]])
    products = IN_BLOCKS if row["dtype"] == "fp8_block" else MULTIPLIED.get(weights, "bf16")
    kind = "fp8" if products == IN_BLOCKS else ROW_TYPE.get(products, products)
    kind = "bf16" if row["dtype"].endswith("_wo") else kind
    layer = Linear(
        rows=rows,
        in_features=width,
        out_features=outputs,
        dtype=kind,
        weight_dtype=weights,
        out_dtype="bf16",
        scale_block=scales,
    )
    seconds = clock.linear(layer, products="bf16" if kind == "bf16" else products).seconds
    if ELEMENT_SIZE[kind] < ELEMENT_SIZE["bf16"]:
        shape = Elementwise(rows=rows, channels=width, dtype="bf16", kv_dtype=kind)
        seconds += clock.elementwise("append_latent", shape).seconds
    return seconds


def naive_linear(row: Row) -> float:
    """Estimate the time of a linear layer from its weights, rows and FLOPs [s]."""
    rows, width, outputs = numbers(row, ("rows", "in_features", "out_features"))
    weights = WEIGHTS[row["dtype"]]
    moved = width * outputs * WEIGHT_SIZE[weights] + 2 * rows * (width + outputs)
    return roofline(hardware(row["device"]), weights, moved, 2 * rows * width * outputs)


HEADS = ("key_heads", "value_heads")
HEAD_DIM = 128


@cache
def recurrent_layer(rule: str, heads: tuple[int, ...]) -> ModelSpec:
    """Return a model of one layer with a gated delta rule, Qwen's or Kimi's."""
    keys, values = heads
    if rule == "kda":
        of_rule: dict[str, Any] = {
            "model_type": "kimi_linear", "linear_attn_config": {
                "kda_layers": [1], "full_attn_layers": [], "num_heads": values, "head_dim": HEAD_DIM,
                "short_conv_kernel_size": 4,
            },
        }  # fmt: skip
    else:
        of_rule = {
            "model_type": "qwen3_5_text", "layer_types": ["linear_attention"], "linear_num_key_heads": keys,
            "linear_num_value_heads": values, "linear_key_head_dim": HEAD_DIM, "linear_value_head_dim": HEAD_DIM,
            "linear_conv_kernel_dim": 4,
        }  # fmt: skip
    return model(
        {
            **of_rule, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 1, "head_dim": HEAD_DIM,
            "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024, "torch_dtype": "bfloat16",
        }
    )  # fmt: skip


def recurrent(row: Row) -> float:
    """Time the update of the states of a layer with a gated delta rule [s]."""
    tokens = int(row["tokens"])
    timed = step(
        recurrent_layer(row["rule"], numbers(row, HEADS)),
        row["device"],
        batch=int(row["batch"]),
        q_len=tokens,
        kv_len=tokens if row["phase"] == "prompt" else 1024,
        logits="none",
        engine=f"vllm=={row['release']}" if row["engine"] == "vllm" else ENGINES[row["engine"]],
    )
    return sum(part.seconds for part in timed.parts if part.name in UPDATE)


UPDATE = ("convolution", "state update")
"""Parts of a step that the table times."""


def naive_recurrent(row: Row) -> float:
    """Estimate the time of an update from the inputs, the outputs and the states, and from its FLOPs [s]."""
    update = recurrent_layer(row["rule"], numbers(row, HEADS)).layers[0].recurrent
    assert update is not None
    batch, tokens = numbers(row, ("batch", "tokens"))
    moved = 2 * batch * (update.state.bytes + tokens * (update.widths.inputs + update.widths.outputs))
    flops = update.prefill_flops(tokens) if tokens > 1 else update.decode_flops()
    return roofline(hardware(row["device"]), "bf16", moved, batch * flops)


@cache
def latent_layer(heads: int) -> ModelSpec:
    """Return a model of one layer with the attention of DeepSeek-V3 and some heads."""
    return model(
        {
            "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 2048, "num_hidden_layers": 1,
            "num_attention_heads": heads, "num_key_value_heads": heads, "q_lora_rank": 1536, "kv_lora_rank": 512,
            "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 1024,
            "n_routed_experts": 0, "torch_dtype": "bfloat16",
        }
    )  # fmt: skip


def latents(row: Row) -> float:
    """Time attention on latents, of prompts or of one token of each request [s]."""
    heads, batch, keys = numbers(row, ("heads", "batch", "keys"))
    timed = step(
        latent_layer(heads),
        row["device"],
        batch=batch,
        q_len=keys if row["phase"] == "prompt" else 1,
        kv_len=keys,
        logits="none",
        kv_dtype="fp8" if row["cache"] == "fp8" else None,
        engine=ENGINES[row["engine"]],
    )
    return sum(part.seconds for part in timed.parts if part.name.startswith("attention ("))


def naive_latents(row: Row) -> float:
    """Estimate the time of attention on latents from the cache and its products [s]."""
    heads, batch, keys = numbers(row, ("heads", "batch", "keys"))
    prompt = row["phase"] == "prompt"
    flops = batch * heads * keys * ((keys + 1) * 320 if prompt else 2 * 1088)
    moved = 2 * batch * heads * keys * 512 if prompt else batch * keys * 576 * (1 if row["cache"] == "fp8" else 2)
    return roofline(hardware(row["device"]), "bf16", moved, flops)


def encoders(row: Row) -> float:
    """Time attention without a mask by the kernel of the row, started from a graph on tensors that repeat [s]."""
    heads, width, batch, tokens = numbers(row, ("heads", "head_dim", "batch", "tokens"))
    call = Attention(batch=batch, heads=heads, q_len=tokens, head_dim=width, dtype="bf16")
    repeated = replace(DEFAULT, in_graph=1.0, warm_l2=1.0)
    return float(estimate(f"fa{row['kernel'][-1]}", call, row["device"], parameters=repeated).seconds)


def naive_encoders(row: Row) -> float:
    """Estimate the time of attention without a mask from its tensors and its products [s]."""
    heads, width, batch, tokens = numbers(row, ("heads", "head_dim", "batch", "tokens"))
    rows_of = batch * heads * tokens * width
    return roofline(hardware(row["device"]), "bf16", 8 * rows_of, 4 * rows_of * tokens)


KINDS = {
    "encoders": Kind(
        "encoder_attention.csv", ("engine", "batch", "tokens"), ("heads", "head_dim"), ("batch", "tokens"),
        ("engine", "kernel"), encoders, naive_encoders,
    ),
    "experts": Kind(
        "experts.csv", ("engine", "dtype", "kernel", "tokens"), SHAPE, ("dtype", "tokens"),
        ("engine", "dtype", "kernel"), experts, naive_experts,
    ),
    "linear": Kind(
        "linear_layers.csv", ("engine", "dtype", "kernel", "rows"), ("in_features", "out_features"), ("dtype", "rows"),
        ("engine", "dtype", "kernel"), linear, naive_linear,
    ),
    "latents": Kind(
        "latent_attention.csv", ("engine", "phase", "cache", "batch", "keys"), ("heads",), ("phase", "batch", "keys"),
        ("engine", "phase", "cache"), latents, naive_latents,
    ),
    "recurrent": Kind(
        "recurrent_layers.csv", ("engine", "rule", "phase", "batch", "tokens"), HEADS,
        ("rule", "phase", "batch", "tokens"), ("engine", "rule", "phase"), recurrent, naive_recurrent,
    ),
}  # fmt: skip


def rows(kind: Kind, role: str) -> list[Row]:
    """List the settings with a role, each with the times of all its kernels."""
    with (MEASURED / kind.file).open(newline="", encoding="utf-8") as file:
        found: dict[tuple[str, ...], Row] = {}
        for row in csv.DictReader(file):
            if row["role"] == role:
                key = tuple(row[name] for name in ("device", *kind.setting, *kind.shape))
                before = float(found[key]["us"]) if key in found else 0.0
                found[key] = {**row, "us": str(before + float(row["us"]))}
    return list(found.values())


def judged(name: str, role: str) -> list[Judged]:
    """Predict every row of a table with a role."""
    kind = KINDS[name]
    return [Judged(row, answered(kind, row), kind.naive(row)) for row in rows(kind, role)]


def answered(kind: Kind, row: Row) -> float | None:
    """Predict the time of a row [s]; None if the library refuses it."""
    try:
        return kind.predicted(row)
    except IOModelError:
        return None


def in_l2(row: Row) -> bool:
    """Check that the L2 holds the weights that the collection of a linear layer repeats in turn."""
    weights = int(row["in_features"]) * int(row["out_features"]) * WEIGHT_SIZE[WEIGHTS[row["dtype"]]]
    return COPIES * weights < (rates(hardware(row["device"]), "bf16").l2_capacity or 0)


def group(kind: Kind, row: Row, by: str) -> str:
    """Name the group of a row in a report."""
    names = {"kernel": kind.named, "size": kind.size, "shape": (*kind.named[1:2], *kind.shape)}[by]
    return " ".join([hardware(row["device"]).architecture or "", *(row[name] for name in names)])


def report(name: str, role: str, by: str) -> Iterator[str]:
    """Write a row for each group: number, refused, errors and sign of the library and of the naive estimate."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for result in judged(name, role):
        titles = [group(KINDS[name], result.row, by)]
        for every in ("all", "all beyond the L2")[: 1 + (name == "linear" and not in_l2(result.row))]:
            titles += [every, f"{every} of {hardware(result.row['device']).architecture}"]
        for title in titles:
            groups[title].append(result)
    yield "| rows | number | refused | median error | 90th percentile | median sign | naive: median | 90th |"
    yield "| --- | " + "---: | " * 7
    for title, some in sorted(groups.items()):
        errors = [abs(one.error) for one in some]
        simple = [abs(one.naive / one.measured - 1) for one in some]
        signs = [one.error for one in some if one.predicted is not None]
        sign = f"{median(signs):+.1%}" if signs else ""
        figures = f"{median(errors):.1%} | {quantile(errors, 0.9):.1%} | {sign} | {median(simple):.1%}"
        refused = sum(one.predicted is None for one in some)
        yield f"| {title} | {len(some)} | {refused} | {figures} | {quantile(simple, 0.9):.1%} |".replace("%", " %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS), help="the table")
    parser.add_argument("--judging", action="store_true", help="the rows that judge")
    parser.add_argument("--by", choices=("kernel", "size", "shape"), default="kernel", help="groups of the report")
    options = parser.parse_args()
    print("\n".join(report(options.kind, "judging" if options.judging else "working", options.by)))


if __name__ == "__main__":
    main()
