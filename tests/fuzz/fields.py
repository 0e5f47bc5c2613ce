"""Values that are right, or nearly, by the name of an argument: a name means the same in every function and command."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, get_args

import numpy as np

import iomodel
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cost import tally_for
from iomodel.expressions import known_options
from iomodel.symbols import LAUNCH, OPTIONS
from iomodel.workload import DType

DTYPES = get_args(DType)
NUMBERS = tuple(entry.name for entry in OPTIONS)
SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 48, 64)


def small(rng: Random) -> int:
    """A length or a tile: mostly a few rows."""
    return rng.choice(SIZES)


def length(rng: Random) -> int:
    """A length of a sequence, now and then a long one."""
    return rng.choice((*SIZES, *SIZES, 100, 512, 1000, 4096, 65_537))


def algorithm(rng: Random) -> str:
    return rng.choice(iomodel.list_algorithms())


def mask(rng: Random, q_len: int = 12, kv_len: int = 12) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return "full"
    if kind < 0.65:
        return "causal"
    if kind < 0.85:
        left, right = rng.choice((None, 0, 1, 5)), rng.choice((None, 0, 3))
        return iomodel.Window(left=left, right=right, align=rng.choice(("bottom-right", "top-left")))
    if kind < 0.93 and q_len <= 64:
        first = rng.randint(1, q_len)
        rest = [q_len - first] if first < q_len else []
        return iomodel.Documents([first, *rest], causal=rng.random() < 0.5)
    block_q, block_kv = rng.choice((4, 16)), rng.choice((4, 16))
    rows, columns = -(-q_len // block_q), -(-kv_len // block_kv)
    if rows * columns > 1000:
        return "full"
    return iomodel.BlockMask([[rng.random() < 0.7 for _ in range(columns)] for _ in range(rows)], block_q, block_kv)


def call_fields(rng: Random, name: str | None = None) -> dict[str, Any]:
    """The fields of an Attention that are most likely to be answered."""
    ways = find_algorithm(name).directions if name is not None else ("forward", "backward", "both")
    q_len = length(rng)
    kv_len = q_len if rng.random() < 0.7 else length(rng)
    kv_heads = rng.choice((1, 1, 2))
    fields: dict[str, Any] = {
        "q_len": q_len,
        "head_dim": rng.choice((4, 8, 16, 64, 128)),
        "mask": mask(rng, q_len, kv_len),
    }
    fields["direction"] = "forward" if "forward" in ways and rng.random() < 0.6 else rng.choice(list(ways))
    if kv_len != q_len and not isinstance(fields["mask"], iomodel.Documents):
        fields["kv_len"] = kv_len
    optional: dict[str, Any] = {
        "batch": rng.choice((1, 2)),
        "kv_heads": kv_heads,
        "value_dim": rng.choice((4, 8, 64)),
        "dtype": rng.choice(DTYPES),
        "bias": True,
        "softcap": 30.0,
        "alibi": True,
        "sinks": True,
        "dropout": 0.1,
        "kv_dtype": "fp8",
        "kv_scales": rng.choice(("head", "token")),
        "page_size": rng.choice((4, 16)),
    }
    for field, value in optional.items():
        if rng.random() < (0.3 if field in ("batch", "kv_heads", "dtype") else 0.04):
            fields[field] = value
    if "kv_heads" in fields or rng.random() < 0.2:
        fields["heads"] = kv_heads * rng.choice((1, 2, 4))
    return fields


def workload(rng: Random, name: str | None = None) -> Any:
    """A call that is likely answered; one of many lengths now and then."""
    while True:
        fields = call_fields(rng, name)
        if rng.random() < 0.15:
            fields = {key: value for key, value in fields.items() if key not in ("q_len", "kv_len", "batch")}
            fields["q_lens"] = [small(rng) for _ in range(rng.randint(1, 4))]
            make: Callable[..., Any] = iomodel.VarlenAttention
        else:
            make = iomodel.Attention
        try:
            return make(**fields)
        except iomodel.InputError:
            continue


@cache
def _tile_names(name: str, direction: str) -> tuple[str, ...]:
    try:
        call = iomodel.Attention(q_len=8, head_dim=8, direction=direction)
        return tuple(tally_for(name, call, {}, tiled=True)[0].tiles)
    except iomodel.IOModelError:
        return ("block_q", "block_kv")


def tiles(rng: Random, name: str, call: Any = None, launched: bool = False) -> dict[str, int]:
    direction = getattr(call, "direction", "forward")
    width = rng.choice((4, 8, 16, 64, 128))
    found = {tile: rng.choice((width, width, small(rng))) for tile in _tile_names(name, direction)}
    if launched or rng.random() < 0.03:
        found |= {entry.name: rng.choice((1, 2, 4, 8)) for entry in LAUNCH if rng.random() < 0.6}
    return found


def options(rng: Random, name: str) -> dict[str, Any]:
    """An option of the algorithm now and then."""
    known = known_options([name])
    return {
        option: rng.choice((1, 2, 3)) if type(default) is int else rng.random() < 0.5
        for option, default in known.items()
        if rng.random() < 0.12
    }


def device(rng: Random) -> Any:
    found = rng.choice(("h100-sxm5", "a100-sxm4-80gb", "sim-a100", rng.choice(iomodel.list_hardware())))
    return found if rng.random() < 0.85 else iomodel.hardware(found)


@cache
def timed() -> Any:
    """A device whose file has timed a call."""
    data = iomodel.hardware("h100-sxm5").to_dict()
    sizes = {"batch": 4, "heads": 16, "kv_heads": 16, "head_dim": 128, "q_len": 512, "kv_len": 512, "dtype": "bf16"}
    call = {**sizes, "direction": "forward", "mask": "causal", "kernel": "torch flash"}
    data["measured"]["attention"] = [{**call, "time": {"value": 1e-4, "unit": "s", "source": "test"}}]
    return iomodel.Hardware(**data)


def model(rng: Random) -> Any:
    found = rng.choice(("llama-3-8b", "gpt-oss-20b", rng.choice(iomodel.list_models())))
    return found if rng.random() < 0.85 else iomodel.model(found)


def several(rng: Random, one: Callable[[Random], Any]) -> Any:
    """A number, or a list or an array of three."""
    kind = rng.random()
    if kind < 0.5:
        return one(rng)
    numbers = [one(rng) for _ in range(3)]
    return numbers if kind < 0.8 else np.array(numbers)


def parameters(rng: Random) -> Any:
    return iomodel.Parameters(step_clocks=rng.choice((0, 100.0)), kernel_launch=rng.choice((0.0, 2e-6)))


def layout(rng: Random) -> Any:
    return iomodel.Layout(tensor_parallel=rng.choice((1, 1, 2, 4)), pipeline_parallel=rng.choice((1, 1, 2)))


FIELDS: dict[str, Callable[[Random], Any]] = {
    "algorithm": algorithm,
    "challenger": algorithm,
    "incumbent": algorithm,
    "attention_algorithm": algorithm,
    "algorithms": lambda rng: [algorithm(rng), rng.choice(("flash2", algorithm(rng)))],
    "over": lambda rng: rng.choice(("length", "sram", "head_dim", "batch")),
    "metric": lambda rng: rng.choice(("bytes", "flops", "time")),
    "limit": lambda rng: rng.choice((50, 500)),
    "step": lambda rng: rng.choice((1, 16)),
    "workload": workload,
    "hardware": device,
    "model": model,
    "name_or_path": device,
    "name_or_path_or_dict": model,
    "mask": mask,
    "direction": lambda rng: rng.choice(("forward", "backward", "both")),
    "seconds": lambda rng: 10.0 ** rng.uniform(-6, 0),
    "sram_bytes": lambda rng: rng.choice((5000, 20_000, 200_000)),
    "sram_elements": lambda rng: rng.choice((2000, 20_000, 100_000)),
    "hbm_bytes": lambda rng: 10 ** rng.randint(4, 9),
    "alignment": lambda rng: rng.choice((1, 4, 16)),
    "min_block_kv": lambda rng: rng.choice((1, 8)),
    "min_blocks_per_sm": lambda rng: rng.choice((1, 2)),
    "epsilon": lambda rng: rng.choice((0.0, 0.1)),
    "objective": lambda rng: rng.choice(("traffic", "time")),
    "residency": lambda rng: "gpu",
    "infeasible": lambda rng: rng.choice(("raise", "mark")),
    "unit": lambda rng: rng.choice(("bytes", "elements")),
    "engine": lambda rng: rng.choice(("auto", "numpy", "numba")),
    "phase": lambda rng: rng.choice(("prefill", "decode")),
    "logits": lambda rng: rng.choice(("last", "all", "none")),
    "heads": lambda rng: rng.choice((1, 2, "all")),
    "most_events": lambda rng: rng.choice((100, 20_000)),
    "up_to": lambda rng: rng.choice((10, 200)),
    "longest": lambda rng: rng.choice((1024, 65_536)),
    "blocks": lambda rng: rng.choice((1, 1000)),
    "parameters": parameters,
    "layout": layout,
    "layouts": lambda rng: [layout(rng)],
    "batch": lambda rng: rng.choice((1, 2, 16)),
    "count": lambda rng: rng.choice((1, 2, 8)),
    "max_count": lambda rng: rng.choice((1, 2, 4)),
    "prompt": length,
    "output": length,
    "q_len": length,
    "kv_len": lambda rng: rng.choice((4096, 70_000)),
    "head_dim": lambda rng: rng.choice((8, 64, 128)),
    "page_size": lambda rng: rng.choice((4, 16)),
    "load": lambda rng: rng.choice((0.5, 2.0)),
    "ttft": lambda rng: rng.choice((0.5, 5.0)),
    "tpot": lambda rng: rng.choice((0.05, 1.0)),
    "deviations": lambda rng: rng.choice((0.0, 2.0)),
    "prices": lambda rng: {"h100-sxm5": 2.5, "a100-sxm4-80gb": 1.5},
    "price_per_hour": lambda rng: 2.5,
    "memory_utilization": lambda rng: rng.choice((0.5, 0.9)),
    "overhead_bytes": lambda rng: rng.choice((0, 2**30)),
    "sensitivity": lambda rng: rng.random() < 0.1,
    "dtype": lambda rng: rng.choice(("bf16", "fp16", rng.choice(DTYPES))),
    "weight_dtype": lambda rng: rng.choice(("bf16", "fp8", "mxfp4")),
    "linear_dtype": lambda rng: rng.choice(("bf16", "fp8")),
    "kv_dtype": lambda rng: rng.choice(("bf16", "fp8")),
    "quantities": lambda rng: rng.choice(("hbm_bytes", ["hbm_bytes", "flops"], "reads", ["reads_K"])),
    "zipped": lambda rng: (),
    "chunk": lambda rng: rng.choice((1, 100, {"q_len": 1})),
    "scheduler": lambda rng: "threads",
    "progress": lambda rng: False,
    "solve": lambda rng: False,
    "budget": lambda rng: 1.0,
    "only": lambda rng: ["hbm_read"],
    "device": lambda rng: 0,
    "base": device,
    "routing": lambda rng: None,
    "formula": lambda rng: iomodel.expressions("flash2", rng.choice(("full", "causal"))).hbm_bytes,
    "tiles": lambda rng: {"block_m": small(rng), "block_n": small(rng), "block_k": small(rng)},
    "values": lambda rng: {
        **iomodel.Attention(q_len=length(rng), head_dim=8).numbers,
        "block_q": small(rng),
        "block_kv": small(rng),
    },
    "execution": lambda rng: find_algorithm("flash2").execution["forward"],
    "layer": lambda rng: iomodel.Linear(rows=length(rng), in_features=64, out_features=small(rng)),
}
"""What is not here is left out where it may be, and is a small number where it must be given."""
