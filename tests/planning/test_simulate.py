"""Simulations: laws of latencies and throughput, closed forms where they hold, what is refused."""

import json
import pickle
import shlex
from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iomodel import hardware
from iomodel.planning.engines import STEP_HOST
from iomodel.planning.fleet import replica
from iomodel.planning.plan import plan
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.simulation.simulate import POLICIES, simulate
from iomodel.planning.simulation.simulation_result import Simulation
from iomodel.planning.simulation.step_table import step_table
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from iomodel.planning.steps import BatchTimes, GroupSteps, ReplicaSteps
from tests.support.device_edits import scaled
from tests.support.inside import BANDWIDTH, main, matrix
from tests.support.strategies import at_most

TINY, H100, A100 = "llama-3.2-1b", "h100-sxm5", "a100-sxm4-80gb"
CHAT = {"prompt": 1024, "output": 128, "engine": None}
PREFILLS = {"prompt": 1024, "output": 1}
policies = st.sampled_from(POLICIES)
lengths = st.tuples(st.integers(1, 3000), st.integers(1, 40))


def traced(rows):
    """A trace of (gap, prompt, output) rows."""
    gaps, prompts, outputs = zip(*rows, strict=True)
    return {"arrival": np.cumsum(gaps), "prompt": list(prompts), "output": list(outputs)}


traces = st.lists(
    st.tuples(st.floats(0, 0.2), st.sampled_from([1, 100, 900, 4000]), st.integers(1, 30)), min_size=1, max_size=20
).map(traced)


# Laws


@at_most(25)
@given(traces, policies, st.integers(1, 9000), st.integers(1, 30), st.floats(0, 0.01))
def test_percentiles_are_ordered_and_work_is_conserved(trace, policy, budget, batch, host):
    setting = {"policy": policy, "token_budget": budget, "batch": batch, "host_seconds": host}
    result = simulate(TINY, H100, arrivals=trace, **setting)
    for times in (result.ttft, result.tpot, result.latency):
        assert 0 <= times.p50 <= times.p90 <= times.p99 <= times.largest
        assert times.mean <= times.largest
    assert (result.prompt_tokens, result.output_tokens) == (sum(trace["prompt"]), sum(trace["output"]))
    assert result.mean_batch * result.decode_steps == pytest.approx(sum(trace["output"]) - len(trace["output"]))
    assert result.largest_batch <= min(batch, result.batch)
    assert result.largest_bytes <= result.memory.left
    assert result.busy_seconds <= result.seconds * (1 + 1e-12)
    assert result.latency.mean >= result.ttft.mean
    assert result == simulate(TINY, H100, arrivals=trace, **setting)


@at_most(25)
@given(lengths, policies)
@example((2048, 256), "prefill-first")
@example((1, 1), "chunked")
@example((90, 40), "prefill-first")  # the step jumps between two contexts of the plan's trapezoid rule
def test_one_request_takes_the_times_of_a_plan(length, policy):
    prompt, output = length
    planned = plan(TINY, H100, prompt=prompt, output=output, batch=1, engine=None).figures
    alone = {"arrival": [7.5], "prompt": [prompt], "output": [output]}
    result = simulate(TINY, H100, arrivals=alone, policy=policy, engine=None)
    assert result.ttft.mean == pytest.approx(planned.ttft, rel=1e-12)
    assert result.tpot.mean == pytest.approx(planned.step if output > 1 else 0.0, rel=0.01)
    assert result.latency.mean == pytest.approx(result.ttft.mean + (output - 1) * result.tpot.mean)
    assert result.utilization == 1.0


def test_clients_that_fill_the_batch_are_served_at_the_rate_of_a_plan():
    planned = plan(TINY, H100, batch=16, **CHAT)
    result = simulate(TINY, H100, concurrency=16, requests=800, token_budget=1024, **CHAT)
    assert result.requests_per_second == pytest.approx(planned.requests_per_second, rel=0.02)
    assert result.largest_batch == 16


EXPERTS = {"layout": Layout(expert_parallel=4), "prompt": 1024, "output": 128}


def test_clients_of_groups_are_served_at_the_rate_of_a_plan():
    planned = plan("gpt-oss-20b", H100, batch=64, **EXPERTS, engine=None)
    result = simulate("gpt-oss-20b", H100, concurrency=64, requests=1600, token_budget=1024, **EXPERTS, engine=None)
    assert result.requests_per_second == pytest.approx(planned.requests_per_second, rel=0.04)
    assert result.largest_batch == 64
    assert result.mean_batch == pytest.approx(64, rel=0.05)
    assert "4 groups of ranks take requests in turn and are alike: one is simulated" in result.assumed


