"""One search of layouts and batches in all planning verbs: its order, its laws, and one number of devices."""

import warnings
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iomodel import InfeasibleError, InputError, hardware
from iomodel.planning.disaggregated import disaggregate
from iomodel.planning.fleet import fleet
from iomodel.planning.layout_search import largest
from iomodel.planning.layouts import default_layouts
from iomodel.planning.pareto import pareto
from iomodel.planning.plan import plan
from iomodel.planning.service import as_service
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from iomodel.planning.steps import around
from tests.support.strategies import at_most

TINY, H100 = "llama-3.2-1b", "h100-sxm5"
LARGE = {"model": "llama-3.1-70b", "hardware": H100, "prompt": 2048, "output": 512}
MODELS = st.sampled_from([TINY, "llama-3-8b", "qwen3-30b-a3b"])


def test_the_published_example():
    found = plan(count=8, engine=None, **LARGE)
    assert (found.layout, found.replicas) == (Layout(tensor_parallel=4), 2)
    narrow = plan(count=8, layout=Layout(tensor_parallel=2), engine=None, **LARGE)  # little memory is left for caches
    assert found.tokens_per_second > 3 * narrow.tokens_per_second


@at_most(8)
@given(MODELS, st.sampled_from([H100, "l40s", "mi300x"]), st.sampled_from([1, 2, 4, 8]))
def test_no_layout_of_the_search_has_more_tokens_per_second(name, device, count):
    asked = {"count": count, "prompt": 600, "output": 40}
    found = plan(name, device, **asked)
    for option in found.layouts:
        alone = plan(name, device, layout=option.layout, **asked)
        assert alone.tokens_per_second == option.tokens_per_second <= 1.005 * found.tokens_per_second
        assert alone.batch == option.batch
    tried = default_layouts(as_service(name, 600, 40), hardware(device), count, count)
    assert {option.layout for option in found.layouts} <= set(tried)


@at_most(6)
@given(
    MODELS,
    st.sampled_from([H100, "a100-sxm4-80gb"]),
    st.integers(64, 4000),
    st.integers(2, 400),
    st.floats(0.1, 500),
    st.floats(0.02, 1),
)
def test_one_question_has_one_number_of_devices(name, device, prompt, output, load, tpot):
    """Or the answer says which other number the others have."""
    asked = {"prompt": prompt, "output": output, "load": load, "tpot": tpot}
    try:
        found = plan(name, device, ttft=60, **asked)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            pareto(name, device, ttft=60, **asked)
        return
    front = pareto(name, device, ttft=60, **asked)
    assert front.devices == found.count
    queued = fleet(name, device, ttft=60, max_devices=10**9, **asked)
    assert queued.steady.devices == found.count
    assert (queued.best.devices == found.count) or "if requests arrive evenly" in str(queued).replace("\n", " ")
    pools = disaggregate(name, device, device, link=1e12, **asked)
    assert pools.devices == pools.steady.devices or "if one pool prefills and decodes" in str(pools).replace("\n", " ")


@pytest.mark.parametrize(("name", "device"), [("llama-3.1-8b", "rtx4090"), ("qwen2.5-7b", "a10g"), (TINY, H100)])
def test_a_device_is_one_device_where_it_holds_the_model(name, device):
    asked = {"prompt": 1024, "output": 256}
    found = plan(name, device, **asked)
    assert (found.count, found.layout) == (1, Layout())
    assert found.layouts[0].devices == 1 < max(other.devices for other in found.layouts)
    assert simulate(name, device, load=1, requests=20, **asked).layout == found.layout


def test_a_device_that_is_too_small_is_the_best_replica():
    found = plan("llama-3.1-70b", H100, prompt=2048, output=512)
    rates = [each.tokens_per_second_per_device for each in found.layouts]
    assert found.count > 1
    said = f"{found.count} devices, for one does not hold the model: "
    assert any(text.startswith(said) for text in found.assumed)
    assert not any("one does not hold" in text for text in plan("llama-3-8b", H100, prompt=64, output=8).assumed)
    assert rates[0] * 1.005 >= max(rates)


