"""Plans: what fits, redone by hand; times and prices, redone from steps; laws; what is refused."""

import json
import pickle
import re
import shlex
import sys
from dataclasses import FrozenInstanceError
from fractions import Fraction
from functools import cache, partial, wraps

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, UnknownNameError, hardware, list_models, model
from iomodel.errors import SpecError
from iomodel.planning.engines import STEP_HOST
from iomodel.planning.plan import plan
from iomodel.planning.plan_array import plan_array
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from iomodel.planning.step.step_result import bound_of
from iomodel.planning.steps import ReplicaSteps, mean
from iomodel.planning.weights import stage_layers
from tests.support.device_edits import edited
from tests.support.inside import BANDWIDTH, CAPACITY, UNITS, added, capacity, main, matrix, scaled

H100 = "h100-sxm5"
CAP = 80 * 2**30
USABLE = CAP * 9 // 10
TINY = "llama-3.2-1b"
CHAT = {"prompt": 2048, "output": 256, "engine": None}


made = cache(partial(plan, engine=None))


def service(name=TINY, prompt=2048, output=256, layout=Layout(), overhead=OVERHEAD, **types):  # noqa: B008 - frozen
    types = {"engine": None, "memory_utilization": 0.9, "overhead_bytes": overhead, **types}
    return as_service(name, prompt, output, layout, **types)


# What fits, by hand


def test_count_is_that_of_one_replica_by_default():
    layout = Layout(tensor_parallel=4, pipeline_parallel=2)
    assert made("llama-3-70b", H100, layout=layout, **CHAT) == made("llama-3-70b", H100, count=8, layout=layout, **CHAT)
    assert made("llama-3-8b", H100, **CHAT).count == 1


@pytest.mark.parametrize("layout", [{}, {"tensor_parallel": 2}])
def test_what_the_rates_do_not_need_is_computed_when_it_is_read(layout):
    later = {"prefill", "decode", "throughput_bound", "crossover_context", "batches", "better"}
    for name, notes in (("h100", 1), (H100, 0)):  # a name of a family is a note on a copy of the plan
        found = plan(TINY, name, prompt=512, output=64, **layout)
        assert found.tokens_per_second > 0
        assert sum(name == note.partition(":")[0] for note in found.assumed) == notes
        assert not later & vars(found).keys()
    again = pickle.loads(pickle.dumps(found))
    assert later <= vars(again).keys()
    assert again == found
    assert found.batches[-1] == found.figures


def test_llama_8b_on_one_h100():
    found = made("llama-3-8b", H100, **CHAT)
    request = 2 * 32 * 8 * 128 * 2 * (2048 + 256)
    assert (found.memory.weights, found.memory.request_bytes) == (16_060_522_496, request)
    assert found.memory.token_bytes == 131_072
    assert found.memory.fits == (USABLE - 16_060_522_496 - 2 * 2**30) // request == 195
    assert (found.batch, found.replicas, found.layout) == (195, 1, Layout())


