"""Attention over ranks: the simulated ranks compute attention, and send what messages count."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import ranks as simulated
from tests.reference.masks import dense_attention, visible
from tests.support.strategies import fraction_of_examples

SHARDINGS = ("contiguous", "zigzag", "striped")


def tensors(heads: int, kv_heads: int, length: int, d: int, d_v: int, batch: int) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(0).standard_normal
    return draw((batch, heads, length, d)), draw((batch, kv_heads, length, d)), draw((batch, kv_heads, length, d_v))


@st.composite
def calls(draw: st.DrawFn) -> dict[str, int]:
    """Draw lengths, heads and ranks of which every rank holds a token."""
    length = draw(st.integers(1, 17))
    ranks = draw(st.integers(1, length).filter(lambda ranks: (ranks - 1) * -(-length // ranks) < length))
    kv_heads = draw(st.integers(1, 2))
    return {
        "length": length, "ranks": ranks, "kv_heads": kv_heads, "heads": kv_heads * draw(st.integers(1, 2)),
        "d": draw(st.integers(1, 3)), "d_v": draw(st.integers(1, 3)), "batch": draw(st.integers(1, 2)),
    }  # fmt: skip


tiles = st.fixed_dictionaries({"block_q": st.integers(1, 6), "block_kv": st.integers(1, 6)})


@given(call=calls(), tiles=tiles, causal=st.booleans(), sharding=st.sampled_from(SHARDINGS))
@fraction_of_examples(2)
def test_a_ring_computes_attention(call: dict[str, int], tiles: dict[str, int], causal: bool, sharding: str) -> None:
    ranks = call.pop("ranks")
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, network = simulated.ring(*inputs, ranks=ranks, sharding=sharding, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])
    assert sum(network.sent, start=simulated.Counter()) == sum(network.received, start=simulated.Counter())


@given(call=calls(), tiles=tiles, causal=st.booleans(), sharding=st.sampled_from(SHARDINGS[:2]))
@fraction_of_examples(2)
def test_gathered_keys_compute_attention(
    call: dict[str, int], tiles: dict[str, int], causal: bool, sharding: str
) -> None:
    ranks = call.pop("ranks")
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, _ = simulated.all_gather(*inputs, ranks=ranks, sharding=sharding, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])


@given(call=calls(), tiles=tiles, causal=st.booleans(), heads=st.integers(1, 2))
@fraction_of_examples(2)
def test_exchanged_heads_compute_attention(
    call: dict[str, int], tiles: dict[str, int], causal: bool, heads: int
) -> None:
    ranks = call.pop("ranks")
    call["heads"] = call["kv_heads"] * ranks * heads
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, _ = simulated.ulysses(*inputs, ranks=ranks, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])
