"""Whatever is handed to a public function, it answers or raises an IOModelError of one line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from sympy import Symbol

import iomodel
from iomodel.counting.cost import linear_cost
from tests.fuzz.law import one_line
from tests.support.public_names import PUBLIC
from tests.support.public_types import REPORT, timed_device
from tests.support.strategies import one_in

W = iomodel.Attention(q_len=20, head_dim=4, mask="causal")
BACKWARD = iomodel.Attention(q_len=20, head_dim=4, direction="backward")
TILES = {"block_q": 4, "block_kv": 4}
FITTING = {"block_q": 64, "block_kv": 64}
GPU = "h100-sxm5"
GEMM = ("block_m", "block_n", "block_k")
COUNTS = iomodel.expressions("flash2")
SIZES = {"q_len": 8, "head_dim": 4, "heads": 6, "kv_heads": 2, "value_dim": 4, "mask": "full", "direction": "forward"}
FEATURES = {"dtype": "bf16", "kv_dtype": "fp8", "kv_scales": "head", "page_size": 4, "latent": False, "bias": True}
SERVED = {"prompt": 8, "output": 1}
CACHE = iomodel.PrefixCache(shared_tokens=4, hit_rate=0.5)
DRAFTS = iomodel.Speculation(tokens=2, acceptance=0.5, draft="ngram")
ONES = np.ones(4, dtype=np.float32)

RIGHT: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Attention": (iomodel.Attention, {**SIZES, **FEATURES, "softcap": 1.0, "dropout": 0.1, "batch": 2, "kv_len": 9}),
    "VarlenAttention": (iomodel.VarlenAttention, {"q_lens": [4, 5], "kv_lens": [4, 5], "head_dim": 4, "mask": "full"}),
    "Documents": (iomodel.Documents, {"lengths": [3, 5], "causal": True}),
    "BlockMask": (iomodel.BlockMask, {"blocks": [[1, 0], [0, 1]], "block_q": 4, "block_kv": 4}),
    "Window": (iomodel.Window, {"left": 3, "right": 0, "align": "top-left"}),
    "Linear": (iomodel.Linear, {"rows": 8, "in_features": 16, "out_features": 32, "dtype": "bf16", "gated": True}),
    "Recurrence": (
        iomodel.Recurrence,
        {"tokens": 8, "heads": 4, "key_heads": 2, "head_dim": 4, "value_dim": 4, "gate": "head", "delta": True},
    ),
    "MLP": (iomodel.MLP, {"rows": 8, "in_features": 16, "hidden_features": 32, "weight_dtype": "fp8", "gated": True}),
    "Experts": (iomodel.Experts, {"loads": [8, 1], "in_features": 16, "hidden_features": 32, "weight_dtype": "fp8"}),
    "CrossEntropy": (iomodel.CrossEntropy, {"rows": 8, "in_features": 16, "vocab_size": 32, "dtype": "bf16"}),
    "Layout": (
        iomodel.Layout,
        {
            "tensor_parallel": 2,
            "pipeline_parallel": 1,
            "expert_parallel": 2,
            "context_parallel": 1,
            "decode_context_parallel": 1,
            "redundant_experts": 2,
            "devices_per_node": 2,
            "network_bandwidth": 1e10,
        },
    ),
    "PrefixCache": (
        iomodel.PrefixCache,
        {
            "shared_tokens": 64,
            "hit_rate": 0.5,
            "cascade": True,
            "host_rate": 0.1,
            "disk_rate": 0.1,
            "host_bandwidth": 1e9,
        },
    ),
    "Speculation": (iomodel.Speculation, {"tokens": 2, "acceptance": 0.5, "draft": "ngram"}),
    "Lora": (iomodel.Lora, {"rank": 8, "adapters": 4, "active": 2}),
    "Parameters": (iomodel.devices.Parameters, {"step_clocks": 100.0, "kernel_launch": 1e-6}),
    "shard": (W.shard, {"ranks": 1}),
    "subs": (COUNTS.subs, {"block_q": 8, "heads": 2}),
    "seen": (iomodel.BlockMask([[1, 0], [0, 1]], 4, 4).seen, {"q_len": 8, "kv_len": 8}),
    "visible_pairs": (iomodel.Documents([3, 5]).visible_pairs, {"q_len": 8, "kv_len": 8}),
    "kv_bytes": (iomodel.model("gpt-oss-20b").kv_bytes, {"context": 64, "kv_dtype": "fp8", "page_size": 16}),
    "weight_bytes": (iomodel.model("gpt-oss-20b").weight_bytes, {"dtype": "fp8"}),
    "cost": (iomodel.cost, {"algorithm": "flash2", "workload": W, "tiles": TILES, "lse": True}),
    "cost of parts": (iomodel.cost, {"algorithm": "split_kv", "workload": W, "tiles": TILES, "splits": 2}),
    "cost of a backward pass": (
        iomodel.cost,
        {"algorithm": "flash2", "workload": BACKWARD, "tiles": TILES, "deterministic": True},
    ),
    "cost of two passes": (iomodel.cost, {"algorithm": "two_pass", "workload": BACKWARD, "tiles": TILES}),
    "cost_array": (
        iomodel.cost_array,
        {"algorithm": "flash2", "q_len": [8, 9], "head_dim": 8, **TILES, "dtype": "bf16"},
    ),
    "linear_cost": (
        linear_cost,
        {"layer": iomodel.Linear(rows=8, in_features=16, out_features=32), "tiles": dict.fromkeys(GEMM, 8)},
    ),
    "audit": (iomodel.testing.audit, {"report": REPORT, "calls": {"": iomodel.estimate("flash2", W, GPU)}}),
    "implementation": (iomodel.kernels.implementation, {"algorithm": "flash2", "name": "flash-attention-2"}),
    "list_implementations": (
        iomodel.list_implementations,
        {"algorithm": "flash2", "hardware": GPU, "workload": W},
    ),
    "list_algorithms": (iomodel.list_algorithms, {"workload": "linear"}),
    "expressions": (
        iomodel.expressions,
        {"algorithm": "split_kv", "mask": "full", "direction": "forward", "bias": True, "splits": 2},
    ),
    "optimum": (iomodel.optimum, {"algorithm": "split_kv", "mask": "full", "direction": "forward", "splits": 2}),
    "evaluate": (iomodel.theory.evaluate, {"formula": COUNTS.flops, "values": {**W.numbers, **TILES}}),
    "lower_bounds": (
        iomodel.lower_bounds,
        {"algorithm": "flash2", "workload": W, "sram_elements": 500, "units": 2},
    ),
    "hardware": (iomodel.hardware, {"name_or_path": GPU}),
    "model": (iomodel.model, {"name_or_path_or_dict": "llama-3-8b"}),
    "check": (iomodel.check, {"algorithm": "flash2", "workload": W, "hardware": GPU, "tiles": TILES}),
    "occupancy": (iomodel.occupancy, {"hardware": GPU, "threads": 128, "registers": 168, "shared_bytes": 48 << 10}),
    "solve": (
        iomodel.solve,
        {"algorithm": "flash2", "workload": W, "sram_bytes": 5000, "alignment": 1, "min_block_kv": 1, "epsilon": 0.1},
    ),
    "solve on a device": (
        iomodel.solve,
        {"algorithm": "flash2", "workload": W, "hardware": GPU, "objective": "traffic", "min_blocks_per_sm": 1},
    ),
    "solve in elements": (
        iomodel.solve,
        {"algorithm": "split_kv", "workload": W, "sram_elements": 5000, "splits": 2, "packed": False},
    ),
    "solve_array": (
        iomodel.solve_array,
        {"algorithm": "flash2", "sram_bytes": [5000, 6000], "q_len": [8, 9], "head_dim": 4, "infeasible": "mark"},
    ),
    "compare": (iomodel.compare, {"workload": W, "sram_bytes": 5000, "objective": "traffic", "approximate": False}),
    "least_sram": (
        iomodel.theory.least_sram,
        {"algorithm": "flash2", "workload": W, "hbm_bytes": 10**6, "unit": "bytes"},
    ),
    "tile_times": (
        iomodel.kernels.tile_times,
        {"algorithm": "flash2", "workload": W, "hardware": GPU, "min_block_kv": 16, "min_blocks_per_sm": 1},
    ),
    "staircase": (
        iomodel.staircase,
        {"algorithm": "flash2", "workload": W, "unit": "bytes", "alignment": 2, "min_block_kv": 2},
    ),
    "rule": (
        iomodel.rule,
        {
            "algorithm": "flash2",
            "hardware": ["mi300x"],
            "implementation": "ck",
            "domain": iomodel.results.Domain(max_q_len=64, max_kv_len=64, head_dims=[64]),
            "size": 4000,
            "calls": 20,
            "seed": 1,
        },
    ),
    "crossover": (
        iomodel.theory.crossover,
        {"challenger": "flash2", "incumbent": "flash1", "workload": W, "tiles": TILES, "up_to": 10},
    ),
    "crossovers": (
        iomodel.crossovers,
        {"algorithms": ["flash2", "flash1"], "workload": W, "tiles": TILES, "over": "length", "limit": 9, "step": 2},
    ),
    "estimate": (
        iomodel.estimate,
        {
            "algorithm": "flash2",
            "workload": W,
            "hardware": GPU,
            "tiles": TILES,
            "parameters": iomodel.devices.Parameters(),
        },
    ),
    "estimate_array": (
        iomodel.estimate_array,
        {
            "algorithm": "flash2",
            "hardware": GPU,
            "q_len": [64, 65],
            "head_dim": 64,
            **FITTING,
            "warps": 4,
            "parameters": iomodel.devices.Parameters(),
            "infeasible": "mark",
            "implementation": "flash-attention-2",
        },
    ),
    "fastest of many": (
        iomodel.solve_array,
        {
            "algorithm": "flash2",
            "hardware": GPU,
            "q_len": [64, 65],
            "head_dim": 64,
            "objective": "time",
            "min_block_kv": 16,
            "implementation": "flash-attention-2",
            "epsilon": 0.0,
            "infeasible": "mark",
        },
    ),
    "diagnose": (
        iomodel.diagnose,
        {"algorithm": "flash2", "workload": W, "hardware": GPU, "seconds": 1e-3, "tiles": TILES},
    ),
    "judge": (iomodel.devices.judge, {"hardware": timed_device(), "parameters": iomodel.devices.Parameters()}),
    "trace": (
        iomodel.trace,
        {"algorithm": "flash2", "workload": W, "hardware": None, "tiles": TILES, "traced_heads": 1},
    ),
    "list_hardware": (iomodel.list_hardware, {"prefix": "h100"}),
    "list_models": (iomodel.list_models, {"prefix": "llama"}),
    "sweep": (
        iomodel.sweep,
        {
            "question": "cost",
            "algorithm": "flash2",
            "q_len": [8, 16],
            "head_dim": 8,
            **TILES,
            "figures": ["flops"],
            "chunk": 1,
            "zipped": [],
        },
    ),
    "plan_array": (
        iomodel.plan_array,
        {"model": "llama-3-8b", "hardware": GPU, "prompt": [8, 16], "output": 2, "batch": 1, "count": 1},
    ),
    "step_array": (
        iomodel.step_array,
        {"model": "llama-3-8b", "hardware": GPU, "batch": [1], "q_len": 1, "kv_len": 8},
    ),
    "sweep_plans": (
        iomodel.planning.sweep_plans,
        {
            "question": "plan",
            "model": "llama-3-8b",
            "hardware": "h100-sxm5",
            "prompt": [64, 128],
            "output": 8,
            "figures": ["ttft"],
        },
    ),
    "step": (
        iomodel.step,
        {"model": "llama-3-8b", "hardware": GPU, "batch": 1, "q_len": 1, "kv_len": 64, "layout": iomodel.Layout()}
        | {"shared_keys": 8},
    ),
    "plan": (
        iomodel.plan,
        {
            "model": "llama-3-8b",
            "hardware": GPU,
            "count": 1,
            "attention_algorithm": "flash2",
            **SERVED,
            "price": 2.5,
            "prefix_cache": CACHE,
            "speculation": DRAFTS,
            "precision": "fp8",
            "engine": "vllm",
        },
    ),
    "fleet": (
        iomodel.fleet,
        {
            "model": "llama-3-8b",
            "hardware": [GPU],
            "load": 0.5,
            **SERVED,
            "ttft": 5.0,
            "tpot": 1.0,
            "max_devices": 1,
            "prefix_cache": CACHE,
        },
    ),
    "engine_flags": (
        iomodel.planning.engine_flags,
        {"plan": iomodel.plan("llama-3-8b", GPU, **SERVED), "engine": "trtllm"},
    ),
    "engine_arguments": (iomodel.planning.engine_arguments, {"command": "vllm serve meta-llama/Llama-3.1-8B -tp 2"}),
    "messages": (iomodel.planning.messages, {"method": "ring", "mask": "causal", "sharding": "striped"}),
    "attention of messages": (iomodel.planning.messages("ring").attention, {"algorithm": "flash2", "lse": True}),
    "context_parallel": (
        iomodel.planning.context_parallel,
        {
            "workload": W,
            "ranks": 2,
            "hardware": GPU,
            "method": "ring",
            "sharding": "striped",
            "devices_per_node": 2,
            "network_bandwidth": 1e10,
            "attention_algorithm": "flash2",
        },
    ),
    "disaggregate": (
        iomodel.disaggregate,
        {
            "model": "llama-3-8b",
            "prefill": GPU,
            "decode": GPU,
            **SERVED,
            "link": 5e10,
            "precision": "fp8",
            "engine": "sglang",
            "prefill_layout": iomodel.Layout(),
            "decode_layout": iomodel.Layout(),
            "batch": 2,
            "load": 3.0,
            "price": {GPU: 2.5},
        },
    ),
    "pareto": (
        iomodel.pareto,
        {
            "model": "llama-3-8b",
            "hardware": [GPU],
            "prompt": 8,
            "output": 2,
            "layouts": [iomodel.Layout()],
            "batches": [1],
            "weight_dtypes": ["fp8"],
            "kv_dtypes": ["fp8"],
            "price": {GPU: 2.5},
            "ttft": 1.0,
            "tpot": 1.0,
            "percentile": "p50",
            "power_utilization": 0.7,
            "replica_devices": 1,
            "precision": "fp8",
            "engine": "vllm",
        },
    ),
    "train_step": (
        iomodel.train_step,
        {
            "model": "llama-3-8b",
            "hardware": GPU,
            "batch": 2,
            "seq_len": 8,
            "micro_batch": 1,
            "data_parallel": 2,
            "layout": iomodel.Layout(),
            "shard": "gradients",
            "recompute": "full",
            "gradient_dtype": "bf16",
            "precision": "fp8",
            "virtual_stages": 1,
        },
    ),
    "simulate": (
        iomodel.simulate,
        {
            "model": "llama-3-8b",
            "hardware": GPU,
            **SERVED,
            "load": 0.5,
            "requests": 2,
            "seed": 1,
            "policy": "chunked",
            "token_budget": 4,
            "batch": 2,
            "host_seconds": 1e-3,
            "layout": iomodel.Layout(),
            "prefix_cache": CACHE,
        },
    ),
    "simulate a trace": (
        partial(iomodel.simulate, "llama-3-8b", GPU),
        {"arrivals": {"arrival": [0.0, 1.0], "prompt": [8, 9], "output": [1, 2]}, "concurrency": 2},
    ),
    "replay a trace": (
        partial(iomodel.simulate, "llama-3-8b", GPU),
        {"arrivals": {"arrival": [0.0, 1.0], "prompt": [8, 9], "output": [1, 2]}, "requests": 2},
    ),
    "crossover_context": (
        iomodel.planning.crossover_context,
        {"model": "llama-3-8b", "hardware": GPU, "batch": 1, "phase": "decode", "longest": 64},
    ),
    "calibrate": (iomodel.devices.calibrate, {"time_budget": 1.0, "only": ["hbm_read"], "progress": False}),
    "explore": (partial(iomodel.explorer.explore, algorithms=["none"]), {"path": "x.html"}),
}
"""Right arguments of every public function that takes any, of types that a user makes, and of methods."""
if sys.platform == "linux":  # elsewhere there is no Triton
    from tests.triton import kernels

    RIGHT |= {
        "triton.count": (
            iomodel.triton.count,
            {"kernel": kernels.chosen, "grid": 1, "args": [ONES, ONES.copy(), 4], "meta": {"BLOCK": 4, "EVEN": False}},
        ),
        "triton.infer": (
            iomodel.triton.infer,
            {
                "run": lambda q_len, block_q: iomodel.triton.count(
                    kernels.softmax, q_len, [ONES, ONES.copy(), 2], {"BLOCK": block_q}
                ),
                "numbers": {"q_len": [1, 2], "block_q": [2]},
                "declared": COUNTS,
                "tiled": {"block_q": "q_len"},
                "names": {"X": "Q"},
                "most": 1,
                "points": 2,
                "fresh": 1,
                "seed": 0,
            },
        ),
    }
BAD: dict[str, Callable[[], Any]] = {
    repr(value)[:30]: lambda value=value: value
    for value in (
        *(None, True, 0, -1, 1, 2.5, float("nan"), float("inf"), -float("inf"), 10**19, 10**400, 1j, ..., int),
        *("", "flash", "causal", "8", "a\nb", "\x1b[31m", "\ud800", "a" * 20_000, b"x"),
        *((), [1], [[1], [2, 3]], [None], ["x"], [2**63], {}, {"block_q": 0}, {1: 2}, {"\n": 1}, {1}, range(10**12)),
        *(object(), W, Symbol("x"), Path(), Path("no.yaml"), np.float32("nan"), np.datetime64("2020"), Decimal("nan")),
    )
} | {
    "array": lambda: np.array([1, 2]),
    "empty array": lambda: np.array([]),
    "array of texts": lambda: np.array(["a"]),
    "array of floats": lambda: np.array([1.5]),
    "array of objects": lambda: np.array([10**400, None]),
    "deep list": lambda: nested(5000),
    "array of many axes": lambda: np.ones((1,) * 20, int),
    "iterator": lambda: iter([1, 2]),
}
"""Values of a wrong type, out of range, or wrong in themselves, made anew for each call."""


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


SLOW = {("calibrate", "device"), ("explore", "hardware")}
"""Parameters whose bad values are refused, or answered, after measurements or pages."""


def parameters(call: str) -> list[str]:
    """The parameters with right arguments, then the others of the signature."""
    function, right = RIGHT[call]
    fixed = {*right, *getattr(function, "keywords", ())}
    others = inspect.signature(function).parameters.values()
    return [
        *right,
        *(each.name for each in others if each.kind is not each.VAR_KEYWORD and each.name not in fixed),
    ]


def changed(right: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The arguments with one of them bad, or one entry of it."""
    for text, bad in BAD.items():
        yield text, {**right, name: bad()}
        if isinstance(right.get(name), list):
            yield f"[{text}]", {**right, name: [*right[name][:-1], bad()]}
        if isinstance(right.get(name), dict):
            first = next(iter(right[name]))
            yield f"{{{text}}}", {**right, name: {**right[name], first: bad()}}


