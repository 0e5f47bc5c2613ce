"""Prefix caches: plans without hits are plans without a cache; memory by hand; cascade reads the prefix once."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, hardware
from iomodel.planning.engines import STEP_HOST
from iomodel.planning.fleet import fleet
from iomodel.planning.plan import plan
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step
from tests.support.inside import main

TINY, H100 = "llama-3.2-1b", "h100-sxm5"
CHAT = {"prompt": 1024, "output": 64, "engine": None}
TARGETS = {"load": 20, "ttft": 0.5, "tpot": 0.05, "layouts": [Layout()]}


def service(name, prompt, output, cache=None, page=None, layout=Layout()):  # noqa: B008 - frozen
    return as_service(
        name,
        prompt,
        output,
        layout,
        page_size=page,
        memory_utilization=0.9,
        overhead_bytes=OVERHEAD,
        prefix_cache=cache,
        engine=None,
    )


# No hits


def test_a_plan_with_hits_states_the_first_token_without_any():
    """In the layout of the plan, so that both times are of the same ranks; one request alone in both."""
    bare, cached = (plan(TINY, H100, prefix_cache=cache, **CHAT) for cache in (None, PrefixCache(hit_rate=0.9)))
    assert bare.ttft_uncached is None
    assert cached.ttft_uncached == bare.ttft_alone > cached.ttft_alone
    assert "of one without cached tokens" in str(cached)
    assert "without cached tokens" not in str(bare)


def test_without_hits_a_plan_is_that_without_a_cache():
    bare, cached = (plan(TINY, H100, prefix_cache=cache, **CHAT) for cache in (None, PrefixCache(cascade=True)))
    assert cached.ttft_uncached == cached.ttft_alone
    assert replace(cached, prefix_cache=None, ttft_uncached=None) == bare
    fleets = [fleet(TINY, H100, prefix_cache=cache, **TARGETS, **CHAT) for cache in (None, PrefixCache())]
    assert fleets[0] == fleets[1]
    runs = [simulate(TINY, H100, prefix_cache=c, load=9.0, requests=50, **CHAT) for c in (None, PrefixCache())]
    assert replace(runs[1], prefix_cache=None) == runs[0]


# Tokens and memory


@given(st.integers(1, 300), st.integers(0, 299), st.integers(0, 100), st.none() | st.integers(1, 40))
def test_cached_tokens_are_whole_pages_and_leave_one(prompt, shared, percent, page):
    cache = PrefixCache(shared_tokens=shared, hit_rate=percent / 100)
    cached = cache.cached(prompt, page)
    assert 0 <= cached < prompt
    assert cached % (page or 1) == 0
    if shared < prompt:
        hit = min(shared + (percent * (prompt - shared)) // 100, prompt - 1)
        assert hit - cached in range(page or 1)
        assert cache.shared(page) <= cached


@given(
    st.sampled_from([TINY, "gemma-3-27b", "gpt-oss-20b", "deepseek-v2-lite"]),
    st.integers(2, 3000),
    st.integers(1, 500),
    st.data(),
)
def test_the_shared_prefix_is_stored_once(name, prompt, output, data):
    page = data.draw(st.sampled_from([None, 16]))
    cache = PrefixCache(shared_tokens=data.draw(st.integers(0, prompt - 1)))
    device = hardware("h200-sxm")
    bare, cached = (
        service(name, prompt, output, page=page).memory(device),
        service(name, prompt, output, cache, page).memory(device),
    )
    assert cached.left == bare.left - cached.shared_bytes
    assert bare.request_bytes - cached.shared_bytes <= cached.request_bytes <= bare.request_bytes
    spec = service(name, prompt, output, page=page).model
    assert cached.shared_bytes == spec.kv_bytes(cache.shared(page), None, page) * bool(cache.shared(page))
    windows = any(layer.attention.window for layer in spec.counted)
    if not windows:
        assert cached.request_bytes == bare.request_bytes - cached.shared_bytes
        assert cached.fits >= bare.fits


def test_by_hand():
    found = service("llama-3-8b", 2048, 256, PrefixCache(shared_tokens=1000), 16).memory(hardware(H100))
    assert found.shared_bytes == 131_072 * 992  # 62 whole pages
    assert found.request_bytes == 131_072 * (2304 - 992)
    assert found.needed(found.fits) <= found.capacity < found.needed(found.fits + 1)


# Times


@given(st.integers(0, 100), st.integers(0, 100))
def test_more_hits_are_never_slower(one, other):
    low, high = (PrefixCache(hit_rate=percent / 100) for percent in sorted((one, other)))
    at = {"batch": 8, **CHAT}
    slow, fast = (plan(TINY, H100, prefix_cache=cache, **at) for cache in (low, high))
    assert fast.ttft <= slow.ttft * 1.02  # a ragged tile may take as long as a whole one
    assert fast.figures.step == slow.figures.step
    assert fast.memory == slow.memory


def test_a_prefill_computes_the_rest_alone():
    found = plan(TINY, H100, batch=4, prefix_cache=PrefixCache(shared_tokens=256, hit_rate=0.3334), **CHAT)
    queries = 1024 - 256 - 256
    assert found.ttft_alone == step(TINY, H100, batch=1, q_len=queries, kv_len=1024).seconds + STEP_HOST
    assert found.ttft < plan(TINY, H100, batch=4, **CHAT).ttft


@pytest.mark.parametrize("policy", ["prefill-first", "chunked"])
def test_one_request_of_a_simulation_has_the_times_of_a_plan(policy):
    cache = PrefixCache(shared_tokens=512, hit_rate=0.25)
    one = simulate(TINY, H100, prefix_cache=cache, load=1.0, requests=1, policy=policy, **CHAT)
    alone = plan(TINY, H100, batch=1, prefix_cache=cache, **CHAT)
    assert one.ttft.mean == pytest.approx(alone.ttft, rel=1e-9)
    assert one.tpot.mean == pytest.approx(alone.figures.step, rel=1e-3)
    assert one.largest_bytes == alone.memory.request_bytes


def test_each_prompt_of_a_trace_has_its_own_hits():
    trace = {"arrival": [0.0, 10.0, 20.0], "prompt": [228, 1124, 612], "output": [4, 4, 4]}
    cache = PrefixCache(shared_tokens=100, hit_rate=0.5)
    found = simulate(TINY, H100, arrivals=trace, prefix_cache=cache, engine=None)
    times = [step(TINY, H100, batch=1, q_len=prompt - cache.cached(prompt), kv_len=prompt).seconds for prompt in
             trace["prompt"]]  # fmt: skip
    assert found.ttft.mean == pytest.approx(np.mean(times) + STEP_HOST, rel=1e-9)


# Cascade


@given(st.integers(1, 64), st.integers(0, 2000), st.integers(1, 500))
def test_cascade_is_never_slower(batch, shared, own):
    at = {"batch": batch, "q_len": 1, "kv_len": shared + own}
    assert step(TINY, H100, shared_keys=shared, **at).seconds <= step(TINY, H100, **at).seconds


def test_cascade_reads_the_prefix_once():
    at = {"batch": 64, "q_len": 1, "kv_len": 8192 + 512}
    once, each = (step("llama-3-8b", H100, shared_keys=shared, **at) for shared in (8192, 0))
    parts = {part.name.split(", ")[-1].rstrip(")"): part for part in once.parts if part.kind == "attention"}
    per_token = 131_072
    assert parts["shared keys"].hbm_bytes == pytest.approx(8192 * per_token, rel=0.05)
    assert parts["own keys"].hbm_bytes == pytest.approx(64 * 512 * per_token, rel=0.05)
    assert once.seconds < each.seconds / 2


def test_layers_with_windows_or_latents_read_the_prefix_for_each():
    at = {"batch": 8, "q_len": 1, "kv_len": 3000}
    latent = [step("deepseek-v2-lite", H100, shared_keys=shared, **at) for shared in (0, 2000)]
    assert latent[0] == latent[1]
    names = [part.name for part in step("gemma-3-27b", H100, shared_keys=2000, **at).parts if part.kind == "attention"]
    assert sum("shared keys" in name for name in names) == 1  # the global layers
    assert len(names) == 3


# What is refused, and the commands

FAULTS = [
    (lambda: PrefixCache(hit_rate=1.5), "hit_rate: 1.5 given; allowed: at most 1"),
    (lambda: plan(TINY, H100, prefix_cache=0.5, **CHAT), r"prefix_cache: 0.5 given; allowed: an iomodel.PrefixCache"),
    (
        lambda: plan(TINY, H100, prefix_cache=PrefixCache(shared_tokens=1024), **CHAT),
        "prefix_cache.shared_tokens: 1,024 given; allowed: less than prompt = 1,024",
    ),
    (
        lambda: simulate(
            TINY, H100, arrivals={"arrival": [0, 1], "prompt": [900, 9], "output": [1, 1]},
            prefix_cache=PrefixCache(shared_tokens=10),
        ),
        r"trace, row 2: prefix_cache.shared_tokens: 10 given; allowed: less than prompt = 9",
    ),
    (
        lambda: step(TINY, H100, batch=1, q_len=4, kv_len=8, shared_keys=5),
        "shared_keys: 5 given; allowed: up to kv_len - q_len = 4",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), FAULTS, ids=[says[:30] for _, says in FAULTS])
def test_faults_are_told_in_one_line(call, says):
    with pytest.raises(InputError, match=f"^{says}") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_options_of_the_commands(capsys):
    typed = "--prompt 64 --output 4 --hardware h100-sxm5 --shared-tokens 16 --hit-rate 0.5 --cascade --json"
    cache = PrefixCache(shared_tokens=16, hit_rate=0.5, cascade=True)
    assert main(["plan", TINY, *shlex.split(typed)]) == 0
    assert json.loads(capsys.readouterr().out) == plan(TINY, H100, prompt=64, output=4, prefix_cache=cache).to_dict()
    assert main(["simulate", TINY, *shlex.split(typed), "--load", "5", "--requests", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["prefix_cache"] == cache.to_dict()
    assert main(["plan", TINY, *shlex.split(typed), "--hit-rate", "2"]) == 2
    assert capsys.readouterr().err.startswith("iomodel: hit_rate: ")


def test_the_command_takes_nodes_and_tiers(capsys):
    typed = f"plan {TINY} --hardware {H100} --prompt 512 --output 8 --json"
    nodes = "--tensor-parallel 2 --count 2 --devices-per-node 1 --network-bandwidth 25e9"
    assert main(shlex.split(f"{typed} {nodes} --host-rate 0.5 --disk-rate 0.25")) == 0
    found = json.loads(capsys.readouterr().out)
    layout = Layout(tensor_parallel=2, devices_per_node=1, network_bandwidth=25e9)
    cache = PrefixCache(host_rate=0.5, disk_rate=0.25)
    asked = plan(TINY, H100, prompt=512, output=8, count=2, layout=layout, prefix_cache=cache)
    assert found == json.loads(json.dumps(asked.to_dict()))


# Caches on the host and on disk

TIERED = [PrefixCache(hit_rate=0.25, host_rate=0.5), PrefixCache(shared_tokens=128, host_rate=0.25, disk_rate=0.5)]


@given(
    st.integers(1, 300), st.integers(0, 99), st.lists(st.integers(0, 40), min_size=2, max_size=2), st.integers(1, 40)
)
def test_tiers_follow_each_other_in_whole_pages(prompt, percent, below, page):
    rates = [percent / 100, *(min(each, (100 - percent) // 2) / 100 for each in below)]
    cache = PrefixCache(hit_rate=rates[0], host_rate=rates[1], disk_rate=rates[2])
    tiers = cache.tiers(prompt, page)
    assert tiers[0] == PrefixCache(hit_rate=rates[0]).cached(prompt, page)
    assert sum(tiers) == cache.cached(prompt, page)
    assert all(tokens >= 0 and tokens % page == 0 for tokens in tiers)
    assert cache.tiers(prompt)[1] <= rates[1] * prompt + 1


@pytest.mark.parametrize("name", [TINY, "gemma-2-2b"])
def test_an_offload_without_hits_is_none_and_one_without_loads_is_a_hit(name):
    """A rate of 0 changes nothing; at an endless bandwidth the memory of the host is as good as the device's."""
    asked = {**CHAT, "count": 4, "batch": 8}

    def figured(**rates):
        return plan(name, H100, prefix_cache=PrefixCache(**rates), **asked).figures

    assert figured(host_rate=0.0, host_bandwidth=1.0, disk_bandwidth=1.0) == plan(name, H100, **asked).figures
    near = figured(hit_rate=0.5)
    for tier in ("host", "disk"):
        far = figured(**{f"{tier}_rate": 0.5, f"{tier}_bandwidth": 1e30})
        assert far.ttft == pytest.approx(near.ttft, rel=1e-12)
        assert replace(far, ttft=near.ttft) == near


