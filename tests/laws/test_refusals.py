"""Errors that name the field, what was given and what is allowed: one call for each that no other test makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import iomodel
from iomodel.counting.cost import linear_cost
from iomodel.models.attention_layer import AttentionLayer
from iomodel.models.decoder_layer import MLPLayer
from iomodel.models.indexer import Indexer
from iomodel.planning.step.expert_loads import approximate_experts_hit
from iomodel.plots import feasible_tiles
from iomodel.studies.sweeps.sweep import sweep
from iomodel.testing import workloads
from iomodel.workloads.linear import Linear

W = iomodel.Attention(q_len=256, head_dim=64)
CAUSAL = iomodel.Attention(q_len=256, head_dim=64, mask="causal")
BACKWARD = iomodel.Attention(q_len=256, head_dim=64, direction="backward")
PAIR = ["flash1", "flash2"]
TILES = {"block_q": 16, "block_kv": 16}
LINEAR = Linear(rows=4, in_features=8, out_features=4)
PAGED = iomodel.Attention(q_len=2**24, kv_len=2**24, head_dim=64, page_size=48, mask="causal")

REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "inverse": (
        lambda: iomodel.theory.crossover("flash2", "standard", W, TILES, up_to=10**17),
        "up_to: 100000000000000000 given; allowed: at most 10000000",
    ),
    "crossovers over memory in time": (
        lambda: iomodel.crossovers(PAIR, W, "h100-sxm5", over="sram_bytes", metric="time"),
        "over: sram_bytes given with metric 'time'; allowed: length, q_len, kv_len, head_dim, batch",
    ),
    "crossovers of one twice": (
        lambda: iomodel.crossovers(["split_kv:splits=4", ("split_kv", {"splits": 4})], W, tiles=TILES),
        "algorithms: split_kv given twice with the same options; allowed: each once, or",
    ),
    "pair of nobody": (
        lambda: iomodel.crossovers(PAIR, W, tiles=TILES, limit=9).pair("flash2", "flash"),
        "algorithm of this answer: 'flash' is unknown; did you mean 'flash1' or 'flash2'? allowed: flash1, flash2",
    ),
    "pair of one": (
        lambda: iomodel.crossovers(PAIR, W, tiles=TILES, limit=9).pair("flash2", "flash2"),
        "incumbent: 'flash2' is unknown; did you mean 'flash1'? allowed: flash1",
    ),
    "an indexer wider than the cache": (
        lambda: AttentionLayer(heads=4, kv_heads=1, head_dim=32, indexer=Indexer(heads=2, head_dim=128, topk=64)),
        "indexer: keys of 128 elements given; allowed: up to 64, a row of the cache",
    ),
    "an indexer that keeps more than the cache": (
        lambda: iomodel.cost("dsa", W, TILES, top_k=512, index_dim=32),
        "top_k: 512 given; allowed: up to kv_len = 256, all keys",
    ),
    "a chunk that does not divide": (
        lambda: iomodel.cost("nsa", CAUSAL.model_copy(update={"q_len": 100, "kv_len": 100}), TILES),
        "q_len: 100 given; allowed: a multiple of select_block = 64",
    ),
    "optimum": (lambda: iomodel.optimum("loki"), "algorithm: loki given; allowed: eager, flash1, flash2"),
    "splits of a sweep": (
        lambda: sweep("split_kv", q_len=8, kv_len=[64, 100], head_dim=8, splits=[2, 5], block_q=8, block_kv=16),
        "splits: 5 combined with kv_len = 64 and block_kv = 16; allowed there: up to 4, the tiles of keys",
    ),
    "diagnose": (
        lambda: iomodel.diagnose("flash2", W, "h100-sxm5", 1e-3, parameters={}),  # type: ignore[arg-type]
        "parameters: {} given; allowed: an iomodel.devices.Parameters",
    ),
    "step": (
        lambda: iomodel.step(iomodel.model("llama-3-8b"), "h100-sxm5", batch=1, q_len=1, kv_len=9, parameters=3),  # type: ignore[arg-type]
        "parameters: 3 given; allowed: an iomodel.devices.Parameters",
    ),
    "evaluate": (
        lambda: iomodel.theory.evaluate(
            iomodel.expressions("flash2", mask=iomodel.Documents([256])).reads["K"], {"q_len": 256}
        ),
        "formula: has counts that depend on the data of a mask; allowed: iomodel.cost on a workload",
    ),
    "map": (
        lambda: feasible_tiles("mamba2", CAUSAL, sram_bytes=10**6),
        "algorithm: mamba2 given; allowed: an algorithm with two tiles",
    ),
    "explore": (
        lambda: iomodel.explorer.explore(algorithms=["flash2", 3]),  # type: ignore[list-item]
        "algorithms: 3 given; allowed: names, such as",
    ),
    "kernels of an algorithm without any": (
        lambda: iomodel.solve("two_pass", BACKWARD, "h100-sxm5", objective="time"),
        "objective: 'time' given with no implementation of two_pass",
    ),
    "pages under a mask": (
        lambda: iomodel.cost("flash2", PAGED, {"block_q": 1, "block_kv": 36}),
        "block_q: 1 given; 16,777,216 query tiles are too many to count pages under a mask one by one",
    ),
    "experts": (
        lambda: approximate_experts_hit(8, 9, 1),
        "experts_per_token: 9 given; allowed: from 1 to experts = 8",
    ),
    "linear tiles": (
        lambda: linear_cost(LINEAR, {"block_m": 2, "block_n": 2}),
        "block_k: gemm needs this tile; allowed: an integer from 1 up",
    ),
    "shared experts": (
        lambda: MLPLayer(
            experts=4, experts_per_token=2, expert_intermediate_size=8, shared_experts=1, shared_intermediate_size=0
        ),
        "shared_intermediate_size: 0 given with shared_experts; allowed: at least 1",
    ),
    "drawn calls": (
        lambda: workloads("nsa"),
        "algorithm: nsa given; allowed: an exact algorithm",
    ),
    "drawn directions": (
        lambda: workloads(directions=[]),
        "directions: none given; allowed: some of forward, backward, both",
    ),
    "sweep": (  # the fields of a group are names
        lambda: sweep("flash2", q_len=[1, 2], head_dim=8, zipped=[["q_len", 3]]),  # type: ignore[list-item]
        "zipped: ",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_the_field_and_what_is_allowed(name: str) -> None:
    call, told = REFUSALS[name]
    with pytest.raises(iomodel.IOModelError, match=f"^{re.escape(told)}") as refused:
        call()
    assert "\n" not in str(refused.value)
