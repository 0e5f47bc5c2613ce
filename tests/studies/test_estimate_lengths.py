"""The time of sequences of different lengths: their blocks share one grid."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel

TILES = {"block_q": 128, "block_kv": 64}
LENGTHS = st.lists(st.integers(1, 3000), min_size=1, max_size=5)
MASKS = st.sampled_from(["full", "causal"])


def timed(q_lens: list[int], mask: str, direction: str = "forward") -> iomodel.Estimate:
    w = iomodel.VarlenAttention(q_lens=q_lens, heads=8, kv_heads=2, head_dim=64, mask=mask, direction=direction)
    return iomodel.estimate("flash2", w, "a100-sxm4-80gb", TILES)


@given(length=st.integers(1, 3000), batch=st.integers(1, 6), mask=MASKS)
def test_equal_lengths_are_a_batch(length: int, batch: int, mask: str) -> None:
    w = iomodel.Attention(batch=batch, heads=8, kv_heads=2, q_len=length, head_dim=64, mask=mask)
    alike = iomodel.estimate("flash2", w, "a100-sxm4-80gb", TILES)
    found = timed([length] * batch, mask)
    assert found.seconds == pytest.approx(alike.seconds, rel=1e-12)
    assert (found.cost.flops, found.requested_bytes) == (alike.cost.flops, alike.requested_bytes)


@given(lengths=LENGTHS, mask=MASKS, data=st.data())
def test_the_order_is_no_matter_and_another_sequence_costs_time(
    lengths: list[int], mask: str, data: st.DataObject
) -> None:
    found = timed(lengths, mask)
    assert timed(data.draw(st.permutations(lengths)), mask).seconds == pytest.approx(found.seconds, rel=1e-12)
    more = [*lengths, data.draw(st.integers(1, 3000))]
    assert timed(more, mask).seconds >= found.seconds * (1 - 1e-12)
    assert found.floor <= found.seconds
    low, high = found.dram_bytes
    assert found.compulsory_bytes <= low <= high <= found.requested_bytes


@example([897, 2433], "full")  # the short blocks go first, one to an SM
@given(lengths=LENGTHS, mask=MASKS)
def test_one_launch_takes_no_longer_than_one_for_each(lengths: list[int], mask: str) -> None:
    apart = sum(timed([length], mask).seconds for length in lengths)
    assert timed(lengths, mask).seconds <= apart * (1 + 1e-12)


def test_both_directions_and_the_fastest_tiles() -> None:
    w = iomodel.VarlenAttention(q_lens=[1000, 500, 20], heads=8, head_dim=64, direction="both")
    found = iomodel.estimate("flash2", w, "a100-sxm4-80gb")
    assert {"block_q", "bwd_block_q"} <= set(found.tiles)
    one = w.model_copy(update={"direction": "forward"})
    best = iomodel.solve("flash2", one, "a100-sxm4-80gb", objective="time")
    assert iomodel.estimate("flash2", one, "a100-sxm4-80gb", best.tiles).seconds == best.seconds
