"""Attention over ranks: the simulated ranks compute attention, and send what messages count."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Expr

import iomodel
from iomodel.algorithms._ranks import ALL_GATHER, RING, ULYSSES
from iomodel.counting.rank_calls import RankCalls
from tests.reference import ranks as simulated
from tests.reference.masks import dense_attention, visible
from tests.support.strategies import fraction_of_examples

RING_WAYS = [("contiguous", False), ("contiguous", True), ("zigzag", True), ("striped", True)]


def tensors(heads: int, kv_heads: int, length: int, d: int, d_v: int, batch: int) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(0).standard_normal
    return draw((batch, heads, length, d)), draw((batch, kv_heads, length, d)), draw((batch, kv_heads, length, d_v))


@st.composite
def calls(draw: st.DrawFn) -> dict[str, int]:
    """Draw lengths, heads and ranks of which every rank holds a token."""
    ranks = draw(st.integers(1, 5))
    rows = draw(st.integers(1, 4))
    length = ranks * rows - draw(st.integers(0, min(rows - 1, ranks - 1)))  # the last rank has a row left
    kv_heads = draw(st.integers(1, 2))
    return {
        "length": length, "ranks": ranks, "kv_heads": kv_heads, "heads": kv_heads * draw(st.integers(1, 2)),
        "d": draw(st.integers(1, 3)), "d_v": draw(st.integers(1, 3)), "batch": draw(st.integers(1, 2)),
    }  # fmt: skip


def attention(sizes: dict[str, int], causal: bool) -> iomodel.Attention:
    return iomodel.Attention(
        batch=sizes["batch"], heads=sizes["heads"], kv_heads=sizes["kv_heads"], q_len=sizes["length"],
        head_dim=sizes["d"], value_dim=sizes["d_v"], mask="causal" if causal else "full",
    )  # fmt: skip


def check_messages(calls: RankCalls, network: simulated.Network) -> None:
    """Compare every tensor at every rank."""
    for rank in range(calls.ranks):
        counted = (network.sent[rank], network.received[rank], network.messages[rank])
        declared = (calls.messages.sent, calls.messages.received, calls.messages.messages)
        for counter, formulas in zip(counted, declared, strict=True):
            assert {name: count for name, count in calls.tensors(formulas, rank).items() if count} == dict(+counter)


@cache
def attention_of_rank(method: str, mask: str, sharding: str) -> Mapping[str, Expr]:
    return iomodel.planning.messages(method, mask, sharding).attention("flash2")  # type: ignore[arg-type]


def check_kernels(calls: RankCalls, everyone: list[simulated.Rank], tiles: dict[str, int]) -> None:
    """Compare what the kernels of every rank moved and computed with the costs of its calls."""
    for number, rank in enumerate(everyone):
        reads, writes, flops = rank.total("attention")
        costs = [(times, iomodel.cost("flash2", call, tiles)) for times, call in calls.blocks(number)]
        assert flops == sum(times * cost.flops for times, cost in costs)
        formulas = attention_of_rank(calls.schedule.name, str(calls.call.mask), calls.sharding)
        point = {**calls.point, **tiles, "rank_index": number}
        assert iomodel.theory.evaluate(formulas["flops"], point) == flops
        assert iomodel.theory.evaluate(formulas["hbm_reads"], point) == reads.total()
        assert iomodel.theory.evaluate(formulas["hbm_writes"], point) == writes.total()
        for counter, field in ((reads, "reads"), (writes, "writes")):
            total = simulated.Counter()
            for times, cost in costs:
                total.update({name: times * count for name, count in getattr(cost, field).items()})
            assert +total == +counter
        merged = sum(1 for kind, _ in rank.kernels if kind == "merge")
        assert merged == (sum(times for times, _ in costs) - 1 if calls.schedule.overlaps else 0)


tiles = st.fixed_dictionaries({"block_q": st.integers(1, 6), "block_kv": st.integers(1, 6)})


@pytest.mark.parametrize(("sharding", "causal"), RING_WAYS)
@given(call=calls(), tiles=tiles)
@fraction_of_examples(4)
def test_a_ring_computes_attention(call: dict[str, int], tiles: dict[str, int], causal: bool, sharding: str) -> None:
    ranks = call.pop("ranks")
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, network = simulated.ring(*inputs, ranks=ranks, sharding=sharding, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])
    assert sum(network.sent, start=simulated.Counter()) == sum(network.received, start=simulated.Counter())
    calls = RankCalls(RING, attention(call, causal), ranks, sharding)
    check_messages(calls, network)
    check_kernels(calls, everyone, tiles)


@pytest.mark.parametrize(("sharding", "causal"), RING_WAYS[:3])
@given(call=calls(), tiles=tiles)
@fraction_of_examples(4)
def test_gathered_keys_compute_attention(
    call: dict[str, int], tiles: dict[str, int], causal: bool, sharding: str
) -> None:
    ranks = call.pop("ranks")
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, network = simulated.all_gather(*inputs, ranks=ranks, sharding=sharding, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])
    calls = RankCalls(ALL_GATHER, attention(call, causal), ranks, sharding)
    check_messages(calls, network)
    check_kernels(calls, everyone, tiles)


@given(call=calls(), tiles=tiles, causal=st.booleans(), heads=st.integers(1, 2))
@fraction_of_examples(2)
def test_exchanged_heads_compute_attention(
    call: dict[str, int], tiles: dict[str, int], causal: bool, heads: int
) -> None:
    ranks = call.pop("ranks")
    call["heads"] = call["kv_heads"] * ranks * heads
    inputs = tensors(**call)
    seen = visible(call["length"], call["length"], None, 0 if causal else None, "bottom-right")
    everyone, network = simulated.ulysses(*inputs, ranks=ranks, causal=causal, tiles=tiles)
    np.testing.assert_allclose(simulated.output(everyone), dense_attention(*inputs, seen)[0])
    if call["kv_heads"] % ranks and ranks % call["kv_heads"]:
        with pytest.raises(iomodel.InputError, match=r"^ranks: "):
            RankCalls(ULYSSES, attention(call, causal), ranks)
        return
    calls = RankCalls(ULYSSES, attention(call, causal), ranks)
    check_messages(calls, network)
    check_kernels(calls, everyone, tiles)
