"""Redundant experts: slots of ranks that experts alone do not divide among, their weights, and balanced loads."""

from __future__ import annotations

from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import Layout
from iomodel.planning.service import as_service
from iomodel.planning.step.expert_loads import _balanced, _copied, approximate_skew, busiest
from iomodel.planning.step.step_arguments import linear_layers
from tests.support.strategies import fraction_of_examples

V3 = iomodel.model("deepseek-v3")
DECODING = Layout(expert_parallel=144, redundant_experts=32)
"""DeepSeek-V3, arXiv:2412.19437, section 3.4.2: 256 experts and 32 copies on 144 devices."""


def weights(layout: Layout) -> int:
    service = as_service("deepseek-v3", 100, 10, layout, memory_utilization=0.9, overhead_bytes=0)
    return service.weights.of_stage(V3.layers, 0)


def test_two_of_288_experts_are_on_each_of_144_ranks() -> None:
    experts = [linear for linear in linear_layers(V3, DECODING) if linear.sharing == "experts"]
    assert {linear.times for linear in experts} == {2 * 58}  # layers with experts
    assert (
        sum(linear.times * linear.in_features * linear.out_features for linear in experts) == 2 * 58 * 3 * 7168 * 2048
    )


def test_a_rank_holds_the_bytes_of_its_slots() -> None:
    assert weights(DECODING) == weights(Layout(expert_parallel=128))  # two experts each
    one, expert = weights(Layout(expert_parallel=32)), 58 * 3 * 7168 * 2048
    assert weights(Layout(expert_parallel=32, redundant_experts=32)) - one == expert  # fp8: a byte each, as released


def test_a_step_exchanges_with_all_ranks() -> None:
    times = {
        copies: iomodel.step(
            V3, "h800-sxm5", batch=32 * 64, q_len=1, kv_len=4096,
            layout=Layout(expert_parallel=32, redundant_experts=copies, devices_per_node=8),
        ).seconds
        for copies in (0, 32)
    }  # fmt: skip
    assert times[32] < times[0]  # better balanced
    assert iomodel.step(V3, "h800-sxm5", batch=144, q_len=1, kv_len=64, layout=DECODING).seconds > 0


@given(
    counts=st.lists(st.integers(0, 30), min_size=2, max_size=4), redundant=st.integers(1, 3)
)  # fmt: skip
@fraction_of_examples(2)
def test_copies_lower_the_largest_load_as_far_as_they_can(counts: list[int], redundant: int) -> None:
    loads = _copied(counts, redundant)
    assert (sum(loads), len(loads)) == (sum(counts), len(counts) + redundant)
    every = (
        max(-(-count // copies) for count, copies in zip(counts, chosen, strict=True))
        for chosen in product(range(1, redundant + 2), repeat=len(counts))
        if sum(chosen) == len(counts) + redundant
    )
    assert max(loads) == min(every)


@given(data=st.data(), ranks=st.integers(1, 5), room=st.integers(1, 4))
@fraction_of_examples(2)
def test_balanced_ranks_have_equal_numbers_of_loads(data: st.DataObject, ranks: int, room: int) -> None:
    loads = data.draw(st.lists(st.integers(0, 50), min_size=ranks * room, max_size=ranks * room))
    shards = _balanced(loads, ranks)
    assert {len(shard) for shard in shards} == {room}
    assert sorted(load for shard in shards for load in shard) == sorted(loads)
    filled: list[list[int]] = [[] for _ in range(ranks)]
    for load in sorted(loads, reverse=True):  # to the rank with the least so far, of those with room
        min((shard for shard in filled if len(shard) < room), key=sum).append(load)
    assert sorted(map(sum, shards)) == sorted(map(sum, filled))


def test_known_loads_are_balanced() -> None:
    counts = [90, *[10] * 7]
    assert busiest(counts, 4) == ((90, 1), (10, 1))
    assert busiest(counts, 4, 4) == ((18, 2), (10, 1))  # copies of 18 tokens


@pytest.mark.parametrize("copies", [0, 16, 64, 256])
def test_copies_change_the_skew_as_their_loads_do(copies: int) -> None:
    most = 0.8 * 4096
    loads = most ** ((np.arange(256_000) + 0.5) / 256_000)
    halved = loads[len(loads) - 1000 * copies :] / 2
    slots = np.concatenate([loads[: len(loads) - 1000 * copies], halved, halved])
    square = len(slots) * (slots**2).sum() / slots.sum() ** 2 - 1
    skew = approximate_skew(256, 4096, 32, copies)
    quantile = (approximate_skew(256, 4096, 32) - 1) * (256 / 32) ** 0.5 / (log(most) / 2 - 1) ** 0.5
    assert skew - 1 == pytest.approx(quantile * (square / ((256 + copies) / 32)) ** 0.5, rel=5e-3)


REFUSED = {
    "uneven": (
        {"expert_parallel": 144},
        r"^expert_parallel: 144 given; allowed: a divisor of experts = 256, such as 128, or redundant_experts = 32$",
    ),
    "uneven copies": (
        {"expert_parallel": 144, "redundant_experts": 31},
        r"^redundant_experts: 31 given; allowed: a number that fills expert_parallel = 144 ranks with experts = 256, "
        r"such as 32$",
    ),
    "many copies": (
        {"expert_parallel": 32, "redundant_experts": 288},
        r"^redundant_experts: 288 given; allowed: up to experts = 256$",
    ),
    "many ranks": (
        {"expert_parallel": 600},
        r"^expert_parallel: 600 given; allowed: a divisor of experts = 256, such as 256$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_experts_that_do_not_divide_are_one_line(name: str) -> None:
    fields, message = REFUSED[name]
    with pytest.raises(iomodel.InputError, match=message):
        Layout(**fields).check(V3)


def test_copies_need_experts_and_ranks() -> None:
    with pytest.raises(iomodel.InputError, match=r"^redundant_experts: 2 given; allowed: 0, for Llama 3 8B$"):
        Layout(tensor_parallel=2, expert_parallel=2, redundant_experts=2).check(iomodel.model("llama-3-8b"))
    with pytest.raises(iomodel.InputError, match=r"^redundant_experts: 3 given with expert_parallel = 1; allowed: 0"):
        Layout(redundant_experts=3)


def test_a_command_line_of_an_engine_refuses_copies() -> None:
    layout = Layout(expert_parallel=36, redundant_experts=32)
    plan = iomodel.plan("deepseek-v3", "h200-sxm", count=36, prompt=64, output=8, layout=layout)
    message = r"^layout.redundant_experts: 32 given; allowed with trtllm: 0, or vllm, sglang$"
    with pytest.raises(iomodel.InputError, match=message):
        iomodel.planning.engine_flags(plan, "trtllm")
