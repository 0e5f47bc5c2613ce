"""DeepSeek sparse attention: its FLOPs by the formulas of its models and kernels, its traffic by sums over queries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel.errors import InputError
from iomodel.models.indexer import Indexer

LAYER: dict[str, Any] = {"heads": 128, "kv_heads": 1, "head_dim": 576, "value_dim": 512, "latent": True}
"""A layer of DeepSeek-V3.2, absorbed."""
ONES = dict.fromkeys(("block_sum", "block_q", "block_kv"), 1)


def seen(w: iomodel.Attention) -> list[int]:
    """Keys that each query sees."""
    first = w.kv_len - w.q_len + 1 if w.mask == "causal" else w.kv_len
    return [min(w.kv_len, first + t) for t in range(w.q_len)]


calls = st.builds(
    lambda q_len, more, mask, **fields: iomodel.Attention(q_len=q_len, kv_len=q_len + more, mask=mask, **fields),
    q_len=st.integers(1, 300),
    more=st.integers(0, 300),
    mask=st.sampled_from(["full", "causal"]),
    heads=st.integers(1, 9),
    kv_heads=st.just(1),
    head_dim=st.just(7),
    value_dim=st.integers(1, 7),
    latent=st.booleans(),
)


@given(w=calls, heads=st.integers(1, 5), width=st.integers(1, 5), share=st.integers(1, 600))
def test_its_flops_are_those_of_the_indexer_and_of_the_pairs_that_it_chooses(
    w: iomodel.Attention, heads: int, width: int, share: int
) -> None:
    kept = min(share, w.kv_len)
    cost = iomodel.cost("dsa", w, ONES, index_heads=heads, index_queries=1, index_dim=width, top_k=kept)
    pairs, chosen = sum(seen(w)), sum(min(kept, n) for n in seen(w))
    indexer = Indexer(heads=heads, head_dim=width, topk=kept)
    assert cost.flops == indexer.flops(1, pairs) + 2 * w.heads * (w.head_dim + w.value_dim) * chosen
    assert cost.exps == 2 * w.heads * chosen


@given(
    w=calls,
    tiles=st.fixed_dictionaries({name: st.integers(1, 70) for name in ONES}),
    share=st.integers(1, 600),
    together=st.integers(1, 70),
)
@example(  # fewer keys than are chosen for some queries, ragged tiles
    w=iomodel.Attention(q_len=41, kv_len=50, heads=5, kv_heads=1, head_dim=7, value_dim=3, mask="causal", latent=True),
    tiles={"block_sum": 16, "block_q": 2, "block_kv": 8},
    share=30,
    together=4,
)
def test_a_tile_of_heads_loads_the_row_of_each_chosen_key_once(
    w: iomodel.Attention, tiles: dict[str, int], share: int, together: int
) -> None:
    kept = min(share, w.kv_len)
    cost = iomodel.cost("dsa", w, tiles, index_heads=3, index_queries=together, index_dim=2, top_k=kept)
    visits = -(-w.heads // tiles["block_q"])
    chosen = sum(min(kept, n) for n in seen(w))
    assert cost.reads["K"] == visits * chosen * w.head_dim
    assert cost.reads.get("V", 0) == (0 if w.latent else visits * chosen * w.value_dim)
    assert cost.reads["S_I"] == sum(seen(w))
    width = tiles["block_kv"]
    places = sum(min(kept, -(-min(kept, n) // width) * width) for n in seen(w))  # a tile of places is computed whole
    assert cost.reads["I"] == visits * places
    ends = [min(w.q_len, start + together) for start in range(0, w.q_len, together)]
    scored = [min(w.kv_len, -(-seen(w)[end - 1] // tiles["block_sum"]) * tiles["block_sum"]) for end in ends]
    pairs = sum(keys * (end - start) for keys, end, start in zip(scored, ends, [0, *ends], strict=False))
    assert cost.reads["K_I"] == 2 * sum(scored)
    assert cost.writes["S_I"] == pairs
    assert cost.flops == 3 * pairs * (2 * 2 + 2) + 2 * w.heads * places * (w.head_dim + w.value_dim)


@given(w=calls, group=st.integers(1, 4))
def test_choosing_every_key_reads_what_packed_flash2_reads(w: iomodel.Attention, group: int) -> None:
    """A tile of the heads of one query, keys one by one."""
    w = w.model_copy(update={"heads": group})
    tiles = {**ONES, "block_q": group}
    every = iomodel.cost("dsa", w, tiles, index_heads=1, index_dim=1, top_k=w.kv_len)
    exact = iomodel.cost("flash2", w, {"block_q": group, "block_kv": 1}, packed=True, lse=False)
    assert {name: every.reads[name] for name in exact.reads} == exact.reads
    assert every.writes["O"] == exact.writes["O"]
    assert every.exps == exact.exps


@pytest.mark.parametrize("q_len", [1, 4096])
def test_the_attention_of_deepseek_v32_is_that_of_the_benchmark_of_flashmla(q_len: int) -> None:
    """`get_flop` of its tests/test_flash_mla_prefill.py at 131,072 keys: 2 h_q topk (d_qk + d_v) s_q."""
    w = iomodel.Attention(**LAYER, q_len=q_len, kv_len=131_072)
    cost = iomodel.cost("dsa", w, {**ONES, "block_q": 64, "block_kv": 64})
    indexer = 64 * (2 * 128 + 2) * 131_072 * q_len
    assert cost.flops - indexer == 2 * 128 * 2048 * (576 + 512) * q_len
    assert cost.reads["K"] == 2 * 2048 * 576 * q_len  # two tiles of 64 heads
    assert "V" not in cost.reads


def test_it_is_compared_with_exact_attention_on_a_latent() -> None:
    w = iomodel.Attention(**LAYER, q_len=1, kv_len=8192)
    both = iomodel.compare(w, "h100-sxm5", approximate=True)
    assert both.best_approximate is not None
    assert both.best_approximate.algorithm == "dsa"
    assert list(both.approximates) == ["dsa"]


def test_it_refuses_what_it_does_not_have() -> None:
    w = iomodel.Attention(**LAYER, q_len=1, kv_len=4096)
    too_many = "splits: 3 given; allowed: up to 2, the tiles of 1024 places in top_k = 2048"
    with pytest.raises(InputError, match=too_many):
        iomodel.cost("dsa", w, {**ONES, "block_kv": 1024}, splits=3)
    w = iomodel.Attention(**LAYER, q_len=1, kv_len=2047)
    with pytest.raises(InputError, match="top_k: 2048, the default, given; allowed: up to kv_len = 2047, all keys"):
        iomodel.cost("dsa", w, ONES)
    paged = iomodel.Attention(**LAYER, q_len=1, kv_len=4096, page_size=64)
    with pytest.raises(InputError, match="paged: given; allowed: not with dsa, whose forward pass lacks it"):
        iomodel.cost("dsa", paged, ONES)
    later = iomodel.Attention(**LAYER, q_len=5, kv_len=4, mask="causal")
    with pytest.raises(
        InputError, match="q_len: 5 given; allowed: up to kv_len = 4, for a query sees a key of its own"
    ):
        iomodel.cost("dsa", later, ONES, top_k=2)


MEGATRON = {4096: (280.9, 274.9), 32_768: (503.6, 289.6), 131_072: (1267.0, 316.9), 262_144: (2284.9, 352.5)}
"""FLOPs of training GLM-5.2 per token [GFLOP], by length: attention to all positions, and with the indexer and its top
2,048. NVIDIA/Megatron-LM, pull request 6148, 30 July 2026."""
GLM: dict[str, Any] = {"heads": 64, "head_dim": 256, "value_dim": 256, "mask": "causal"}
INDEXER = {"index_heads": 32, "index_dim": 128, "top_k": 2048}
LAYERS, INDEXERS = 78 + 1, 19 + 3
"""Layers with the one of multi-token prediction; those with an indexer: `topk_freq=4`, `skip_offset=3`."""


def test_its_flops_grow_with_the_length_as_those_of_megatron() -> None:
    """What does not depend on the length, weights and projections, is the same at all lengths to the published digits.

    A gradient pass has twice the FLOPs of a forward pass. Megatron counts the products of the indexer without the
    weighting of its heads, one in 129.
    """
    rest: list[tuple[float, float]] = []
    for n, (dense, sparse) in MEGATRON.items():
        w = iomodel.Attention(q_len=n, kv_len=n, kv_heads=1, **GLM)
        exact = iomodel.cost("flash2", w, {"block_q": 1, "block_kv": 1}).flops
        alone = iomodel.cost("dsa", w.model_copy(update={"heads": 1}), ONES, **INDEXER).flops
        core = (iomodel.cost("dsa", w, ONES, **INDEXER).flops - alone) * 64 // 63
        indexer = (iomodel.cost("dsa", w, ONES, **INDEXER).flops - core) * 128 // 129
        per_token = [3 * flops / n / 1e9 for flops in (LAYERS * exact, LAYERS * core + INDEXERS * indexer)]
        rest.append((dense - per_token[0], sparse - per_token[1]))
    for column in zip(*rest, strict=True):
        assert max(column) - min(column) <= 0.1  # the last digit of two figures
    assert rest[-1][1] > rest[-1][0]  # the projections of the indexer
