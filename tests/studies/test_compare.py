"""Algorithms side by side: where each of them wins, and which have a place in the row."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.algorithms import algorithm, exact_algorithms

WIDTH = 64
LONG = iomodel.Attention(q_len=4096, head_dim=WIDTH)


@pytest.mark.parametrize(
    ("share", "first", "second"),
    [
        (1 / 8, "two_products", "small_cache"),
        (1 / 4, "two_products", "small_cache"),
        (1 / 2, "two_products", "flash2"),
        (1, "flash2", "two_products"),
        (4, "flash2", "small_cache"),
        (16, "flash2", "small_cache"),
    ],
)
def test_who_wins_as_memory_grows(share: float, first: str, second: str) -> None:
    """Below M = 2/3 d^2 tiles of S save more than one of Q: 4 N^2 d / sqrt(M) + N^2, then 4 N^2 d^2 / M."""
    found = iomodel.compare(LONG, sram_elements=int(share * WIDTH**2))
    at = {solution.algorithm: solution.cost.hbm_elements for solution in found.answers}
    assert at[first] < at[second]
    assert found.best.algorithm == first


def test_the_gap_grows_on_either_side() -> None:
    ratios = []
    for memory in (512, 1024, 2048, 4096, 8192, 65536):
        small, large = (iomodel.solve(name, LONG, sram_elements=memory) for name in ("small_cache", "flash2"))
        ratios.append(small.cost.hbm_elements / large.cost.hbm_elements)
    assert ratios == sorted(ratios)
    assert ratios[0] < 0.25
    assert ratios[-1] > 3


def test_only_tiles_of_scores_fit_very_little_memory() -> None:
    found = iomodel.compare(LONG, sram_elements=130)
    assert [solution.algorithm for solution in found.answers] == ["two_products", "small_cache"]
    assert {unfit.algorithm for unfit in found.absent} >= {"flash1", "flash2", "flash3", "split_kv"}


def test_backward_two_passes_win_with_memory_to_spare() -> None:
    """14 N^2 d^2 / M against 16 and 20."""
    w = iomodel.Attention(q_len=8192, head_dim=WIDTH, direction="backward")
    found = iomodel.compare(w, sram_elements=16 * WIDTH**2)
    assert found.best.algorithm == "two_pass"
    moved = {solution.algorithm: solution.cost.hbm_elements for solution in found.answers}
    by_elements = sorted(moved, key=moved.__getitem__)
    assert by_elements == ["two_pass", "flash2", "flash3", "flash1", "standard", "two_products"]
    # In bytes FlashAttention-2 and 3 fall behind FlashAttention: they add to dQ in fp32.
    named = [solution.algorithm for solution in found.answers]
    assert named == ["two_pass", "flash1", "flash2", "flash3", "standard", "two_products"]


def test_only_those_that_have_the_features_are_compared() -> None:
    w = iomodel.Attention(q_len=64, head_dim=8, page_size=16, kv_dtype="fp8")
    found = iomodel.compare(w, sram_bytes=10_000)
    named = {solution.algorithm for solution in found.answers} | {unfit.algorithm for unfit in found.absent}
    assert named == {"flash1", "flash2", "flash3", "split_kv", "tiled_query"}
    assert iomodel.compare(w, sram_bytes=10_000, splits=2).answers
    with pytest.raises(iomodel.InfeasibleError, match="none fits 20 B of SRAM; the smallest feasible budget is"):
        iomodel.compare(w, sram_bytes=20)


def test_by_time_the_fastest_comes_first_and_each_is_its_own_estimate() -> None:
    w = iomodel.Attention(batch=2, heads=8, q_len=2048, head_dim=64, mask="causal")
    found = iomodel.compare(w, "a100-sxm4-80gb", objective="time")
    seconds = [one.seconds for one in found.answers]
    assert seconds == sorted(seconds)
    assert found.best.algorithm == found.to_dict()["best"]
    assert {one.algorithm for one in (*found.answers, *found.absent)} == {
        name for name in exact_algorithms() if w.direction in algorithm(name).directions
    }
    for one in found.answers:
        assert one.seconds == iomodel.estimate(one.algorithm, w, "a100-sxm4-80gb").seconds
        assert one.algorithm in str(found)
    assert found.relative(found.best) == 1


def test_by_time_what_does_not_run_on_the_device_has_no_time() -> None:
    """FlashAttention-3 and FlashAttention-1 have no kernel for an MI300X, nor the former one for a B200."""
    w = iomodel.Attention(batch=2, heads=8, q_len=2048, head_dim=128, mask="causal", dtype="bf16")
    for device, absent in (("mi300x", {"flash1", "flash3", "split_kv"}), ("b200", {"flash3"}), ("h100-sxm5", set())):
        found = iomodel.compare(w, device)
        assert {one.algorithm for one in found.absent if not one.runs} == absent
        assert absent.isdisjoint(one.algorithm for one in found.answers)
        assert {entry["algorithm"] for entry in found.records() if entry.get("runs") is False} == absent
        assert str(found).count("no kernel") == len(absent)
        assert all("one memory for all live data of a block" in one.reason for one in found.absent)
    with pytest.raises(
        iomodel.InputError, match=r"FlashAttention-3 has no kernel for AMD MI300X; aiter-assembly: 'flash2'"
    ):
        iomodel.compare(w, "mi300x", algorithms=["flash3"])


def test_by_default_the_time_where_the_device_has_the_rates() -> None:
    """A V100 has no peak in bf16: the traffic in its memory; a time names the peak, and kernels their devices."""
    w = iomodel.Attention(q_len=512, head_dim=64)
    assert iomodel.compare(w, "h100-sxm5") == iomodel.compare(w, "h100-sxm5", objective="time")
    half = w.model_copy(update={"dtype": "fp16"})
    assert iomodel.compare(half, "v100-sxm2-32gb") == iomodel.compare(half, "v100-sxm2-32gb", objective="time")
    assert iomodel.compare(w, "v100-sxm2-32gb") == iomodel.compare(w, "v100-sxm2-32gb", objective="traffic")
    with pytest.raises(iomodel.errors.SpecError, match=r"^compute\.peak\.bf16: v100-sxm2-32gb lacks it"):
        iomodel.compare(w, "v100-sxm2-32gb", objective="time")
    with pytest.raises(iomodel.InputError, match=r"capability 7\.0\) given; .* 8\.0 .* for flash-attention-2"):
        iomodel.compare(w, "v100-sxm2-32gb", implementation="flash-attention-2")


@pytest.mark.parametrize("given", [{}, {"sram_bytes": 10**5}, {"hardware": "h100-sxm5", "epsilon": 0.1}])
def test_by_time_only_hardware_has_a_say(given: dict[str, Any]) -> None:
    with pytest.raises(iomodel.InputError, match="objective: 'time' given with"):
        iomodel.compare(iomodel.Attention(q_len=64, head_dim=64), objective="time", **given)


BESIDE = [name for name in iomodel.list_algorithms() if algorithm(name).approximates]


@pytest.mark.skipif(not BESIDE, reason="every algorithm is exact")
@pytest.mark.parametrize("objective", ["traffic", "time"])
def test_an_approximation_is_listed_where_wanted_and_never_the_best(objective: Any) -> None:
    w = iomodel.Attention(q_len=2048, head_dim=64)
    exact = iomodel.compare(w, "h100-sxm5", objective=objective)
    beside = iomodel.compare(w, "h100-sxm5", objective=objective, approximate=True)
    rows, all_rows = exact.answers, beside.answers
    assert not {row.algorithm for row in rows} & set(BESIDE)
    assert exact.best_approximate is None
    assert not exact.approximates
    assert [row for row in all_rows if row.algorithm not in BESIDE] == list(rows)
    assert beside.best == exact.best
    assert beside.best_approximate is not None
    assert beside.best_approximate.algorithm in BESIDE
    assert beside.best_approximate == next(row for row in all_rows if row.algorithm in BESIDE)
    assert beside.relative(beside.best_approximate) > 0
    plain = beside.to_dict()
    assert plain["best_approximate"] == beside.best_approximate.algorithm
    assert plain["approximates"] == {name: algorithm(name).approximates for name in beside.approximates}
    assert f"~ {beside.best_approximate.algorithm}" in str(beside)
    assert "~" not in str(exact)


@pytest.mark.skipif("linformer" not in BESIDE, reason="there is no linformer")
def test_an_approximation_that_does_not_answer_is_left_out() -> None:
    """256 rows are projected to, and 100 keys are fewer; with more keys than queries it is no self-attention."""
    for w, missing in (
        (iomodel.Attention(q_len=100, head_dim=64), "linformer"),
        (iomodel.Attention(q_len=300, kv_len=400, head_dim=64), "reformer"),
        (iomodel.Attention(q_len=300, head_dim=64, bias=True), "linformer"),
        (iomodel.VarlenAttention(q_lens=[300, 400], head_dim=64), "linformer"),
    ):
        found = iomodel.compare(w, sram_bytes=200_000, approximate=True)
        named = {solution.algorithm for solution in found.answers} | {unfit.algorithm for unfit in found.absent}
        assert missing not in named
        assert "flash2" in named
    projected = iomodel.compare(iomodel.Attention(q_len=100, head_dim=64), sram_bytes=200_000, approximate=True,
                                projected=16)  # fmt: skip
    assert "linformer" in projected.approximates
    with pytest.raises(iomodel.UnknownNameError, match="'projected' is unknown"):
        iomodel.compare(iomodel.Attention(q_len=100, head_dim=64), sram_bytes=200_000, projected=16)
    with pytest.raises(iomodel.InputError, match="approximate: 1 given"):
        iomodel.compare(LONG, sram_bytes=200_000, approximate=1)  # type: ignore[call-overload]
    with pytest.raises(iomodel.InfeasibleError, match="none"):
        iomodel.compare(LONG, sram_elements=3, approximate=True)


def test_an_implementation_chooses_the_algorithms_that_have_it() -> None:
    w = iomodel.Attention(q_len=4096, head_dim=128)
    found = iomodel.compare(w, "h100-sxm5", implementation="flash-attention-3")
    having = {name for name in iomodel.list_algorithms() if "flash-attention-3" in iomodel.list_implementations(name)}
    assert {row.algorithm for row in found.answers} == having


def test_a_comparison_by_time_names_what_its_times_leave_out() -> None:
    call = iomodel.Attention(q_len=1024, head_dim=128)
    found = iomodel.compare(call, "mi250x")
    text = " ".join(str(found).split())
    assert "left out: the time of L2 requests (no L2 bandwidth on file)" in text
    alone = {effect for row in found.answers for effect in row.left_out} - set(found.best.left_out)
    for effect in alone:
        names = ", ".join(row.algorithm for row in found.answers if effect in row.left_out)
        assert f"left out for {names}: {effect}" in text
    assert "left out" not in str(iomodel.compare(call, "h100-sxm5", algorithms=["flash3"]))


def test_kernels_that_a_device_lacks_are_a_row_without_a_time() -> None:
    """A comparison of named kernels answers for those that run, and refuses only where none does."""
    found = iomodel.compare(LONG, "b200", algorithms=["fa2", "fa3"])
    assert [(entry.algorithm, entry.implementation) for entry in found.entries] == [("flash2", "flash-attention-2")]
    assert [(row.algorithm, row.runs) for row in found.absent] == [("flash3", False)]
    with pytest.raises(iomodel.InputError, match="of flash2: flash-attention-4") as caught:
        iomodel.compare(LONG, "b200", algorithms=["fa3"])
    with pytest.raises(iomodel.InputError) as alone:
        iomodel.estimate("fa3", LONG, "b200")
    assert str(alone.value) == str(caught.value)


def test_two_names_of_one_kernel_are_one_row() -> None:
    found = iomodel.compare(LONG, "b200", algorithms=["flash2", "fa4"])
    assert found == iomodel.compare(LONG, "b200", algorithms=["fa4"])


def test_a_tile_that_does_not_fit_says_what_it_needs(tmp_path: Any) -> None:
    file = tmp_path / "toy.yaml"
    memory = "memory: {hbm: {bandwidth: 10 GB/s}, sram: {per_block: 1 KiB}}"
    file.write_text(f"schema: 1\nname: toy\narchitecture: simulated\n{memory}\ncompute: {{peak: {{bf16: 1 TFLOP/s}}}}")
    small = iomodel.Attention(q_len=64, head_dim=8)
    found = iomodel.compare(small, str(file), algorithms=["flash2", "standard"])
    (unfit,) = found.absent
    assert f"none fits, needs {unfit.least:,} B" in " ".join(str(found).split())
    assert iomodel.solve("flash2", small, sram_bytes=unfit.least, alignment=16).footprint == unfit.least


NAMED = ["nsa", "linformer", "flash2", "two_pass"]


@pytest.mark.parametrize("where", [{"hardware": "h100-sxm5"}, {"sram_bytes": 2**18}])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_each_algorithm_that_is_named_has_an_answer_or_a_reason(where: dict[str, Any], mask: Any) -> None:
    call = iomodel.Attention(heads=4, q_len=4096, head_dim=64, mask=mask)
    found = iomodel.compare(call, **where, algorithms=NAMED)
    answered, absent = {one.algorithm for one in found.entries}, {one.algorithm: one for one in found.absent}
    assert answered.isdisjoint(absent)
    assert {*answered, *absent} == {*NAMED}
    assert found.best.algorithm == "flash2"
    other = "nsa" if mask == "full" else "linformer"
    assert not absent[other].defined
    assert "mask: " in absent[other].reason
    assert f"{other}: mask: '{mask}' given" in str(found)
    assert iomodel.results.Comparison.from_dict(found.to_dict()) == found


def test_approximations_alone_are_refused_with_the_reason() -> None:
    call = iomodel.Attention(q_len=4096, head_dim=64, mask="causal")
    with pytest.raises(iomodel.InputError, match=r"nsa, approximates attention; linformer, mask: 'causal' given"):
        iomodel.compare(call, "h100-sxm5", algorithms=["nsa", "linformer"])


def test_lengths_that_an_approximation_refuses_are_its_reason() -> None:
    call = iomodel.Attention(q_len=1, kv_len=4096, head_dim=64, mask="causal")
    found = iomodel.compare(call, sram_bytes=2**18, algorithms=["flash2", "nsa"])
    assert [(one.algorithm, one.defined) for one in found.absent] == [("nsa", False)]
    assert "kv_len: 4096 given" in found.absent[0].reason


@pytest.mark.parametrize("asked", [{"sram_elements": 51_200}, {"hardware": "h100-sxm5"}])
def test_a_ratio_is_that_to_the_best_of_the_exact_algorithms(asked: dict[str, Any]) -> None:
    found = iomodel.compare(LONG.replace(heads=8), approximate=True, **asked)
    timed = found.by == "time"
    own = [answer.seconds if timed else answer.cost.hbm_bytes for answer in found.answers]
    best = min(one for one, answer in zip(own, found.answers, strict=True) if answer.algorithm in exact_algorithms())
    assert max(own) > best
    assert [found.relative(answer) for answer in found.answers] == pytest.approx([one / best for one in own])
    assert own == sorted(own)


def test_kernels_that_do_not_run_are_named_with_their_reason():
    call = iomodel.Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
    compared = iomodel.compare(call, "rtx-pro-6000", algorithms=["fa3", "fa4", "flash2"])
    absent = {one.implementation: one for one in compared.absent}
    assert absent.keys() == {"flash-attention-3", "flash-attention-4"}
    told = " ".join(str(compared).split())
    for name, one in absent.items():
        assert f"no {name}" in told
        assert " ".join(f"{name}: {one.reason}".split()) in told