def test_groups_take_requests_in_turn():
    """Groups that each have a request of a pair take the time of the first of each pair, twice."""
    trace = {"arrival": [0.0, 0.0, 1.0, 1.0], "prompt": [900, 100, 400, 2000], "output": [9, 3, 7, 30]}
    pair = {**EXPERTS, "layout": Layout(expert_parallel=2), "prompt": None, "output": None}
    alike = {name: [values[place] for place in (0, 0, 2, 2)] for name, values in trace.items()}
    mixed, same = (simulate("gpt-oss-20b", H100, arrivals=each, **pair) for each in (trace, alike))
    assert (mixed.ttft, mixed.latency, mixed.seconds) == (same.ttft, same.latency, same.seconds)
    assert (mixed.requests, mixed.output_tokens, same.output_tokens) == (4, 49, 32)
    hashes = {**trace, "hash_ids": [[1, 2], [3], [1], [1, 2, 3, 4]]}
    assert simulate("gpt-oss-20b", H100, arrivals=hashes, **pair).prompt_tokens == 3400


def test_steps_of_groups_have_the_sequences_of_all():
    """A step of four groups, each with some sequences, is that of a replica with all of them; each has its drafts."""
    speculation = Speculation(tokens=3, acceptance=0.7, draft="gpt-oss-20b")
    service = as_service("gpt-oss-120b", 1024, 128, Layout(expert_parallel=4), speculation=speculation)
    steps, groups = ReplicaSteps(service, hardware(H100)), GroupSteps(service, hardware(H100))
    assert groups.decode(8, 1100) == steps.decode(32, 1100)
    assert groups.chunk(512, 1024, 2) == steps.chunk(512, 1024, 8)
    assert groups.draft_step_seconds(8, 1100) == steps.draft_step_seconds(32, 1100)
    assert groups.draft_step_seconds(64, 1100) > groups.draft_step_seconds(8, 1100)


@pytest.mark.parametrize(("limit", "most"), [({"batch": 16}, 16), ({"engine": "vllm", "step_requests": 2}, 8)])
def test_limits_of_groups_are_those_of_the_engine(limit, most):
    """`batch` is of all groups, the requests of a step of each."""
    setting = {**EXPERTS, "concurrency": 64, "requests": 128, "output": 32, **limit}
    result = simulate("gpt-oss-20b", H100, **setting)
    assert (result.batch, result.largest_batch) == (most, most)


def test_chunks_of_prompts_longer_than_those_of_attention_are_timed():
    """Llama 4 attends within 8,192 tokens, which a step of 5,000 tokens may begin within and end behind."""
    setting = {"concurrency": 1, "requests": 1, "prompt": 20_000, "output": 2}
    whole, parts = (
        simulate(
            "llama-4-scout", "h200-sxm", policy=policy, token_budget=5000, layout=Layout(tensor_parallel=4), **setting
        )
        for policy in POLICIES
    )
    assert whole.ttft.mean < parts.ttft.mean < 1.3 * whole.ttft.mean


@at_most(25)
@given(lengths, st.integers(1, 1500), policies)
def test_a_longer_prompt_is_not_answered_sooner(length, more, policy):
    prompt, output = length
    closed = {"output": output, "concurrency": 1, "requests": 2, "policy": policy}
    short, long = (simulate(TINY, H100, prompt=size, **closed) for size in (prompt, prompt + more))
    assert short.ttft.mean <= long.ttft.mean * (1 + 1e-9)


SLOWER = [
    scaled(hardware(H100), lambda path: path in BANDWIDTH, 0.5),
    scaled(hardware(H100), lambda path: path in matrix(hardware(H100)), 0.5),
]


@settings(max_examples=10)
@given(lengths, st.sampled_from(SLOWER), policies)
def test_a_slower_device_does_not_answer_sooner(length, slower, policy):
    closed = {"prompt": length[0], "output": length[1], "concurrency": 1, "requests": 2, "policy": policy}
    fast, slow = (simulate(TINY, device, **closed) for device in (H100, slower))
    assert fast.ttft.mean <= slow.ttft.mean
    assert fast.latency.mean <= slow.latency.mean


