"""Traffic over each level of the memory: what the call moves there, never below the bound for every schedule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from tests.support.estimate_calls import some

CALLS: list[tuple[str, Any]] = [
    ("flash2", iomodel.Attention(heads=16, q_len=65_536, head_dim=128)),
    ("flash2", iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")),
    ("split_kv", iomodel.Attention(batch=8, heads=32, kv_heads=8, q_len=1, kv_len=32_768, head_dim=128)),
    ("flash2", iomodel.Attention(heads=16, q_len=4096, head_dim=64, direction="backward")),
    ("flash2", iomodel.Attention(heads=16, q_len=4096, head_dim=64, direction="both")),
    ("standard", iomodel.Attention(heads=16, q_len=2048, head_dim=64)),
    ("flash2", iomodel.VarlenAttention(heads=8, q_lens=[100, 5000], head_dim=64)),
    ("gemm", iomodel.Linear(rows=8192, in_features=8192, out_features=8192)),
    ("nsa", iomodel.Attention(heads=16, kv_heads=4, q_len=16_384, head_dim=128, mask="causal")),
]


@pytest.mark.parametrize(("algorithm", "w"), CALLS)
def test_each_level_has_its_traffic_and_the_bound_there(algorithm: str, w: Any) -> None:
    e = iomodel.estimate(algorithm, w, "a100-sxm4-80gb")
    sm, l2 = e.levels
    assert sm.moved_bytes == (e.requested_bytes, e.requested_bytes)
    assert l2.moved_bytes == e.dram_bytes
    for level in e.levels:
        bounds = iomodel.lower_bounds(w, algorithm=algorithm, sram_bytes=level.capacity_bytes, units=level.units)
        assert level.bound == bounds[level.bound.name]
        assert bounds["compulsory"].bytes <= level.bound.bytes <= level.moved_bytes[1]
    assert l2.bound.bytes <= sm.bound.bytes
    assert level_rows(e) == [f"108 x SM {458_752:,}", f"L2 and SMs {40 * 2**20 + 108 * 458_752:,}"]


def test_the_level_worth_work_is_the_one_with_the_most_time_above_its_bound() -> None:
    """Prefill requests several times what an SM must move; decoding reads the cache once at every level."""
    e = iomodel.estimate("flash2", iomodel.Attention(heads=16, q_len=8192, head_dim=128), "h100-sxm5")
    sm = e.levels[0]
    above = 1 - sm.bound.bytes / e.requested_bytes
    assert e.excess_seconds["SM"] == pytest.approx(e.breakdown["l2"] * above)
    assert sm.distance == (e.requested_bytes / sm.bound.bytes,) * 2
    assert f"worth work: SM, {sm.distance[0]:,.1f} times its bound" in str(e)
    decoding = iomodel.Attention(batch=8, heads=32, kv_heads=8, q_len=1, kv_len=131_072, head_dim=128)
    e = iomodel.estimate("split_kv", decoding, "h100-sxm5")
    assert max(e.excess_seconds.values()) < e.seconds / 100
    assert "worth work" not in str(e)


def test_a_cluster_is_charged_with_what_sharing_among_its_sms_alone_can_save() -> None:
    e = iomodel.estimate("flash2", iomodel.Attention(heads=16, q_len=65_536, head_dim=128), "h100-sxm5")
    sm, cluster, l2 = e.levels
    assert (cluster.name, cluster.units, cluster.capacity_bytes) == ("cluster of SMs", 9, 16 * sm.capacity_bytes)
    assert cluster.moved_bytes == sm.moved_bytes
    assert l2.bound.bytes <= cluster.bound.bytes < sm.bound.bytes
    saved = e.breakdown["l2"] * (sm.bound.bytes - cluster.bound.bytes) / e.requested_bytes
    assert e.excess_seconds["cluster of SMs"] == pytest.approx(saved)
    assert len(iomodel.estimate("flash2", CALLS[0][1], "a100-sxm4-80gb").levels) == 2


def level_rows(e: iomodel.Estimate) -> list[str]:
    """The first two cells of each row of the printed table of levels."""
    text = str(e).split("traffic over each level of the memory")[1]
    rows = [line.split("  ") for line in text.splitlines() if "SM" in line and "worth work" not in line]
    return [" ".join([cell.strip() for cell in row if cell.strip()][:2]) for row in rows]


@some(4)
@given(
    length=st.integers(1, 20_000),
    width=st.sampled_from([64, 128]),
    heads=st.sampled_from([1, 8, 40]),
    mask=st.sampled_from(["full", "causal"]),
    device=st.sampled_from(["a100-sxm4-80gb", "h100-sxm5", "h20"]),
)
def test_no_estimate_moves_less_than_a_bound(length: int, width: int, heads: int, mask: Any, device: str) -> None:
    w = iomodel.Attention(heads=heads, q_len=length, head_dim=width, mask=mask)
    e = iomodel.estimate("flash2", w, device, {"block_q": 64, "block_kv": 64})
    for level in e.levels:
        assert level.bound.bytes <= level.moved_bytes[1]


def test_each_cache_of_a_device_with_slices_and_a_last_level_has_its_traffic() -> None:
    e = iomodel.estimate("flash2", CALLS[0][1], "mi300x")
    assert [(level.name, level.units) for level in e.levels] == [
        ("SM", 304),
        ("L2 and SMs", 8),
        ("last-level cache, L2 and SMs", 1),
    ]
    assert [level.moved_bytes for level in e.levels[1:]] == [e.l2_bytes, e.dram_bytes]
    assert all(level.bound.bytes <= level.moved_bytes[1] for level in e.levels)
    assert e.l2_bytes[0] > e.dram_bytes[0]
    last = 256 * 2**20
    assert e.levels[2].capacity_bytes - 8 * e.levels[1].capacity_bytes == last


PARTS: list[tuple[str, Any, Any]] = [
    ("gemm", lambda n: iomodel.Linear(rows=512, in_features=512, out_features=512, groups=n), {"sram_elements": 2000}),
    ("flash2", lambda n: iomodel.Attention(batch=n, q_len=512, head_dim=64), {"sram_elements": 128}),
    ("flash2", lambda n: iomodel.Attention(batch=n, q_len=500, head_dim=32), {"sram_elements": 20_000}),
]


@pytest.mark.parametrize("units", [2, 7, 100])
@pytest.mark.parametrize(("algorithm", "parts", "memory"), PARTS)
def test_units_with_a_part_each_are_bounded_by_the_bounds_of_the_parts(
    algorithm: str, parts: Any, memory: dict[str, int], units: int
) -> None:
    together = iomodel.lower_bounds(parts(units), algorithm=algorithm, **memory, units=units)
    alone = iomodel.lower_bounds(parts(1), algorithm=algorithm, **memory)
    assert together.keys() == alone.keys()
    for name, bound in alone.items():
        phase = 2 * memory["sram_elements"]  # a part of a phase more in each unit than in all together
        assert units * (bound.elements - 2 - phase) <= together[name].elements <= units * (bound.elements + 1)
