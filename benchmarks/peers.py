"""How many attention calls a second this model and its peers answer, when no call is like another.

    pip install aiconfigurator llm-analysis  # both optional, each in an environment of its own if they disagree
    python benchmarks/peers.py [--calls 20000] [--ours 10000000] [--repeats 3]

Every peer answers its own question about the attention operator, by its fastest public way, one call after the other:

- aiconfigurator (https://github.com/ai-dynamo/aiconfigurator), latency of prefill and decode attention [ms], from the
  tables of measurements that it ships, and from its roofline ("speed of light"). Where all arguments differ, an
  operator is made for each call; where lengths do, one is made once and only batches and lengths differ. Lengths
  up to 32,768: it is slower beyond what it has measured.
- llm-analysis (https://github.com/cli99/llm-analysis), FLOPs [FLOP], activation memory [B] and latency [s] of the
  attention of one layer. A model is made once; only batches and lengths differ.

Ours is the traffic of flash2 [B] as arrays, by `cost_array`: causal for prefill, one query to many keys for decode. The
questions differ, so a ratio says how large a sweep each can serve, and nothing about which answer is better. One
process, one core; the best of some runs in turn.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import iomodel

Columns = dict[str, Any]
Way = Callable[[Columns, int], Any]
Row = tuple[str, str, str]
"""Who is asked, for what, and what differs from call to call."""

SYSTEM, BACKEND = "h100_sxm", "trtllm"
GROUPS, KV_HEADS = (1, 2, 4, 8), (1, 2, 4, 8)
"""Heads whose attention aiconfigurator has measured."""
ALL, LENGTHS = "all arguments", "lengths"


def columns(number: int, longest: int) -> Columns:
    """Random calls: no two have the same batch and length."""
    draw = np.random.default_rng(0)
    batch, length = np.divmod(draw.choice(64 * longest, number, replace=False), longest)
    kv_heads = draw.choice(KV_HEADS, number)
    return {
        "batch": batch + 1,
        "length": length + 1,
        "kv_heads": kv_heads,
        "heads": kv_heads * draw.choice(GROUPS, number),
    }


def ours(calls: Columns) -> dict[Row, Callable[[], Any]]:
    """Traffic of flash2 as arrays."""
    differ = {ALL: {name: calls[name] for name in ("batch", "heads", "kv_heads")}}
    differ[LENGTHS] = {"batch": calls["batch"], "heads": 32, "kv_heads": 8}
    questions: dict[str, Columns] = {
        "prefill": {"q_len": calls["length"], "mask": "causal", "block_q": 128, "block_kv": 64},
        "decode": {"q_len": 1, "kv_len": calls["length"], "block_q": 64, "block_kv": 128},
    }

    def ask(given: Columns) -> Callable[[], Any]:
        return lambda: iomodel.cost_array("flash2", head_dim=128, **given).hbm_bytes

    return {
        ("iomodel", question, name): ask({**asked, **given})
        for question, asked in questions.items()
        for name, given in differ.items()
    }


def aiconfigurator() -> dict[Row, Way]:
    """Ways to ask aiconfigurator, each for a call by its number."""
    from aiconfigurator_core.sdk import common, perf_database
    from aiconfigurator_core.sdk.engine import EngineHandle, build_ops_json
    from aiconfigurator_core.sdk.operations.attention import ContextAttention, GenerationAttention

    database = perf_database.get_database(SYSTEM, BACKEND, perf_database.get_latest_database_version(SYSTEM, BACKEND))
    handle = EngineHandle.for_database(database, systems_path=database.systems_root)
    cache, products = common.KVCacheQuantMode.bfloat16, common.FMHAQuantMode.bfloat16

    def operator(prefill: bool, heads: int, kv_heads: int) -> Any:
        if prefill:
            return build_ops_json([ContextAttention("attention", 1.0, heads, kv_heads, cache, products)])
        return build_ops_json([GenerationAttention("attention", 1.0, heads, kv_heads, cache)])

    def way(evaluate: Callable[..., Any], prefill: bool, every: bool) -> Way:
        once = operator(prefill, 32, 8)

        def ask(calls: Columns, i: int) -> Any:
            made = operator(prefill, calls["heads"][i], calls["kv_heads"][i]) if every else once
            return evaluate(made, is_context=prefill, batch_size=calls["batch"][i], s=calls["length"][i])

        return ask

    name = f"aiconfigurator {version('aiconfigurator')}"
    evaluate = {"measured": handle.evaluate_ops_json, "roofline": handle.evaluate_ops_sol_json}
    return {
        (f"{name}, {source}", question, differs): way(evaluate[source], question == "prefill", differs == ALL)
        for question in ("prefill", "decode")
        for source in evaluate
        for differs in (ALL, LENGTHS)
    }


def llm_analysis() -> dict[Row, Way]:
    """Ways to ask llm-analysis, each for a call by its number."""
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import ModelConfig, get_dtype_config_by_name, get_gpu_config_by_name

    sizes = {"num_layers": 32, "n_head": 32, "num_key_value_heads": 8, "hidden_dim": 4096, "vocab_size": 32000}
    model = ModelConfig(name="32 heads of 128", **sizes)
    told = LLMAnalysis(model, get_gpu_config_by_name("h100-sxm-80gb"), get_dtype_config_by_name("w16a16e16"))

    def way(function: Callable[[int, int], Any]) -> Way:
        return lambda calls, i: function(calls["batch"][i], calls["length"][i])

    name = f"llm-analysis {version('llm-analysis')}"
    return {
        (f"{name}, FLOPs", "prefill", LENGTHS): way(told.get_num_flops_fwd_per_layer_attn),
        (f"{name}, memory", "prefill", LENGTHS): way(told.get_activation_memory_per_layer_attn),
        (f"{name}, latency", "prefill", LENGTHS): way(told.get_latency_fwd_per_layer_attn),
    }


PEERS = {"aiconfigurator": aiconfigurator, "llm-analysis": llm_analysis}


def looped(way: Way, calls: Columns) -> float:
    """Calls a second, one after the other; Python's integers are made before the clock starts."""
    plain = {name: column.tolist() for name, column in calls.items()}
    number = len(plain["length"])
    start = time.perf_counter()
    for i in range(number):
        way(plain, i)
    return number / (time.perf_counter() - start)


