"""Files that belong together: a config with its quantisation, a trace of requests, a store of a sweep."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import iomodel
from tests.fuzz.files import configs, write
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import as_json, nearly, text_changed

SCHEMES: tuple[dict[str, Any], ...] = (
    {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
    {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head", "*router*"]}},
    {"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 128, "exclude_modules": ["lm_head"]}},
    {
        "quantization": {
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {"model.layers.0.mlp": {"quant_algo": "FP8"}},
        }
    },
    {"quantization": {"config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float"}}}}},
)


def quantisation(rng: Random) -> Case:
    """A folder of a checkpoint: config.json, and hf_quant_config.json beside it."""
    folder = Path("checkpoint")
    if folder.is_symlink() or not folder.is_dir():
        folder.mkdir()
    config = {name: entry for name, entry in rng.choice(configs()).items() if name != "quantization_config"}
    (folder / "config.json").write_text(as_json(config), encoding="utf-8")
    content = nearly(as_json(rng.choice(SCHEMES)).encode(), rng, as_json)
    write(content, str(folder / "hf_quant_config.json"), rng)

    def run() -> object:
        spec = iomodel.model(str(folder / "config.json"))
        return spec.to_json(), spec.weight_bytes(), spec.kv_bytes(1000)

    return Case("quantisations", f"{as_json(config)[:800]}, {content[:2000]!r}", lambda: answered(run))


TRACE = b"arrival,prompt,output\n0,64,2\n0.5,100,1\n1.25,7,3\n"
CELLS = (b"nan", b"inf", b"-1", b"1e400", b"9" * 5000, b"", b"x", b"1.5", b'"', b"\0", b"1e30", "٣".encode(), b"1_0")


def trace(rng: Random) -> Case:
    """A CSV file of requests."""
    content = TRACE
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.6:
            lines = [line.split(b",") for line in content.split(b"\n")]
            line = rng.choice(lines)
            line[rng.randrange(len(line))] = rng.choice(CELLS)
            content = b"\n".join(map(b",".join, lines))
        else:
            content = text_changed(content, rng)
    name = write(content, "trace.csv", rng)
    run = lambda: iomodel.simulate("llama-3-8b", "h100-sxm5", arrivals=name, batch=2).to_json()  # noqa: E731
    return Case("traces", f"{content[:1500]!r}", lambda: answered(run))


PLAN: dict[str, Any] = {
    "algorithm": "flash2", "q_len": [8, 16, 24], "head_dim": [4, 8], "block_q": 4, "block_kv": 4, "chunk": {"q_len": 1},
}  # fmt: skip


@cache
def finished() -> Path:
    """A store that is whole."""
    path = Path("whole.zarr").absolute()
    shutil.rmtree(path, ignore_errors=True)
    iomodel.sweep("cost", **PLAN, store=path, progress=False)
    return path


def store(rng: Random) -> Case:
    """A store with files changed, cut off, taken out, exchanged or in the way; what is answered is the right answer."""
    whole, path = finished(), Path("store.zarr").absolute()
    if not whole.is_dir():  # another campaign in another folder
        finished.cache_clear()
        whole = finished()
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    told = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        files = sorted(file for file in path.rglob("*") if file.is_file())
        file, kind = rng.choice(files), rng.random()
        told.append(f"{file.relative_to(path)}: {kind:.2f}")
        if kind < 0.35:
            file.write_bytes(text_changed(file.read_bytes(), rng))
        elif kind < 0.55:
            file.write_bytes(file.read_bytes()[: rng.randrange(1 + file.stat().st_size)])
        elif kind < 0.7:
            file.unlink()
        elif kind < 0.85:
            file.write_bytes(rng.choice(files).read_bytes())
        elif kind < 0.92:
            file.write_bytes(rng.choice((b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"")))
        else:
            file.unlink()
            file.mkdir()

    def run() -> object:
        again = iomodel.sweep("cost", **PLAN, store=path, progress=False).load()
        right = iomodel.sweep("cost", **PLAN, progress=False)
        assert again.identical(right), "a store gives another answer than memory"
        return again

    return Case("stores", "; ".join(told), lambda: answered(run))
