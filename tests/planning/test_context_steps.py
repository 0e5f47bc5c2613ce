"""Prefills whose tokens are divided among ranks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import iomodel
from iomodel import Layout

MODEL = iomodel.model("llama-3-8b")
PROMPT = {"batch": 1, "q_len": 65_536, "kv_len": 65_536}


def prefill(layout: Layout, model: Any = MODEL, **given: Any) -> iomodel.StepTime:
    return iomodel.step(model, "h100-sxm5", **{**PROMPT, **given}, layout=layout)


def test_attention_of_a_prefill_is_that_of_its_fastest_method() -> None:
    layer = MODEL.layers[0].attention
    assert layer is not None
    call = layer.call(1, PROMPT["q_len"], PROMPT["kv_len"])
    in_graph = iomodel.devices.Parameters(in_graph=1.0)
    shared = iomodel.planning.context_parallel(call, 8, "h100-sxm5", parameters=in_graph)
    assert shared.fastest is not None
    work = shared[shared.fastest]
    parts = {part.name: part for part in prefill(Layout(context_parallel=8)).parts}
    attention, sent = parts[f"attention ({work.method})"], parts[f"messages ({work.method})"]
    assert attention.times == sent.times == len(MODEL.layers)
    assert work.attention_seconds is not None
    assert work.seconds is not None
    assert attention.seconds == pytest.approx(len(MODEL.layers) * work.attention_seconds)
    assert attention.seconds + sent.seconds == pytest.approx(len(MODEL.layers) * work.seconds)


def test_more_ranks_take_less_time_but_not_in_proportion() -> None:
    times = [prefill(Layout(context_parallel=ranks)).seconds for ranks in (1, 2, 4, 8)]
    for fewer, more in pairwise(times):
        assert fewer / 2 < more < 0.6 * fewer


def test_ranks_beside_those_of_heads_cross_the_network() -> None:
    near = prefill(Layout(tensor_parallel=4, context_parallel=2))
    layouts = [
        Layout(tensor_parallel=4, context_parallel=2, devices_per_node=node, network_bandwidth=1e9) for node in (8, 4)
    ]
    assert layouts[0].devices == 8
    same, apart = (prefill(layout) for layout in layouts)
    assert near.seconds == same.seconds < apart.seconds


@pytest.mark.parametrize(("tokens", "published", "error"), [(1 << 20, 77, 0.16), (1 << 17, 3.8, 0.47)])
def test_prompts_of_405b(tokens: int, published: float, error: float) -> None:
    """Published times on 16 hosts of 8 H100 (A. Yang et al. 2024, arXiv:2411.01783); nothing was fitted to them."""
    layout = Layout(tensor_parallel=8, context_parallel=16, devices_per_node=8)
    given = {"q_len": tokens, "kv_len": tokens, "precision": "fp8", "kv_dtype": "bf16"}
    assert prefill(layout, "llama-3.1-405b", **given).seconds == pytest.approx(published, rel=error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: prefill(Layout(context_parallel=2), q_len=1),
            "context_parallel: 2 given with q_len = 1 and kv_len = 65536; allowed: 1, or a prefill of all keys",
        ),
        (
            lambda: prefill(Layout(context_parallel=2), "deepseek-v3"),
            "context_parallel: 2 given; allowed: 1, for DeepSeek-V3: some layers are not full attention",
        ),
        (
            lambda: Layout(context_parallel=2, expert_parallel=8),
            "context_parallel: 2 given with expert_parallel = 8; allowed: 1, or expert_parallel up to tensor_parallel",
        ),
        (
            lambda: iomodel.plan("llama-3-8b", "h100-sxm5", prompt=8, output=2, layout=Layout(context_parallel=2)),
            "layout.context_parallel: 2 given; allowed: 1, because plans do not divide prompts",
        ),
        (
            lambda: iomodel.train_step(
                "llama-3-8b", "h100-sxm5", batch=8, seq_len=9, layout=Layout(context_parallel=2)
            ),
            "seq_len: 9 given with context_parallel = 2; allowed: a multiple, such as 8",
        ),
    ],
)
def test_other_questions_are_refused_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(iomodel.InputError) as refused:
        call()
    assert str(refused.value).startswith(message)
