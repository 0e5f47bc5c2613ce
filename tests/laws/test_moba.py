"""Mixture of Block Attention: what its counts are for a given choice of blocks, and how far they are from another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.counting.without_tiles import without_tiles
from iomodel.testing.machine import Run
from tests.reference import moba
from tests.reference.masks import dense_attention
from tests.support.strategies import fraction_of_examples

TILES = ("block_proj", "block_sum", "block_q", "block_kv")
sizes = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 2),
        "kv_heads": st.integers(1, 2),
        "group": st.integers(1, 2),
        "blocks": st.integers(1, 7),
        "block": st.integers(1, 5),
        "selected": st.integers(1, 5),
        "tiles": st.fixed_dictionaries({name: st.integers(1, 9) for name in TILES}),
        "seed": st.integers(0, 999),
    }
)


def asked(drawn: dict[str, Any]) -> tuple[iomodel.Attention, dict[str, int], dict[str, int]]:
    """Return the call, its tiles and its options."""
    w = iomodel.Attention(
        batch=drawn["batch"],
        heads=drawn["kv_heads"] * drawn["group"],
        kv_heads=drawn["kv_heads"],
        q_len=drawn["blocks"] * drawn["block"],
        head_dim=2,
        value_dim=3,
        mask="causal",
    )
    return w, drawn["tiles"], {"select_block": drawn["block"], "selected": drawn["selected"]}


def tensors(w: iomodel.Attention, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw, keys = np.random.default_rng(seed).standard_normal, (w.batch, w.kv_heads, w.kv_len)
    return draw((w.batch, w.heads, w.q_len, w.head_dim)), draw((*keys, w.head_dim)), draw((*keys, w.value_dim))


def rows_of_blocks(run: Run, block: int) -> list[int]:
    """Count the queries that chose each block but their own, over all heads; blocks that none chose are left out."""
    chosen = run.outputs["I"][..., 1:].astype(int)
    heads, n = chosen.shape[0] * chosen.shape[1], chosen.shape[2]
    per_head = (head[head >= 0] for head in chosen.reshape(heads, n * chosen.shape[3]))
    counts = (np.bincount(head, minlength=n // block) for head in per_head)
    return [int(count) for head in counts for count in head if count]


@fraction_of_examples(3)
@given(drawn=sizes)
def test_a_given_choice_is_counted_as_sequences_of_different_lengths(drawn: dict[str, Any]) -> None:
    """The tiles that gather a block are FlashAttention-2 on as many queries as chose it, and on its keys."""
    w, tiles, options = asked(drawn)
    run = moba.run(*tensors(w, drawn["seed"]), right=0, **tiles, **options)
    loads, inner = rows_of_blocks(run, drawn["block"]), {name: tiles[name] for name in ("block_q", "block_kv")}
    own = iomodel.Attention(
        **{**w.to_dict(), "batch": w.batch * drawn["blocks"], "q_len": drawn["block"], "kv_len": drawn["block"]}
    )
    one_head = {"head_dim": w.head_dim, "value_dim": w.value_dim}
    costs = [iomodel.cost("flash2", own, inner)]
    if loads:
        chosen = iomodel.VarlenAttention(q_lens=loads, kv_lens=[drawn["block"]] * len(loads), **one_head)
        costs.append(iomodel.cost("flash2", chosen, inner))
    once = w.batch * w.kv_len * w.kv_heads  # for the means
    assert run.reads["K"] == sum(cost.reads["K"] for cost in costs) + once * w.head_dim
    assert run.reads["V"] == sum(cost.reads["V"] for cost in costs)
    assert run.writes["O_blk"] == sum(cost.writes["O"] for cost in costs)
    assert run.writes["LSE_blk"] == sum(cost.writes["LSE"] for cost in costs)
    predicted = iomodel.cost("moba", w, tiles, **options)
    assert predicted.reads["Q"] == sum(cost.reads["Q"] for cost in costs) + w.batch * w.heads * w.q_len * w.head_dim
    own_scores, gates = (2 * predicted.reads["S_G"], predicted.writes["S_G"])
    assert own_scores == w.batch * w.heads * w.q_len * (drawn["blocks"] + 1)
    assert predicted.flops == sum(cost.flops for cost in costs) + 2 * gates * w.head_dim


@fraction_of_examples(3)
@given(drawn=sizes)
def test_another_choice_changes_loads_of_keys_by_a_tile_a_block(drawn: dict[str, Any]) -> None:
    w, tiles, options = asked(drawn)
    run = moba.run(*tensors(w, drawn["seed"]), right=0, **tiles, **options)
    cost = iomodel.cost("moba", w, tiles, **options)
    for counted, predicted in ((run.reads, cost.reads), (run.writes, cost.writes)):
        assert {n: v for n, v in counted.items() if v and n not in "KV"} == {
            n: v for n, v in predicted.items() if v and n not in "KV"
        }
    assert (run.flops, run.exps, run.sram_peak) == (cost.flops, cost.exps, cost.footprint_elements)
    past, heads = drawn["blocks"] - 1, w.batch * w.heads
    chosen_first = min(past, drawn["selected"] - 1)
    for name, width in (("K", w.head_dim), ("V", w.value_dim)):
        more, rest = divmod(run.reads[name] - cost.reads[name], drawn["block"] * width)
        assert rest == 0
        assert -chosen_first * heads <= more <= past * heads
        if drawn["block"] % tiles["block_q"] == 0 and chosen_first:
            assert more >= 0  # the counted tiles are all full


@fraction_of_examples(3)
@given(drawn=sizes)
def test_where_every_block_is_chosen_it_is_causal_attention(drawn: dict[str, Any]) -> None:
    w, tiles, options = asked(drawn)
    Q, K, V = tensors(w, drawn["seed"])
    options["selected"] = drawn["blocks"]
    run = moba.run(Q, K, V, right=0, **tiles, **options)
    expected, _ = dense_attention(Q, K, V, np.tri(w.q_len, dtype=np.bool_))
    np.testing.assert_allclose(run.O, expected, rtol=1e-9, atol=1e-12)
    cost = iomodel.cost("moba", w, tiles, **options)
    assert {n: v for n, v in run.reads.items() if v} == {n: v for n, v in cost.reads.items() if v}


def test_it_is_counted_by_hand() -> None:
    """Three blocks of two positions, of which a query attends to two, in tiles of three queries and one key."""
    w = iomodel.Attention(q_len=6, head_dim=2, value_dim=1, mask="causal")
    tiles = {"block_proj": 2, "block_sum": 2, "block_q": 3, "block_kv": 1}
    run = moba.run(*(np.ones((1, 1, 6, width)) for width in (2, 2, 1)), right=0, **tiles, select_block=2, selected=2)
    # All queries after block 0 choose it: four, in tiles of three and one, which load its two keys each. Scores are
    # made in tiles of two blocks: 0 and 1, 0 and 1, and all three. An own block loads both keys.
    assert run.reads == {
        "K": 6 * 2 + 6 * 2 + 2 * 2 * 2, "V": 6 + 2 * 2, "Q": (6 + 6 + 4) * 2, "K_mean": (2 + 2 + 3) * 2,
        "S_G": 2 * (1 + 2 + 3), "I": 12, "J": 4, "O_blk": 10, "LSE_blk": 10,
    }  # fmt: skip
    assert run.writes == {"K_mean": 6, "S_G": 14, "I": 12, "J": 4, "O_blk": 10, "LSE_blk": 10, "O": 6}
    assert run.flops == 2 * 14 * 2 + 2 * (12 + 8) * (2 + 1)
    assert run.exps == (12 + 12) + (8 + 2 * 4) + 2 * 10
    cost = iomodel.cost("moba", w, tiles, select_block=2, selected=2)
    assert {n: v for n, v in cost.reads.items() if v} == dict(run.reads)


@pytest.mark.parametrize("block_q", [16, 24, 64])
def test_tiles_of_a_random_choice_are_half_full_at_the_end(block_q: int) -> None:
    """On the average of uniformly random choices, each chosen block has half a tile more than full tiles."""
    block, blocks, selected, draw = 64, 16, 4, np.random.default_rng(1)
    total = []
    for _ in range(40):
        gates = np.where(np.arange(blocks) < np.arange(block * blocks)[:, None] // block, 1.0, np.inf)
        ranks = np.argsort(draw.random(gates.shape) * gates, axis=1)[:, : selected - 1]
        past = np.take_along_axis(gates, ranks, axis=1) == 1.0
        total.append((-(-np.bincount(ranks[past], minlength=blocks) // block_q)).sum())
    pairs = block * sum(min(own, selected - 1) for own in range(blocks))
    expected = (pairs + (blocks - 1) * (block_q - 1) / 2) / block_q
    assert np.mean(total) == pytest.approx(expected, rel=0.03)


@given(heads=st.integers(1, 2), blocks=st.integers(1, 6), block=st.integers(1, 5), selected=st.integers(1, 4))
def test_flops_that_no_tile_adds_are_those_of_the_chosen_pairs(
    heads: int, blocks: int, block: int, selected: int
) -> None:
    """Each query sees its own block, causal, and up to `selected` - 1 earlier ones; a score for each block so far."""
    w = iomodel.Attention(heads=heads, q_len=blocks * block, head_dim=3, value_dim=2, mask="causal")
    free = without_tiles("moba", w, select_block=block, selected=selected)
    places = [divmod(query, block) for query in range(w.q_len)]
    pairs = sum(within + 1 + block * min(own, selected - 1) for own, within in places)
    scores = sum(own + 1 for own, _ in places)
    assert free.least_flops == 2 * heads * (pairs * (3 + 2) + scores * 3)
    assert free.exact_flops == 2 * heads * (w.q_len * (w.q_len + 1) // 2) * (3 + 2)
    assert free.share_of_exact == free.least_flops / free.exact_flops


def test_an_exact_algorithm_has_no_share_of_exact_attention() -> None:
    w = iomodel.Attention(q_len=64, head_dim=8)
    assert without_tiles("flash2", w).share_of_exact is None
    assert without_tiles("linformer", w, projected=16).share_of_exact == 0.5  # 8 N k d of 4 N^2 d, with projections
