"""Old and new spellings of one question, side by side: equal values, and a warning where the old one is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import iomodel
from iomodel import Attention, Linear, Window

W = Attention(heads=32, kv_heads=8, q_len=8192, head_dim=128, mask="causal")
D = Attention(heads=32, kv_heads=8, q_len=1, kv_len=131072, head_dim=128)
GPU = "h100-sxm5"
FIELDS: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128, "mask": "causal", "q_len": [4096, 8192]}
TILES = {"block_q": 128, "block_kv": 128}
LAYER, BLOCKS = Linear(rows=256, in_features=4096, out_features=512), {"block_m": 128, "block_n": 128, "block_k": 64}


def old(name: str) -> Any:
    """A public name of an earlier release, which warns where it is looked up."""
    with pytest.warns(DeprecationWarning, match=f"iomodel.{name}: deprecated since"):
        return getattr(iomodel, name)


def us(seconds: Any) -> list[str]:
    """Times in us to one decimal."""
    return [f"{1e6 * one:.1f}" for one in seconds]


def test_a_choice_counts_what_its_solution_counts() -> None:
    s = iomodel.solve("split_kv", D, GPU)
    before = iomodel.cost("split_kv", D, dict(s.tiles), **{name: s.options[name] for name in s.searched})
    after = iomodel.cost("split_kv", D, tiles=s.choice)
    assert before == after == s.cost
    assert after.hbm_bytes == iomodel.cost("split_kv", D, s.tiles).hbm_bytes < 550_000_000


def test_an_array_of_solutions_is_by_time() -> None:
    before = old("solve_many")("flash3", GPU, **FIELDS, objective="time")
    after = iomodel.solve_array("flash3", W, GPU, q_len=[4096, 8192])
    assert us(before.seconds) == us(after.seconds) == ["243.2", "870.5"]
    assert [one.seconds for one in after] == after.seconds.tolist()
    assert after[1] == iomodel.solve("flash3", W, GPU)


def test_an_array_of_estimates_takes_the_places_of_estimate() -> None:
    text = "use iomodel.estimate_array(algorithm, None, hardware)"
    with pytest.warns(DeprecationWarning, match=re.escape(text)) as warned:
        before = iomodel.estimate_array("flash3", GPU, **FIELDS, **TILES)  # type: ignore[arg-type]
    assert warned[0].filename == __file__
    after = iomodel.estimate_array("flash3", W, GPU, tiles=TILES, q_len=[4096, 8192])
    assert us(before.seconds) == us(after.seconds) == ["246.5", "919.7"]
    assert after[1].seconds == iomodel.estimate("flash3", W, GPU, tiles=TILES).seconds


def test_quantities_have_units() -> None:
    assert iomodel.solve("flash2", W, sram_bytes=227 * 1024) == iomodel.solve("flash2", W, sram_bytes="227 KiB")


def test_values_have_the_names_of_other_libraries() -> None:
    before = Attention(q_len=8192, head_dim=128, dtype="bf16", mask="causal")
    after: dict[str, Any] = {"q_len": 8192, "head_dim": 128, "dtype": "bfloat16", "causal": True}
    assert before == Attention(**after)
    assert Window(left=4096) == Window(4096)


def test_formulas_take_their_own_letters() -> None:
    before = iomodel.expressions("flash2").subs(q_len=4096, head_dim=64)
    after = iomodel.expressions("flash2").subs(N_q=4096, d=64)
    assert before == after
    assert str(after.reads["K"]) == "64*B*H*N_k*ceiling(4096/B_r)"


def test_comparisons_have_one_form() -> None:
    c = iomodel.compare(W, GPU)
    assert [entry.seconds for entry in c.entries] == [answer.seconds for answer in c.answers]
    both = iomodel.compare(W, [GPU, "b200"]).entries
    assert [entry.seconds for entry in both] == sorted(entry.seconds for entry in both)
    fastest = {device: next(one.implementation for one in both if one.hardware == device) for device in (GPU, "b200")}
    assert fastest == {"b200": "flash-attention-4", GPU: "flash-attention-3"}


RENAMED: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "linear_cost": (
        lambda: old("linear_cost")(LAYER, BLOCKS),
        lambda: iomodel.cost("gemm", LAYER, tiles=BLOCKS),
    ),
    "crossover": (
        lambda: old("crossover")("flash2", "standard", W.replace(mask="full", q_len=512), BLOCK_64),
        lambda: (
            iomodel.crossovers(["flash2", "standard"], W.replace(mask="full", q_len=512), tiles=BLOCK_64, limit=4096)
            .pair("flash2", "standard")
            .first
        ),
    ),
    "Solutions": (lambda: old("Solutions"), lambda: iomodel.SolutionArray),
}
BLOCK_64 = {"block_q": 64, "block_kv": 64}


@pytest.mark.parametrize("name", RENAMED)
def test_a_renamed_function_has_the_values_of_its_replacement(name: str) -> None:
    before, after = RENAMED[name]
    assert before() == after()
    assert name not in iomodel.__all__


def test_a_trace_takes_its_heads_by_another_name() -> None:
    call, tiles = iomodel.Attention(q_len=16, head_dim=8, heads=2), {"block_q": 8, "block_kv": 8}
    with pytest.warns(DeprecationWarning, match=r"use traced_heads=") as told:
        before = iomodel.trace("flash2", call, None, tiles, heads=2)
    assert told[0].filename == __file__
    assert before == iomodel.trace("flash2", call, None, tiles, traced_heads=2)


def test_a_price_goes_by_its_old_name() -> None:
    planned = iomodel.plan("llama-3-8b", GPU, prompt=512, output=64, price=2.5)
    with pytest.warns(DeprecationWarning, match=r"use \.price_per_million_tokens") as told:
        assert getattr(planned, "cost_per_million_tokens") == planned.price_per_million_tokens  # noqa: B009
    assert told[0].filename == __file__
    data = planned.to_dict()
    assert data["cost_per_million_tokens"] == data["price_per_million_tokens"]
    assert iomodel.Plan.from_dict(data) == planned


def test_a_calibration_takes_its_time_by_another_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"use time_budget=") as told, pytest.raises(iomodel.InputError):
        iomodel.devices.calibrate(budget=-1)
    assert told[0].filename == __file__


def test_judge_takes_what_then_where() -> None:
    from tests.support.public_types import timed_device

    device = timed_device()
    with pytest.warns(DeprecationWarning, match=r"use iomodel.devices.judge\(algorithm, hardware\)") as warned:
        before = iomodel.devices.judge(device)  # type: ignore[arg-type]
    assert warned[0].filename == __file__
    assert before == iomodel.devices.judge(None, device) == iomodel.devices.judge("flash2", device)


def test_families_are_listed() -> None:
    assert iomodel.list_hardware("H100") == [name for name in iomodel.list_hardware() if name.startswith("h100")]
    assert set(iomodel.list_models("llama")) == {name for name in iomodel.list_models() if name.startswith("llama")}


def test_a_kernel_of_people_names_schedule_and_kernel() -> None:
    before = iomodel.solve("flash2", W, "b200", implementation="flash-attention-4")
    assert before == iomodel.solve("flash4", W, "b200")


def test_a_plan_takes_degrees_and_a_price_by_name() -> None:
    load: dict[str, Any] = {"prompt": 2048, "output": 256}
    layout = iomodel.Layout(tensor_parallel=4)
    with pytest.warns(DeprecationWarning, match=r"use price="):
        before = iomodel.plan("llama-3.1-70b", GPU, layout=layout, price_per_hour=2.5, **load)
    assert before == iomodel.plan("llama-3.1-70b", GPU, tp=4, price=2.5, **load)
    assert before.price_per_hour == 2.5


def test_a_command_line_stands_in_the_place_of_a_model() -> None:
    line = "vllm serve meta-llama/Meta-Llama-3-8B --tensor-parallel-size 2"
    read = dict(iomodel.planning.engine_arguments(line))
    before = iomodel.plan(read.pop("model"), GPU, prompt=100, output=10, **read)
    after = iomodel.plan(line, GPU, prompt=100, output=10)
    assert before == after
    assert after.layout.tensor_parallel == 2


def test_times_have_units() -> None:
    asked: dict[str, Any] = {"load": 2.0, "prompt": 512, "output": 64}
    before = iomodel.fleet("llama-3-8b", GPU, ttft=1, tpot=0.05, **asked)
    assert before == iomodel.fleet("llama-3-8b", GPU, ttft="1s", tpot="50ms", **asked)
