"""The staircase equals the solver at every memory, and answers how much memory buys what."""

from __future__ import annotations

from itertools import pairwise
from math import isqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from tests.solving.test_solve import questions
from tests.support.exhaustive_tiles import WAYS, Question

MASKS: list[Any] = ["full", "causal", iomodel.Window(left=3, right=1), iomodel.Window(right=0, align="top-left")]
PLAIN = [("flash1", "forward"), ("flash2", "forward"), ("flash2", "backward"), ("two_pass", "backward"),
         ("small_cache", "forward"), ("standard", "forward"), ("tiled_query", "forward")]  # fmt: skip


def steps_of(question: Question) -> iomodel.results.Staircase:
    return iomodel.staircase(
        question.algorithm,
        question.workload,
        unit=question.unit,  # type: ignore[arg-type]
        alignment=question.alignment,
        min_block_kv=question.min_block_kv,
        **question.options,
    )


def judge(question: Question) -> None:
    """Compare with the solver at each step and just before the next; between the two both are constant.

    The solver's traffic never rises with memory, so equal values at both ends of a step leave no room between them.
    """
    stairs = steps_of(question)
    parts = len(question.pairs)
    for place, step in enumerate(stairs.steps):
        solved = question.solve(epsilon=0, **{f"sram_{question.unit}": step.sram})
        assert (solved.cost.hbm_bytes, solved.cost.hbm_elements) == (step.hbm_bytes, step.hbm_elements)
        assert solved.certificate.any_schedule == step.lower_bound
        assert question.footprint(question.cost_at(step.tiles)) <= step.sram
        if parts == 1:  # of several parts the solver gives each what memory there is
            assert solved.tiles == step.tiles
        if place:
            assert step.hbm_bytes < stairs.steps[place - 1].hbm_bytes
        last = 2 * step.sram if place + 1 == len(stairs.steps) else stairs.steps[place + 1].sram - 1
        assert question.solve(epsilon=0, **{f"sram_{question.unit}": last}).cost.hbm_bytes == step.hbm_bytes
        assert stairs.at(step.sram) == stairs.at(last) == step
    least = stairs.steps[0].sram
    assert least > 1
    for below in (stairs.at, lambda size: question.solve(**{f"sram_{question.unit}": size})):
        with pytest.raises(iomodel.InfeasibleError) as caught:
            below(least - 1)  # type: ignore[operator]
        assert caught.value.least == least


@pytest.mark.parametrize(("name", "direction"), PLAIN)
@given(data=st.data(), mask=st.sampled_from(MASKS))
def test_staircase_equals_solve_at_every_memory(name: str, direction: str, mask: Any, data: st.DataObject) -> None:
    judge(data.draw(questions(name, direction, ({}, mask, {"packed": False}))))


@given(way=st.sampled_from(WAYS), data=st.data())
def test_staircase_equals_solve_with_features_and_options(way: tuple[str, str], data: st.DataObject) -> None:
    judge(data.draw(questions(*way)))


@given(sizes=st.tuples(*3 * [st.integers(1, 12)]), alignment=st.integers(1, 3))
def test_staircase_of_a_linear_layer(sizes: tuple[int, int, int], alignment: int) -> None:
    """Both tiles of a product cost the same, so that ties are common; every memory is compared."""
    rows, width, out = sizes
    layer = iomodel.Linear(rows=rows, in_features=width, out_features=out)
    stairs = iomodel.staircase("gemm", layer, unit="elements", alignment=alignment)
    for size in range(stairs.steps[0].sram, stairs.steps[-1].sram + 5):
        solved = iomodel.solve("gemm", layer, sram_elements=size, alignment=alignment)
        assert solved.cost.hbm_bytes == stairs.at(size).hbm_bytes
        assert size > stairs.at(size).sram or solved.tiles == stairs.at(size).tiles


@given(
    lengths=st.tuples(st.integers(1, 300), st.integers(0, 100)),
    step=st.integers(1, 5),
    mask=st.sampled_from(["full", "causal"]),
)
def test_flash2_has_at_most_two_roots_of_steps(lengths: tuple[int, int], step: int, mask: Any) -> None:
    w = iomodel.Attention(q_len=lengths[0], kv_len=sum(lengths), head_dim=4, mask=mask)
    count = len(iomodel.staircase("flash2", w, alignment=step).steps)
    assert count**2 <= 4 * lengths[0]