def test_llama_70b_on_eight():
    found = made("llama-3-70b", H100, count=8, layout=Layout(tensor_parallel=8), **CHAT)
    layer = 8192 * (1024 + 128 + 128) + 1024 * 8192 + 3 * 8192 * 28672 // 8
    norms = (2 * 80 + 1) * 8192
    assert found.memory.weights == 2 * (80 * layer + 2 * 128256 // 8 * 8192 + norms)
    assert found.memory.token_bytes == 2 * 80 * 128 * 2  # one of the eight key/value heads
    assert found.memory.fits == (USABLE - found.memory.weights - OVERHEAD) // (40_960 * 2304)
    assert found.replicas == 1


def test_without_a_layout_the_one_with_the_most_tokens_per_second():
    found = made("llama-3-70b", H100, count=8, **CHAT)
    assert (found.layout, found.replicas) == (Layout(tensor_parallel=4), 2)
    assert found.tokens_per_second == 2 * found.figures.tokens_per_second
    single = [made("llama-3-70b", H100, count=8, tensor_parallel=ranks, **CHAT) for ranks in (2, 4, 8)]
    assert found.tokens_per_second == max(one.tokens_per_second for one in single)
    assert [one.better is None for one in single] == [False, True, False]
    assert single[0].notes[0].startswith("2 x TP 4 has ")
    free = plan("llama-3-70b", H100, **CHAT)
    assert (free.count, free.layout, free.replicas) == (4, Layout(tensor_parallel=4), 1)
    with pytest.raises(InfeasibleError, match=r" per device \(h100-sxm5, one device\); try 2 devices \(TP 2\), "):
        plan("llama-3-70b", H100, count=1, **CHAT)
    with pytest.raises(InfeasibleError, match=r"\(h100-sxm5, TP 8\); try 16 devices \(TP 8, PP 2\)"):
        plan("deepseek-v3", H100, **CHAT)


def test_the_latent_is_on_every_rank():
    alone = service("deepseek-v3").memory(hardware("h200-sxm"))
    eight = service("deepseek-v3", layout=Layout(tensor_parallel=8)).memory(hardware("h200-sxm"))
    assert alone.token_bytes == eight.token_bytes == 61 * 576 * 2
    stages = service("deepseek-v3", layout=Layout(tensor_parallel=8, pipeline_parallel=2)).memory(hardware("h200-sxm"))
    assert stages.token_bytes in (31 * 576 * 2, 30 * 576 * 2)
    assert stages.fits > 2 * eight.fits > 0


def test_deepseek_v3_on_eight_and_sixteen_h200():
    layout = Layout(tensor_parallel=8)
    device = hardware("h200-sxm")
    found = service("deepseek-v3", layout=layout).memory(device)
    usable = 150_754_820_096 * 9 // 10
    assert capacity(device) == 150_754_820_096  # what the driver reports, less than the nominal capacity
    assert found.fits == (usable - found.weights - OVERHEAD) // (70_272 * 2304)
    assert 84e9 < found.weights < 87e9  # 671 GB in eight parts, and what each has for itself
    halves = service("deepseek-v3", layout=Layout(tensor_parallel=8, pipeline_parallel=2)).memory(device)
    assert halves.weights < 0.53 * found.weights
    assert halves.fits == (usable - halves.weights - OVERHEAD) // halves.request_bytes > 2 * found.fits


def test_heads_are_repeated_where_there_are_more_ranks():
    eight, sixteen = (service("llama-3-70b", layout=Layout(tensor_parallel=n)) for n in (8, 16))
    assert eight.memory(hardware(H100)).token_bytes == sixteen.memory(hardware(H100)).token_bytes == 40_960


def test_data_parallel_groups_have_their_own_requests():
    found = service("deepseek-v3", layout=Layout(expert_parallel=8)).memory(hardware("h200-sxm"))
    assert found.fits == 8 * (found.left // found.request_bytes)
    assert found.needed(9) == found.needed(16) > found.needed(8)


def test_groups_prefill_at_the_same_time():
    steps = ReplicaSteps(service("gpt-oss-20b", 64, 4, Layout(expert_parallel=8)), hardware(H100))
    assert steps.occupied() == (steps.prefill().stage_seconds + STEP_HOST) / 8
    halves = ReplicaSteps(service("llama-3-8b", 64, 4, Layout(pipeline_parallel=2)), hardware(H100))
    assert halves.occupied() - STEP_HOST == halves.prefill().stage_seconds < 0.6 * halves.prefill().seconds


@pytest.mark.parametrize("name", list_models())
def test_one_device_holds_the_whole_model(name):
    """The parts of a rank add up to what the model itself says."""
    spec, whole = model(name), service(name, 100, 28)
    released = None if spec.dtype != "fp32" else "bf16"  # nobody serves it in fp32
    assert whole.weights.of_stage(spec.layers, 0) == spec.weight_bytes(released)
    assert whole.memory(hardware(H100)).request_bytes == spec.kv_bytes(128) + spec.index_bytes(128) + spec.state_bytes()
    assert whole.memory(hardware(H100)).token_bytes == spec.kv_bytes_per_token() + spec.index_bytes(1)
    stages = stage_layers(spec, Layout(pipeline_parallel=2))
    assert sum(stages, ()) == spec.layers
    halves = service(name, 100, 28, Layout(pipeline_parallel=2))
    again = spec.tied_embeddings * spec.vocab_size * spec.hidden_size * 2  # both ends of the pipeline have the table
    total = sum(halves.weights.of_stage(layers, place) for place, layers in enumerate(stages))
    assert 0 <= total - spec.weight_bytes(released) - again <= 4  # bytes of half weights are rounded up in each stage


@given(
    st.sampled_from(["gemma-3-27b", "llama-3-8b", "deepseek-v2-lite", "gpt-oss-20b"]),
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.none() | st.integers(1, 300),
    st.sampled_from([None, "fp8", "bf16", "fp32"]),
)
def test_a_request_is_what_the_model_says(name, prompt, output, page, kv_dtype):
    found = service(name, prompt, output, kv_dtype=kv_dtype, page_size=page).memory(hardware("b200"))
    assert found.request_bytes == model(name).kv_bytes(prompt + output, kv_dtype, page)


@given(st.data())
def test_laws_of_what_fits(data):
    """More memory, a shorter request, a narrower cache and less overhead never fit fewer."""
    name = data.draw(st.sampled_from(["llama-3-8b", "gemma-2-9b", "deepseek-v2-lite", "qwen3-30b-a3b"]))
    layout = Layout(tensor_parallel=data.draw(st.sampled_from([1, 2, 4])))
    prompt, output = data.draw(st.integers(1, 4000)), data.draw(st.integers(1, 4000))
    device = hardware(data.draw(st.sampled_from([H100, "a100-sxm4-40gb", "l4", "h200-sxm"])))
    base = service(name, prompt, output, layout).memory(device)
    more = scaled(device, CAPACITY, data.draw(st.floats(1, 4)))
    assert service(name, prompt, output, layout).memory(more).fits >= base.fits
    assert service(name, max(1, prompt - 1), output, layout).memory(device).fits >= base.fits
    assert service(name, prompt, output, layout, kv_dtype="fp8").memory(device).fits >= base.fits
    assert service(name, prompt, output, layout, overhead=0).memory(device).fits >= base.fits
    assert base.weights + base.overhead + base.fits * base.request_bytes <= base.usable or not base.fits
    assert base.weights + base.overhead + (base.fits + 1) * base.request_bytes > base.usable
    enough = edited(device, {path: base.needed(base.fits + 1) + 1 for path in CAPACITY})
    assert service(name, prompt, output, layout).memory(enough).fits == base.fits + 1


def test_the_utilization_is_exact():
    share = as_service(TINY, 2048, 256, memory_utilization=0.7, overhead_bytes=0, engine=None)
    assert share.memory(hardware(H100)).usable == int(Fraction(7, 10) * CAP)


def test_quantised_weights_leave_the_tables_wide():
    spec = model("llama-3-8b")
    tables = 2 * spec.embedding_parameters + (2 * 32 + 1) * 4096
    narrow = service("llama-3-8b", weight_dtype="fp8").memory(hardware(H100))
    assert narrow.weights == spec.parameters - tables + 2 * tables
    assert service("llama-3-8b", weight_dtype="bf16").memory(hardware(H100)).weights == spec.weight_bytes()


# Times, rates, prices, by hand


def test_times_are_those_of_steps():
    found = made("llama-3-8b", H100, batch=64, price=2.5, **CHAT)
    at = {"model": "llama-3-8b", "hardware": H100}
    prefill = step(**at, batch=1, q_len=2048, kv_len=2048).seconds + STEP_HOST
    first, middle, last = (step(**at, batch=64, q_len=1, kv_len=n).seconds for n in (2049, 2176, 2303))
    decode = (127 * (first + middle) / 2 + 127 * (middle + last) / 2) / 254 + STEP_HOST
    assert found.ttft_alone == prefill
    assert found.figures.step == pytest.approx(decode, rel=1e-12)
    cycle = 255 * decode + 64 * prefill
    assert found.cycle_per_token == pytest.approx(cycle / 255, rel=1e-12)
    assert found.ttft == pytest.approx((1 + 63 / 255) * prefill, rel=1e-12)  # of those that end together
    assert found.tpot == pytest.approx((cycle - found.ttft) / 255, rel=1e-12)  # as the benchmarks of engines print it
    assert found.requests_per_second == pytest.approx(64 / cycle, rel=1e-12)
    assert found.tokens_per_second == pytest.approx(256 * 64 / cycle, rel=1e-12)
    assert found.price_per_million_output_tokens == pytest.approx(2.5 / 3600 / (256 * 64 / cycle) * 1e6, rel=1e-12)
    assert found.price_per_million_tokens == pytest.approx(2.5 / 3600 / (2304 * 64 / cycle) * 1e6, rel=1e-12)
    assert [row.batch for row in found.batches] == [1, 4, 16, 64]


def test_the_mean_over_the_output_is_close_to_all_of_it():
    every = [step(TINY, H100, batch=16, q_len=1, kv_len=n).seconds for n in range(513, 513 + 99)]
    found = made(TINY, H100, batch=16, prompt=512, output=100)
    assert found.figures.step == pytest.approx(sum(every) / 99 + STEP_HOST, rel=2e-3)


@given(st.integers(1, 10**6), st.integers(0, 10**4), st.floats(-5, 5), st.floats(-5, 5))
def test_the_mean_of_a_line_is_exact(first, more, slope, start):
    found = mean(first, first + more, lambda n: start + slope * n)
    assert found == pytest.approx(start + slope * (first + more / 2), rel=1e-9, abs=1e-6)


def test_answers_of_one_token_are_prefills_only():
    found = made(TINY, H100, batch=8, prompt=512, output=1)
    assert found.tpot is None
    assert found.ttft == pytest.approx(8 * found.ttft_alone)  # all clients wait for each other
    assert found.requests_per_second == pytest.approx(8 / found.ttft)


def test_a_pipeline_works_on_parts_of_the_batch():
    layout = Layout(pipeline_parallel=2)
    found = made("llama-3-8b", H100, count=2, layout=layout, batch=32, prompt=512, output=2)
    at = {"model": "llama-3-8b", "hardware": H100, "layout": layout}
    prefill, half = step(**at, batch=1, q_len=512, kv_len=512), step(**at, batch=16, q_len=1, kv_len=513)
    assert found.figures.step == max(half.seconds, 2 * half.stage_seconds) + STEP_HOST
    assert found.cycle_per_token == pytest.approx(found.figures.step + 32 * (prefill.stage_seconds + STEP_HOST))
    assert found.tpot == found.figures.step  # all prefills come before the one step


@pytest.mark.parametrize(
    ("paths", "faster"),
    [(BANDWIDTH, "tpot"), (matrix(hardware(H100)), "ttft")],
)
@pytest.mark.parametrize("factor", [1.2, 2.0, 4.0])
def test_a_faster_device_is_never_slower(paths, faster, factor):
    base = made(TINY, H100, batch=32, **CHAT)
    better = plan(TINY, scaled(hardware(H100), paths, factor), batch=32, **CHAT)
    assert better.ttft <= base.ttft
    assert better.tpot <= base.tpot
    assert getattr(better, faster) < getattr(base, faster)
    assert better.tokens_per_second >= base.tokens_per_second


def test_prices_scale():
    one, two = (made("llama-3-8b", H100, batch=64, price=price, **CHAT) for price in (2.5, 5.0))
    assert two.price_per_million_tokens == pytest.approx(2 * one.price_per_million_tokens)
    assert two.price_per_million_output_tokens == pytest.approx(2 * one.price_per_million_output_tokens)
    assert one.price_per_million_output_tokens == pytest.approx(9 * one.price_per_million_tokens)  # 2304 / 256
    assert made("llama-3-8b", H100, batch=64, **CHAT).price_per_million_tokens is None
    pair = made("llama-3-8b", H100, count=2, layout=Layout(), batch=64, price=2.5, **CHAT)
    assert pair.price_per_million_tokens == pytest.approx(
        one.price_per_million_tokens
    )  # twice the price, twice the work


def test_what_binds():
    alone = made("llama-3-8b", H100, batch=1, **CHAT)
    full = made("llama-3-8b", H100, **CHAT)
    assert (alone.decode_bound, full.decode_bound) == ("weights", "KV cache")
    assert alone.decode_bound == bound_of(alone.decode)
    tight = made("llama-3-70b", H100, count=2, layout=Layout(tensor_parallel=2), prompt=128, output=2048)
    assert tight.throughput_bound == "memory capacity"
    assert alone.throughput_bound == "weights"


def test_where_attention_overtakes():
    found = made("llama-3-8b", H100, batch=64, **CHAT)
    context = found.crossover_context
    before, after = (step("llama-3-8b", H100, batch=64, q_len=1, kv_len=n) for n in (context - 1, context))
    assert before.attention_seconds < before.linear_seconds
    assert after.attention_seconds >= after.linear_seconds


def test_sensitivities_are_differences():
    base = made(TINY, H100, batch=32, sensitivity=True, **CHAT)
    rows = {row.resource: row for row in base.sensitivities}
    assert list(rows) == ["HBM bandwidth", "HBM capacity", "SMs", "matrix peak"]
    device = hardware(H100)
    better = plan(TINY, scaled(device, BANDWIDTH, 1.1), batch=32, **CHAT)
    row = rows["HBM bandwidth"]
    assert (row.unit, row.added) == ("GB/s", pytest.approx(335.2))
    assert row.tpot == pytest.approx((better.tpot - base.tpot) / 335.2)
    assert row.ttft == pytest.approx((better.ttft - base.ttft) / 335.2)
    assert row.tokens_per_second == pytest.approx((better.tokens_per_second - base.tokens_per_second) / 335.2)
    assert row.tokens_per_second > 0 > row.tpot
    larger = service().memory(added(device, CAPACITY, CAP // 10))
    assert rows["HBM capacity"].fits == pytest.approx((larger.fits - base.memory.fits) / (CAP // 10 / 1e9))
    assert rows["HBM capacity"].tpot == 0
    more = plan(TINY, added(device, UNITS, 13), batch=32, **CHAT)
    assert rows["SMs"].ttft == pytest.approx((more.ttft - base.ttft) / 13)
    assert rows["SMs"].fits == rows["HBM bandwidth"].fits == 0


def test_a_device_without_a_figure_has_no_sensitivity_of_it():
    device = edited(hardware(H100), {"compute.units": None})
    found = plan(TINY, device, batch=1, prompt=64, output=4, sensitivity=True, engine=None)
    assert [row.resource for row in found.sensitivities] == ["HBM bandwidth", "HBM capacity", "matrix peak"]


# What an answer is


def test_an_answer_is_frozen_and_plain():
    found = made(TINY, H100, batch=4, sensitivity=True, price=1, prompt=64, output=4)
    with pytest.raises(FrozenInstanceError):
        found.count = 2
    assert pickle.loads(pickle.dumps(found)) == found
    plain = json.loads(found.to_json())
    assert plain == found.to_dict()
    assert plain["memory"]["fits"] == found.memory.fits
    degrees = {
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "expert_parallel": 1,
        "context_parallel": 1,
        "decode_context_parallel": 1,
        "redundant_experts": 0,
    }
    assert plain["layout"] == {**degrees, "devices_per_node": None, "network_bandwidth": None}
    assert (plain["batch"], plain["ttft"], len(plain["sensitivities"])) == (4, found.ttft, 4)
    assert "Effect of more resources" in str(found)


# What is refused

FAULTS = [
    ({"model": "llama-3-8c"}, UnknownNameError, "did you mean 'llama-3-8b'"),
    ({"model": 3}, InputError, "model: a name, the path of a file or a mapping is needed, given 3"),
    ({"hardware": "h100-sxm4"}, UnknownNameError, "did you mean 'h100-sxm5'"),
    ({"hardware": "sim-a100"}, SpecError, "memory.hbm.capacity: sim-a100 lacks it"),
    ({"prompt": 0}, InputError, "prompt: 0 given"),
    ({"output": 1.5}, InputError, "output: 1.5 given"),
    ({"prompt": 8000}, InputError, "allowed: at most 8,192, the longest context"),
    ({"count": 3, "layout": Layout(tensor_parallel=2)}, InputError, "allowed: a multiple, such as 2 or 4"),
    ({"count": 1, "layout": Layout(tensor_parallel=2)}, InputError, "allowed: a multiple, such as 2$"),
    ({"count": 0}, InputError, "count: 0 given"),
    ({"layout": 8}, InputError, "layout: 8 given"),
    ({"count": 3, "layout": Layout(tensor_parallel=3)}, InputError, "tensor_parallel: 3 given"),
    (
        {"batch": 10**6, "count": 1},
        InfeasibleError,
        "batch: 1,000,000 requests of 2,304 tokens given; allowed: at most 195",
    ),
    ({"batch": 0}, InputError, "batch: 0 given"),
    ({"dtype": "bf61"}, UnknownNameError, "dtype: 'bf61' is unknown; did you mean 'bf16'"),
    ({"kv_dtype": "fp7"}, UnknownNameError, "kv_dtype: 'fp7' is unknown; did you mean 'fp8'"),
    ({"weight_dtype": "int7"}, UnknownNameError, "weight_dtype: 'int7' is unknown; did you mean 'int"),
    ({"page_size": 0}, InputError, "page_size: 0 given"),
    ({"price": -1}, InputError, "price: -1 given; allowed: a number above 0"),
    ({"price": float("nan")}, InputError, "price: nan given"),
    ({"memory_utilization": 1.1}, InputError, "memory_utilization: 1.1 given; allowed: a number above 0, at most 1"),
    ({"overhead_bytes": -1}, InputError, "overhead_bytes: -1 given"),
]


@pytest.mark.parametrize(("change", "error", "message"), FAULTS, ids=lambda value: str(value)[:40])
def test_faults_are_told_in_one_line(change, error, message):
    asked = {"model": "llama-3-8b", "hardware": H100, **CHAT, **change}
    with pytest.raises(error, match=message.replace("(", r"\(")) as caught:
        plan(**asked)
    assert "\n" not in str(caught.value)


def test_a_batch_too_large_says_the_memory_that_would_do():
    with pytest.raises(InfeasibleError) as caught:
        plan("llama-3-8b", H100, batch=1000, count=1, **CHAT)
    enough = edited(hardware(H100), {CAPACITY[0]: caught.value.least + 1})
    assert service("llama-3-8b").memory(enough).fits == 1000


@pytest.mark.parametrize("engine", ["auto", "vllm", "none"])
def test_a_model_that_does_not_fit_says_the_share_of_memory_that_would_do(engine):
    """DeepSeek-V3 in fp8 is short of a few gigabytes on four B200: a larger share, not eight devices, would do."""
    asked = {"layout": Layout(tensor_parallel=4), "engine": engine, "prompt": 1000, "output": 1000}
    with pytest.raises(InfeasibleError, match="do not fit by") as caught:
        plan("deepseek-v3", "b200", **asked, memory_utilization=0.9 if engine != "none" else 0.88)
    share = float(re.search(r"try memory_utilization = ([0-9.]+), 8 devices", str(caught.value))[1])
    assert plan("deepseek-v3", "b200", **asked, memory_utilization=share).memory.fits
    with pytest.raises(InfeasibleError) as caught:
        plan("llama-3.1-405b", H100, layout=Layout(), prompt=1000, output=1000, engine=engine)
    assert "memory_utilization" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("llama-3-70b --hardware h100-sxm5 --count 1 --prompt 64 --output 4", 1, "do not fit by"),
        (f"{TINY} --hardware h100-sxm5 --prompt 64", 2, "output: not given"),
        (f"{TINY} --hardware h100-sxm5 --prompt 64 --output 4 --price cheap", 2, "price: 'cheap' given"),
        (f"{TINY} --hardware h100-sxm5 --prompt 64 --output 4 --count 1 --tensor-parallel 2", 2, "count: 1 given"),
        (f"{TINY} --hardware h100-sxm5 --prompt 64 --output 4 --tensor-parallel 2", 0, "on 2 x h100-sxm5"),
        (f"{TINY} --hardware h100-sxm5 --prompt 64 --output 4 --batch 2", 0, "TTFT of one request alone"),
    ],
)
def test_the_command(capsys, line, code, text):
    assert main(["plan", *shlex.split(line)]) == code
    out, err = capsys.readouterr()
    assert text in (err if code else out)
    assert (err.count("\n"), bool(out)) == ((1, False) if code else (0, True))


def test_the_command_hands_over_what_was_typed(capsys, monkeypatch):
    seen = {}

    module = sys.modules["iomodel.planning.plan"]

    @wraps(module.plan)  # the options of the command follow from the signature
    def recorded(model, hardware, **fields):
        seen.update(model=model, hardware=hardware, **fields)
        return made(TINY, H100, batch=2, prompt=64, output=4)

    monkeypatch.setattr(module, "plan", recorded)
    typed = (
        f"plan {TINY} --hardware h100-sxm5 --prompt 64 --output 4 --batch 2 --count 4 --tensor-parallel 2 --price 2 "
        "--pipeline-parallel 2 --kv-dtype fp8 --weight-dtype int8 --dtype fp16 --page-size 16 --sensitivity "
        "--memory-utilization 0.8 --overhead-bytes '1 GiB' --json"
    )
    assert main(shlex.split(typed)) == 0
    assert json.loads(capsys.readouterr().out) == made(TINY, H100, batch=2, prompt=64, output=4).to_dict()
    assert seen == {
        "model": TINY,
        "hardware": H100,
        "prompt": 64,
        "output": 4,
        "batch": 2,
        "count": 4,
        "tensor_parallel": 2,
        "pipeline_parallel": 2,
        "price": 2.0,
        "dtype": "fp16",
        "kv_dtype": "fp8",
        "weight_dtype": "int8",
        "page_size": 16,
        "sensitivity": True,
        "memory_utilization": 0.8,
        "overhead_bytes": 2**30,
    }


@pytest.mark.parametrize("command", ["plan", "fleet"])
def test_the_example_in_the_help_runs(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "160")  # a narrower terminal wraps a long line
    assert main([command, "--help"]) == 0
    (example,) = re.findall(rf"^ *iomodel ({command}\b.*)", capsys.readouterr().out, re.MULTILINE)
    assert main(shlex.split(example)) == 0


def test_the_mean_step_is_cut_where_a_window_is_full_or_a_chunk_begins():
    for name, prompt, output, device, layout in (
        ("mistral-7b-v0.1", 1, 16384, H100, Layout()),
        ("llama-4-scout", 8000, 400, "h200-sxm", Layout(tensor_parallel=8)),
    ):
        steps = ReplicaSteps(service(name, prompt, output, layout), hardware(device))
        first, last = steps.service.contexts
        spread = [first + (last - first) * i // 64 for i in range(65)]
        exact = sum(steps.decode(8, context).seconds for context in spread) / 65
        assert steps.decode_seconds(8) - STEP_HOST == pytest.approx(exact, rel=0.03), name


def test_what_was_noted_of_a_model_is_said_of_its_plan():
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "head_dim": 16,
    }
    config |= {"intermediate_size": 128, "vocab_size": 100, "torch_dtype": "bfloat16"}
    config["quantization_config"] = {"quant_method": "hqq"}
    found = plan(model(config), H100, prompt=16, output=4)
    assert "hqq" in str(found)
    assert any("hqq" in note for note in found.to_dict()["notes"])


@pytest.mark.parametrize("engine", [None, "vllm"])
def test_one_output_token_has_no_time_per_token(engine):
    found = plan("llama-3.2-1b", "h100-sxm5", prompt=64, output=1, batch=4, engine=engine)
    assert found.tpot is None
    assert found.to_dict()["tpot"] is None
    assert all(row.tpot is None for row in found.batches)
    rows = dict(found.tables()[0].rows)
    assert rows["TPOT with 4 clients in a closed loop"] == "-"
    assert "attention overtakes the products in time, decode step at batch 4" in rows
    assert rows["tokens of cache that fit"] == f"{found.memory.tokens:,}"
    assert np.isnan(plan_array("llama-3.2-1b", "h100-sxm5", prompt=64, output=1, batch=4, engine=engine).tpot).all()
    assert type(found).from_dict(found.to_dict()) == found


def test_a_plan_states_the_share_of_communication_in_a_step():
    asked = {"prompt": 2048, "output": 256, "batch": 8}
    shared = plan("llama-3.3-70b", "l40s", tp=4, **asked)
    share = shared.decode.communication_seconds / shared.decode.seconds
    (row,) = (line for line in str(shared).splitlines() if "of it communication" in line)
    assert row.split()[-2:] == [f"{100 * share:.1f}", "%"]
    assert 0.03 < share < 0.3
    assert "of it communication" not in str(plan("llama-3.1-8b", "l40s", **asked))


def test_the_energy_of_a_token_is_printed():
    found = plan("llama-3.1-8b", "l4", prompt=512, output=512)
    assert found.joules_per_token == pytest.approx(72 / found.tokens_per_second)
    assert "energy per output token, at the TDP" in str(found)
    assert f"{found.joules_per_token:.3g} J" in str(found)


def test_requests_that_fit_in_all_and_the_layout_that_holds_most():
    """Eight devices as four replicas, or as one that holds more; a given layout has no other."""
    asked = {"count": 8, "weight_dtype": "fp8", "prompt": 32000, "output": 768}
    text = str(plan("llama-3.3-70b", "h100-sxm5", **asked))
    answer = plan("llama-3.3-70b", "h100-sxm5", **asked)
    most = max(each.replicas * each.batch for each in answer.layouts if each.devices == 8)
    assert most > answer.replicas * answer.memory.fits
    assert re.search(rf"requests that fit in all +{answer.replicas * answer.memory.fits:,}\n", text)
    assert re.search(rf"the most on these devices, in [^\n]* {most:,}\n", text)
    assert "the most on" not in str(plan("llama-3.3-70b", "h100-sxm5", layout=Layout(tensor_parallel=8), **asked))


def test_a_token_of_a_divided_cache_takes_its_share_of_a_device():
    layout = Layout(tensor_parallel=8, decode_context_parallel=8)
    answer = plan("deepseek-v3", "h200-sxm", layout=layout, prompt=4096, output=512)
    assert answer.memory.request_bytes == pytest.approx(4608 * answer.memory.token_bytes / 8, rel=1e-3)
    assert re.search(r"KV cache per token, on one device, as 8 divide the tokens +8,784 B", str(answer))


def test_types_of_other_libraries_are_those_of_this_one():
    for name, theirs, own in (
        ("weight_dtype", "float8", "fp8"),
        ("kv_dtype", "float16", "fp16"),
        ("dtype", "half", "fp16"),
    ):
        asked = {name: theirs}, {name: own}
        assert len({plan("llama-3-8b", "h100-sxm5", **CHAT, **each).ttft for each in asked}) == 1
        assert len({step("llama-3-8b", "h100-sxm5", batch=1, q_len=1, kv_len=9, **each).seconds for each in asked}) == 1


@pytest.mark.parametrize("tpot", [0.0085, 0.01, 0.02])
def test_the_batch_whose_steps_alone_keep_a_target(tpot):
    """At least that whose tokens keep it among the prefills of others, and one more keeps it not."""
    asked = {"prompt": 2000, "output": 96}
    answer = plan("llama-3.1-8b", "h100-sxm5", tpot=tpot, **asked)
    most = answer.step_batch
    assert most is not None
    assert most >= answer.batch
    steps = [plan("llama-3.1-8b", "h100-sxm5", batch=batch, **asked).figures.step for batch in (most, most + 1)]
    assert steps[0] <= tpot < steps[1]
    assert plan("llama-3.1-8b", "h100-sxm5", **asked).step_batch is None