def at_once(ask: Callable[[], Any], number: int) -> float:
    """Calls a second of an answer as arrays."""
    start = time.perf_counter()
    ask()
    return number / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000, help="calls that each peer is asked (default 20,000)")
    parser.add_argument("--ours", type=int, default=10**7, help="calls in an array (default ten million)")
    parser.add_argument("--repeats", type=int, default=3, help="runs in turn, of which the best counts (default 3)")
    told = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    logging.disable(logging.CRITICAL)
    console = Console(width=120)
    ways: dict[Row, Callable[[], float]] = {}
    for row, ask in ours(columns(told.ours, 2**18)).items():
        ask()
        ways[row] = lambda ask=ask: at_once(ask, told.ours)  # type: ignore[misc]
    few = columns(told.calls, 2**15)
    for peer, load in PEERS.items():
        try:
            found = load()
        except ImportError as error:
            console.print(f"{peer} is not installed ({error}); pip install {peer}")
            continue
        ways |= {row: lambda way=way: looped(way, few) for row, way in found.items()}  # type: ignore[misc]
    best = dict.fromkeys(ways, 0.0)
    for _ in range(told.repeats):
        for row, run in ways.items():
            best[row] = max(best[row], run())
    table = Table(title="attention calls answered a second, none like another")
    for title in ("asked", "what differs", "who", "calls/s", "iomodel / it"):
        table.add_column(title, justify="right" if title in ("calls/s", "iomodel / it") else "left")
    for row, rate in sorted(best.items(), key=lambda item: item[0][1:][::-1]):
        who, question, differs = row
        ratio = best["iomodel", question, differs] / rate
        table.add_row(question, differs, who, f"{rate:,.0f}", f"{ratio:,.0f}" if who != "iomodel" else "")
    console.print(table)


if __name__ == "__main__":
    main()
