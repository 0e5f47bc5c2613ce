"""Laws of the products of experts that Triton's kernel converts from four bits on Hopper, and their measured times."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from benchmarks.gpu_sections import experts
from iomodel.planning.step.converted import COLUMNS, FEWEST, MOST, converted_seconds, expected_tiles
from tests.support.gpu_records import DEVICES, timed
from tests.support.inside import rates

KNOWN = rates(iomodel.hardware("h100-sxm5"), "bf16")
SIZES = st.integers(1, 4096)


def layer(rows: int, groups: int, width: int = 2880) -> iomodel.Linear:
    return iomodel.Linear(rows=rows, groups=groups, in_features=width, out_features=width, weight_dtype="mxfp4")


@given(SIZES, st.integers(1, 128), st.booleans())
def test_more_experts_of_as_many_tokens_take_no_less(rows: int, groups: int, drawn: bool) -> None:
    fewer, more = (converted_seconds([layer(rows, count)], KNOWN, drawn) for count in (groups, groups + 1))
    assert 0 < fewer <= more


@given(SIZES, st.sampled_from([FEWEST, MOST]))
def test_drawn_tokens_fill_tiles_but_for_one_of_each_expert(rows: int, tile: int) -> None:
    assert rows / tile - 0.01 <= expected_tiles(rows, tile) <= rows / tile + 1


@given(st.integers(1, 64), st.integers(1, 64))
def test_whole_tiles_take_the_time_of_their_blocks(tiles: int, groups: int) -> None:
    """Every block converts its weights, whatever rows share them, and then multiplies at the rate of an SM."""
    one = converted_seconds([layer(MOST, 1, COLUMNS)], KNOWN, False)
    waves = -(-tiles * groups // KNOWN.units)
    assert converted_seconds([layer(tiles * MOST, groups, COLUMNS)], KNOWN, False) == pytest.approx(waves * one)


def test_kernels_are_those_of_the_engine() -> None:
    def parts(**options: str) -> dict[str, float]:
        found = iomodel.step("gpt-oss-20b", "h100-sxm5", batch=8, q_len=1, kv_len=64, **options)
        return {part.name: part.seconds for part in found.parts}

    around = "kernels around experts of converted weights"
    assert parts() == parts(engine="vllm") == parts(moe_backend="triton") != parts(engine="tensorrt-llm")
    assert around in parts(engine="tensorrt-llm").keys() & parts(moe_backend="marlin").keys()
    assert around not in parts()


def test_working_records_of_experts_are_met() -> None:
    found = [
        experts(one).seconds / one.seconds
        for one in timed(False, "experts", device=DEVICES[1])
        if one.case["part"] == "whole"
    ]
    assert len(found) == 14
    assert median(abs(ratio - 1) for ratio in found) < 0.05
    assert max(abs(ratio - 1) for ratio in found) < 0.12
