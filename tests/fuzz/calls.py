"""Workloads, Triton configs and simulations with arguments that are nearly right, or never were."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import iomodel
from tests.fuzz.law import Case, answered
from tests.fuzz.texts import SCALARS, TEXTS, scribble

LENGTHS = (1, 2, 3, 7, 16, 63, 64, 65, 100, 1000, 8192, 10**6, 10**9, 10**12, 10**18, 10**18 + 1, 10**25, 10**30)
"""Lengths and widths; up to 10^18 they are answered."""
WORKLOADS: dict[str, dict[str, Any]] = {
    "Attention": {"q_len": 64, "kv_len": 65, "head_dim": 64, "heads": 4, "kv_heads": 2, "mask": "causal", "batch": 2},
    "VarlenAttention": {"q_lens": [1, 70], "kv_lens": [90, 70], "head_dim": 64, "heads": 4, "mask": "causal"},
    "Linear": {"rows": 100, "in_features": 256, "out_features": 96, "weight_dtype": "int4", "groups": 2},
    "MLP": {"rows": 100, "in_features": 64, "hidden_features": 96, "gated": True, "dtype": "bf16"},
    "Experts": {"loads": [100, 1, 30], "in_features": 64, "hidden_features": 32, "gated": False},
    "CrossEntropy": {"rows": 100, "in_features": 64, "vocab_size": 1000, "dtype": "bf16"},
    "Recurrence": {"tokens": 100, "head_dim": 64, "heads": 4, "key_heads": 2, "gate": "head", "delta": True},
}
"""Fields of each kind of workload."""
ALGORITHMS = {
    "Attention": ("flash2", "flash1", "split_kv", "standard", "eager", "nsa", "dsa", "flash3"),
    "VarlenAttention": ("flash2", "split_kv", "flash3"),
    "Linear": ("gemm",),
    "MLP": ("split_mlp", "fused_mlp"),
    "Experts": ("split_mlp", "fused_mlp"),
    "CrossEntropy": ("logits_cross_entropy", "cut_cross_entropy"),
    "Recurrence": ("chunked_scan", "stepwise_scan"),
}
DEVICES = ("h100-sxm5", "a100-sxm4-80gb", "h200-sxm", "b200") * 4 + ("mi300x", "tpu-v5e", "h100", 7)


def value(rng: Random, right: Any) -> Any:
    """A value for a field whose right value is known: mostly of its kind."""
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(SCALARS)
    if kind < 0.2:
        return rng.choice(TEXTS) if rng.random() < 0.7 else scribble(rng)
    if isinstance(right, list) and right:
        return [value(rng, right[0]) for _ in range(rng.choice((0, 1, 2, 3, 50)))]
    if isinstance(right, bool):
        return not right
    if isinstance(right, int):
        return rng.choice(LENGTHS)
    return rng.choice(("causal", "full", "bf16", "fp8", "int4", "mxfp4", "fp32", "channel", right))


def changed(rng: Random, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields with some changed, left out, or put in."""
    made = dict(fields)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        name = rng.choice(list(made) or ["q_len"])
        kind = rng.random()
        if kind < 0.8:
            made[name] = value(rng, made.get(name, 1))
        elif kind < 0.92:
            made.pop(name, None)
        else:
            made[rng.choice((name[:-1], name.upper(), "value_dim", "direction", "dtype"))] = value(rng, 1)
    return made


def workload(rng: Random) -> Case:
    """A workload of any kind; one that is taken is counted, bounded, solved or timed."""
    name = rng.choice(list(WORKLOADS))
    fields, algorithm = changed(rng, WORKLOADS[name]), rng.choice(ALGORITHMS[name])
    use, device = rng.randrange(6), rng.choice(DEVICES)
    tiles = {key: rng.choice((1, 16, 64, 10**18)) for key in ("block_q", "block_kv", "block_m", "block_n", "block_k")}
    tiles = {key: tiles[key] for key in rng.sample(list(tiles), rng.randrange(4))}

    def run() -> object:
        call = getattr(iomodel, name)(**fields)
        if use == 0:
            return iomodel.cost(algorithm, call, tiles or None).to_json()
        if use == 1:
            return str(iomodel.lower_bounds(call, algorithm=algorithm, sram_bytes=rng.choice(LENGTHS)))
        if use == 2:
            return str(iomodel.solve(algorithm, call, sram_bytes=rng.choice((2_000, 50_000, 200_000)), alignment=16))
        if use == 3:
            return iomodel.estimate(algorithm, call, device, tiles or None).to_json()
        if use == 4:
            return iomodel.Solution.from_json(iomodel.solve(algorithm, call, device).to_json())
        return getattr(iomodel, name).from_dict(call.to_dict())

    told = f"{name}(**{fields!r:.1500}), {algorithm}, use {use} on {device} at {tiles}"
    return Case("workloads", told, lambda: answered(run))


