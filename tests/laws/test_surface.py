"""The public surface, habit by habit: what one verb takes or returns, every verb that has it takes or returns alike."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import iomodel
from iomodel import Attention, Layout
from iomodel.cli.commands import Commands
from iomodel.errors.synonyms import meant
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


def test_tiles_of_arrays_are_given_by_name_or_in_a_mapping() -> None:
    asked: dict[str, Any] = {"q_len": [256, 512]}
    for verb, place in ((iomodel.cost_array, ()), (iomodel.estimate_array, (GPU,))):
        flat, mapped = verb("flash2", W, *place, **asked, **TILES), verb("flash2", W, *place, **asked, tiles=TILES)  # type: ignore[operator]
        assert flat.to_dict() == mapped.to_dict()
    pairs = (iomodel.crossovers(["flash2", "standard"], W, limit=2048, **one) for one in (TILES, {"tiles": TILES}))
    assert len({str(pair) for pair in pairs}) == 1


@pytest.mark.parametrize(
    ("name", "device", "kernels"),
    [
        ("fa3", GPU, "flash-attention-3"),
        ("flash-attention-3", GPU, "flash-attention-3"),
        ("flash4", "b200", "flash-attention-4"),
        ("fa4", "b200", "flash-attention-4"),
    ],
)
def test_an_answer_names_its_kernel(name: str, device: str, kernels: str) -> None:
    for verb in (iomodel.solve, iomodel.check, iomodel.estimate):
        assert verb(name, W, device).implementation == kernels  # type: ignore[operator]


def test_a_verb_has_one_type_of_result() -> None:
    kinds = {type(iomodel.compare(W, device, algorithms=["flash2"])) for device in (GPU, "gb10", "sim-a100")}
    assert kinds == {type(iomodel.compare(W, sram_bytes="100 KiB", algorithms=["flash2"]))}


def test_a_layout_that_is_left_out_is_searched() -> None:
    planned = iomodel.plan("llama-3-70b", GPU, **LOAD)
    simulated = iomodel.simulate("llama-3-70b", GPU, **LOAD, load=1.0, requests=4)
    stepped = iomodel.step("llama-3-70b", GPU, batch=8, q_len=1, kv_len=LOAD["prompt"])
    assert planned.layout == simulated.layout != Layout()
    assert stepped.layout != Layout()
    words = "devices, for one does not hold the model"
    assert all(any(words in note for note in found.assumed) for found in (planned, stepped))
    trained = iomodel.train_step("llama-3-8b", GPU, batch=8, seq_len=4096)
    assert trained.fits
    assert trained.devices > 1
    assert f"{trained.devices} devices" in trained.assumed[0]


@pytest.mark.parametrize("verb", ["plan", "fleet", "pareto", "disaggregate"])
def test_every_verb_with_prices_takes_one_word(verb: str) -> None:
    assert {"price", "prices", "price_per_hour"} & inspect.signature(getattr(iomodel, verb)).parameters.keys() == {
        "price"
    }


def results() -> dict[str, Any]:
    """A result of every verb that has a device."""
    return {
        "solve": iomodel.solve("flash3", W, GPU),
        "compare": iomodel.compare(W, GPU, algorithms=["flash3"]),
        "train_step": iomodel.train_step("llama-3-8b", GPU, batch=1, seq_len=512),
        **{verb: TIMED[verb]() for verb in ("check", "estimate", "diagnose")},
        **{verb: answer() for verb, answer in PLANNED.items()},
    }


@pytest.mark.parametrize("verb", results())
def test_json_names_the_device_by_its_id(verb: str) -> None:
    result = results()[verb]
    assert result.to_dict()["hardware"] == GPU
    assert result.hardware in (GPU, iomodel.hardware(GPU))


@pytest.mark.parametrize(
    ("verb", "old", "new"),
    [
        ("check", "device", "hardware"),
        *((verb, "bound", "limited_by") for verb in ("estimate", "diagnose", "step")),
    ],
)
def test_a_result_has_the_old_name_of_a_renamed_figure(verb: str, old: str, new: str) -> None:
    found = {**TIMED, **PLANNED}[verb]()
    with pytest.warns(DeprecationWarning, match=rf"{type(found).__name__}\.{old}: deprecated .* use \.{new}") as told:
        assert getattr(found, old) == getattr(found, new)
    assert told[0].filename == __file__
    data = found.to_dict()
    assert data[old] == data[new]
    before = {name: value for name, value in data.items() if name != new}
    assert type(found).from_dict(data) == type(found).from_dict(before) == found


def test_files_are_written_by_one_option() -> None:
    for command in COMMANDS:
        names = {name for option in Commands()[command].params for name in option.opts}
        assert not names & {"--csv", "--file"}
        assert "--output" not in names or "--prompt" in names  # tokens beside those of a prompt, no file


@pytest.mark.parametrize(
    ("verb", "own", "old"),
    [
        (iomodel.cost_array, "backend", "engine"),
        (iomodel.fleet, "max_devices", "max_count"),
        (iomodel.pareto, "replica_devices", "max_count"),
        (iomodel.trace, "traced_heads", "heads"),
        (iomodel.simulate, "arrivals", "trace"),
        (iomodel.devices.calibrate, "time_budget", "budget"),
    ],
)
def test_one_word_has_one_meaning(verb: Any, own: str, old: str) -> None:
    assert inspect.signature(verb).parameters.keys() & {own, old} == {own}


@pytest.mark.parametrize(
    ("verb", "word"),
    [("plan", "batch"), ("step", "batch"), ("train_step", "batch"), ("fleet", "load"), ("train_step", "kernels")],
)
def test_a_word_with_a_meaning_of_its_own_is_explained(verb: str, word: str) -> None:
    text = inspect.getdoc(getattr(iomodel, verb)) or ""
    assert any(word in re.split(r", | : ", line) for line in text.splitlines() if " : " in line)


def test_a_memory_is_given_in_bytes_or_elements_in_every_verb() -> None:
    stairs = iomodel.staircase("flash2", W)
    step = stairs.steps[len(stairs.steps) // 2]
    least = iomodel.theory.least_sram("flash2", W, step.hbm_bytes)
    assert (stairs.unit, least.footprint) == ("bytes", step.sram)


@pytest.mark.parametrize(
    ("verb", "command"),
    [("solve", "tiles"), ("expressions", "formula"), ("crossovers", "crossover"), ("train_step", "train")],
)
def test_a_command_goes_by_the_name_of_its_function_too(verb: str, command: str) -> None:
    assert meant(verb, COMMANDS) == [command]
    assert command in COMMANDS


@pytest.mark.parametrize(
    ("verb", "name"),
    [("crossovers", "progress"), ("plan", "precision"), ("train_step", "precision"), ("staircase", "alignment")],
)
def test_defaults_are_alike(verb: str, name: str) -> None:
    assert not inspect.signature(getattr(iomodel, verb)).parameters[name].default