def test_pools_and_plan_agree_without_a_target_of_the_first_token():
    asked = {"prompt": 8192, "output": 512, "load": 20.0}
    pools = disaggregate("llama-3.1-70b", H100, H100, link=50e9, **asked)
    assert pools.steady.devices == plan("llama-3.1-70b", H100, **asked).count
    assert pools.devices <= 75  # not 232


@at_most(6)
@given(MODELS, st.integers(1, 3000), st.integers(2, 100), st.integers(1, 200))
def test_one_token_more_is_never_cheaper_nor_a_step(name, prompt, output, batch):
    asked = {"layout": Layout(), "output": output, "batch": batch, "memory_utilization": 1.0, "overhead_bytes": 0}
    one, more = (plan(name, "b200", prompt=size, **asked) for size in (prompt, prompt + 1))
    shorter, longer = (found.figures for found in (one, more))
    for figure in ("ttft", "ttft_alone", "cycle_per_token"):
        before, after = (getattr(each, figure) for each in (shorter, longer))
        assert before * (1 - 1e-9) <= after <= 1.05 * before


@at_most(6)
@given(MODELS, st.sampled_from(["auto", "sglang", "tensorrt-llm", None]), st.integers(1, 400))
@example(TINY, "auto", 29)  # one request ends with each step
@example(TINY, "sglang", 57)  # a second one does
def test_a_larger_batch_is_never_faster_for_a_user_nor_a_step(name, engine, batch):
    asked = {"layout": Layout(), "prompt": 300, "output": 30, "engine": engine}
    one, more = (plan(name, "b200", batch=size, **asked) for size in (batch, batch + 1))
    assert one.figures.step <= more.figures.step * (1 + 1e-9)
    assert one.ttft <= more.ttft
    least = 0.999 if engine is None else 0.995  # steps with prompts fill the tiles of experts a row at a time
    assert more.tokens_per_second >= least * one.tokens_per_second
    assert more.figures.step <= max(1.05, (batch + 1) / batch) * one.figures.step


def test_targets_are_kept_by_the_largest_batch():
    found = plan(TINY, H100, layout=Layout(), prompt=2000, output=100, tpot=0.004)
    asked = {"layout": Layout(), "prompt": 2000, "output": 100}
    assert found.tpot <= 0.004 < plan(TINY, H100, batch=found.batch + 1, **asked).tpot
    best = pareto(TINY, H100, tpot=0.004, **asked).cheapest
    assert best.batch == found.batch
    with pytest.raises(InfeasibleError, match=r"tpot: 100 us given; .* nearest layout has TPOT .* with one request"):
        plan(TINY, H100, prompt=2000, output=100, tpot=1e-4)


@given(st.integers(0, 60), st.integers(1, 50))
def test_the_largest_of_a_monotone_condition(limit, most):
    assert largest(1, most, lambda size: size <= limit) == min(limit, most)


@given(st.integers(1, 10**6))
def test_lengths_are_between_computed_ones(tokens):
    low, high = around(tokens)
    assert low <= tokens <= high <= max(low + 1, 1.26 * low)


def test_clients_of_a_closed_loop():
    """Latency times rate is the number of clients (Little's law); more clients than places wait for whole cycles."""
    asked = {"layout": Layout(), "prompt": 512, "output": 64, "step_requests": 16}
    few, many = (plan(TINY, H100, clients=clients, **asked) for clients in (8, 64))
    assert (few.batch, many.batch) == (8, 16)
    for found, clients in ((few, 8), (many, 64)):
        latency = found.ttft + 63 * found.tpot
        host = few.ttft_alone - plan(TINY, H100, batch=8, **asked).ttft_alone
        assert found.requests_per_second * (latency - host) == pytest.approx(clients, rel=0.02)


