"""Rules by which libraries divide keys: few blocks are divided, and as far as fills the device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.nests.division import Division
from tests.support.gpu_records import DEVICES, attention, timed

RULE = Division(rows=64, per_sm=2, filled=0.8, enough=0.85, most=128)
CALL = iomodel.Attention(batch=32, heads=32, kv_heads=8, q_len=1, kv_len=16384, head_dim=128)


@given(heads=st.integers(1, 600), rows=st.integers(1, 300), tiles=st.integers(1, 5000), units=st.integers(1, 200))
def test_keys_are_divided_until_the_device_is_nearly_full(heads: int, rows: int, tiles: int, units: int) -> None:
    splits, blocks, places = RULE.splits(heads, rows, tiles, units), heads * -(-rows // 64), 2 * units
    assert 1 <= splits <= min(RULE.most, max(1, tiles))
    if blocks >= 0.8 * places:
        assert splits == 1
    elif splits > 1:  # each split has keys, and fewer would fill less
        assert -(-tiles // splits) < -(-tiles // (splits - 1))
        assert blocks * splits / places > 0.5 * min(1, blocks * min(128, places, tiles) / places)


@pytest.mark.parametrize(("batch", "splits"), [(32, 1), (1, 32), (8, 4)])
def test_an_estimate_takes_the_splits_of_the_library(batch: int, splits: int) -> None:
    """FlashAttention-2 on 132 SMs: 256 heads of keys stay whole, 8 are divided into 32 parts, 64 into 4."""
    call = CALL.model_copy(update={"batch": batch})
    found = iomodel.estimate("split_kv", call, "h200-sxm", implementation="flash-attention-2")
    assert found.cost.options["splits"] == splits
    fastest = iomodel.solve("split_kv", call, "h200-sxm", implementation="flash-attention-2", objective="time")
    assert fastest.seconds <= found.seconds * (1 + 1e-9)


@pytest.mark.parametrize(("left", "splits"), [(127, 1), (511, 5), (4095, 14), (None, 14)])
def test_a_window_has_the_keys_of_a_block(left: int | None, splits: int) -> None:
    """FlashAttention-3 on 132 SMs, 8 heads of keys: 128 + 192 keys are 2 tiles of 160, left whole, and 512 + 192 are 5.

    Of more tiles 14 parts are the first to fill 0.85 of what 16 fill.
    """
    call = iomodel.Attention(heads=64, kv_heads=8, q_len=1, kv_len=32768, head_dim=64, mask=iomodel.Window(left, 0))
    found = iomodel.estimate("split_kv", call, "h100-sxm5", implementation="flash-attention-3")
    assert found.cost.options["splits"] == splits


@given(heads=st.integers(1, 600), tiles=st.integers(1, 5000), units=st.integers(1, 200))
def test_a_rule_that_fills_takes_most_splits_that_have_places(heads: int, tiles: int, units: int) -> None:
    rule = Division(rows=16, per_sm=2, filled=1.0, enough=1.0, most=264, fills=True)
    splits, places = rule.splits(heads, 1, tiles, units), 2 * units
    assert splits == 1 or heads * splits <= places
    assert heads * (splits + 1) > places or splits == min(tiles, rule.most)


@given(heads=st.integers(1, 600), tiles=st.integers(1, 5000), units=st.integers(1, 300))
def test_a_rule_that_rounds_up_fills_every_place(heads: int, tiles: int, units: int) -> None:
    """AITER's get_recommended_splits: at most eight, and no fewer than the places need."""
    rule = Division(rows=64, per_sm=2, filled=1.0, enough=1.0, most=8, fills=True, rounds_up=True)
    splits, places = rule.splits(heads, 16, tiles, units), 2 * units
    assert splits == min(8, tiles, max(1, -(-places // heads)))


def test_splits_of_flashinfer_are_those_that_it_planned() -> None:
    """Working records of decoding on tensor cores: blocks of all sequences in `plan_info`; 128 keys a tile."""
    found = 0
    for record in timed(False, "flashinfer", device=DEVICES[1]):
        case = record.case
        if case["kernel"] != "decode tensor cores" or case["head_dim"] != 128:
            continue
        call = attention(case).model_copy(update={"page_size": case["page_size"]})
        asked = iomodel.estimate("split_kv", call, record.device, implementation="flashinfer").cost.options["splits"]
        planned = record.values["plan_info"][0] / case["batch"]
        assert asked == pytest.approx(planned, rel=0.04), str(record)
        found += 1
    assert found > 50


@pytest.mark.parametrize(("keys", "splits"), [(512, 1), (2048, 1), (4096, 6), (8192, 5)])
def test_an_earlier_release_expected_one_block_on_an_sm(keys: int, splits: int) -> None:
    """64 heads on the 82 SMs of an RTX 3090 fill 0.78 of them, which up to 2,048 keys is enough of what splits fill.

    No question takes the superseded rule unless by name.
    """
    call = iomodel.Attention(batch=2, heads=32, q_len=1, kv_len=keys, head_dim=64)
    found = iomodel.estimate("split_kv", call, "rtx3090", implementation="flash-attention-2-2023")
    assert found.cost.options["splits"] == splits
    assert found.tiles["block_q"] == (128 if splits == 1 else 64)  # the plain kernel, and that of several splits
    assert "flash-attention-2-2023" not in iomodel.list_implementations("split_kv", "rtx3090", call)


def test_undivided_keys_take_the_plain_kernel() -> None:
    plain, split = (
        iomodel.estimate(name, CALL, "h200-sxm", implementation="flash-attention-2") for name in ("flash2", "split_kv")
    )
    assert split.tiles == plain.tiles
    assert split.seconds == pytest.approx(plain.seconds, rel=1e-3)


@pytest.mark.parametrize(("bias", "kernels"), [(False, "flash-attention-2"), (True, "xformers")])
def test_kernels_that_libraries_launch_last_answer_where_no_other_runs(bias: bool, kernels: str) -> None:
    call = iomodel.Attention(batch=4, heads=16, q_len=4096, head_dim=128, bias=bias)
    assert iomodel.estimate("flash2", call, "h200-sxm").implementation == kernels


@pytest.mark.parametrize("queries", [1, 128, 256, 512, 1024])
def test_flashattention_4_divides_what_leaves_sms_idle(queries: int) -> None:
    """As many parts as there are SMs for each block, of two tiles of 128 rows each (num_splits_heuristic)."""
    call = iomodel.Attention(heads=32, kv_heads=4, q_len=queries, kv_len=131072, head_dim=128, mask="causal")
    named = {"implementation": "flash-attention-4"}
    found = iomodel.estimate("split_kv", call, "b200", **named)
    heads, rows = (4, 8 * queries) if found.cost.options["packed"] else (32, queries)
    assert found.cost.options["splits"] == max(1, min(148 // (heads * -(-rows // 256)), 128))
    whole = iomodel.estimate("flash2", call, "b200", **named)
    assert found.seconds < (1.1 if queries == 1024 else 0.6) * whole.seconds