@pytest.mark.parametrize("engine", [None, "vllm", "sglang"])
@pytest.mark.parametrize("cache", TIERED)
def test_a_slower_load_never_makes_a_plan_better(cache, engine):
    asked = {**CHAT, "engine": engine, "batch": 8}
    slower = [cache.model_copy(update={"host_bandwidth": 50e9 / by, "disk_bandwidth": 7e9 / by}) for by in (1, 4, 1e4)]
    found = [plan(TINY, H100, prefix_cache=each, **asked).figures for each in slower]
    assert found[0].ttft < found[1].ttft < found[2].ttft
    assert found[0].tokens_per_second >= found[1].tokens_per_second > found[2].tokens_per_second
    _, host, disk = cache.tiers(CHAT["prompt"], None if engine is None else 16 if engine == "vllm" else 1)
    token = 2 * 16 * 8 * 64 * 2  # K and V of 16 layers with 8 heads of 64 channels, two bytes each
    loads = token * (host / 50e9 + disk / 7e9)
    assert found[1].ttft - found[0].ttft == pytest.approx(3 * loads, rel=1e-2 if engine else 1e-9)
    # The load of one request after the other bounds the rate.
    assert found[2].requests_per_second == pytest.approx(1 / (1e4 * loads), rel=1e-2 if engine else 1e-9)