def _config(rng: Random) -> Any:
    sizes = {"BLOCK_M": rng.choice((16, 64, 128, 7, 0, 10**9)), "BLOCK_N": rng.choice((16, 64, -1, None))}
    kwargs = changed(rng, sizes) if rng.random() < 0.4 else {"BLOCK_M": 64, "BLOCK_N": 32}
    return SimpleNamespace(kwargs=kwargs, num_warps=rng.choice((4, 8, 3, 0)), num_stages=rng.choice((1, 3, 0, -1)))


def triton(rng: Random) -> Case:
    """A list of Triton configs for a call, or one to be pruned."""
    fields = WORKLOADS["Attention"] if rng.random() < 0.5 else changed(rng, WORKLOADS["Attention"])
    device, top = rng.choice(DEVICES), rng.choice((*(1, 2, 8) * 4, None, 0, "x", 10**30))
    kernel = rng.choice(("forward",) * 5 + ("decode", "latent_decode", "backward_dq", "matmul", "x"))
    names = rng.choice((None,) * 6 + ({"block_q": "BLOCK_M"}, {"q_len": "N"}, {"x": "y"}, {"block_q": 3}, 7, {}))
    configs = [_config(rng) for _ in range(rng.randrange(4))]
    arguments = rng.choice(({}, {"N_CTX": 64, "HEAD_DIM": 64, "Z": 1, "H": 4}, {"N_CTX": "x"}, {"HEAD_DIM": 10**30}))
    use = rng.randrange(4)

    def run() -> object:
        call = None if rng.random() < 0.2 else iomodel.Attention(**fields)
        if use == 0:
            return iomodel.triton.flex_options(call, device, top, version="3.9.0")
        keep = iomodel.triton.pruner(call, device, names=names, kernel=kernel, top=top, version="3.9.0")
        if use == 1:
            return keep.perf_model(**{str(key): size for key, size in arguments.items()}, BLOCK_M=64, BLOCK_N=32)
        with warnings.catch_warnings():  # a list that cannot be judged is kept, with a warning
            warnings.simplefilter("ignore", UserWarning)
            return keep(configs, arguments)

    shown = [vars(config) for config in configs]
    told = f"{fields!r:.800}, {device}, top {top}, {kernel}, {names}, {shown!r:.600}, {arguments}, use {use}"
    return Case("triton", told, lambda: answered(run))


RIGHT = {"prompt": 64, "output": 4, "requests": 6, "batch": 2, "load": 2.0, "seed": 1, "token_budget": 128}


def simulation(rng: Random) -> Case:
    """A simulation of few requests, of lengths that are drawn or given as columns."""
    fields = changed(rng, RIGHT)
    if rng.random() < 0.5:
        columns = {"arrival": [0.0, 0.5, 1.0], "prompt": [64, 65, 66], "output": [1, 2, 3]}
        fields = {"arrivals": changed(rng, columns), "batch": 2}
    for name in ("prompt", "output", "requests", "token_budget"):  # what is right and large takes long
        if isinstance(fields.get(name), int) and 200 < fields[name] <= 10**6:
            fields[name] = 200
    policy = rng.choice(("prefill-first", "chunked", "x"))
    told = f"simulate({fields!r:.1500}, policy={policy})"
    run: Callable[[], object] = lambda: iomodel.simulate("llama-3-8b", "h100-sxm5", policy=policy, **fields).to_json()  # noqa: E731
    if not {*RIGHT, "arrivals"} >= fields.keys():  # no such argument, says Python
        fields = {name: entry for name, entry in fields.items() if name in {*RIGHT, "arrivals"}}
    return Case("simulations", told, lambda: answered(run))
