"""Hold training steps against published throughput and memory: signed and absolute errors, for throughput beside a
constant utilisation.

Run from the repository: python -m benchmarks.training_accuracy. It prints the tables of docs/training.md.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median
from typing import Any

import iomodel
from iomodel.models.decoder_layer import DecoderLayer
from iomodel.models.spec import ModelSpec

ROWS = Path(__file__).parents[1] / "tests/measured/training.csv"
NAIVE = 0.4
"""Utilisation of the baseline [-]."""
SHAPES = {
    "125m": (12, 768, 12),
    "350m": (24, 1024, 16),
    "760m": (24, 1536, 12),
    "1b": (24, 2048, 16),
    "3b": (32, 2560, 20),
    "7b": (32, 4096, 32),
    "13b": (40, 5120, 40),
    "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}
"""Layers, width and heads of the models of the rows: scripts/train/yamls/pretrain of llm-foundry."""
GPT3 = {"gpt3-5b": (24, 4096, 32), "gpt3-20b": (44, 6144, 48), "gpt3-175b": (96, 12288, 96)}
LLAMA2 = {"llama-2-7b": (32, 4096, 32, 32, 11008), "llama-2-13b": (40, 5120, 40, 40, 13824)}
LLAMA2 |= {"llama-2-34b": (48, 8192, 64, 8, 22016), "llama-2-70b": (80, 8192, 64, 8, 28672)}
"""Layers, width, heads, heads of K and V, and width of the MLP."""
NANOTRON = {
    "llama-1.34b": (16, 2048, 32, 8192, True),
    "llama-3.57b": (28, 3072, 32, 8192, True),
    "llama-8.86b": (32, 4096, 32, 14336, False),
    "llama-80b": (80, 8192, 64, 28672, False),
}
"""Layers, width, heads, width of the MLP, and tied embeddings: scripts/scaling_benchmarks.py of nanotron."""


def gpt(title: str, shape: tuple[int, int, int], vocabulary: int, positions: int) -> ModelSpec:
    """Build a GPT of layers, width and heads: LayerNorm, biases, learned positions, tied embeddings."""
    layers, width, heads = shape
    layer = DecoderLayer(
        attention={"heads": heads, "head_dim": width // heads, "qkv_bias": True, "o_bias": True, "rope": False},
        mlp={"intermediate_size": 4 * width, "gated": False, "activation": "gelu", "bias": True},
        norm_bias=True,
    )
    return ModelSpec(
        title=title,
        hidden_size=width,
        vocab_size=vocabulary,
        tied_embeddings=True,
        other_weights=positions * width,
        layers=(layer,) * layers,
    )


def mpt(name: str, positions: int) -> ModelSpec:
    """Build an MPT of the rows."""
    return gpt(f"MPT {name}", SHAPES[name], 50368, positions)


def llama2(name: str) -> ModelSpec:
    """Build a Llama 2 of the rows."""
    layers, width, heads, kv_heads, wide = LLAMA2[name]
    layer = DecoderLayer(
        attention={"heads": heads, "kv_heads": kv_heads, "head_dim": width // heads}, mlp={"intermediate_size": wide}
    )
    return ModelSpec(title=name, hidden_size=width, vocab_size=32000, layers=(layer,) * layers)


def llama(name: str) -> ModelSpec:
    """Build a model of nanotron's rows, with its vocabulary of 131,072 words."""
    layers, width, heads, wide, tied = NANOTRON[name]
    layer = DecoderLayer(attention={"heads": heads, "head_dim": width // heads}, mlp={"intermediate_size": wide})
    return ModelSpec(title=name, hidden_size=width, vocab_size=131072, tied_embeddings=tied, layers=(layer,) * layers)


def model_of(row: dict[str, str]) -> ModelSpec:
    """Build the model of a row, or find it by name."""
    name, positions = row["model"], int(row["seq_len"])
    if name in SHAPES:
        return mpt(name, positions)
    if name in GPT3:
        return gpt(name, GPT3[name], 51200, positions)  # the vocabulary of Megatron-LM
    if name in NANOTRON:
        return llama(name)
    return llama2(name) if name in LLAMA2 else iomodel.model(name)


def rows() -> list[dict[str, str]]:
    """Read the rows of training.csv."""
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def predicted(row: dict[str, str]) -> iomodel.results.TrainingStep:
    """Predict the step of a row; a batch that micro-batches do not divide runs as one of whole passes."""
    passed, chunks = int(row["micro_batch"]), int(row["virtual_stages"])
    degrees = {name: int(row[name]) for name in ("tensor_parallel", "pipeline_parallel", "expert_parallel")}
    layout = iomodel.Layout(**degrees, devices_per_node=8)
    replicas = int(row["devices"]) // layout.devices
    groups = replicas * layout.data_parallel
    return iomodel.train_step(
        model_of(row),
        row["hardware"],
        batch=max(1, int(row["batch"]) // (groups * passed)) * groups * passed,
        seq_len=int(row["seq_len"]),
        micro_batch=passed,
        data_parallel=replicas,
        layout=layout,
        shard=row["shard"],
        recompute=row["recompute"],
        gradient_dtype=row["gradient_dtype"],
        precision=row["precision"],
        virtual_stages=chunks,
        kernels=row["kernels"],
        overlap=row["overlap"].split(),
        nodes_per_token=int(row["nodes_per_token"]) if row["nodes_per_token"] else None,
        **dict(zip(("attention_algorithm", "attention_implementation"), row["attention"].split(), strict=False)),
    )


def utilisation(row: dict[str, str]) -> float:
    """Return the published share of the peak of a row's precision [-]."""
    if row["published_mfu"]:
        return float(row["published_mfu"]) / 100
    peak = iomodel.hardware(row["hardware"]).quantities[f"compute.peak.{row['precision']}"]
    return float(row["published_tflops"]) * 1e12 / float(peak.value)


def errors(row: dict[str, str]) -> tuple[float, float]:
    """Compute the signed errors of the throughput of the library and of the baseline [-]."""
    measured = float(row["tokens_per_second_per_device"])
    baseline = measured * NAIVE / utilisation(row)
    return predicted(row).tokens_per_second_per_device / measured - 1, baseline / measured - 1


def summary(found: list[float]) -> tuple[float, float, float]:
    """Return the median and the 90th percentile of absolute errors, and the median of signed ones [%]."""
    sizes = sorted(abs(error) for error in found)
    return 100 * median(sizes), 100 * sizes[int(0.9 * (len(sizes) - 1))], 100 * median(found)


def table() -> list[str]:
    """Format the errors by table of rows as Markdown."""
    lines = [
        "| rows | split | number | median | p90 | signed median | MFU of 40 %: median | p90 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in rows():
        groups.setdefault((row["table"], row["split"]), []).append(errors(row))
    for (name, split), pairs in groups.items():
        own, naive = summary([pair[0] for pair in pairs]), summary([pair[1] for pair in pairs])
        lines.append(
            f"| {name} | {split} | {len(pairs)} | {own[0]:.1f} % | {own[1]:.1f} % | {own[2]:+.1f} % "
            f"| {naive[0]:.1f} % | {naive[1]:.1f} % |"
        )
    return lines


def memory_table() -> list[str]:
    """Format the errors of the memory of steps with and without pipelines as Markdown."""
    lines = ["| rows | number | median | p90 | signed median |", "| --- | ---: | ---: | ---: | ---: |"]
    groups: dict[str, list[float]] = {}
    for row in rows():
        if row["memory"]:
            error = predicted(row).memory.total / 2**30 / float(row["memory"]) - 1
            groups.setdefault("one stage" if row["pipeline_parallel"] == "1" else "pipelines", []).append(error)
    groups["all"] = [error for group in groups.values() for error in group]
    for name, group in groups.items():
        middle, wide, signed = summary(group)
        lines.append(f"| {name} | {len(group)} | {middle:.1f} % | {wide:.1f} % | {signed:+.1f} % |")
    return lines


if __name__ == "__main__":
    print("\n".join([*table(), "", *memory_table()]))