def test_known_staircase() -> None:
    """N = 1000, d = 64, key tiles of 16, footprint x (D + 2) + 16 D + 16 x: 63 steps, worked out apart."""
    w = iomodel.Attention(q_len=1000, head_dim=64)
    stairs = iomodel.staircase("flash2", w, unit="elements", min_block_kv=16, lse=False)
    assert len(stairs.steps) == 63 == isqrt(4 * 1000)
    assert [(s.sram, s.tiles["block_q"], s.hbm_elements) for s in stairs.steps[-5:]] == [
        (size, rows, 128 * (visited + 1000))
        for size, rows, visited in [
            (31_248, 200, 5000),
            (38_548, 250, 4000),
            (50_812, 334, 3000),
            (75_048, 500, 2000),
            (148_048, 1000, 1000),
        ]
    ]
    assert stairs.at(50_811).tiles["block_q"] == 250
    assert stairs.least_sram(2 * 128 * 4000).sram == 50_812
    assert stairs.saved(50_811, 50_812) == 2 * 128 * 1000


def test_a_causal_staircase_of_the_least_key_tile() -> None:
    w = iomodel.Attention(q_len=1000, head_dim=64, mask="causal")
    stairs = iomodel.staircase("flash2", w, unit="elements", lse=False)
    assert len(stairs.steps) <= 63
    for step in stairs.steps[::7]:
        size = step.tiles["block_q"]
        visited = sum(min(1000, start + size) for start in range(0, 1000, size))
        assert step.hbm_elements == 128 * (visited + 1000)
        assert step.sram == 130 * size + 128 + size


def test_the_table_has_both_ends_and_says_what_it_leaves_out() -> None:
    stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=1000, head_dim=64))
    text = str(stairs)
    assert "of 63 steps are left out" in text
    assert f"{stairs.steps[0].sram:,}" in text
    assert f"{stairs.steps[-1].sram:,}" in text
    assert 12 < len(stairs.rows()) <= 24
    assert len(stairs.records()) == 63
    assert "left out" not in str(iomodel.staircase("flash2", iomodel.Attention(q_len=9, head_dim=4)))


@pytest.mark.parametrize("length", [300, 1000, 8192])
def test_the_table_leaves_no_large_fall_of_traffic_out(length: int) -> None:
    """No two rows with a step between them lie further apart than steps in equal ratios of as many rows."""
    stairs = iomodel.staircase("flash2", iomodel.Attention(q_len=length, head_dim=64))
    traffic = [step.hbm_bytes for step in stairs.steps]
    shown = [traffic.index(int(row[3].replace(",", ""))) for row in stairs.rows()]
    fall = (traffic[0] / traffic[-1]) ** (1 / 23)
    assert all(traffic[a] / traffic[b] < fall**2.5 for a, b in pairwise(shown) if b > a + 1)


W = iomodel.Attention(q_len=64, head_dim=8)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"unit": "KiB"}, "unit: 'KiB' is unknown"),
        ({"unit": 3}, "unit: 3 is unknown"),
        ({"alignment": 0}, "alignment: 0 given"),
        ({"min_block_kv": -1}, "min_block_kv: -1 given"),
        ({"sram_bytes": 5000}, "sram_bytes: given; allowed: none, because the result holds for every memory"),
        ({"softcap": True}, "option of flash2: 'softcap' is unknown"),
        ({"workload": 5}, "workload: 5 given"),
        ({"algorithm": "flash9"}, "algorithm: 'flash9' is unknown"),
        ({"workload": iomodel.Attention(q_len=10**7, head_dim=8, mask="causal")}, "alignment: 1 given; more than"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, Any], says: str) -> None:
    given_all: dict[str, Any] = {"algorithm": "flash2", "workload": W, **changes}
    with pytest.raises(iomodel.IOModelError) as caught:
        iomodel.staircase(given_all.pop("algorithm"), given_all.pop("workload"), **given_all)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [("flash2", {}), ("flash2", {"order": "serpentine"}), ("two_products", {})])
def test_more_steps_than_fit_are_refused_at_once(call: tuple[str, dict[str, Any]]) -> None:
    name, options = call
    with pytest.raises(iomodel.InputError, match="more than 2,000,000 tile sizes compete"):
        iomodel.staircase(name, iomodel.Attention(q_len=10**18, head_dim=64), **options)


def test_a_question_beyond_the_ends_is_refused_in_one_line() -> None:
    stairs = iomodel.staircase("flash2", W, unit="elements")
    least = stairs.steps[0].sram
    with pytest.raises(iomodel.InfeasibleError, match=f"sram: 3 elements given; allowed: from {least} up"):
        stairs.at(3)
    with pytest.raises(iomodel.InfeasibleError, match="hbm_bytes: 1 B given; flash2 moves at least"):
        stairs.least_sram(1)
    with pytest.raises(iomodel.InputError, match="larger: 1,000 given; allowed: at least sram, 5,000"):
        stairs.saved(5000, 1000)
    with pytest.raises(iomodel.InputError, match="sram: 0 given"):
        stairs.at(0)
