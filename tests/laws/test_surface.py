"""The public surface, habit by habit: what one verb takes or returns, every verb that has it takes or returns alike."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import iomodel
from iomodel import Attention, Layout
from tests.support.inside import COMMANDS

GPU = "h100-sxm5"
W = Attention(heads=8, kv_heads=2, q_len=512, head_dim=64, mask="causal")
TILES = {"block_q": 64, "block_kv": 64}
LOAD: dict[str, Any] = {"prompt": 512, "output": 64}
TIMED = {
    "cost": lambda **more: iomodel.cost("flash2", W, **more),
    "check": lambda **more: iomodel.check("flash2", W, GPU, **more),
    "estimate": lambda **more: iomodel.estimate("flash2", W, GPU, **more),
    "diagnose": lambda **more: iomodel.diagnose("flash2", W, GPU, 1e-3, **more),
    "trace": lambda **more: iomodel.trace("flash2", W, "sim-a100", **more),
}
PLANNED = {
    "plan": lambda **more: iomodel.plan("llama-3-8b", GPU, **LOAD, **more),
    "step": lambda **more: iomodel.step("llama-3-8b", GPU, batch=1, q_len=1, kv_len=64, **more),
    "simulate": lambda **more: iomodel.simulate("llama-3-8b", GPU, **LOAD, load=1.0, requests=4, **more),
}


@pytest.mark.parametrize("verb", TIMED)
def test_tiles_are_given_by_name_or_in_a_mapping(verb: str) -> None:
    assert TIMED[verb](**TILES).tiles == TIMED[verb](tiles=TILES).tiles


@pytest.mark.parametrize("verb", ["check", "estimate", "diagnose"])
def test_without_tiles_a_verb_takes_those_of_the_default_kernel(verb: str) -> None:
    found, default = TIMED[verb](), iomodel.estimate("flash2", W, GPU)
    assert found.tiles == default.tiles
    assert getattr(found, "implementation", default.implementation) == default.implementation


def test_a_choice_is_taken_wherever_tiles_are() -> None:
    decode = W.replace(q_len=1, kv_len=4096, mask="full")
    solved = iomodel.solve("split_kv", decode, GPU)
    assert iomodel.cost("split_kv", decode, tiles=solved.choice) == solved.cost
    assert iomodel.estimate("split_kv", decode, GPU, tiles=solved.choice).cost == solved.cost
    assert iomodel.check("split_kv", decode, GPU, tiles=solved.choice).fits


def test_arrays_take_the_places_and_the_defaults_of_their_verb() -> None:
    lengths = [256, 512]
    solved, times = (
        iomodel.solve_array("flash3", W, GPU, q_len=lengths),
        iomodel.estimate_array("flash3", W, GPU, q_len=lengths, tiles=TILES),
    )
    counts = iomodel.cost_array("flash3", W, q_len=lengths, tiles=TILES)
    for place, length in enumerate(lengths):
        call = W.replace(q_len=length, kv_len=length)
        assert solved[place] == iomodel.solve("flash3", call, GPU)
        assert times[place].seconds == iomodel.estimate("flash3", call, GPU, tiles=TILES).seconds
        assert counts[place] == iomodel.cost("flash3", call, tiles=TILES)


@pytest.mark.parametrize("name", ["fa2", "flash-attention-2", "FA2", "flash_attention_2", "FlashAttention-2"])
def test_kernels_go_by_the_names_of_people(name: str) -> None:
    assert iomodel.estimate(name, W, GPU).implementation == "flash-attention-2"


def test_a_time_that_is_not_known_is_an_error_and_a_bool_says_so() -> None:
    counted = iomodel.solve("flash2", W, sram_bytes="100 KiB")
    assert not counted.timed
    assert counted.to_dict()["seconds"] is None
    with pytest.raises(iomodel.InputError, match="seconds: not known"):
        _ = counted.seconds


@pytest.mark.parametrize("verb", PLANNED)
def test_a_layout_is_given_by_its_fields_or_whole(verb: str) -> None:
    flat, short, whole = ({"tensor_parallel": 2}, {"tp": 2}, {"layout": Layout(tensor_parallel=2)})
    assert PLANNED[verb](**flat) == PLANNED[verb](**short) == PLANNED[verb](**whole)


def test_a_price_is_a_number_or_a_mapping() -> None:
    one, by_device = (iomodel.plan("llama-3-8b", GPU, **LOAD, price=price) for price in (2.5, {GPU: 2.5}))
    assert one == by_device


def test_a_unit_may_stand_wherever_a_number_does() -> None:
    assert iomodel.solve("flash2", W, sram_bytes="100 KiB") == iomodel.solve("flash2", W, sram_bytes=102_400)
    assert W.replace(q_len="8K").q_len == 8192
    assert W.replace(q_len="8k").q_len == 8000


SERVED = (
    *("dtype", "weight_dtype", "kv_dtype", "linear_dtype", "precision", "page_size", "attention_algorithm", "lora"),
    *("memory_utilization", "overhead_bytes", "engine", "prefix_cache", "speculation"),
)
"""Options of a service."""


@pytest.mark.parametrize("verb", ["plan", "fleet", "simulate", "pareto", "disaggregate", "step"])
def test_the_options_of_a_service_are_those_of_every_planning_verb(verb: str) -> None:
    assert {*SERVED} <= inspect.signature(getattr(iomodel, verb)).parameters.keys()


@pytest.mark.parametrize(
    "verb", ["solve", "check", "estimate", "diagnose", "trace", "plan", "step", "simulate", "compare"]
)
def test_what_comes_before_where(verb: str) -> None:
    names = [*inspect.signature(getattr(iomodel, verb)).parameters]
    assert names[names.index("hardware") - 1] in ("workload", "model")


def test_one_element_of_an_array_is_taken_by_its_index() -> None:
    for array in (
        iomodel.cost_array("flash2", W, q_len=[256, 512], **TILES),
        iomodel.estimate_array("flash2", W, GPU, q_len=[256, 512]),
        iomodel.solve_array("flash2", W, GPU, q_len=[256, 512]),
    ):
        assert array[1].algorithm == "flash2"


def test_verbs_have_a_command() -> None:
    assert {"step", "bounds", "optimum", "audit"} <= {*COMMANDS}


def test_bounds_take_a_device_or_a_memory() -> None:
    whole = iomodel.hardware(GPU)
    assert iomodel.lower_bounds(W, whole) == iomodel.lower_bounds(W, GPU)
    assert iomodel.lower_bounds(W, sram_bytes="100 KiB") == iomodel.lower_bounds(W, sram_elements=51_200)


def test_progress_is_drawn_on_request() -> None:
    assert inspect.signature(iomodel.devices.calibrate).parameters["progress"].default is False


def test_what_is_wrong_is_an_error_of_this_library() -> None:
    with pytest.raises(iomodel.InputError):
        W.q_len = 3
    with pytest.raises(iomodel.IOModelError):
        Attention.model_validate({"q_len": 4})
    for kind in (iomodel.UnknownNameError, TypeError):
        with pytest.raises(kind, match="did you mean 'batch'"):
            iomodel.plan("llama-3-8b", GPU, **LOAD, batchs=3)
