"""Assumptions and missing figures of answers about capacity: in the answer, in its JSON, and in the printed table."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

import iomodel
from iomodel import Layout
from iomodel.planning.intervals import FEW, tpot_interval
from tests.support.inside import as_text, main

CHAT = {"prompt": 512, "output": 32}
FULL, LACKING = "a100-sxm4-80gb", "b300"
NO_L2 = "the time of L2 requests (no L2 bandwidth on file)"
NOT_MEASURED = "memory at 90 % of the datasheet's bandwidth (none measured)"


def planned(device: str = LACKING, model: str = "llama-3-8b", **changes: Any) -> iomodel.Plan:
    return iomodel.plan(model, device, **{**CHAT, "batch": 2, **changes})


def every_answer(device: str, **changes: Any) -> list[Any]:
    asked = {**CHAT, **changes}
    return [
        planned(device, **changes),
        iomodel.simulate("llama-3-8b", device, load=1, requests=5, **asked),
        iomodel.fleet("llama-3-8b", device, load=1, ttft=5, tpot=1, layouts=[Layout()], **asked),
        iomodel.pareto("llama-3-8b", device, batches=[1], replica_devices=1, **asked),
    ]


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b"])
def test_the_interval_of_a_time_per_token_changes_once_where_a_batch_counts_as_many(name: str) -> None:
    ends = {batch: tpot_interval(iomodel.model(name), batch, 1.0) for batch in range(1, 4 * FEW)}
    assert [batch for one, batch in pairwise(ends) if ends[one] != ends[batch]] == [FEW]


def test_missing_figures_are_in_the_answer_and_in_the_table() -> None:
    for answer in every_answer(LACKING):
        data, text = answer.to_dict(), " ".join(as_text(answer, 200).split())
        for word in (NO_L2, NOT_MEASURED):
            assert word in json.dumps(data)
            assert word in text
        assert f"left out: {NO_L2}" in text
        assert f"assumed: {NOT_MEASURED}" in text


def test_a_device_with_all_figures_leaves_nothing_out() -> None:
    for answer in every_answer(FULL):
        assert "left out" not in as_text(answer, 200)
        assert NOT_MEASURED not in as_text(answer, 200)


def test_devices_of_a_search_are_told_apart() -> None:
    fleet = iomodel.fleet("llama-3-8b", [FULL, LACKING], load=1, ttft=5, tpot=1, layouts=[Layout()], **CHAT)
    front = iomodel.pareto("llama-3-8b", [FULL, LACKING], batches=[1], replica_devices=1, **CHAT)
    for answer in (fleet, front):
        assert answer.left_out == {FULL: (), LACKING: (NO_L2,)}
        text = as_text(answer, 200)
        assert f"left out for {LACKING}: {NO_L2}" in text
        assert f"assumed for {LACKING}: {NOT_MEASURED}" in text
        rows = answer.front if answer is front else (answer.best, *answer.runners_up)
        assert ("1 part" in text) == any(row.device == LACKING for row in rows)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"engine": None}, "90 % of the memory, less 2 GiB for anything but weights and cache"),
        ({"engine": None, "overhead_bytes": 0}, "90 % of the memory"),
        ({"engine": None, "memory_utilization": 0.8}, "2 GiB for anything but weights and cache"),
        ({}, "the engine is vllm: its memory, blocks and batches"),
        ({"engine": "vllm"}, "memory, blocks, batches and time of the host as under vllm"),
        ({}, "0.6 ms of the host between steps"),
        ({"layout": Layout(tensor_parallel=2)}, "long transfers reach 80 % of the links"),
        ({"layout": Layout(pipeline_parallel=2, devices_per_node=1)}, "a network of 50 GB/s for each device"),
        ({"prefix_cache": iomodel.PrefixCache(hit_rate=0.5)}, "no cached block is evicted"),
        ({"speculation": iomodel.Speculation(tokens=1, acceptance=0.5, draft="ngram")}, "each draft token is accepted"),
        ({"lora": iomodel.Lora(rank=8)}, "requests are spread evenly over the adapters"),
        ({"model": "gpt-oss-20b", "device": FULL}, "loads of experts follow a power law"),
    ],
)
def test_each_assumption_is_stated_where_it_is_made(changes: dict[str, Any], text: str) -> None:
    answer = planned(**changes)
    assert any(line.startswith(text) for line in answer.assumed)
    assert f"assumed: {text}" in as_text(answer, 250)


@pytest.mark.parametrize("device", ["t4", "v100-sxm2-32gb"])
def test_a_device_without_bf16_runs_a_model_in_fp16(device: str) -> None:
    asked = {"prompt": 128, "output": 128, "batch": 1}
    found = iomodel.plan("gpt2", device, **asked)
    said = f"run in fp16, for {device} has no products in bf16"
    assert said in found.assumed
    given = iomodel.plan("gpt2", device, dtype="fp16", **asked)
    assert (given.tpot, said in given.assumed) == (found.tpot, False)
    assert iomodel.step("gpt2", device, q_len=1, kv_len=128).dtype == "fp16"
    assert iomodel.step("gpt2", "a100-sxm4-80gb", q_len=1, kv_len=128).dtype == "bf16"


def test_nothing_is_assumed_that_was_given() -> None:
    given = planned(FULL, engine=None, memory_utilization=0.8, overhead_bytes=0)
    assert given.assumed == ("0.6 ms of the host between steps",)
    wide = Layout(pipeline_parallel=2, devices_per_node=1, network_bandwidth=25e9)
    assert not any(line.startswith("a network") for line in planned(layout=wide).assumed)


def test_figures_without_a_document_are_named() -> None:
    bare = iomodel.hardware(FULL)
    figure = bare.interconnect.per_direction
    assert figure is not None
    links = bare.interconnect.model_copy(
        update={"per_direction": figure.model_copy(update={"source": ("from-memory",)})}
    )
    device = bare.model_copy(update={"interconnect": links})
    answers = [planned(device, layout=Layout(tensor_parallel=ranks)) for ranks in (1, 2)]  # type: ignore[arg-type]
    text = "interconnect.per_direction is from memory, without a document"
    assert [text in answer.assumed for answer in answers] == [False, True]


def test_a_comparison_prints_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--hardware", LACKING, "--q-len", "512", "--head-dim", "64", "--objective", "time"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"left out: {NO_L2}" in text
    assert f"assumed: {NOT_MEASURED}" in text
    assert "1 parts" not in text
