"""Random questions to the public functions, as plain data: a function, its arguments by position and by name.

A dict with the key "$" is an object of that public class with the other keys as fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log2
from random import Random
from typing import Any

import iomodel

Question = tuple[str, list[Any], dict[str, Any]]
Problem = tuple[str, dict[str, Any], dict[str, int], dict[str, Any]]
"""An algorithm, a workload, tiles and options."""

SPOILED = 0.1
"""Share of questions with a wrong argument."""
SWITCH = (False, True)
DIRECTIONS = {"f": "forward", "b": "backward", "fb": "both"}
PASSES = {**dict.fromkeys(("standard", "eager", "flash1", "flash2", "flash3"), ("f", "b", "fb")), "two_pass": ("b",)}
"""Passes of the algorithms that have a backward one."""
KNOWN_MASKS = {
    **dict.fromkeys(("linformer", "loki"), ("full",)),
    **dict.fromkeys(("mamba1", "mamba2", "moba", "nsa", "sparse_transformer"), ("causal",)),
    **dict.fromkeys(("dsa", "linear_transformer", "performer", "reformer", "routing_transformer"), ("full", "causal")),
}
"""Masks of the approximations; the other algorithms are exact and take every mask."""
SELF = ("sparse_transformer", "reformer", "routing_transformer", "nsa", "moba", "mamba1", "mamba2")
WITH_KERNELS = ("flash1", "flash2", "flash2", "flash3", "split_kv")
EXACT = ("standard", "flash1", "flash2", "split_kv", "tiled_query")
TILES = {
    **dict.fromkeys(("standard", "eager"), ""),
    **dict.fromkeys(("linformer", "loki", "moba", "nsa"), "q kv proj sum"),
    **dict.fromkeys(("linear_transformer", "performer"), "q sum"),
    **dict.fromkeys(("reformer", "routing_transformer"), "q kv proj"),
    "dsa": "q kv sum",
    "mamba1": "kv channels",
    "mamba2": "q",
}
"""Tiles of the algorithms with others than those of queries and keys."""
PRODUCTS = {"f": (1, 2), "b": (3, 4, 5, 6), "fb": (1, 2, 3, 4, 5, 6)}
"""Numbers of the products of standard attention, each with tiles of its own."""
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    **{variant: {"lse": SWITCH} for variant in ("flash2 f", "flash3 f", "split_kv f")},
    **{variant: {"carry": SWITCH} for variant in ("linear_transformer f", "mamba2 f", "performer f")},
    "standard f": {"tiled": SWITCH, "mask_pass": SWITCH, "dropout_pass": SWITCH},
    "standard b": {"tiled": SWITCH, "dropout_pass": SWITCH},
    "standard fb": {"tiled": SWITCH, "mask_pass": SWITCH},
    "eager f": {"dropout_pass": SWITCH},
    "flash3 b": {"deterministic": SWITCH},
    "flash2 b": {"deterministic": SWITCH, "dq_buffers": (1, 2, 4), "accumulate": SWITCH},
    "flash2 fb": {"deterministic": SWITCH, "accumulate": SWITCH},
    "two_pass b": {"accumulate": SWITCH},
    "dsa f": {"index_heads": (4, 64), "index_queries": (1, 2), "index_dim": (8, 128)},
    "linformer f": {"shared": SWITCH},
    "mamba1 f": {"state": (4, 16), "expand": (1, 2), "carry": SWITCH},
    "moba f": {"selected": (1, 2, 3)},
    "nsa f": {"selected": (1, 4, 16)},
    "reformer f": {"rounds": (1, 4)},
    "sparse_transformer f": {"second": SWITCH},
}
SIZED = {
    "dsa": {"top_k": "kv_len"},
    "linformer": {"projected": "kv_len"},
    "loki": {"rank": "head_dim", "top_k": "kv_len"},
    "nsa": {"local": "q_len"},
    "performer": {"features": "kv_len"},
    "routing_transformer": {"clusters": "q_len"},
    "sparse_transformer": {"stride": "q_len"},
}
"""Options that do not exceed a size of the call."""
WRITTEN = ("eager_loads", "unskipped_window", "padded_queries", "bias_vector")
FEATURES: tuple[dict[str, Any], ...] = (
    {"bias": True},
    {"alibi": True},
    {"sinks": True},
    {"softcap": 30.0},
    {"dropout": 0.1},
    {"kv_dtype": "fp8"},
    {"kv_dtype": "fp8", "kv_scales": "head"},
    {"kv_dtype": "int4", "kv_scales": "token", "head_dim": 64},
    {"page_size": 16},
    {"latent": True, "kv_heads": 1, "head_dim": 576, "value_dim": 512},
)
"""Features of a call; those after the fifth have no backward pass."""
DTYPES = ("bf16",) * 12 + ("fp16",) * 5 + ("fp32", "tf32", "fp8", "int8")
REAL = (1, 1, 16, 128, 512, 1024, 1500, 2048, 4096, 8192, 16384, 131072)
"""Lengths of decoders' calls."""
WIDTHS = (1024, 2048, 4096, 14336)
NARROW = ("int4", "fp8", "mxfp4", "nvfp4")
GPUS = ("h100-sxm5", "h100-sxm5", "h200-sxm", "a100-sxm4-80gb", "b200", "mi300x", "l40s", "rtx4090")
DENSE = ("llama-3-8b", "llama-3.1-70b", "llama-3.2-3b", "qwen2.5-7b", "qwen3-32b", "mistral-nemo", "phi-4")
"""Models that a training step takes."""
SHARDINGS = ("contiguous", "zigzag", "striped")
METHODS = ("ring", "all_gather", "ulysses")