def test_a_plan_prints_what_a_benchmark_prints():
    """TPOT is the mean time between tokens of a simulation of the same clients with spread lengths."""
    planned = plan("llama-3-8b", H100, batch=32, prompt=922, output=230, layout=Layout())
    run = simulate("llama-3-8b", H100, concurrency=32, requests=640, prompt=1024, output=256, lengths=(0.8, 1.0))
    assert run.tpot.mean == pytest.approx(planned.tpot, rel=0.1)
    assert run.prompt_tokens < 0.92 * 640 * 1024
    one = plan("llama-3.1-8b", H100, batch=1, prompt=32768, output=2)
    assert one.tpot == pytest.approx(one.figures.step)
    assert one.tpot < 0.01 < one.cycle_per_token


def test_a_simulation_has_the_layout_of_the_plan():
    found = simulate("llama-3.1-70b", H100, prompt=2048, output=64, concurrency=1, requests=2)
    assert found.layout == Layout(tensor_parallel=4)


# Arguments


@pytest.mark.parametrize("degrees", [{"tp": 4}, {"tensor_parallel": 4}, {"layout": Layout(tensor_parallel=4)}])
def test_a_layout_is_flat_or_whole(degrees):
    found = plan(**LARGE, **degrees)
    assert (found.layout.tensor_parallel, found.better) == (4, None)
    timed = step(TINY, H100, batch=1, q_len=1, kv_len=64, **degrees)
    assert timed.layout.tensor_parallel == 4


def test_a_layout_is_given_once():
    with pytest.raises(InputError, match="tensor_parallel: given with layout; allowed: one of both"):
        plan(**LARGE, tp=2, layout=Layout())
    with pytest.raises(InputError, match="tp: 2 given beside tensor_parallel; allowed: one of the two"):
        plan(**LARGE, tp=2, tensor_parallel=2)


def test_old_names_warn_at_the_line_of_the_caller():
    asked = {"layout": Layout(), "prompt": 64, "output": 4, "batch": 1}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = plan(TINY, H100, price_per_hour=2.0, **asked)
    assert [one.filename for one in caught] == [__file__]
    assert old == plan(TINY, H100, price=2.0, **asked) == plan(TINY, H100, price={H100: 2.0}, **asked)
    with pytest.warns(
        DeprecationWarning, match=r"fleet\(max_count=\): deprecated since 0.1, removed in 0.3; use max_devices="
    ):
        fleet(TINY, H100, load=1, ttft=1, tpot=1, prompt=64, output=4, max_count=8, layout=Layout())


def test_a_command_line_is_planned_as_its_engine():
    line = "vllm serve meta-llama/Llama-3.2-1B --max-num-batched-tokens 1024 --port 80 --max-num-seqs 4"
    lengths = {"prompt": 512, "output": 16}
    found = plan(line, H100, **lengths)
    limits = {"step_tokens": 1024, "step_requests": 4, "layout": Layout(), "count": 1}
    named = plan(TINY, H100, engine="vllm", **limits, **lengths)
    assert (found.figures, found.memory, found.engine) == (named.figures, named.memory, "vllm")
    assert found.assumed[0] == "without an effect on a plan: --port"
    wider = plan(line.replace("1024", "16384"), H100, **lengths)
    assert wider.memory.overhead > found.memory.overhead
    other = plan("trtllm-serve llama-3.2-1b --tp_size 2 --max_num_tokens 2048", H100, **lengths)
    assert (other.engine, other.layout) == ("tensorrt-llm", Layout(tensor_parallel=2))
    assert plan("python -m sglang.launch_server --model llama-3.2-1b --tp 2", H100, tp=1, **lengths).count == 1


def test_a_load_sets_the_count():
    found = plan(TINY, H100, load=100.0, prompt=512, output=64, layout=Layout())
    assert found.count == ceil(100 / found.figures.requests_per_second)
