"""Damaged variants of public files: traces, results, logs, reports, profiles, headers of weights, configurations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from iomodel.integrations.nsight.report_file import read_report
from iomodel.models.registry import model
from iomodel.models.weight_files import read_weights
from iomodel.planning.benchmark_files import read_benchmark
from iomodel.planning.simulation.arrivals import read_trace
from iomodel.torch.profile_trace import read_profile
from tests.fuzz.law import answered
from tests.fuzz.texts import tree_changed
from tests.models.test_variant_configs import MISTRAL
from tests.models.test_weight_files import CONFIG, LLAMA, gguf, llama_tensors, safetensors
from tests.support.damage import damaged_by

TESTS = Path(__file__).parents[1]
PIECES = (b"9" * 400, b"-1", b"null", b"[", b"{}", b'"', b"\x00", b"\xff" * 8, b"1e999", b",", b"\n", b"NaN", b": [")
"""Pieces that break readers: long, negative and infinite numbers, brackets, quotes, zeros."""
STRUCTURED = 0.6
"""Share of the variants of a JSON file that stay JSON, with values, keys or elements changed."""
SPAN = 40
"""Longest span that is replaced at once [B]."""


def _header(path: Path) -> object:
    return read_weights(str(path))


class Excerpt(NamedTuple):
    """A public file, or an excerpt of one: its name, its content, and the function that reads a path."""

    name: str
    content: bytes
    read: Callable[[Path], object]


def excerpts() -> Iterator[Excerpt]:
    """Yield the files under tests, and headers and configurations that tests write."""
    folders: dict[str, Callable[[Path], object]] = {
        "planning/traces": _traces,
        "planning/results": read_benchmark,
        "integrations/reports": read_report,
        "torch/profiles": read_profile,
        "models/files": model,
    }
    for folder, read in folders.items():
        for file in sorted((TESTS / folder).iterdir()):
            held = "safetensors" in file.name
            yield Excerpt(file.name, file.read_bytes(), _header if held else read)
    layer = [each for each in llama_tensors() if ".0." in each[0] or "blk" not in each[0]]
    short = {**LLAMA, "tokenizer.ggml.tokens": ["a"] * 9, "llama.block_count": 1}
    experts = {name.replace("llama", "qwen3moe"): value for name, value in short.items()}
    experts |= {"general.architecture": "qwen3moe", "qwen3moe.expert_count": 8, "qwen3moe.expert_used_count": 2}
    yield Excerpt("llama.gguf", gguf(short, layer), model)
    yield Excerpt("experts.gguf", gguf(experts, layer, version=2), model)
    yield Excerpt("x.safetensors", safetensors(model(CONFIG)), _header)
    index = {"metadata": {"total_size": 12345}, "weight_map": {f"layers.{n}.weight": "a.safetensors" for n in range(9)}}
    yield Excerpt("model.safetensors.index.json", _json(index), _header)
    pipeline = {"_class_name": "StableDiffusion3Pipeline", "_diffusers_version": "0.29", "vae": ["diffusers", "A"]}
    sentences = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    configs: dict[str, Any] = {"params.json": MISTRAL, "model_index.json": pipeline, "modules.json": sentences}
    configs["config.json"] = {**CONFIG, "quantization_config": {"quant_method": "fp8", "ignored_layers": ["lm_head"]}}
    for name, content in configs.items():
        yield Excerpt(name, _json(content), model)


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _traces(path: Path) -> None:
    if answered(partial(read_trace, path, timed=True)) == "refused":
        read_trace(path, timed=False)


def _tree(content: bytes) -> Any:
    try:
        return json.loads(content) if content[:1] in (b"{", b"[") else None
    except ValueError:  # a log, whose lines begin with a date
        return None


def variant(excerpt: Excerpt, seed: int, number: int) -> bytes:
    """Damage an excerpt; the same numbers give the same variant."""
    rng = Random(f"{excerpt.name}:{seed}:{number}")
    lines = excerpt.content.split(b"\n") if excerpt.name.endswith(("jsonl", ".csv")) else [excerpt.content]
    place = rng.randrange(len(lines))
    if rng.random() < STRUCTURED and (tree := _tree(lines[place])) is not None:
        for _ in range(rng.randint(1, 3)):
            tree = tree_changed(tree, rng)
        return b"\n".join([*lines[:place], json.dumps(tree).encode(), *lines[place + 1 :]])
    return damaged_by(rng, excerpt.content, SPAN, PIECES)


def outcome(excerpt: Excerpt, content: bytes, folder: Path) -> str:
    """Read a variant: "answered" or "refused"."""
    path = folder / excerpt.name
    path.write_bytes(content)
    try:
        return answered(partial(excerpt.read, path))
    finally:
        path.unlink()  # a config is read with the index beside it