def test_a_fleet_waits_for_loads():
    fast, slow = (PrefixCache(host_rate=0.5, host_bandwidth=rate) for rate in (50e9, 1e8))
    asked = {**TARGETS, **CHAT}
    best = [fleet(TINY, H100, prefix_cache=cache, **asked).best for cache in (fast, slow)]
    assert best[0].most > best[1].most


@pytest.mark.parametrize("layout", [Layout(tensor_parallel=2), Layout(pipeline_parallel=2)])
def test_devices_load_their_own_shards(layout):
    cache = PrefixCache(host_rate=0.5)
    asked = {**CHAT, "batch": 8, "count": 2}
    whole = plan(TINY, H100, prefix_cache=cache, layout=Layout(), **asked)
    halves = [
        plan(TINY, H100, prefix_cache=each, layout=layout, **asked) for each in (cache, PrefixCache(hit_rate=0.5))
    ]
    near = plan(TINY, H100, prefix_cache=PrefixCache(hit_rate=0.5), layout=Layout(), **asked)
    loads = whole.figures.ttft - near.figures.ttft
    assert halves[0].figures.ttft - halves[1].figures.ttft == pytest.approx(loads / 2, rel=1e-6)


def test_rates_and_simulations_are_checked():
    with pytest.raises(InputError, match=r"^hit_rate \+ host_rate \+ disk_rate: 1.1 given; allowed: at most 1[^\n]*$"):
        PrefixCache(hit_rate=0.5, host_rate=0.5, disk_rate=0.1)
    with pytest.raises(InputError, match=r"^prefix_cache.host_rate: 0.5 given; allowed: 0, because [^\n]*$"):
        simulate(TINY, H100, prefix_cache=TIERED[0], load=9.0, requests=50, **CHAT)
