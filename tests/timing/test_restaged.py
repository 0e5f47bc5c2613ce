"""Kernels whose products load their operands again, warps that repeat rows, and waits that other blocks hide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.timing.overlap import times
from tests.support.inside import Question

H200 = "h200-sxm"
BACKWARD = iomodel.Attention(heads=2, q_len=256, head_dim=64, direction="backward", dtype="bf16")
positive = st.floats(1e-3, 10)


def requests(call: iomodel.Attention) -> float:
    """Bytes of the requests to the L2 of the pass that multiplies, by their time."""
    asked = Question.ask("flash2", call, H200, "xformers")
    tiles = iomodel.estimate("flash2", call, H200, implementation="xformers").tiles
    work, took = max(asked.launched(tiles).runs, key=lambda run: run[0].flops)
    assert work.products
    return took.needs["l2"] * asked.rates.l2


@pytest.mark.parametrize(("width", "query", "keys"), [(64, 64, 64), (128, 128, 128), (256, 128, 64)])
def test_operands_of_each_product_are_requested(width: int, query: int, keys: int) -> None:
    """Q twice, K twice, V once and dO twice a trip, O and dO of all queries once a block, sums of dQ both ways.

    The statistics of rows, half a per cent, count among the loads of a trip.
    """
    call = BACKWARD.model_copy(update={"head_dim": width, "value_dim": width})
    trips, blocks = (2 * (256 // query) * (256 // keys)), 2 * (256 // keys)
    of_trips = trips * 2 * width * (2 * query + 2 * keys + keys + 2 * query) + trips * 8 * query * width
    of_blocks = blocks * 2 * (2 * 256 * width)
    wide = trips * 2 * 8 * keys * width if width == 256 else 0  # dK and dV, loaded and stored
    once = 2 * 2 * 256 * width * 4  # K, V, dK and dV
    assert requests(call) == pytest.approx(of_trips + of_blocks + wide + once, rel=1e-6)


def wide(heads: int, tiles: int) -> float:
    sizes = {"heads": heads, "kv_heads": heads, "q_len": 64 * tiles, "kv_len": 64 * tiles}
    call = BACKWARD.model_copy(update={**sizes, "head_dim": 256, "value_dim": 256})
    return iomodel.estimate("flash2", call, H200, implementation="xformers").seconds


def test_few_blocks_of_wide_rows_walk_several_key_tiles() -> None:
    """Of 66 heads 198 blocks walk a third of the keys each, in two rounds on 132 SMs; of 132 heads each walks all."""
    assert wide(132, 60) == pytest.approx(1.5 * wide(66, 60), rel=0.1)


@given(heads=st.integers(1, 40), tiles=st.integers(1, 40))
def test_more_heads_of_wide_rows_never_take_less(heads: int, tiles: int) -> None:
    assert wide(heads, tiles) <= wide(heads + 1, tiles) * (1 + 1e-9)


def test_warps_without_rows_repeat_those_of_others() -> None:
    """Two warp groups on 64 rows multiply them twice, each group all of them; on 128 rows each has its own."""
    call = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, dtype="bf16")

    def products(rows: int, warps: int) -> float:
        tiles = {"block_q": rows, "block_kv": 64, "warps": warps, "stages": 3}
        return iomodel.estimate("flash2", call, H200, tiles, implementation="triton").breakdown["matrix"]

    assert products(64, 8) == pytest.approx(2 * products(64, 4))
    assert products(128, 8) == pytest.approx(products(64, 4))


@given(busy=st.lists(positive, min_size=1, max_size=3), wait=positive, awaited=positive, most=st.integers(1, 6))
def test_a_wait_of_one_block_is_hidden_by_others(busy: list[float], wait: float, awaited: float, most: int) -> None:
    without, given_wait = (times(busy, wait, most, awaited=own) for own in (0.0, awaited))
    assert given_wait[0] == pytest.approx(without[0] + awaited)
    for many, (less, longer) in enumerate(zip(without, given_wait, strict=True), 1):
        assert less <= longer <= less + awaited / many + 1e-9


def test_calls_that_closed_kernels_do_not_time() -> None:
    window = iomodel.Window(left=127, right=0)
    windowed = BACKWARD.model_copy(update={"dtype": "fp8", "kv_dtype": "fp8", "mask": window})
    with pytest.raises(iomodel.InputError, match="mask: window given; allowed: fp16 or bf16 rows in a backward pass"):
        iomodel.estimate("flash2", windowed, "gb200", implementation="cudnn")
    with pytest.raises(iomodel.InputError, match="deterministic: True given; allowed: False"):
        iomodel.estimate("flash2", BACKWARD, H200, implementation="xformers", deterministic=True)