def test_every_public_function_is_called() -> None:
    functions = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}
    taking = {name for name, value in functions.items() if inspect.signature(value).parameters}
    assert taking <= RIGHT.keys()


@pytest.mark.filterwarnings("ignore:iomodel.*deprecated since:DeprecationWarning")
@pytest.mark.parametrize(
    ("call", "name"), [(call, name) for call in RIGHT for name in parameters(call) if (call, name) not in SLOW]
)
def test_a_bad_argument_is_answered_or_refused_in_one_line(
    call: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick profile asks a third of the values, others for each parameter."""
    monkeypatch.chdir(tmp_path)
    function, right = RIGHT[call]
    first = crc32(f"{call} {name}".encode()) % one_in(3)
    for text, arguments in islice(changed(right, name), first, None, one_in(3)):
        try:
            function(**arguments)
        except iomodel.IOModelError as error:
            one_line(str(error))
        except Exception as error:
            pytest.fail(f"{name}={text}: {type(error).__name__}: {error}")


MANY = iomodel.VarlenAttention(q_lens=[20, 3], head_dim=4)
PAGED = W.model_copy(update={"page_size": 4})
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: iomodel.cost("two_pass", W, TILES), "direction: 'forward' given; allowed: backward, because two_pass"),
    (
        lambda: iomodel.step("mixtral-8x7b", GPU, batch=1, q_len=1, kv_len=9, routing=range(10**12)),
        "routing: range(0, 1000000000000) given; allowed: up to 1,048,576 values",
    ),
    (
        lambda: iomodel.plan("llama-3-8b", GPU, **SERVED, sensitivity=1),  # type: ignore[arg-type]
        "sensitivity: 1 given; allowed: True or False",
    ),
    (
        lambda: iomodel.cost("tiled_query", BACKWARD, TILES),
        "direction: 'backward' given; allowed: forward, because tiled",
    ),
    (lambda: iomodel.solve("split_kv", BACKWARD, sram_bytes=5000), "direction: 'backward' given; allowed: forward"),
    (lambda: iomodel.expressions("flash2", direction="sideways"), "direction: 'sideways' is unknown"),
    (lambda: iomodel.cost("standard", PAGED), "paged: given; allowed: not with standard, whose forward pass lacks it"),
    (lambda: iomodel.solve("small_cache", PAGED, sram_bytes=5000), "paged: given; allowed: not with small_cache"),
    (lambda: iomodel.expressions("flash2", biass=True), "option of flash2: 'biass' is unknown; did you mean 'bias'?"),
    (lambda: iomodel.expressions("flash2", bias=3), "bias: 3 given; allowed: bool"),
    (lambda: iomodel.expressions("flash2", direction="backward", paged=True), "paged: given with direction backward"),
    (lambda: iomodel.expressions("flash2", latent=True, head_scales=True), "head_scales: given with latent"),
    (lambda: iomodel.expressions("flash2", head_scales=True, token_scales=True), "token_scales: given with"),
    (lambda: iomodel.cost("split_kv", W, TILES, splits=6), "splits: 6 given; allowed: up to 5, the tiles of 4 ke"),
    (lambda: iomodel.cost("split_kv", MANY, TILES, splits=6), "splits: 6 given; allowed: up to 5, the tiles of 4 keys"),
    (lambda: iomodel.cost("split_kv", W, TILES, splits=0), "splits: 0 given; allowed: an integer from 1"),
    (lambda: iomodel.solve("split_kv", W, sram_bytes=5000, splits=21), "splits: 21 given; allowed: up to 20"),
    (lambda: iomodel.cost("flash2", BACKWARD, TILES, dq_buffers=0), "dq_buffers: 0 given; allowed: an integer from 1"),
    (lambda: iomodel.cost("flash2", BACKWARD, TILES, lse=True), "option of flash2: 'lse' is unknown"),
    (lambda: iomodel.cost("flash2", W, TILES, accumulate=True), "option of flash2: 'accumulate' is unknown"),
    (lambda: iomodel.cost("flash2", W, {**TILES, "bwd_block_q": 8}), "tile of flash2: 'bwd_block_q' is unknown"),
    (
        lambda: iomodel.cost("standard", BACKWARD, {"gemm3_m": 4}),
        "gemm3_n, gemm4_m, gemm4_n, gemm5_m, gemm5_n, gemm6_m, gemm6_n: standard needs",
    ),
    (
        lambda: iomodel.compare(BACKWARD, sram_bytes=5000, splits=2),
        "option of eager, flash1, flash2, flash3, 3 others: 'splits' is unknown; allowed",
    ),
    (lambda: iomodel.compare(W, sram_bytes=5), "algorithm: none fits 5 B of SRAM; the smallest feasible budget is "),
    (lambda: iomodel.theory.crossover("flash2", "flash1", MANY, TILES), "workload: VarlenAttention"),
    (lambda: iomodel.theory.crossover("flash2", "flash1", PAGED, TILES), "mask: 'causal' given; allowed: full, or"),
    (lambda: iomodel.theory.least_sram("flash2", MANY, 1), "hbm_bytes: 1 B given; flash2 moves at least"),
]


@pytest.mark.parametrize(("call", "says"), REFUSED, ids=[says[:40] for _, says in REFUSED])
def test_what_does_not_go_together_is_refused_in_one_line(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(iomodel.IOModelError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(says)
    assert "\n" not in message
    assert len(message) < 300


def test_every_error_is_a_value_error() -> None:
    assert issubclass(iomodel.IOModelError, ValueError)
