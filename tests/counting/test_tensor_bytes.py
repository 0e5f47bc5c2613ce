"""Bytes of each tensor: they add up to the traffic, whatever the dtypes, in the table and in JSON."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm

SMALL = {"batch": 2, "heads": 4, "kv_heads": 2, "q_len": 160, "head_dim": 32}
CALLS = [
    (name, iomodel.Attention(**SMALL, direction=direction, mask=mask, dtype=dtype))
    for name in iomodel.list_algorithms()
    if algorithm(name).answers == "attention" and not algorithm(name).approximates and name != "eager"  # has no tiles
    for direction in algorithm(name).directions
    for mask, dtype in (("full", "fp32"), ("causal", "bf16"))
]
OTHERS: list[tuple[str, Any]] = [
    ("gemm", iomodel.Linear(rows=64, in_features=512, out_features=256, weight_dtype="int4", out_dtype="fp32")),
    ("fused_mlp", iomodel.MLP(rows=64, in_features=512, hidden_features=256)),
    ("chunked_scan", iomodel.Recurrence(tokens=256, heads=4, head_dim=32)),
    ("cut_cross_entropy", iomodel.CrossEntropy(rows=64, in_features=256, vocab_size=512)),
    *(("flash2", iomodel.Attention(**SMALL, kv_dtype=dtype)) for dtype in ("fp8", "int4")),
]


@pytest.mark.parametrize(("name", "call"), [*CALLS, *OTHERS])
def test_the_bytes_of_the_tensors_add_up_to_the_traffic(name: str, call: Any) -> None:
    cost = iomodel.solve(name, call, sram_bytes=65536).cost
    assert (cost.reads_bytes.keys(), cost.writes_bytes.keys()) == (cost.reads.keys(), cost.writes.keys())
    assert sum((*cost.reads_bytes.values(), *cost.writes_bytes.values())) == cost.hbm_bytes


def test_the_table_and_the_json_state_the_bytes_of_each_tensor() -> None:
    call = iomodel.Attention(q_len=64, head_dim=32, kv_dtype="int4")
    cost = iomodel.cost("flash2", call, {"block_q": 16, "block_kv": 16})
    assert cost.to_dict()["reads_bytes"]["K"] == cost.reads_bytes["K"] == cost.reads["K"] // 2
    assert f"reads K {cost.reads['K']:,} elements = {cost.reads_bytes['K']:,} B" in " ".join(str(cost).split())


@given(
    group=st.integers(2, 9),
    q_len=st.integers(1, 9),
    block_q=st.integers(1, 30),
    mask=st.sampled_from(["full", "causal"]),
)
def test_a_packed_tile_reads_a_sink_for_each_head_of_its_rows(group: int, q_len: int, block_q: int, mask: Any) -> None:
    """Rows of the heads of a group stand one after the other: a tile of few rows, the last one too, has as many."""
    call = iomodel.Attention(heads=2 * group, kv_heads=2, q_len=q_len, kv_len=12, head_dim=8, mask=mask, sinks=True)
    reads = iomodel.cost("flash2", call, {"block_q": block_q, "block_kv": 4}, packed=True).reads
    rows = group * q_len
    tiles = (min(block_q, rows - first) for first in range(0, rows, block_q))
    assert reads["sinks"] == 2 * sum(min(group, here) for here in tiles)


def test_atomic_additions_are_listed_in_bytes() -> None:
    call = iomodel.Attention(q_len=1024, head_dim=64, direction="backward")
    counted = iomodel.cost("flash2", call, {"block_q": 64, "block_kv": 128})
    assert counted.atomics == 8 * 1024 * 64
    assert "elements = 2,097,152 B each way" in str(counted)


def test_an_estimate_lists_a_bias_beside_the_compulsory_traffic() -> None:
    call = iomodel.Attention(heads=32, q_len=8192, head_dim=128, bias=True)
    text = str(iomodel.estimate("flash2", call, "a100-sxm4-80gb"))
    assert re.search(rf"beside it bias +{32 * 8192**2 * 2:,} ", text)
    assert "beside it" not in str(iomodel.estimate("flash2", call.replace(bias=False), "a100-sxm4-80gb"))
