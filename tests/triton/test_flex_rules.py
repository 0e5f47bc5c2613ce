"""Rules and lists that engines on Triton take: they run as written, and choose what the pruner ranks first."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iomodel
import iomodel.triton
from iomodel.triton.listing import flex_options, kind, ranked, source
from iomodel.triton.rules import FlexKernels

VERSION = "3.9.0"
DEVICE = "h100-sxm5"
DOMAIN = iomodel.results.Domain(min_q_len=128, max_q_len=2048, max_kv_len=4096, max_batch=16, head_dims=(64, 128))
CALL = iomodel.Attention(batch=2, heads=16, q_len=2048, head_dim=128, mask="causal", dtype="bf16")


@pytest.fixture(scope="module")
def learned() -> iomodel.results.Rule:
    return iomodel.triton.rule(DEVICE, domain=DOMAIN, calls=100, version=VERSION)


def function(text: str, name: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "a text", "exec"), names)
    return names[name]


def test_kernel_options_are_of_the_forward_pass_and_none_outside(learned: iomodel.results.Rule) -> None:
    text = learned.text()
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(text.encode()) <= 40_000
    choose = function(text, "kernel_options")
    drawn = DOMAIN.drawn(20, 3)
    (device,) = learned.devices
    for place, chosen in enumerate(device.places(drawn).tolist()):
        call = {name: column[place].item() for name, column in drawn.items()}
        options = choose(DEVICE, **call)
        assert [*options] == ["fwd_BLOCK_M", "fwd_BLOCK_N", "fwd_num_warps", "fwd_num_stages"]
        launch = device.launches[chosen]
        assert [*options.values()] == [launch.block_q, launch.block_kv, launch.warps, launch.stages]
        assert 128 % launch.block_q == 128 % launch.block_kv == 0
        for outside in ({"q_len": 127}, {"head_dim": 96}, {"batch": 17}, {"device": "rtx3090"}):
            assert choose(**{"device": DEVICE, **call, **outside}) is None


def test_the_rule_is_derived_again_by_the_file_beside_it(learned: iomodel.results.Rule, tmp_path: Path) -> None:
    file, beside = learned.write(tmp_path / "options.py")
    assert beside is not None
    names: dict[str, Any] = {"__file__": str(beside)}
    exec(compile(beside.read_text(encoding="utf-8"), str(beside), "exec"), names)
    names["test_the_file_is_what_the_command_writes"]()
    names["test_its_choices_lose_no_more_than_the_header_says"]()
    with pytest.raises(iomodel.UnknownNameError, match="form: 'cpp' is unknown; allowed: python, table"):
        learned.write(tmp_path / "options.cpp")
    assert file.read_text(encoding="utf-8") == learned.text()


def test_the_times_of_a_rule_are_those_of_the_pruner() -> None:
    kernels = FlexKernels(iomodel.hardware(DEVICE), "bf16", VERSION)
    calls = DOMAIN.drawn(3, 5)
    launches, seconds = kernels.solved(calls)
    chosen = kernels.times(calls, launches, np.arange(3))
    assert chosen == pytest.approx(seconds)
    assert (kernels.times(calls, launches) >= seconds * (1 - 1e-12)).all()
    assert (kernels.shipped(calls) >= seconds * (1 - 1e-12)).all()


def test_seeds_of_helion_are_the_fastest_configs() -> None:
    text = source("flash2", CALL, DEVICE, form="helion", version=VERSION, top=3)
    seeds = function(text, "seeds")
    best = ranked(CALL, DEVICE, version=VERSION)[:3]
    assert seeds == [
        {"block_sizes": [1, *each.tiles[:2]], "num_warps": each.warps, "num_stages": each.stages} for each in best
    ]
    assert text.startswith("# 2 x 16 heads, 2048 queries, 2048 keys, 128 elements, bf16 on h100-sxm5; ")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_list_for_flex_attention_has_a_prefix_of_its_pass(direction: str) -> None:
    call = CALL.model_copy(update={"direction": direction})
    algorithm = "flash2" if direction == "forward" else "two_pass"
    listed = function(source(algorithm, call, DEVICE, form="flex-attention", version=VERSION, top=2), "kernel_options")
    own = flex_options(call, DEVICE, top=2, version=VERSION)
    prefix = "fwd_" if direction == "forward" else ""
    assert listed == [{prefix + name: size for name, size in options.items()} for options in own]
    assert all(name.startswith(("fwd_", "bwd_")) for options in listed for name in options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hardware": []}, "hardware: none given"),
        ({"hardware": "mi300x"}, "head_dims: .* given; allowed: widths that the kernels take"),
        ({"domain": iomodel.results.Domain()}, "min_q_len: 1 given; allowed: from 128"),
        ({"engine": "aiter"}, "engine: 'aiter' given; allowed: flex-attention, or iomodel.rule for aiter"),
        ({"version": "1.0"}, "version"),
        ({"calls": 99}, "calls"),
    ],
)
def test_what_cannot_be_learned_is_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(iomodel.IOModelError, match=message) as refused:
        iomodel.triton.rule(**{"hardware": DEVICE, "version": VERSION, **arguments})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("form", ["helion", "flex-attention"])
def test_a_decoding_call_has_no_list(form: str) -> None:
    call = CALL.model_copy(update={"q_len": 1})
    assert kind(call) == "decode"
    with pytest.raises(iomodel.InputError, match=f"emit: '{form}' given for a kernel decode; allowed: a"):
        source("split_kv", call, DEVICE, form=form, version=VERSION)