@at_most(15)
@given(traces, st.booleans())
@example(traced([(0.0, 100, 1), (0.0, 100, 1)]), True)
def test_chunks_without_a_limit_are_prefills_first_where_nothing_is_decoded(trace, open_loop):
    if open_loop:
        setting = {"arrivals": {**trace, "output": [1] * len(trace["prompt"])}}
    else:
        setting = {"arrivals": trace, "concurrency": 1, "requests": 10}
    first, chunked = (simulate(TINY, H100, policy=policy, token_budget=1 << 24, **setting) for policy in POLICIES)
    assert first.ttft == chunked.ttft
    assert first.latency == chunked.latency


def test_chunks_bound_the_time_between_tokens():
    mixed = {"load": 8.0, "requests": 300, "prompt": 8000, "output": 100, "seed": 4}
    whole = simulate(TINY, H100, **mixed)
    chunked = simulate(TINY, H100, policy="chunked", token_budget=512, **mixed)
    assert chunked.steps > whole.steps
    assert chunked.tpot.largest < whole.tpot.largest


def test_host_time_is_added_to_each_step():
    one = {"concurrency": 1, "requests": 1, **CHAT}
    free, held = simulate(TINY, H100, host_seconds=0.0, **one), simulate(TINY, H100, host_seconds=0.003, **one)
    assert held.ttft.mean == pytest.approx(free.ttft.mean + 0.003)
    assert held.tpot.mean == pytest.approx(free.tpot.mean + 0.003)
    assert held.busy_seconds == pytest.approx(free.busy_seconds + 0.003 * free.steps)


# Closed forms


@pytest.mark.parametrize("busy", [0.3, 0.7])
def test_single_prompts_wait_as_in_a_queue_of_one_server(busy):
    """M/D/1: a mean wait of busy * p / (2 (1 - busy)), by Pollaczek and Khinchine; tolerance four standard errors."""
    prefill = plan(TINY, H100, prompt=1024, output=1, batch=1, engine=None).ttft
    runs = [
        simulate(
            TINY,
            H100,
            prompt=1024,
            output=1,
            engine=None,
            token_budget=1024,
            load=busy / prefill,
            requests=5000,
            seed=seed,
        )
        for seed in range(16)
    ]
    waits = np.array([run.ttft.mean - prefill for run in runs])
    error = waits.std(ddof=1) / sqrt(len(waits))
    expected = busy * prefill / (2 * (1 - busy))
    assert error < 0.03 * expected
    assert abs(waits.mean() - expected) < 4 * error
    assert np.mean([run.utilization for run in runs]) == pytest.approx(busy, rel=0.02)


@pytest.mark.parametrize("busy", [0.1, 0.3, 0.5])
def test_the_means_are_those_of_the_queue_of_a_fleet(busy):
    service = as_service(TINY, 1024, 128, memory_utilization=0.9, overhead_bytes=OVERHEAD, engine=None)
    device = hardware(H100)
    queue = replica(service, device, 2.0)
    load = busy / queue.prefill
    at = queue.at(load)
    result = simulate(TINY, H100, token_budget=1024, load=load, requests=8000, **CHAT)
    assert result.ttft.mean == pytest.approx(at.ttft, rel=0.04)
    assert result.tpot.mean == pytest.approx(at.tpot, rel=0.08)


# The table


def steps_of(prompt, output):
    return ReplicaSteps(
        as_service(TINY, prompt, output, memory_utilization=0.9, overhead_bytes=OVERHEAD, engine=None), hardware(H100)
    )


def test_the_table_holds_the_steps():
    steps = steps_of(1000, 500)
    table = step_table(steps, np.array([1000, 1300]), 2600, 40, 512, chunked=True)
    for place, context in enumerate(table.contexts):
        exact = lambda batch, c=context: step(TINY, H100, batch=batch, q_len=1, kv_len=int(c)).seconds  # noqa: E731
        times, column = BatchTimes(exact), table.decode[:, place]
        assert column[:33].tolist() == [0.0, *(times(batch) for batch in range(1, 33))]
        assert column[40] == exact(40)  # the largest batch has the time of a plan
        assert column[32:] == pytest.approx(np.interp(range(32, 41), (32, 40), column[[32, 40]]))
    for prompt in (861, 1024):
        place = table.lengths.tolist().index(prompt)
        parts = table.other[place] + table.attention[place] + table.rows[1]
        assert parts == pytest.approx(step(TINY, H100, batch=1, q_len=prompt, kv_len=prompt).seconds, rel=1e-12)
    place = table.caches.tolist().index(1024), table.chunks.tolist().index(512)
    chunk = step(TINY, H100, batch=1, q_len=512, kv_len=1024).attention_seconds
    assert table.chunk_attention[place] == chunk
    assert table.chunks[-1] == 512