class Draw(Random):
    """Random numbers with the choices that questions need."""

    def chance(self, share: float) -> bool:
        return self.random() < share

    def near(self, most: int) -> int:
        """Draw a number from 1 to `most`, every order of magnitude as often."""
        return min(most, round(2 ** self.uniform(0, log2(most))))

    def some(self, share: float, **choices: Sequence[Any]) -> dict[str, Any]:
        """Draw a value of some of the names."""
        return {name: self.choice(values) for name, values in choices.items() if self.chance(share)}

    def device(self) -> str:
        return self.choice(GPUS if self.chance(0.7) else iomodel.list_hardware())

    def budget(self) -> dict[str, int]:
        amount, elements = self.choice((128 * self.near(8192), 232_448)), 64 * self.near(2048)
        return {"sram_bytes": amount} if self.chance(0.7) else {"sram_elements": elements}


def _mask(r: Draw, name: str, q_len: int, kv_len: int) -> Any:
    if name in KNOWN_MASKS:
        return r.choice(KNOWN_MASKS[name])
    kind = r.choice(("full", "causal", "window", "full", "causal", "window", "documents", "blocks"))
    if kind == "window":
        sides = r.some(0.7, left=(0, r.near(2 * kv_len), 4095), right=(0, 0, r.near(2 * kv_len)))
        return {"$": "Window", **sides, **r.some(0.3, align=("top-left",))}
    if kind == "documents" and q_len == kv_len:
        cuts = sorted({0, q_len, *(r.randint(1, q_len) for _ in range(r.randint(0, 6)))})
        return {"$": "Documents", "lengths": [b - a for a, b in pairwise(cuts)], "causal": r.choice(SWITCH)}
    if kind == "blocks" and max(q_len, kv_len) <= 20_000:
        sizes = [max(r.near(128), -(-length // 16)) for length in (q_len, kv_len)]
        rows, columns = -(-q_len // sizes[0]), -(-kv_len // sizes[1])
        table = [[int(r.chance(0.5)) for _ in range(columns)] for _ in range(rows)]
        return {"$": "BlockMask", "blocks": table, "block_q": sizes[0], "block_kv": sizes[1]}
    return r.choice(("full", "causal"))


def attention(r: Draw, real: float = 0.3, arrays: bool = False, names: Sequence[str] = ()) -> Problem:
    """Draw an attention call, of the size of a decoder's with the probability `real`, else small and ragged."""
    every, is_real = iomodel.list_algorithms(), r.chance(real)
    exact = [name for name in every if name not in (*KNOWN_MASKS, "eager")]
    name = r.choice(names or (WITH_KERNELS if is_real and r.chance(0.7) else exact if r.chance(0.7) else every))
    passes = PASSES.get(name, ("f",))
    taken = r.choice(passes[: 2 if names else 3] if r.chance(0.5) else passes[:1])
    w: dict[str, Any] = {"$": "Attention", **_sizes(r, name, is_real), "dtype": r.choice(DTYPES)}
    w["direction"] = DIRECTIONS[taken]
    w["mask"] = _mask(r, name, w["q_len"], w["kv_len"])
    if r.chance(0.1) and (name not in KNOWN_MASKS or name == "dsa"):
        w |= r.choice(FEATURES[-1:] if name == "dsa" else FEATURES if taken == "f" else FEATURES[:5])
    if arrays and isinstance(w["mask"], dict) and w["mask"]["$"] != "Window":
        w["mask"] = "causal"
    tiles = _tiles(r, name, taken, w["mask"], is_real)
    options = _options(r, f"{name} {taken}", w, tiles)
    if options.get("tiled"):
        tiles = {f"gemm{number}_{axis}": r.near(128) for number in PRODUCTS[taken] for axis in "mn"}
    if not arrays and r.chance(0.08) and name not in SELF:
        w = _ragged(r, w)
    return name, w, tiles, options


def _sizes(r: Draw, name: str, real: bool) -> dict[str, int]:
    most = r.choice((14, 40, 700))
    q_len, kv_len = (r.choice(REAL) if real else r.randint(1, most) for _ in range(2))
    q_len = 512 * r.near(16) if name in ("moba", "nsa") else q_len + (name == "reformer")
    kv_len = q_len if name in SELF or r.chance(0.4) else max(q_len, kv_len) if r.chance(0.8) else kv_len
    kv_heads, group = (1, 1) if r.chance(0.3) else (r.choice((1, 2, 3, 8)), r.choice((1, 1, 2, 4, 8)))
    heads = {"heads": kv_heads * (1 if name in ("reformer", "mamba1") else group), "kv_heads": kv_heads}
    head_dim = r.choice((64, 64, 128, 128, 128, 96, 256)) if real else r.randint(1, 20)
    more = r.some(0.4, batch=(1, 2, 3, 16, 64)) | r.some(0.15, value_dim=(head_dim, 64, r.randint(1, 20)))
    return {"q_len": q_len, "kv_len": kv_len, **heads, "head_dim": head_dim, **more}


def _ragged(r: Draw, w: dict[str, Any]) -> dict[str, Any]:
    lengths = [r.randint(1, w["q_len"] + 1) for _ in range(r.randint(1, 5))]
    more = {"$": "VarlenAttention", "q_lens": lengths, "kv_lens": [n + r.randint(0, w["kv_len"]) for n in lengths]}
    return {key: value for key, value in w.items() if key not in ("q_len", "kv_len", "batch")} | more


def _tiles(r: Draw, name: str, passes: str, mask: Any, real: bool) -> dict[str, int]:
    one = name in ("linear_transformer", "performer") and mask == "causal"
    names = [f"block_{axis}" for axis in ("q" if one else TILES.get(name, "q kv")).split()]
    names += [f"bwd_{tile}" for tile in names if passes == "fb" and r.chance(0.5)]
    names += ["dq_block_q", "dq_block_kv"] if name == "two_pass" else []
    sizes = (16, 32, 48, 64, 64, 64, 64, 80, 128, 128) if real else range(1, r.choice((7, 17, 49)))
    return {tile: r.choice(sizes) for tile in names}


def _options(r: Draw, variant: str, w: dict[str, Any], tiles: dict[str, int]) -> dict[str, Any]:
    name = variant.split(maxsplit=1)[0]
    options = {option: r.near(w[size]) for option, size in SIZED.get(name, {}).items()}
    if name == "reformer":
        options["buckets"] = 2 * r.near(w["q_len"] // 2)
    if name == "sparse_transformer":
        options["summary"] = r.near(options["stride"])
    if name == "split_kv" and r.chance(0.5):
        options["splits"] = r.near(min(64, -(-w["kv_len"] // tiles["block_kv"])))
    options |= r.some(0.25, **OPTIONS.get(variant, {})) | r.some(0.08, packed=SWITCH)
    if name in ("flash2", "tiled_query", "two_pass") and r.chance(0.03):
        options[r.choice(WRITTEN)] = True
    return options


def layer(r: Draw, real: float = 0.4) -> Problem:
    """Draw a call of a linear layer, an MLP, experts, a recurrence or a cross-entropy."""
    is_real = r.chance(real)
    rows, *widths = (r.choice(REAL), r.choice(WIDTHS), r.choice(WIDTHS)) if is_real else [r.near(60) for _ in range(3)]
    name, w, axes, options = r.choice((_linear, _mlp, _mlp, _recurrence, _cross_entropy))(r, rows, *widths)
    tiles = {f"block_{axis}": r.choice((16, 64, 128)) if is_real else r.randint(1, 40) for axis in axes}
    return name, w | r.some(0.7, dtype=DTYPES), tiles, r.some(0.2, **options)


Layer = tuple[str, dict[str, Any], Iterable[str], dict[str, Any]]
"""An algorithm, a workload, axes with tiles, and values of options."""


def _linear(r: Draw, rows: int, width: int, other: int) -> Layer:
    w = {"$": "Linear", "rows": rows, "in_features": width, "out_features": other, **r.some(0.2, weight_dtype=NARROW)}
    w |= r.some(0.15, groups=(2, 8), gated=(True,), bias=(True,), out_dtype=("fp32",), scale_block=(32, 128))
    return "gemm", w, "mnk", {"splits": (1, 2, 4)}


def _mlp(r: Draw, rows: int, width: int, other: int) -> Layer:
    name, loads = r.choice(("fused_mlp", "split_mlp")), [r.near(rows) for _ in range(r.randint(1, 8))]
    w: dict[str, Any] = r.choice(({"$": "MLP", "rows": rows}, {"$": "Experts", "loads": loads}))
    w |= {"in_features": width, "hidden_features": other, **r.some(0.2, weight_dtype=NARROW)}
    w |= r.some(0.3, gated=SWITCH, **({"direction": ("backward", "both")} if name == "split_mlp" else {}))
    return name, w, "mnk", {"resident": SWITCH} if name == "fused_mlp" else {}


def _recurrence(r: Draw, rows: int, *_: int) -> Layer:
    heads = r.choice((1, 4, 32))
    w = {"$": "Recurrence", "tokens": rows, "heads": heads, "head_dim": r.choice((5, 17, 64, 128))}
    w |= r.some(0.3, batch=(2, 8), key_heads=(1, heads), value_dim=(5, 128), delta=(True,), stateful=(True,))
    w |= r.some(0.6, gate=("none", "constant", "head", "channel"))
    if r.chance(0.5):
        return "stepwise_scan", w, ["value"], {}
    return "chunked_scan", w, ["value", "chunk"], {"materialize": SWITCH}


def _cross_entropy(r: Draw, rows: int, width: int, other: int) -> Layer:
    w = {"$": "CrossEntropy", "rows": rows, "in_features": width, "vocab_size": 32 * other}
    if r.chance(0.5):
        return "cut_cross_entropy", w, "mnk", {}
    return "logits_cross_entropy", w | r.some(0.3, gradients=(True,)), "mnk", {"adds_dw": SWITCH}


def _kernel(r: Draw, name: str, share: float) -> dict[str, str]:
    return r.some(share, implementation=["vendor-blas"] if name == "gemm" else iomodel.list_implementations(name))


def _limits(r: Draw) -> dict[str, Any]:
    return r.some(0.1, alignment=(1, 8, 16, 32), min_block_kv=(8, 64, 128))


def _launch(r: Draw, tiles: dict[str, int]) -> dict[str, int]:
    return {**tiles, **(r.some(0.5, warps=(4, 8), stages=(1, 2)) if tiles and r.chance(0.15) else {})}


def _cost(r: Draw, problem: Callable[..., Problem] = attention) -> Question:
    name, w, tiles, options = problem(r)
    return "cost", [name, w], {"tiles": tiles, **options}


def _check(r: Draw, problem: Callable[..., Problem] = attention) -> Question:
    name, w, tiles, options = problem(r, real=0.7)
    return "check", [name, w, r.device(), _launch(r, tiles)], {**options, **_kernel(r, name, 0.15)}


def _estimate(r: Draw, problem: Callable[..., Problem] = attention) -> Question:
    name, w, tiles, options = problem(r, real=0.7)
    given = {"tiles": _launch(r, tiles)} if r.chance(0.6) else {}
    more = r.some(0.03, parameters=({"$": "Parameters", "step_clocks": 100.0, "kernel_launch": 1e-5},))
    return "estimate", [name, w, r.device()], {**given, **options, **more, **_kernel(r, name, 0.1)}


def _traffic(r: Draw, problem: Callable[..., Problem] = attention) -> Question:
    name, w, _, options = problem(r)
    if r.chance(0.5):
        return "solve", [name, w], {**r.budget(), **_limits(r), **r.some(0.1, epsilon=(0.01, 0.1)), **options}
    return "solve", [name, w, r.device()], {"objective": "traffic", **_kernel(r, name, 0.3), **_limits(r), **options}


def _time(r: Draw, problem: Callable[..., Problem] = attention) -> Question:
    name, w, _, options = problem(r, real=0.8)
    more = r.some(0.1, objective=("time",), min_blocks_per_sm=(1, 2), top=(2, 5))
    return "solve", [name, w, r.device()], {**_kernel(r, name, 0.1), **more, **_limits(r), **options}


def _columns(r: Draw, w: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """Join fields, tiles and options, some of the numbers as lists of one length."""
    columns: dict[str, Any] = {key: value for group in (w, *more) for key, value in group.items() if key != "$"}
    fixed = ("heads", "kv_heads", *(("head_dim", "value_dim") if r.chance(0.7) else ()))
    able, number = [key for key in columns if type(columns[key]) is int and key not in fixed], r.randint(1, 5)
    for key in r.sample(able, min(len(able), r.randint(1, 3))):
        columns[key] = [r.randint(1, 2 * columns[key]) for _ in range(number)]
    return columns


def _cost_array(r: Draw) -> Question:
    name, *parts = attention(r, arrays=True)
    return "cost_array", [name], _columns(r, *parts)


def _estimate_array(r: Draw) -> Question:
    name, w, tiles, options = attention(r, real=0.8, arrays=True)
    if r.chance(0.1):
        name, w, tiles, options = "gemm", {"rows": 512, "in_features": 1024, "out_features": r.near(9999)}, {}, {}
    more = r.some(0.6, infeasible=("mark",)) | _kernel(r, name, 0.1)
    return "estimate_array", [name, None, r.device()], _columns(r, w, tiles if r.chance(0.5) else {}, options) | more


def _solve_array(r: Draw) -> Question:
    by_time = r.chance(0.5)
    name, w, _, options = attention(r, 1 if by_time else 0.5, arrays=True, names=WITH_KERNELS if by_time else ())
    asked = _columns(r, w, options) | r.some(0.6, infeasible=("mark",))
    if by_time:
        return "solve_array", [name, None, r.choice(GPUS)], {**asked, "objective": "time", **_kernel(r, name, 0.1)}
    asked |= _limits(r)
    asked |= {"implementation": "textbook"}
    where = ([None, r.device()], {}) if r.chance(0.5) else ([], r.budget())
    return "solve_array", [name, *where[0]], asked | where[1]


def _formula(function: str) -> Callable[[Draw], Question]:
    def question(r: Draw) -> Question:
        name, w, _, options = attention(r, real=0, arrays=True)
        kept = ("mask", "direction", *(("bias", "alibi", "sinks") if function == "expressions" else ()))
        return function, [name], {key: w[key] for key in kept if key in w} | options

    return question


Places = Callable[[Draw], list[Any]]


def _study(function: str, real: float = 1, after: Places = lambda _: []) -> Callable[[Draw], Question]:
    def question(r: Draw) -> Question:
        name, w, _, options = attention(r, real, names=WITH_KERNELS if real == 1 else ())
        return function, [name, w, *after(r)], options

    return question


def _compare(r: Draw) -> Question:
    w = (layer(r) if r.chance(0.2) else attention(r, 0.7, arrays=r.chance(0.9)))[1]
    more = r.some(0.3, approximate=(True,), objective=("time", "traffic"))
    return ("compare", [w, r.device()], more) if r.chance(0.7) else ("compare", [w], r.budget())


def _crossovers(r: Draw) -> Question:
    pair, w = r.sample(EXACT, 2), attention(r, 0.5, arrays=True)[1]
    if r.chance(0.3):
        return "crossover", [*pair, w, {"block_q": r.near(99), "block_kv": r.near(99)}], {"up_to": r.near(3000)}
    more = r.some(0.4, over=("kv_len", "head_dim", "batch"), metric=("flops", "bytes"))
    return "crossovers", [pair, w], {"limit": r.randint(8, 2000), **more, **r.budget()}


def _context(r: Draw) -> Question:
    w = {"$": "Attention", "q_len": r.choice(REAL[3:]), "heads": 32, "kv_heads": r.choice((8, 32)), "head_dim": 128}
    w |= r.some(0.5, mask=("causal",))
    more = r.some(0.3, method=METHODS, sharding=SHARDINGS)
    return "context_parallel", [w, r.choice((2, 3, 4, 8)), r.choice((None, r.device()))], more


def _catalogue(r: Draw) -> Question:
    function = r.choice(("hardware", "model", "implementation", "list_implementations"))
    if function in ("hardware", "model"):
        return function, [r.choice(iomodel.list_hardware() if function == "hardware" else iomodel.list_models())], {}
    name = r.choice(iomodel.list_algorithms())
    kernel = r.choice(iomodel.list_implementations(name))
    return function, [name, kernel if function == "implementation" else r.device()], {}


def _layout(r: Draw) -> dict[str, Any]:
    more = r.some(0.15, pipeline_parallel=(2, 4), expert_parallel=(8, 16), decode_context_parallel=(2,))
    return {"$": "Layout", "tensor_parallel": r.choice((1, 2, 4, 8)), **more, **r.some(0.1, devices_per_node=(4, 8))}


def _types(r: Draw) -> dict[str, Any]:
    types = r.some(0.07, weight_dtype=("int4", "fp8"), dtype=("fp16",), linear_dtype=("fp8",), page_size=(16, 64))
    return types | r.some(0.15, precision=("bf16", "fp8", "fp4", "int8", "int4", "mxfp4"), kv_dtype=("fp8", "bf16"))


def _served(r: Draw) -> dict[str, Any]:
    """Draw a load, and the options of a service."""
    prefix = {"$": "PrefixCache", "shared_tokens": r.choice((0, 500)), "hit_rate": r.choice((0.0, 0.5))}
    drafts = {"$": "Speculation", "tokens": r.randint(1, 5), "acceptance": 0.7, "draft": r.choice(("mtp", "ngram"))}
    more = r.some(0.12, prefix_cache=(prefix,), speculation=(drafts,))
    more |= r.some(0.06, memory_utilization=(0.8, 0.95), overhead_bytes=(0, 10**9), lora=({"$": "Lora", "rank": 16},))
    return {**_load(r), **_types(r), **more, **r.some(0.25, engine=("vllm", "sglang", "tensorrt-llm"))}


def _load(r: Draw) -> dict[str, Any]:
    return {"prompt": r.choice((100, 1000, 2048, 8000)), "output": r.choice((2, 100, 256, 1000))}


def _model(r: Draw, devices: int = 1) -> list[Any]:
    names = GPUS if r.chance(0.85) else iomodel.list_hardware()
    return [r.choice(iomodel.list_models()), *(r.choice(names) for _ in range(devices))]


def _plan(r: Draw) -> Question:
    more = r.some(0.3, layout=(_layout(r),), batch=(1, 8, 64), price_per_hour=(2.5,))
    return "plan", _model(r), {**_served(r), **more, **r.some(0.1, count=(8, 16), sensitivity=(True,))}


def _step(r: Draw) -> Question:
    length = r.choice(REAL)
    more = r.some(0.1, logits=("all", "last"), attention_algorithm=("flash2", "flash3", "split_kv"))
    asked = {"batch": r.choice((1, 4, 64, 256)), "q_len": r.choice((1, length)), "kv_len": length, **more}
    return "step", _model(r), {**asked, **r.some(0.6, layout=(_layout(r),)), **_types(r)}


def _train(r: Draw) -> Question:
    layout = {"$": "Layout", "tensor_parallel": r.choice((1, 2, 8)), **r.some(0.2, pipeline_parallel=(2, 4))}
    more = r.some(0.3, micro_batch=(1, 2), data_parallel=(2, 8), recompute=("full", "early-stop"), precision=("fp8",))
    more |= r.some(0.2, shard=("none", "optimizer", "gradients"), kernels=("eager",), gradient_dtype=("bf16",))
    asked = {"batch": r.choice((8, 64, 512)), "seq_len": r.choice((512, 2048, 4096, 8192)), "layout": layout}
    model, device = _model(r)
    model = r.choice(DENSE) if r.chance(0.8) else model
    more |= r.some(0.2, attention_algorithm=("flash1", "flash2", "flash3"))
    return "train_step", [model, device], {**asked, **more}


def _fleet(r: Draw) -> Question:
    model, *devices = _model(r, 2)
    goals = {"load": r.uniform(0.5, 50), "ttft": r.choice((0.5, 1.0, 5.0)), "tpot": r.choice((0.02, 0.05, 0.2))}
    return "fleet", [model, devices], {**_served(r), **goals}


def _pareto(r: Draw) -> Question:
    model, *devices = _model(r)
    more = r.some(0.3, ttft=(1.0,), tpot=(0.05,), weight_dtypes=(["bf16", "fp8"],))
    return "pareto", [model, devices], {**_load(r), "layouts": [_layout(r), _layout(r)], **more}


def _simulate(r: Draw) -> Question:
    arrivals = r.choice(({"load": r.uniform(0.2, 20)}, {"concurrency": r.choice((1, 8, 64))}))
    more = {"requests": r.choice((20, 100)), "seed": r.randint(0, 9), **r.some(0.5, policy=("chunked",))}
    return "simulate", _model(r), {**_served(r), **arrivals, **more}


def _disaggregate(r: Draw) -> Question:
    return "disaggregate", _model(r, 2), {**_load(r), "link": r.choice((5e10, 4e11)), **_types(r)}


def _linear_cost(r: Draw) -> Question:
    w = {"$": "Linear", "rows": r.near(9999), "in_features": r.near(9999), "out_features": r.near(9999)}
    tiles = {f"block_{axis}": r.near(256) for axis in "mnk"}
    return "cost", ["gemm", w | r.some(0.3, bias=(True,), dtype=DTYPES), tiles], {}


def _messages(r: Draw) -> Question:
    return "messages", [r.choice(METHODS)], r.some(0.7, mask=("full", "causal"), sharding=SHARDINGS)


KINDS: dict[str, tuple[int, Callable[[Draw], Question]]] = {
    "cost": (30_000, _cost),
    "cost_array": (2_800, _cost_array),
    "solve traffic": (6_000, _traffic),
    "solve time": (8_000, _time),
    "estimate": (15_000, _estimate),
    "estimate_array": (3_000, _estimate_array),
    "solve_array": (3_000, _solve_array),
    "check": (15_000, _check),
    "layers": (5_500, lambda r: r.choice((_cost, _check, _estimate, _traffic, _time))(r, layer)),
    "linear_cost": (300, _linear_cost),
    "expressions": (2_000, _formula("expressions")),
    "optimum": (200, _formula("optimum")),
    "lower_bounds": (1_000, lambda r: ("lower_bounds", list(r.choice((attention, layer))(r)[:2]), r.budget())),
    "compare": (500, _compare),
    "tile_times": (300, _study("tile_times", after=lambda r: [r.choice(GPUS)])),
    "diagnose": (300, _study("diagnose", 0.9, lambda r: [r.device(), 10 ** r.uniform(-6, -1)])),
    "trace": (60, _study("trace", 0, lambda r: [r.device()])),
    "staircase": (50, _study("staircase", 0)),
    "least_sram": (100, _study("least_sram", 0, lambda r: [r.near(10**7)])),
    "crossovers": (80, _crossovers),
    "context_parallel": (150, _context),
    "messages": (20, _messages),
    "catalogue": (220, _catalogue),
    "step": (4_000, _step),
    "train_step": (1_000, _train),
    "plan": (1_000, _plan),
    "fleet": (60, _fleet),
    "pareto": (60, _pareto),
    "simulate": (200, _simulate),
    "disaggregate": (60, _disaggregate),
    "crossover_context": (40, lambda r: ("crossover_context", _model(r), r.some(0.5, batch=(1, 16, 64)))),
}
"""Number of questions in 100,000, and how one is drawn, by kind."""


def _spoil(r: Draw, question: Question) -> None:
    """Replace, remove, misspell or add one argument, at any depth."""
    node, key = r.choice([*_places(question[1]), *_places(question[2])])
    if isinstance(node[key], str) and r.chance(0.5):
        node[key] = node[key][1:]
    elif isinstance(node, dict) and r.chance(0.5):
        node["bogus" if r.chance(0.5) else f"{key}s"] = node[key]
    elif isinstance(node, dict) and r.chance(0.4):
        del node[key]
    else:
        node[key] = r.choice((0, -1, 2.5, "x", None, True, 10**19, []))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in [key for key in (node if isinstance(node, dict) else range(len(node))) if key != "$"]:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def draw(kind: str, number: int, seed: int) -> Question:
    """Draw one question of a kind."""
    r = Draw(f"{seed} {kind} {number}")
    question = KINDS[kind][1](r)
    if r.chance(SPOILED):
        _spoil(r, question)
    return question


def questions(total: int, seed: int) -> Iterator[tuple[str, Question]]:
    """Draw questions of all kinds, evenly mixed, so that the first ones are of all kinds too."""
    numbers = {kind: max(1, round(total * share / 100_000)) for kind, (share, _) in KINDS.items()}
    order = sorted(((i + 0.5) / number, kind, i) for kind, number in numbers.items() for i in range(number))
    for _, kind, i in order[:total]:
        yield kind, draw(kind, i, seed)
