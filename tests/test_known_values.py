"""Numbers worked out by hand, from the papers' formulas and from plain arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sympy import Integer

import iomodel
from iomodel.masks import Band, Tiled, Visits

N, D = 4096, 64
ONE_HEAD = iomodel.Attention(q_len=N, head_dim=D)


def test_standard_attention_at_4096() -> None:
    # 4 N d + 4 N^2: Q, K, V and O once, S and P twice each.
    cost = iomodel.cost("standard", ONE_HEAD)
    assert cost.hbm_elements == 4 * N * D + 4 * N**2 == 68_157_440


def test_flash2_at_4096() -> None:
    # 4096 / 128 = 32 query tiles, each with one pass over K and V; Q and O once; one LSE a row.
    for block_kv in (1, 64, N):
        cost = iomodel.cost("flash2", ONE_HEAD, {"block_q": 128, "block_kv": block_kv})
        assert cost.hbm_elements == 2 * N * D * (1 + 32) + N == 17_305_600
    assert cost.hbm_bytes == 2 * (2 * N * D * (1 + 32)) + 4 * N


@pytest.mark.parametrize("block_kv", [1, 64, 100, 128, N])
def test_flash1_at_4096(block_kv: int) -> None:
    # K, V and the initial O once, Q, O and O again once a key tile; l and m: two writes, then two of each.
    trips = -(-N // block_kv)
    cost = iomodel.cost("flash1", ONE_HEAD, {"block_q": 128, "block_kv": block_kv})
    assert cost.hbm_elements == N * D * (3 + 3 * trips) + N * (2 + 4 * trips)


def test_the_naive_kernel_reads_keys_and_values_once_a_query() -> None:
    cost = iomodel.cost("tiled_query", ONE_HEAD, {"block_q": 1, "block_kv": 128})
    assert cost.reads == {"Q": N * D, "K": N * N * D, "V": N * N * D}
    assert cost.writes == {"O": N * D}


def test_llama_3_8b_at_8k() -> None:
    # Query tile i of 128 rows sees the keys up to (i + 1) * 128, which is whole tiles of 64.
    # Over 64 tiles: V = 128 * (1 + 2 + ... + 64) = 128 * 64 * 65 / 2 = 266,240 rows of K, and as many of V, a head.
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, dtype="bf16", mask="causal")
    cost = iomodel.cost("flash2", w, {"block_q": 128, "block_kv": 64})
    visited = 128 * 64 * 65 // 2
    assert cost.reads["K"] == cost.reads["V"] == 32 * 128 * visited == 1_090_519_040
    assert cost.reads["Q"] == cost.writes["O"] == 32 * 8192 * 128
    assert cost.hbm_bytes == 2 * (2 * 32 * 128 * visited + 2 * 32 * 8192 * 128) + 4 * 32 * 8192
    assert cost.flops == 32 * 4 * 128 * 128 * visited  # 128 rows against each visited key
    assert cost.useful_flops == 32 * 4 * 128 * (8192 * 8193 // 2)
    # Packed, a tile of 128 rows is 32 queries of 4 heads: V = sum of ceil(32 (i + 1) / 64) * 64 over 256 tiles,
    # = 64 * 2 * (1 + ... + 128), once for each of the 8 key/value heads.
    packed = iomodel.cost("flash2", w, {"block_q": 128, "block_kv": 64}, packed=True)
    assert packed.reads["K"] == 8 * 128 * 64 * (128 * 129)


HUGE = 10**12


def test_a_trillion_causal() -> None:
    # 7,812,500,000 tiles of 128 queries; tile i streams (i + 1) * 128 keys.
    tiles = HUGE // 128
    w = iomodel.Attention(q_len=HUGE, head_dim=64, value_dim=32, mask="causal")
    visited = 128 * tiles * (tiles + 1) // 2
    flash2 = iomodel.cost("flash2", w, {"block_q": 128, "block_kv": 64})
    assert flash2.hbm_elements == HUGE * 64 + visited * 96 + HUGE * 33
    tiled = iomodel.cost("tiled_query", w, {"block_q": 128, "block_kv": 64})
    assert tiled.hbm_elements == flash2.hbm_elements - HUGE
    # Transposed: key tile j of 64 is seen by the query tiles from j * 64 // 128 on, two key tiles alike.
    rows = 2 * 128 * tiles * (tiles + 1) // 2
    flash1 = iomodel.cost("flash1", w, {"block_q": 128, "block_kv": 64})
    assert flash1.reads["Q"] == rows * 64
    assert flash1.writes["O"] == (rows + HUGE) * 32


def test_a_trillion_and_one_full() -> None:
    # One more row makes one more tile, and a tile of one row streams as much as any.
    w = iomodel.Attention(q_len=HUGE + 1, head_dim=64)
    trips = HUGE // 128 + 1
    cost = iomodel.cost("flash2", w, {"block_q": 128, "block_kv": 64})
    assert cost.reads["K"] == trips * (HUGE + 1) * 64
    assert iomodel.cost("standard", w).hbm_elements == 4 * (HUGE + 1) * 64 + 4 * (HUGE + 1) ** 2


@pytest.mark.parametrize("align", ["bottom-right", "top-left"])
def test_a_trillion_through_a_window(align: str) -> None:
    # With tiles of one, query i sees min(i, W) + 1 keys: N (W + 1) - W (W + 1) / 2 in all.
    width = 10**9
    window = iomodel.Window(left=width, right=0, align=align)
    w = iomodel.Attention(q_len=HUGE, head_dim=1, mask=window)
    cost = iomodel.cost("tiled_query", w, {"block_q": 1, "block_kv": 1})
    pairs = HUGE * (width + 1) - width * (width + 1) // 2
    assert cost.reads["K"] == cost.exps == pairs
    assert cost.flops == cost.useful_flops == 4 * pairs


def test_a_trillion_keys_for_one_query() -> None:
    w = iomodel.Attention(heads=8, kv_heads=1, q_len=1, kv_len=HUGE, head_dim=128, mask="causal")
    tiles = {"block_q": 8, "block_kv": 128}
    assert iomodel.cost("flash2", w, tiles).reads["K"] == 8 * HUGE * 128
    assert iomodel.cost("flash2", w, tiles, packed=True).reads["K"] == HUGE * 128


@pytest.mark.parametrize(
    ("block_q", "block_kv", "length", "fraction"),
    [
        (128, 64, 512, Fraction(20, 32)),
        (128, 64, 1024, Fraction(9, 16)),
        (128, 64, 2048, Fraction(17, 32)),
        (192, 128, 512, Fraction(9, 12)),
        (192, 128, 1024, Fraction(32, 48)),
        (192, 128, 4096, Fraction(384, 704)),
    ],
)
def test_how_much_of_a_causal_mask_is_visited(block_q: int, block_kv: int, length: int, fraction: Fraction) -> None:
    queries, keys = Tiled(Integer(length), Integer(block_q)), Tiled(Integer(length), Integer(block_kv))
    pairs = Visits(queries, keys, Band(last=Integer(0))).pairs
    assert Fraction(int(pairs), int(queries.trips * keys.trips)) == fraction


def test_a_causal_formula_speaks_of_no_window() -> None:
    found = iomodel.expressions("flash2", mask="causal")
    assert not {"W_l", "W_r"} & {str(symbol) for expr in found.quantities.values() for symbol in expr.free_symbols}
    assert {"W_l", "W_r"} <= {
        str(s) for s in iomodel.expressions("flash2", iomodel.Window(left=1, right=1)).hbm_elements.free_symbols
    }


def test_a_nest_is_read_unpacked_and_unmasked_unless_told() -> None:
    from iomodel.counts import View
    from iomodel.masks import FULL
    from iomodel.symbols import B, H

    assert (View().mask, View().instances) == (FULL, B * H)
