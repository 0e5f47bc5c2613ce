"""Numbers worked out by hand, from the papers' formulas and from plain arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sympy import Integer

import iomodel
from iomodel.common.band import Band
from iomodel.counting.bands import Tiled, Visits
from iomodel.workloads.call import Mask

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


def window(left: int, right: int) -> iomodel.Window:
    return iomodel.Window(left=left, right=right)


@pytest.mark.parametrize(
    ("mask", "lengths", "tiles", "plain", "serpentine"),
    [
        ("full", (100, 100), (32, 16), 400, 376),
        ("full", (128, 128), (32, 16), 512, 464),
        ("full", (130, 70), (16, 24), 630, 446),
        ("full", (7, 9), (2, 4), 36, 30),
        ("full", (64, 1000), (16, 96), 4000, 3824),
        ("full", (1, 50), (4, 8), 50, 50),
        ("causal", (100, 100), (32, 16), 292, 276),
        ("causal", (128, 128), (32, 64), 384, 192),
        ("causal", (128, 128), (64, 16), 192, 192),
        ("causal", (50, 80), (7, 9), 511, 458),
        ("causal", (80, 50), (7, 9), 262, 221),
        ("causal", (64, 64), (16, 64), 256, 64),
        (window(31, 0), (200, 200), (16, 16), 568, 552),
        (window(63, 0), (200, 200), (16, 48), 1208, 776),
        (window(20, 5), (97, 131), (13, 20), 422, 391),
    ],
)
def test_key_rows_up_and_down(
    mask: Mask, lengths: tuple[int, int], tiles: tuple[int, int], plain: int, serpentine: int
) -> None:
    w = iomodel.Attention(q_len=lengths[0], kv_len=lengths[1], head_dim=1, mask=mask)
    sizes = dict(zip(("block_q", "block_kv"), tiles, strict=True))
    rows = [iomodel.cost("flash2", w, sizes, order=order).reads["K"] for order in ("plain", "serpentine")]
    assert rows == [plain, serpentine]


def test_key_rows_up_and_down_of_packed_heads() -> None:
    w = iomodel.Attention(q_len=30, kv_len=60, heads=4, kv_heads=1, head_dim=1, mask="causal")
    rows = [
        iomodel.cost("flash2", w, {"block_q": 8, "block_kv": 16}, packed=True, order=order).reads["K"]
        for order in ("plain", "serpentine")
    ]
    assert rows == [776, 592]


@pytest.mark.parametrize("block_kv", [1, 64, 100, 128, N])
def test_flash1_at_4096(block_kv: int) -> None:
    # K, V and the initial O once, Q, O and O again once a key tile; l and m: two writes, then two of each.
    trips = -(-N // block_kv)
    cost = iomodel.cost("flash1", ONE_HEAD, {"block_q": 128, "block_kv": block_kv})
    assert cost.hbm_elements == N * D * (3 + 3 * trips) + N * (2 + 4 * trips)


BACKWARD = iomodel.Attention(q_len=N, head_dim=D, direction="backward")


def test_standard_attention_backward_at_4096() -> None:
    # P twice, dP and dS: 7 N^2; Q, K, V, dQ, dK, dV once and dO twice: 8 N d (FlashAttention, Theorem 5).
    cost = iomodel.cost("standard", BACKWARD)
    assert cost.hbm_elements == 8 * N * D + 7 * N**2 == 119_537_664
    assert cost.flops == 4 * 2 * N * N * D
    assert cost.exps == 0  # P was kept


@pytest.mark.parametrize("block_kv", [1, 64, 100, 128, N])
def test_flash1_backward_at_4096(block_kv: int) -> None:
    # Zeros to dQ, dK, dV; K, V, dK, dV: 7 N d. Q, O, dO and dQ in and out, l and m, once a key tile.
    trips = -(-N // block_kv)
    cost = iomodel.cost("flash1", BACKWARD, {"block_q": 128, "block_kv": block_kv})
    assert cost.hbm_elements == N * D * (7 + 5 * trips) + 2 * N * trips
    assert cost.flops == 5 * 2 * N * N * D  # S is made again


@pytest.mark.parametrize("block_kv", [1, 64, 100, 128, N])
def test_flash2_backward_at_4096(block_kv: int) -> None:
    # Algorithm 2: zeros to dQ, O and dO for D, K, V, dK, dV: 7 N d. Q, dO, dQ in and out, L and D, once a key tile.
    # The kernels hold dQ in fp32 and bring it into its own dtype at the end: 2 N d more.
    trips = -(-N // block_kv)
    cost = iomodel.cost("flash2", BACKWARD, {"block_q": 128, "block_kv": block_kv})
    algorithm_2 = N * D * (7 + 4 * trips) + N * (1 + 2 * trips)
    assert cost.hbm_elements == algorithm_2 + 2 * N * D
    assert cost.atomics == cost.reads["dQ_acc"] - N * D == N * D * trips
    # 4-byte accumulator: zeros, a read and a write a key tile, the last read; 4-byte D and L.
    in_fp32 = N * D * (2 + 2 * trips) + N * (1 + 2 * trips)
    assert cost.hbm_bytes == 2 * (cost.hbm_elements - in_fp32) + 4 * in_fp32


def test_two_passes_backward_at_4096() -> None:
    # For D: 2 N d + N. dK, dV: K, V in, dK, dV out; 32 times Q, dO, L, D. dQ: 16 times K, V; Q, dO, L, D, dQ once.
    tiles = {"block_q": 64, "block_kv": 128, "dq_block_q": 256, "dq_block_kv": 64}
    cost = iomodel.cost("two_pass", BACKWARD, tiles)
    first = 4 * N * D + 32 * (2 * N * D + 2 * N)
    second = 16 * 2 * N * D + 3 * N * D + 2 * N
    assert cost.hbm_elements == 2 * N * D + N + first + second
    assert (cost.flops, cost.atomics, cost.exps) == (7 * 2 * N * N * D, 0, 2 * N * N)


def test_a_forward_and_a_backward_pass_add_up() -> None:
    tiles = {"block_q": 128, "block_kv": 64}
    both = iomodel.cost("flash2", ONE_HEAD.model_copy(update={"direction": "both"}), {**tiles, "bwd_block_kv": 128})
    forward = iomodel.cost("flash2", ONE_HEAD, tiles)
    backward = iomodel.cost("flash2", BACKWARD, {"block_q": 128, "block_kv": 128})
    assert both.hbm_bytes == forward.hbm_bytes + backward.hbm_bytes
    assert both.flops == forward.flops + backward.flops == 7 * 2 * N * N * D


def test_a_small_cache_at_4096() -> None:
    # A tile of S of 32 x 48: 128 query tiles, 86 key tiles; O comes back but for the first time.
    cost = iomodel.cost("small_cache", ONE_HEAD, {"block_q": 32, "block_kv": 48})
    assert cost.hbm_elements == N * D * 86 + 2 * N * D * 128 + N * D * (86 + 85)
    assert cost.footprint_elements == 32 * 48 + 3 * 32 + 32 + 48  # S; l, m, a factor; a column of Q and one of K


def test_a_latent_is_read_once() -> None:
    # DeepSeek-V2's MLA, 128 heads, latent and rotary part of 512 + 64: the group is one tile, V is the first 512.
    w = iomodel.Attention(heads=128, kv_heads=1, q_len=1, kv_len=4096, head_dim=576, value_dim=512, latent=True)
    cost = iomodel.cost("flash2", w, {"block_q": 128, "block_kv": 64}, packed=True, lse=False)
    assert cost.reads == {"Q": 128 * 576, "K": 4096 * 576}
    assert cost.writes == {"O": 128 * 512}
    assert cost.flops == 2 * 128 * 4096 * (576 + 512)
    apart = iomodel.cost("flash2", w.model_copy(update={"latent": False}), cost.tiles, packed=True, lse=False)
    assert apart.hbm_elements - cost.hbm_elements == 4096 * 512


def test_a_decode_step_in_splits() -> None:
    # 32 heads of 8 key/value heads, 8192 keys in 64 tiles, 8 to a split. A packed tile holds the 4 queries of a head.
    w = iomodel.Attention(heads=32, kv_heads=8, q_len=1, kv_len=8192, head_dim=128)
    tiles = {"block_q": 4, "block_kv": 128}
    cost = iomodel.cost("split_kv", w, tiles, splits=8, packed=True)
    rows = 8 * 4
    assert cost.reads == {
        "Q": 8 * rows * 128,
        "K": 8 * 8192 * 128,
        "V": 8 * 8192 * 128,
        "O_acc": 8 * rows * 128,
        "LSE_acc": 8 * rows,
    }
    assert cost.writes == {"O_acc": 8 * rows * 128, "LSE_acc": 8 * rows, "O": rows * 128, "LSE": rows}
    assert cost.hbm_bytes == 2 * (8 * rows * 128 + 2 * 8 * 8192 * 128 + rows * 128) + 4 * (2 * 8 * rows * 129 + rows)
    alone = iomodel.cost("split_kv", w, tiles, splits=1, packed=True)
    whole = iomodel.cost("flash2", w, tiles, packed=True)
    assert (alone.hbm_bytes, alone.exps) == (whole.hbm_bytes, whole.exps)


def test_a_block_sparse_mask_saves_its_share() -> None:
    # Proposition 4 of FlashAttention: N d + s N^2 d^2 / M, a share s of the blocks for that share of what streams.
    blocks = np.tril(np.ones((32, 32), dtype=bool)) & (np.add.outer(np.arange(32), np.arange(32)) % 4 == 0)
    blocks |= np.eye(32, dtype=bool)
    share = Fraction(int(blocks.sum()), blocks.size)
    assert Fraction(1, 8) < share < Fraction(1, 4)
    sparse = iomodel.Attention(q_len=N, head_dim=D, mask=iomodel.BlockMask(blocks, 128, 128))
    tiles = {"block_q": 128, "block_kv": 128}
    one, all_of_it = (iomodel.cost("flash1", w, tiles) for w in (sparse, ONE_HEAD))
    for name in ("Q", "O", "l", "m"):
        assert one.reads[name] == share * all_of_it.reads[name]
    assert one.writes["O"] - N * D == share * (all_of_it.writes["O"] - N * D)
    assert (one.flops, one.exps) == (share * all_of_it.flops, share * all_of_it.exps)
    assert one.reads["K"] == N * D
    for name in ("K", "V"):  # with query tiles outside it is the keys that stream
        assert iomodel.cost("flash2", sparse, tiles).reads[name] == share * 32 * N * D


def test_packed_documents_are_their_sequences() -> None:
    # Documents of whole tiles in one sequence cost what the sequences cost in a batch.
    lengths = [512, 1024, 256, 2304]
    packed = iomodel.Attention(heads=4, kv_heads=2, q_len=N, head_dim=D, mask=iomodel.Documents(lengths, causal=True))
    apart = iomodel.VarlenAttention(heads=4, kv_heads=2, q_lens=lengths, head_dim=D, mask="causal")
    tiles = {"block_q": 128, "block_kv": 64}
    one, other = (iomodel.cost("flash2", w, tiles) for w in (packed, apart))
    assert (one.reads, one.writes, one.flops, one.exps) == (other.reads, other.writes, other.flops, other.exps)


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
        (128, 64, 4096, Fraction(33, 64)),
        (128, 64, 16384, Fraction(129, 256)),
        (192, 128, 512, Fraction(9, 12)),
        (192, 128, 1024, Fraction(32, 48)),
        (192, 128, 4096, Fraction(384, 704)),
    ],
)
def test_how_much_of_a_causal_mask_is_visited(block_q: int, block_kv: int, length: int, fraction: Fraction) -> None:
    queries, keys = Tiled(Integer(length), Integer(block_q)), Tiled(Integer(length), Integer(block_kv))
    pairs = Visits(queries, keys, Band(last=Integer(0))).pairs
    assert Fraction(int(pairs), int(queries.trips * keys.trips)) == fraction
    tiles = {"block_q": block_q, "block_kv": block_kv}
    full, causal = (iomodel.Attention(q_len=length, head_dim=D, mask=mask) for mask in ("full", "causal"))
    seen, every = (iomodel.cost("flash2", w, tiles).reads["K"] for w in (causal, full))
    assert seen == fraction * every


def test_a_causal_formula_speaks_of_no_window() -> None:
    found = iomodel.expressions("flash2", mask="causal")
    assert not {"W_l", "W_r"} & {str(symbol) for expr in found.quantities.values() for symbol in expr.free_symbols}
    assert {"W_l", "W_r"} <= {
        str(s) for s in iomodel.expressions("flash2", iomodel.Window(left=1, right=1)).hbm_elements.free_symbols
    }


def test_a_nest_is_read_unpacked_and_unmasked_unless_told() -> None:
    from iomodel.counting.coverage import View
    from iomodel.counting.mask_kind import FULL

    assert (View().mask, View().packed) == (FULL, False)
