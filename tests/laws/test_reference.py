"""The reference kernels compute attention, within the memory they declare, at counts worked out by hand."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iomodel.testing.machine import HBM, Run, SRAMOverflowError
from tests.reference.extras import Extras
from tests.reference.masks import dense_attention, useful_pairs, visible

FLASH_LIKE = ["flash1", "flash2", "flash3", "tiled_query"]
GEMM_TILES = ["gemm1_m", "gemm1_n", "gemm2_m", "gemm2_n"]
FILES = sorted((Path(__file__).parents[1] / "reference").glob("*.py"))
ALL_FILES = sorted((Path(__file__).parents[1] / "reference").rglob("*.py"))
MODULES = {path.stem: import_module(f"tests.reference.{path.stem}") for path in FILES}
# Those with `naive` compute something else than softmax attention, and have tests of their own.
ALGORITHMS = {
    name: module for name, module in MODULES.items() if hasattr(module, "run") and not hasattr(module, "naive")
}


@dataclass(frozen=True)
class Shape:
    q_len: int
    kv_len: int
    d: int
    d_v: int
    batch: int = 1
    kv_heads: int = 1
    group: int = 1
    mask: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0).standard_normal
        return (
            draw((self.batch, self.kv_heads * self.group, self.q_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d_v)),
        )

    def visible(self) -> np.ndarray:
        mask = {"left": None, "right": None, "align": "bottom-right"} | self.mask
        return visible(self.q_len, self.kv_len, **mask)

    def run(self, name: str, **options: Any) -> Run:
        run: Run = ALGORITHMS[name].run(*self.tensors(), **self.mask, **options)
        return run


length, depth, tile = st.integers(1, 12), st.integers(1, 5), st.integers(1, 14)
bound = st.none() | st.integers(0, 8)
masks = st.fixed_dictionaries({"left": bound, "right": bound, "align": st.sampled_from(["bottom-right", "top-left"])})
shapes = st.builds(Shape, length, length, depth, depth, st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), masks)


@st.composite
def options(draw: Callable[..., Any], name: str) -> dict[str, Any]:
    chosen = {"packed": draw(st.booleans())}
    if name == "eager":
        return chosen | {"dropout_pass": draw(st.booleans())}
    if name == "two_products":
        return chosen | {gemm: draw(tile) for gemm in GEMM_TILES}
    if name != "standard":
        splits = {"splits": draw(st.integers(1, 6))} if name == "split_kv" else {}
        return chosen | splits | {"block_q": draw(tile), "block_kv": draw(tile)}
    chosen |= {"mask_pass": draw(st.booleans()), "dropout_pass": draw(st.booleans())}
    tiles = draw(st.none() | st.fixed_dictionaries(dict.fromkeys(GEMM_TILES, tile)))
    return chosen | (tiles or {})


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes)
def test_it_computes_attention(name: str, data: st.DataObject, shape: Shape) -> None:
    run = shape.run(name, **data.draw(options(name)))
    output, lse = dense_attention(*shape.tensors(), shape.visible())
    # HBM starts as NaN, so equality also says that every output element was stored.
    np.testing.assert_allclose(run.O, output, rtol=1e-9, atol=1e-12)
    if name in {"flash1", "flash2", "flash3", "split_kv", "two_products"}:
        assert run.LSE is not None
        np.testing.assert_allclose(run.LSE, lse, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes)
def test_it_runs_at_its_own_peak_and_not_below(name: str, data: st.DataObject, shape: Shape) -> None:
    chosen = data.draw(options(name))
    run = shape.run(name, **chosen)
    again = shape.run(name, **chosen, capacity=run.sram_peak)
    assert (again.reads, again.writes) == (run.reads, run.writes)
    with pytest.raises(SRAMOverflowError):
        shape.run(name, **chosen, capacity=run.sram_peak - 1)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes)
def test_outputs_are_written_once_or_read_back(name: str, data: st.DataObject, shape: Shape) -> None:
    run = shape.run(name, **data.draw(options(name)))
    assert run.writes["O"] - run.reads["O"] == run.O.size
    assert (run.reads["O"] > 0) <= (name in {"flash1", "small_cache"})
    if name in {"flash2", "flash3", "split_kv", "two_products"}:
        assert run.LSE is not None
        assert run.writes["LSE"] == run.LSE.size


@pytest.mark.parametrize("name", FLASH_LIKE)
@given(shape=shapes)
def test_tiles_of_one_pair_cost_the_useful_pairs_only(name: str, shape: Shape) -> None:
    """With 1 x 1 tiles a visit is a visible pair, so every count is a multiple of their number."""
    run = shape.run(name, block_q=1, block_kv=1)
    pairs = shape.batch * shape.kv_heads * shape.group * useful_pairs(shape.visible())
    assert run.flops == 2 * pairs * (shape.d + shape.d_v)
    assert run.exps == pairs * {"flash1": 3, "flash2": 2, "flash3": 2, "tiled_query": 1}[name]
    if name == "flash1":
        assert run.reads["Q"] == pairs * shape.d
        assert run.reads["l"] == run.reads["m"] == pairs
    else:
        assert (run.reads["K"], run.reads["V"]) == (pairs * shape.d, pairs * shape.d_v)


@given(data=st.data(), shape=shapes)
def test_packing_one_head_changes_nothing(data: st.DataObject, shape: Shape) -> None:
    assume(shape.group == 1)
    for name in ALGORITHMS:
        chosen = data.draw(options(name)) | {"packed": False}
        plain, packed = shape.run(name, **chosen), shape.run(name, **chosen | {"packed": True})
        assert (plain.reads, plain.writes, plain.flops, plain.exps) == (
            packed.reads, packed.writes, packed.flops, packed.exps
        )  # fmt: skip


def test_visibility_by_hand() -> None:
    # 2 queries, 4 keys: the last query is at the last key, or the first at the first.
    np.testing.assert_array_equal(visible(2, 4, None, 0, "bottom-right"), [[1, 1, 1, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(visible(2, 4, None, 0, "top-left"), [[1, 0, 0, 0], [1, 1, 0, 0]])
    np.testing.assert_array_equal(visible(2, 4, 1, 0, "bottom-right"), [[0, 1, 1, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(visible(3, 2, 0, 1, "bottom-right"), [[1, 0], [1, 1], [0, 1]])
    assert useful_pairs(visible(8, 8, None, 0, "bottom-right")) == 36  # 8 * 9 / 2


def test_flash2_full_by_hand() -> None:
    run = Shape(8, 8, 2, 2).run("flash2", block_q=4, block_kv=2)
    # Two query tiles, so K and V are streamed twice: 2 * 8 * 2.
    assert run.reads == {"Q": 16, "K": 32, "V": 32}
    assert run.writes == {"O": 16, "LSE": 8}
    assert run.flops == 2 * 8 * 8 * (2 + 2)
    assert run.exps == 8 * 8 + 8 * 4  # each row is rescaled at each of 4 key tiles
    # Q 4*2, K 2*2, V 2*2 in the io type; O 4*2, l and m 4 each, S 4*2 in fp32.
    assert run.sram_states >= {(16, 0, 24, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2), run.sram_bytes(4)) == (40, 128, 160)
    assert run.hbm_peak == 4 * 16 + 8


@given(shape=shapes, block_q=tile, block_kv=tile, lse=st.booleans(), packed=st.booleans())
def test_flash3_is_flash2_with_another_tile_of_scores(
    shape: Shape, block_q: int, block_kv: int, lse: bool, packed: bool
) -> None:
    chosen = {"block_q": block_q, "block_kv": block_kv, "lse": lse, "packed": packed}
    flash2, flash3 = shape.run("flash2", **chosen), shape.run("flash3", **chosen)
    for what in ("reads", "writes", "widths", "flops", "exps", "hbm_states"):
        assert getattr(flash2, what) == getattr(flash3, what)
    assert flash3.sram_peak - flash2.sram_peak == block_q * block_kv
    assert flash3.sram_bytes(2) - flash2.sram_bytes(2) == 4 * block_q * block_kv


def test_flash2_causal_by_hand() -> None:
    run = Shape(8, 8, 2, 2, mask={"right": 0}).run("flash2", block_q=4, block_kv=2, lse=False)
    # Rows 0-3 see keys 0-3, two tiles; rows 4-7 see all, four tiles: six tiles of 4 rows and 2 keys.
    assert run.reads == {"Q": 16, "K": 6 * 4, "V": 6 * 4}
    assert run.writes == {"O": 16}
    assert run.flops == 6 * 2 * (4 * 2 * 2 + 4 * 2 * 2)
    assert run.exps == 6 * (4 * 2 + 4)
    assert run.LSE is None
    assert run.hbm_peak == 4 * 16


def test_flash2_ragged_by_hand() -> None:
    run = Shape(5, 7, 1, 3).run("flash2", block_q=4, block_kv=3)
    # Row tiles of 4 and 1, key tiles of 3, 3 and 1; nothing is padded in what moves.
    assert run.reads == {"Q": 5, "K": 2 * 7, "V": 2 * 7 * 3}
    assert run.writes == {"O": 15, "LSE": 5}
    assert run.exps == 5 * 7 + 5 * 3
    # The buffers are full tiles all the same: Q 4, O 12, l 4, m 4, K 3, V 9, S 12.
    assert run.sram_peak == 48


def test_flash2_rows_that_see_nothing_by_hand() -> None:
    run = Shape(5, 2, 1, 1, mask={"right": 0}).run("flash2", block_q=2, block_kv=1)
    # Query i sees keys up to i - 3. Rows 0-1: none; rows 2-3: key 0; row 4: keys 0 and 1.
    assert run.reads == {"Q": 3, "K": 1 + 2, "V": 1 + 2}
    assert run.writes == {"O": 5, "LSE": 5}
    assert run.exps == (2 + 2) + 2 * (1 + 1)
    assert run.LSE is not None
    np.testing.assert_array_equal(np.isneginf(run.LSE[0, 0]), [True, True, True, False, False])
    np.testing.assert_array_equal(run.O[0, 0, :3], 0.0)


def test_packed_heads_by_hand() -> None:
    shape = Shape(3, 3, 1, 1, group=2, mask={"right": 0})
    # Packed, the rows are queries 0 0 1 | 1 2 2: the first tile sees keys 0-1, the second 0-2.
    packed = shape.run("flash2", block_q=3, block_kv=1, packed=True)
    assert packed.reads == {"Q": 6, "K": 5, "V": 5}
    # One by one, each of the two heads has one tile, of queries 0-2, that sees all 3 keys.
    plain = shape.run("flash2", block_q=3, block_kv=1)
    assert plain.reads == {"Q": 6, "K": 6, "V": 6}
    # The keys and values lie in HBM once for the two heads: Q 6, K 3, V 3, O 6, LSE 6.
    assert packed.hbm_peak == plain.hbm_peak == 24


def test_standard_packed_by_hand() -> None:
    shape = Shape(3, 4, 2, 1, batch=2, group=2)
    tiles = dict.fromkeys(GEMM_TILES, 4)
    # Packed: 6 rows in tiles of 4 and 2, so K and V go twice for each batch. Otherwise each of the 2 heads
    # has one tile of 3 rows: twice as well.
    assert shape.run("standard", **tiles, packed=True).reads["K"] == 2 * 2 * 8
    assert shape.run("standard", **tiles).reads["K"] == 2 * 2 * 8
    # Ideal, a program moves each operand once: per batch, one program when packed and two otherwise.
    assert shape.run("standard", packed=True).reads["K"] == 2 * 8
    assert shape.run("standard").reads["K"] == 2 * 2 * 8


def test_flash1_causal_by_hand() -> None:
    run = Shape(8, 8, 2, 2, mask={"right": 0}).run("flash1", block_q=4, block_kv=2)
    # Key tiles 0 and 1 are seen by both row tiles, 2 and 3 by the second: six visits of 4 rows.
    assert run.reads == {"Q": 48, "K": 16, "V": 16, "O": 48, "l": 24, "m": 24}
    assert run.writes == {"O": 16 + 48, "l": 8 + 24, "m": 8 + 24}
    assert run.flops == 6 * 2 * (4 * 2 * 2 + 4 * 2 * 2)
    assert run.exps == 6 * (4 * 2 + 2 * 4)
    assert run.sram_peak == (2 + 2 + 4) * 4 + (2 + 2) * 2 + 4 * 2
    assert run.sram_bytes(2) == 2 * (8 + 4 + 4) + 4 * (8 + 16 + 8)
    assert run.hbm_peak == 4 * 16 + 2 * 8


def test_flash1_skips_keys_nobody_sees() -> None:
    run = Shape(2, 6, 1, 1, mask={"left": 0, "right": 0}).run("flash1", block_q=2, block_kv=2)
    # Queries 0 and 1 see keys 4 and 5: the last of the three key tiles.
    assert run.reads == {"Q": 2, "K": 2, "V": 2, "O": 2, "l": 2, "m": 2}
    assert run.writes == {"O": 4, "l": 4, "m": 4}


def test_tiled_query_by_hand() -> None:
    run = Shape(8, 8, 2, 3).run("tiled_query", block_q=4, block_kv=2)
    assert run.reads == {"Q": 16, "K": 2 * 16, "V": 2 * 24}
    assert run.writes == {"O": 24}
    assert run.exps == 64
    # Q 4*2, strip 4*8, O 4*3, and the larger of K 2*2 and V 2*3.
    assert run.sram_peak == 8 + 32 + 12 + 6
    assert run.sram_bytes(2) == 2 * (8 + 6) + 4 * (32 + 12)


def test_tiled_query_that_sees_nothing_by_hand() -> None:
    run = Shape(5, 2, 1, 1, mask={"right": 0}).run("tiled_query", block_q=2, block_kv=1)
    # As for flash2: rows 0-1 see nothing, rows 2-3 key 0, row 4 keys 0 and 1.
    assert run.reads == {"Q": 3, "K": 1 + 2, "V": 1 + 2}
    assert run.writes == {"O": 5}
    assert run.exps == 2 + 2


@given(shape=shapes, block_q=tile, block_kv=tile, lse=st.booleans(), packed=st.booleans())
def test_one_split_is_flash2(shape: Shape, block_q: int, block_kv: int, lse: bool, packed: bool) -> None:
    chosen = {"block_q": block_q, "block_kv": block_kv, "lse": lse, "packed": packed}
    one, flash2 = shape.run("split_kv", splits=1, **chosen), shape.run("flash2", **chosen)
    for what in ["reads", "writes", "widths", "flops", "exps", "sram_states", "hbm_states"]:
        assert getattr(one, what) == getattr(flash2, what)


def test_split_kv_by_hand() -> None:
    run = Shape(5, 7, 2, 3, mask={"right": 0}).run("split_kv", block_q=3, block_kv=2, splits=3)
    # Four key tiles, two a split: keys 0-3, 4-6, and a third split without any. Query i sees keys to i + 2:
    # queries 0-2 keys 0-4, so three tiles, 2 of them in split 0; queries 3-4 all four, two and two.
    # Both query tiles see something in splits 0 and 1, so Q goes twice; K and V go to keys 0-5 and 0-6.
    assert run.reads == {"Q": 2 * 10, "K": 13 * 2, "V": 13 * 3, "LSE_acc": 3 * 5, "O_acc": 3 * 15}
    assert run.writes == {"O_acc": 3 * 15, "LSE_acc": 3 * 5, "O": 15, "LSE": 5}
    pairs = 3 * 6 + 2 * 7
    assert run.flops == 2 * pairs * (2 + 3)
    assert run.exps == pairs + 3 * 3 + 2 * 4 + 3 * 5  # one for each weight of a row
    # Q 3*2, K 2*2, V 2*3; O 3*3, l and m 3, S 3*2.
    assert (run.sram_peak, run.sram_bytes(2)) == (16 + 21, 2 * 16 + 4 * 21)
    assert run.sram_states >= {(0, 0, 3 + 3 + 3, 0, 0, 0)}  # of the combination: the weights, two rows
    assert run.hbm_peak == 10 + 14 + 21 + 4 * (15 + 5)
    assert run.hbm_bytes(2) == 2 * (20 + 26 + 39 + 15) + 4 * (2 * 45 + 2 * 15 + 5)


def test_split_kv_reads_no_queries_for_a_split_without_keys_of_theirs() -> None:
    shape = Shape(4, 4, 1, 1, mask={"right": 0})
    run = shape.run("split_kv", block_q=2, block_kv=1, splits=2, lse=False)
    # Queries 0-1 see keys 0-1, the first split; queries 2-3 both.
    assert run.reads["Q"] == 2 + 2 * 2
    assert run.writes == {"O_acc": 8, "LSE_acc": 8, "O": 4}
    assert run.LSE is None


@given(shape=st.builds(Shape, length, length, depth, depth), block_q=tile, block_kv=tile)
def test_small_cache_totals(shape: Shape, block_q: int, block_kv: int) -> None:
    run = shape.run("small_cache", block_q=block_q, block_kv=block_kv)
    q_len, kv_len, d, d_v = shape.q_len, shape.kv_len, shape.d, shape.d_v
    rows, keys = -(-q_len // block_q), -(-kv_len // block_kv)
    assert sum(run.reads.values()) == q_len * d * keys + kv_len * (d + d_v) * rows + q_len * d_v * (keys - 1)
    assert run.writes == {"O": q_len * d_v * keys}


def test_small_cache_by_hand() -> None:
    run = Shape(5, 2, 3, 2, mask={"right": 0}).run("small_cache", block_q=2, block_kv=1)
    # Query i sees keys up to i - 3. Rows 0-1: none; rows 2-3: key 0; row 4: keys 0 and 1, so O goes back once.
    assert run.reads == {"Q": (2 + 1 + 1) * 3, "K": 3 * 3, "V": 3 * 2, "O": 2}
    assert run.writes == {"O": (2 + 2 + 1 + 1) * 2}
    assert run.flops == 2 * 4 * (3 + 2)
    assert run.exps == (2 + 2) + 2 * (1 + 1)
    # l, m, the factors and O 2 each, S 2*1, in fp32; V 1. The columns of Q and K, 2 and 1, are one fewer in bytes.
    assert run.sram_states >= {(3, 0, 8, 0, 0, 0), (1, 0, 10, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (11, 2 + 40)
    assert run.LSE is None
    assert run.hbm_peak == 15 + 6 + 4 + 10


@pytest.mark.parametrize("mask", [{}, {"right": 0}, {"left": 0, "right": 0}])
def test_standard_ideal_by_hand(mask: dict[str, Any]) -> None:
    run = Shape(3, 4, 2, 5, mask=mask).run("standard")
    # S and P are 3 x 4 whatever the mask.
    assert run.reads == {"Q": 6, "K": 8, "S": 12, "P": 12, "V": 20}
    assert run.writes == {"S": 12, "P": 12, "O": 15}
    assert (run.flops, run.exps) == (2 * 12 * (2 + 5), 12)
    # Kernels: Q 6, K 8, S 12; S 12; P 12, V 20, O 15. The last is the largest, O alone in fp32.
    assert (run.sram_peak, run.sram_bytes(2)) == (47, 2 * 32 + 4 * 15)
    # Q, K, V 34, with S 12, then S and P 24, then P 12 and O 15.
    assert run.hbm_peak == 34 + 27


def test_standard_tiled_by_hand() -> None:
    run = Shape(3, 4, 2, 5).run("standard", gemm1_m=2, gemm1_n=3, gemm2_m=2, gemm2_n=4)
    # S has 2 x 2 tiles: Q and K go twice. O has 2 x 2 tiles: P and V go twice.
    assert run.reads == {"Q": 12, "K": 16, "S": 12, "P": 24, "V": 40}
    assert run.writes == {"S": 12, "P": 12, "O": 15}
    assert (run.flops, run.exps) == (2 * 12 * (2 + 5), 12)
    # Kernels: S 2*3, Q 2, K 3; a row of 4; O 2*4, P 2, V 4.
    assert (run.sram_peak, run.sram_bytes(2)) == (14, 4 * 8 + 2 * 6)


def test_standard_softmax_holds_one_row() -> None:
    run = Shape(3, 7, 1, 1).run("standard", gemm1_m=1, gemm1_n=1, gemm2_m=1, gemm2_n=1)
    # The products hold 3 elements, one of each operand; the softmax a row of 7, in fp32.
    assert (run.sram_peak, run.sram_bytes(2)) == (7, 28)


@pytest.mark.parametrize("tiles", [{}, dict.fromkeys(GEMM_TILES, 6)])
def test_standard_passes_by_hand(tiles: dict[str, int]) -> None:
    run = Shape(3, 4, 2, 5, mask={"right": 0}).run("standard", mask_pass=True, dropout_pass=True, **tiles)
    # S 3 x 4 is made, masked and taken; P is dropped out, and O = P_drop V.
    assert run.reads == {"Q": 6, "K": 8, "S": 24, "P": 12, "P_drop": 12, "V": 20}
    assert run.writes == {"S": 24, "P": 12, "P_drop": 12, "dropout_mask": 12, "O": 15}
    assert (run.flops, run.exps, run.randoms) == (2 * 12 * (2 + 5), 12, 12)
    assert run.hbm_bytes(2) == 2 * (82 + 63) + 12
    # Rows, or all of them at once: S in the workload's type; P with the mask beside it, one byte an element.
    rows = 1 if tiles else 3
    assert run.sram_states >= {(4 * rows, 0, 0, 0, 0, 0), (4 * rows, 0, 0, 0, 0, 4 * rows)}
    # Q, K, V 34; P, the dropped P and the mask stay while O 15 is made.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (34 + 36 + 15, 2 * (34 + 24 + 15) + 12)


def test_standard_wants_all_tiles_or_none() -> None:
    with pytest.raises(ValueError, match="all four"):
        Shape(3, 4, 2, 5).run("standard", gemm1_m=2)


def test_a_broadcast_store_counts_its_target() -> None:
    hbm = HBM()
    hbm.alloc("O", (4, 3))
    hbm.store("O", slice(2), 0.0)
    assert hbm.writes == {"O": 6}
    assert hbm.load("O", (slice(1, 9), slice(1))).size == 3  # the slice is clipped to the tensor
    assert hbm.reads == {"O": 3}
    hbm.free("O")
    hbm.alloc("P", (2,))
    assert (sum(hbm.live.values()), max(map(sum, hbm.states))) == (2, 12)


@pytest.mark.parametrize("path", ALL_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_shares_nothing_with_the_library_but_the_counting_memory(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module != "iomodel.testing.machine":
            names = [node.module or ""]
        for name in names:
            assert name.partition(".")[0] in {
                "ast",
                "collections",
                "dataclasses",
                "itertools",
                "math",
                "numpy",
                "typing",
            }
    # Nor by a path the syntax tree does not show.
    assert "iomodel" not in text.replace("from iomodel.testing.machine import", "", 1)


@pytest.mark.parametrize("packed", [False, True])
def test_two_products_of_a_latent(packed: bool) -> None:
    """V is the first columns of K: the same output, moves and room as with a copy of them."""
    shape = Shape(5, 4, 3, 2, group=2)
    Q, K, _ = shape.tensors()
    tiles = {"gemm1_m": 2, "gemm1_n": 3, "gemm2_m": 3, "gemm2_n": 1}
    asked: dict[str, Any] = {"right": 0, "packed": packed, **tiles}
    apart = ALGORITHMS["two_products"].run(Q, K, K[..., :2], **asked)
    inside = ALGORITHMS["two_products"].run(Q, K, K[..., :2], extras=Extras(latent=True), **asked)
    np.testing.assert_array_equal(inside.O, apart.O)
    assert (inside.reads, inside.writes, inside.sram_peak) == (apart.reads, apart.writes, apart.sram_peak)
    assert apart.hbm_peak - inside.hbm_peak == K[..., :2].size
