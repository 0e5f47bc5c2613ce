"""Hardware files, model files, configs and plans of sweeps: read, and used if they are taken."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import iomodel
from iomodel.common.yaml_files import specs_folder
from iomodel.models.families import ALIASES, FAMILIES
from iomodel.studies.sweeps.file import plan_file
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import as_json, as_yaml, nearly, tree_changed

CALL = iomodel.Attention(q_len=64, head_dim=64, dtype="fp16")


@cache
def shipped(folder: str) -> tuple[bytes, ...]:
    """The files of a folder of the specs."""
    found = sorted((specs_folder() / folder).iterdir(), key=lambda file: file.name)
    return tuple(file.read_bytes() for file in found if file.name.endswith(".yaml"))


def write(content: bytes, name: str, rng: Random) -> str:
    """A file of that content; or, seldom, a folder of that name, a link to itself, a file that may not be read."""
    path = Path(name)
    if path.is_symlink() or path.is_file():
        path.chmod(0o600) if path.is_file() else None
        path.unlink()
    elif path.is_dir():
        path.rmdir()
    kind = rng.random()
    if kind < 0.004:
        path.mkdir()
    elif kind < 0.006:
        path.symlink_to(name)
    elif kind >= 0.008:
        path.write_bytes(content)
        if kind < 0.01:
            path.chmod(0)
    return str(path)


def _taken(name: str, read: Callable[[Any], Any], use: Callable[[Any, Random], None], rng: Random) -> Callable[[], str]:
    """Read a file, and what is not refused is used."""

    def run() -> str:
        found: list[Any] = []
        outcome = answered(lambda: found.append(read(name)))
        if outcome != "answered":
            return outcome
        used = answered(lambda: use(found[0], rng))
        return "answered" if used == "answered" else "taken, and its use refused"

    return run


def hardware(rng: Random) -> Case:
    """A hardware file; a device that it makes is shown, fitted and timed."""
    content = nearly(rng.choice(shipped("hardware")), rng, as_yaml)
    name = write(content, "device.yaml", rng)
    return Case("hardware files", f"hardware({content[:3000]!r})", _taken(name, iomodel.hardware, _use_device, rng))


def _use_device(device: iomodel.Hardware, rng: Random) -> None:
    str(device), device.to_dict(), device.to_yaml()
    use = rng.randrange(4)
    if use == 0:
        str(iomodel.solve("flash2", CALL, device, objective="traffic"))
    elif use == 1:
        iomodel.estimate("flash2", CALL, device, {"block_q": 64, "block_kv": 32}).to_json()
    elif use == 2:
        str(iomodel.step("llama-3-8b", device, batch=1, q_len=1, kv_len=512))
    else:
        str(iomodel.diagnose("flash2", CALL, device, 1e-3, {"block_q": 64, "block_kv": 32}))


def model(rng: Random) -> Case:
    """A model file; a model that it makes is counted and timed."""
    content = nearly(rng.choice(shipped("models")), rng, as_yaml)
    name = write(content, "model.yaml", rng)
    return Case("model files", f"model({content[:3000]!r})", _taken(name, iomodel.model, _use_model, rng))


def _use_model(spec: iomodel.ModelSpec, rng: Random) -> None:
    str(spec), spec.to_json(), spec.weight_bytes(), spec.kv_bytes(1000)
    use = rng.randrange(12)  # the first two take long
    if use == 0:
        str(iomodel.step(spec, "h100-sxm5", batch=1, q_len=1, kv_len=512))
    elif use == 1:
        str(iomodel.plan(spec, "h100-sxm5", prompt=64, output=4))
    elif use < 6:
        spec.to_yaml()


@cache
def configs() -> tuple[dict[str, Any], ...]:
    """A small config of each model type that is known, of one that is not, and of a model that reads more than text."""
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    more = {"num_hidden_layers": 4, "vocab_size": 100, "max_position_embeddings": 512, "torch_dtype": "bfloat16"}
    plain = {**shape, **more, "architectures": ["XForCausalLM"], "tie_word_embeddings": False, "rope_theta": 10000.0}
    window = {
        "sliding_window": 16,
        "use_sliding_window": True,
        "max_window_layers": 2,
        "layer_types": ["full_attention"] * 4,
    }
    experts = {
        "num_experts": 8,
        "num_local_experts": 8,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    }
    latent = {"kv_lora_rank": 32, "q_lora_rank": 48, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
    quantised = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}}
    kinds = [{**plain, "model_type": kind} for kind in (*FAMILIES, *ALIASES, "other")]
    extra = (window, experts, {**latent, **experts}, quantised, {"head_dim": 32, **window})
    return (
        *kinds,
        *({**kind, **more} for kind in kinds for more in extra),
        *({"model_type": "outer", "text_config": kind, "vision_config": {}} for kind in kinds[:6]),
    )


def config(rng: Random) -> Case:
    """A config.json, as a file or as a mapping."""
    data = rng.choice(configs())
    if rng.random() < 0.5:
        for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
            data = tree_changed(data, rng)
        if not isinstance(data, dict):
            data = {"model_type": data}
        return Case("configs", f"model({data!r:.3000})", _taken(data, iomodel.model, _use_model, rng))
    content = nearly(as_json(data).encode(), rng, as_json)
    name = write(content, "config.json", rng)
    return Case("configs", f"model({content[:3000]!r})", _taken(name, iomodel.model, _use_model, rng))


PLANS: tuple[dict[str, Any], ...] = (
    {
        "algorithm": "flash2",
        "q_len": {"from": 16, "to": 64, "factor": 2},
        "head_dim": [8, 16],
        "block_q": 8,
        "block_kv": 4,
    },
    {
        "algorithm": ["flash2", "flash1"],
        "q_len": [16, 32],
        "head_dim": 8,
        "block_q": {"from": 4, "to": 12, "step": 4},
        "block_kv": 4,
    },
    {
        "algorithm": "flash2",
        "solve": True,
        "sram_bytes": [20_000, 40_000],
        "q_len": 64,
        "head_dim": 8,
        "quantities": ["hbm_bytes"],
    },
    {
        "algorithm": "split_kv",
        "q_len": 1,
        "kv_len": [64, 128],
        "head_dim": 8,
        "block_q": 1,
        "block_kv": 4,
        "splits": [1, 2],
        "mask": "causal",
    },
    {
        "algorithm": "flash2",
        "q_len": [8, 16],
        "kv_len": [8, 32],
        "zipped": [["q_len", "kv_len"]],
        "head_dim": 8,
        "block_q": 4,
        "block_kv": 4,
        "chunk": 1,
    },
)


def plan(rng: Random) -> Case:
    """The plan of a sweep."""
    content = nearly(as_yaml(rng.choice(PLANS)).encode(), rng, as_yaml)
    name = write(content, "sweep.yaml", rng)
    return Case("sweep plans", f"plan_file({content[:3000]!r})", lambda: answered(lambda: plan_file(os.fspath(name))))