def test_the_errors_of_the_interpolation_are_as_stated():
    """docs/plan.md: medians of 1 % and 5 %, at most 20 %; 10 % for prompts together."""
    steps, chance = steps_of(16, 8000), np.random.default_rng(5)
    table = step_table(steps, np.arange(16, 8001), 8000, 128, 8192, chunked=False)
    prompts = np.exp(chance.uniform(np.log(16), np.log(8000), 60)).astype(int)
    exact = np.array([steps.prefill(int(prompt)).seconds for prompt in prompts])
    parts = (np.interp(prompts, table.lengths, values) for values in (table.other, table.attention))
    errors = np.abs((sum(parts) + table.rows[1]) / exact - 1)
    assert np.median(errors) < 0.01
    assert errors.max() < 0.2
    decodes = [(int(chance.integers(1, 129)), int(chance.integers(17, 8000))) for _ in range(60)]
    found = np.array([np.interp(context, table.contexts, table.decode[batch]) for batch, context in decodes])
    errors = np.abs(found / [steps.decode(*at).seconds for at in decodes] - 1)
    assert np.median(errors) < 0.05
    assert errors.max() < 0.2
    for number, prompt in ((2, 128), (4, 512), (8, 256), (3, 2048)):
        together = steps.prefill(prompt, number)
        apart = together.seconds - together.attention_seconds + number * steps.prefill(prompt).attention_seconds
        assert 0 <= apart / together.seconds - 1 < 0.1


def test_chunks_take_the_time_of_their_steps():
    steps = steps_of(5000, 1)
    ends = [*range(512, 5000, 512), 5000]
    exact = sum(steps.chunk(end - start, end).seconds + STEP_HOST for start, end in zip([0, *ends], ends, strict=False))
    result = simulate(
        TINY, H100, prompt=5000, output=1, concurrency=1, requests=1, policy="chunked", token_budget=512, engine=None
    )
    assert result.steps == len(ends)
    assert result.ttft.mean == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("engine", [None, "vllm"])
def test_tokens_of_a_step_come_from_the_service(engine):
    result = simulate(
        TINY, H100, prompt=512, output=2, concurrency=1, requests=2, engine=engine, step_tokens=512, layout=Layout()
    )
    assert result.token_budget == 512


def test_a_result_is_frozen_and_plain():
    result = simulate(TINY, H100, load=10.0, requests=20, **CHAT)
    assert pickle.loads(pickle.dumps(result)) == Simulation.from_json(result.to_json()) == result
    assert "p99" in str(result)
    assert [row["time"] for row in result.records()] == ["ttft", "tpot", "latency"]
    assert result.to_dict()["tokens_per_second"] == result.output_tokens / result.seconds


# The command


def test_the_command_says_what_the_library_says(capsys, tmp_path):
    typed = f"simulate {TINY} --hardware {H100} --prompt 1024 --output 128 --load 5 --requests 20 --seed 3"
    engine = "--engine none --policy chunked --token-budget 512 --batch 4 --host-seconds 2ms --tensor-parallel 1 --json"
    assert main(shlex.split(f"{typed} {engine}")) == 0
    setting = {"policy": "chunked", "token_budget": 512, "batch": 4, "host_seconds": 0.002, "layout": Layout()}
    result = simulate(TINY, H100, load=5, requests=20, seed=3, **CHAT, **setting)
    assert json.loads(capsys.readouterr().out) == result.to_dict()
    file = tmp_path / "trace.csv"
    file.write_text("arrival,prompt,output\n0,100,5\n1,-2,5\n", encoding="utf-8")
    assert main(["simulate", TINY, "--hardware", H100, "--trace", str(file)]) == 2
    assert "row 2, column prompt: -2 given" in capsys.readouterr().err
    assert main(["simulate", TINY, "--load", "1"]) == 2
    assert capsys.readouterr().err.startswith("iomodel: hardware: not given")


@pytest.mark.parametrize(("load", "said"), [(200.0, True), (2.0, False)])
def test_an_overloaded_engine_is_said_to_be(load, said):
    """Where all places are taken and fewer requests are served than arrive."""
    run = simulate("llama-3.1-8b", "h100-sxm5", prompt=2048, output=64, load=load, requests=400)
    assert any(note.startswith("overloaded: ") for note in run.notes) is said
    assert not said or run.requests_per_second < 0.9 * load
