"""Engines: memory by their rules, blocks, prompts that share steps, host time; what logs and pages of them show."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import UnknownNameError, hardware, model
from iomodel.errors import InputError, SpecError
from iomodel.planning.disaggregated import disaggregate
from iomodel.planning.engines import (
    CONTEXT,
    ENGINES,
    FUSED,
    GRAPH_POOL,
    NON_TORCH,
    PER_PEER,
    PER_PLAIN_PEER,
    SCANNED,
    SEEN,
    SORTED,
    STEP_HOST,
    activation_bytes,
    as_engine,
    assumed_on,
    free_memory,
    peer_bytes,
    reserve,
    seen_capacity,
    static_share,
    step_limits,
)
from iomodel.planning.fleet import fleet
from iomodel.planning.memory_plan import memory_plan
from iomodel.planning.pareto import pareto
from iomodel.planning.plan import plan
from iomodel.planning.plan_array import plan_array
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.replica_figures import (
    EAGER,
    LAUNCH,
    REQUEST,
    cycle_with_engine,
    figures,
    mixed_seconds,
    prefills_seconds,
)
from iomodel.planning.service import as_service
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.steps import ReplicaSteps
from tests.support.strategies import at_most

H100, TINY, LLAMA = "h100-sxm5", "llama-3.2-1b", "llama-3.1-8b"
SEEN_H100 = int(SEEN * 80 * 2**30)


def service(engine, name=LLAMA, prompt=1024, output=128, layout=Layout(), share=None, tokens=None, **types):  # noqa: B008 - frozen
    return as_service(
        name, prompt, output, layout, **types, memory_utilization=share, engine=engine, step_tokens=tokens
    )


def test_vllm_by_hand():
    """The share is of the whole memory; the sampler of 1,024 requests needs more than the layers of 8,192 tokens."""
    found = service("vllm").memory(hardware(H100))
    sampler = int(SORTED * 1024 * 128256) + 2 * 8192 * 4096
    assert sampler > 2 * 8192 * (3 * 14336 + 3 * 4096)
    assert found.overhead == NON_TORCH + sampler
    assert found.usable == int(Fraction("0.9") * SEEN_H100)
    assert found.left == found.usable - found.weights - found.overhead
    assert found.blocks == found.left // (16 * 131_072)
    assert found.tokens == 16 * found.blocks
    assert found.overhead_low < found.overhead < found.overhead_high


def test_sglang_by_hand():
    """The share is of what is free before the weights, and has no part in activations."""
    pair = service("sglang", layout=Layout(tensor_parallel=2), share=0.8)
    found = pair.memory(hardware(H100))
    assert found.overhead == 0
    assert found.usable == int(Fraction("0.8") * (SEEN_H100 - CONTEXT - PER_PEER))
    kept = (512 + 1.5 * 8192 + 2 * 256 + 2 * 128) * 2**20
    assert float(static_share(SEEN_H100, pair.layout, 8192, 256)) == pytest.approx(1 - kept / SEEN_H100)


def test_an_engine_is_refused_on_a_device_that_others_run_on():
    asked = {"prompt": 512, "output": 8}
    line = r"^engine: tensorrt-llm given for mi300x; allowed: vllm, sglang$"
    with pytest.raises(SpecError, match=line):
        plan("llama-3-8b", "mi300x", engine="tensorrt-llm", **asked)
    with pytest.raises(SpecError, match=line):
        simulate("llama-3-8b", "mi300x", engine="trtllm", concurrency=2, requests=4, **asked)
    plans = [plan("llama-3-8b", "mi300x", engine=name, **asked) for name in ("vllm", "sglang")]
    assert all(found.memory.fits for found in plans)
    targets = {"load": 1, "ttft": 1, "tpot": 0.1, "engine": "trtllm"}
    several = fleet("llama-3-8b", ["mi300x", "h100-sxm5"], **targets, **asked)
    assert {option.device for option in (several.best, *several.runners_up)} == {"h100-sxm5"}
    assert {refusal.reason for refusal in several.refused if refusal.device == "mi300x"} == {line.strip("^$")}


@pytest.mark.parametrize("name", ["gpt-oss-120b", "llama-4-scout"])
def test_tensorrt_llm_keeps_what_no_later_token_sees(name):
    """Without `max_attention_window` every layer keeps a sequence to its end; vLLM drops keys before a window."""
    layers = {
        engine: plan(name, "b200", prompt=30_000, output=2000, batch=1, engine=engine, kv_dtype="bf16").memory
        for engine in ("tensorrt-llm", "vllm")
    }
    whole = layers["tensorrt-llm"]
    assert whole.request_bytes == 32_000 * whole.token_bytes
    assert layers["vllm"].request_bytes < 0.6 * whole.request_bytes


def test_tensorrt_llm_by_hand():
    """The share is of what is free once the model has run."""
    found = service("tensorrt-llm", share=0.95).memory(hardware(H100))
    activations = activation_bytes(model(LLAMA).layers, 4096, Layout(), 8192)
    assert activations == 2 * 8192 * (3 * 14336 + 3 * 4096)
    free = SEEN_H100 - CONTEXT - activations - found.weights
    assert found.left == pytest.approx(0.95 * free, abs=2)


@given(
    st.sampled_from(sorted(ENGINES)),
    st.sampled_from([TINY, LLAMA, "gpt-oss-20b", "deepseek-v2-lite"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([H100, "h200-sxm", "b200"]),
    st.integers(1024, 16384),
)
def test_laws_of_engine_memory(engine, name, ranks, device, tokens):
    """Memory is whole blocks; more tokens in flight, a smaller share and more ranks of one kind leave no more room."""
    base = service(engine, name, layout=Layout(tensor_parallel=ranks), tokens=tokens)
    found = base.memory(hardware(device))
    assert found.overhead_low <= found.overhead <= found.overhead_high
    size, room = (
        found.block_bytes or found.block * found.token_bytes,
        (found.pools[0].bytes if found.pools else found.left),
    )
    assert 0 <= room - found.blocks * size < size
    more = service(engine, name, layout=base.layout, tokens=2 * tokens).memory(hardware(device))
    assert more.left <= found.left
    less = service(engine, name, layout=base.layout, tokens=tokens, share=0.5).memory(hardware(device))
    assert less.left <= found.left
    assert base.most_requests(hardware(device)) <= step_limits(ENGINES[engine], hardware(device))[1]


def test_small_devices_take_smaller_steps():
    assert step_limits(ENGINES["vllm"], hardware(H100)) == (8192, 1024)
    assert step_limits(ENGINES["vllm"], hardware("l4")) == (2048, 256)


@pytest.mark.parametrize(
    ("name", "ranks", "tokens", "kept"),
    [
        ("l4", 1, 2048, 512 + 3072 + 2 * 24 + 128),
        ("rtx5090", 4, 2048, 512 + 3072 + 2 * 80 + 512),
        ("a100-sxm4-40gb", 1, 4096, 512 + 6144 + 2 * 32 + 128),
        ("a100-sxm4-80gb", 8, 8192, 512 + 12288 + 2 * 512 + 1024),
        ("h200-sxm", 1, 8192, 512 + 12288 + 2 * 256 + 128),
        ("b200", 1, 16384, 512 + 24576 + 2 * 512 + 128),
    ],
)
def test_sglang_takes_steps_by_memory(name, ranks, tokens, kept):
    """`_handle_gpu_memory_settings` of sglang/srt/server_args.py."""
    device, layout = hardware(name), Layout(tensor_parallel=ranks)
    assert step_limits(ENGINES["sglang"], device)[0] == tokens
    found = service("sglang", TINY, layout=layout).memory(device)
    share = 1 - Fraction(kept * 2**20, seen_capacity(device))
    assert found.usable == int(share * free_memory(device, layout))


def test_sglang_keeps_ten_gib_on_a_large_device():
    """Steps of 4,096 tokens would leave 7.1 GiB on an H100; on an L4 they leave what they need."""
    large, small = (seen_capacity(hardware(name)) for name in (H100, "l4"))
    assert 1 - static_share(large, Layout(), 4096, 256) == Fraction(10 * 2**30, large)
    assert 1 - static_share(small, Layout(), 4096, 256) == Fraction(7296 * 2**20, small)


def test_vllm_takes_small_steps_on_every_a100():
    """`get_batch_defaults` of vllm/engine/arg_utils.py: 70 GiB, and not an A100."""
    assert step_limits(ENGINES["vllm"], hardware("a100-sxm4-80gb")) == (2048, 256)
    assert step_limits(ENGINES["sglang"], hardware("a100-sxm4-80gb")) == step_limits(ENGINES["sglang"], hardware(H100))


def test_releases_have_the_defaults_of_their_time():
    """Graphs and a wider share in vLLM 0.21, a kernel for top-k and top-p in 0.19, steps ahead of the host in 0.14."""
    released = {number: service(f"vllm=={number}") for number in ("0.9", "0.14", "0.19.1", "0.21", "0.30")}
    assert [each.engine.step_host for each in released.values()] == [1.1e-3, *[STEP_HOST] * 4]
    assert [each.engine.logit_bytes for each in released.values()] == [SORTED, SORTED, SCANNED, FUSED, FUSED]
    assert released["0.9"].engine == ENGINES["vllm"]
    assert replace(released["0.30"].engine, scans=frozenset()) == replace(released["0.21"].engine, scans=frozenset())
    assert [sorted(each.engine.scans) for each in released.values()] == [
        [], [], ["sm_90"], ["sm_90"], ["sm_100", "sm_103", "sm_90"]
    ]  # fmt: skip
    held = {number: each.memory(hardware(H100)) for number, each in released.items()}
    assert held["0.21"].usable == int(Fraction("0.92") * SEEN_H100)
    steps = 2 * 8192 * 4096 + int(FUSED * 1024 * 128256), 2 * 8192 * (3 * 14336 + 3 * 4096)
    assert held["0.21"].overhead == NON_TORCH + GRAPH_POOL + max(steps)
    assert held["0.9"].left < held["0.19.1"].left < held["0.21"].left
    assert as_engine("sglang==0.4.9").window_ratio is None
    assert as_engine("sglang==0.5").window_ratio == ENGINES["sglang"].window_ratio
    for wrong in ("vllm==new", "trtllm==0.17"):
        with pytest.raises(InputError, match="a release of vllm or sglang"):
            as_engine(wrong)
    with pytest.raises(UnknownNameError):
        as_engine("vlm==0.24")


def test_vllm_of_2026_counts_the_tokens_of_whole_requests():
    """`GPU KV cache size` is that of blocks until 0.20, then of as many longest requests as fit."""
    plans = [plan(LLAMA, H100, prompt=1000, output=9, batch=4, engine=f"vllm=={number}") for number in ("0.20", "0.24")]
    old, new = (found.memory for found in plans)
    lines = [[line for line in found.log if "GPU KV cache size" in line] for found in (old, new)]
    assert lines[0] == [f"GPU KV cache size: {old.blocks * 16:,} tokens"]
    assert lines[1] == [f"GPU KV cache size: {int(new.blocks / 64 * 1009):,} tokens"]  # 63.06 blocks, charged as 64


def test_the_last_stage_of_a_pipeline_samples():
    """A stage that draws no token keeps the activations of its layers alone."""
    stages, device, tiny = Layout(pipeline_parallel=2), hardware(H100), model(LLAMA)
    asked = ENGINES["vllm"], device, tiny.layers[:16], tiny, stages, 2**33, None, (8192, 1024)
    first, last = (reserve(*asked, samples=samples) for samples in (False, True))
    activations = activation_bytes(tiny.layers, 4096, stages, 8192)
    assert first.overhead == NON_TORCH + PER_PEER + activations
    assert last.overhead == NON_TORCH + PER_PEER + int(SORTED * 1024 * 128256) + 2 * 8192 * 4096


def test_communicators_need_less_where_links_do_not_add():
    """Links of Hopper, then of Ampere, of NVLink's successors, none, and AMD's."""
    pair = Layout(tensor_parallel=2)
    several = ("h200-sxm", "a100-sxm4-80gb", "b200", "rtx5090", "mi300x")
    found = [peer_bytes(hardware(name), pair) for name in several]
    assert found == [PER_PEER, PER_PLAIN_PEER, PER_PEER, PER_PLAIN_PEER, PER_PEER]
    assert peer_bytes(hardware("h200-sxm"), Layout()) == 0


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_prompts_that_share_steps_take_no_longer(engine):
    """Sharing a step saves the weights that two steps would read; it never beats the longer of the two."""
    served, device = service(engine, TINY, prompt=256, output=64), hardware(H100)
    steps = ReplicaSteps(served, device)
    step = steps.decode_seconds(64)
    shared = cycle_with_engine(steps, ENGINES[engine], step, 64)
    assert shared.first < shared.seconds
    assert 63 * step < shared.seconds <= 1.001 * (63 * step + 64 * steps.prefill_seconds()[0])


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_cached_tokens_take_no_step(engine):
    """A hit rate of 0 is no cache, and with 3/4 of a prompt cached its prefills cost at most 0.4 of what they cost."""
    device, prefills = hardware(H100), []
    for rate in (None, 0.0, 0.75):
        cache = None if rate is None else PrefixCache(hit_rate=rate)
        served = as_service(TINY, 4096, 64, engine=engine, prefix_cache=cache)
        steps = ReplicaSteps(served, device)
        step = steps.decode_seconds(64)
        prefills.append(cycle_with_engine(steps, ENGINES[engine], step, 64).seconds - served.steps * step)
    assert prefills[0] == prefills[1]
    assert 0 < prefills[2] < 0.4 * prefills[1]


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("output", [1, 64])
def test_drafts_prefill_every_prompt(engine, output):
    """A cycle under an engine takes as long as with drafts at no cost, and 16 prefills of the drafting model.

    A first token waits for one of these.
    """
    free, speculation = (Speculation(draft=draft, tokens=3, acceptance=0.7) for draft in ("ngram", TINY))
    alone, drafted = (
        ReplicaSteps(as_service(LLAMA, 2048, output, engine=engine, speculation=on), hardware(H100))
        for on in (free, speculation)
    )
    cycles = [cycle_with_engine(each, ENGINES[engine], 0.01, 16) for each in (drafted, alone)]
    more = cycles[0].seconds - cycles[1].seconds
    assert more == pytest.approx(16 * drafted.draft.prefill().seconds)
    assert cycles[0].first - cycles[1].first == pytest.approx(drafted.draft.prefill().seconds)


@pytest.mark.parametrize("name", [LLAMA, "gemma-3-12b"])
def test_a_prompt_longer_than_a_step_takes_several(name):
    """Whole steps of the engine one after the other, the host between them, each computed."""
    device, keys = hardware(H100), range(512, 8192 + 1, 512)
    steps = ReplicaSteps(service("vllm", name, prompt=8192, tokens=512), device)
    every = sum(steps.chunk(512, context).seconds + steps.host_seconds for context in keys)
    assert steps.alone_seconds() == pytest.approx(every, rel=0.002)
    assert steps.first_token_seconds() == steps.alone_seconds() > 1.1 * steps.prefill_seconds()[0]
    for tokens, engine in ((8192, "vllm"), (None, None)):
        whole = ReplicaSteps(service(engine, name, prompt=8192, tokens=tokens), device)
        assert whole.alone_seconds() == pytest.approx(whole.prefill_seconds()[0])
    rest = ReplicaSteps(service("vllm", name, prompt=8192, tokens=5000), device)
    both = rest.chunk(5000, 5000).seconds + rest.chunk(3192, 8192).seconds
    assert rest.alone_seconds() == pytest.approx(both + 2 * rest.host_seconds)


def test_a_mixed_step_by_hand():
    steps = ReplicaSteps(service("vllm", TINY, prompt=512, output=64), hardware(H100))
    assert steps.host_seconds == ENGINES["vllm"].step_host > 0
    mixed = mixed_seconds(steps, 128, 596) - steps.host_seconds  # 724 rows and 128 requests are knots
    decode, prefill = steps.decode(128, sum(steps.service.contexts) // 2), steps.prefill()
    assert max(decode.seconds, prefill.seconds) < mixed < decode.seconds + prefill.seconds * 596 / 512
    rows = steps.chunk(724, 724)
    products = rows.seconds - rows.attention_seconds
    outputs = steps.output_seconds(128) - steps.output_seconds(1)
    attention = decode.attention_seconds + prefill.attention_seconds * 596 / 512
    assert mixed == pytest.approx(products + attention + outputs)


@pytest.mark.parametrize(("prompt", "batch"), [(1024, 16), (1024, 128), (3000, 128)])
def test_cycles_by_hand(prompt, batch):
    """65 tokens, so that batch / 64 requests end with each step, and 1 + (batch - 1) / 64 prompts wait together."""
    step, ending, waiting = 0.01, batch / 64, 1 + (batch - 1) / 64
    mixing, apart = (
        ReplicaSteps(service(engine, TINY, prompt=prompt, output=65), hardware(H100)) for engine in ("vllm", "sglang")
    )
    room = 8192 - batch
    tokens = min(room, max(1.0, ending) * prompt)
    shared = batch * prompt / tokens  # steps with prompts
    found = cycle_with_engine(mixing, ENGINES["vllm"], step, batch)
    assert found.seconds == pytest.approx(
        max(0.0, 64 - shared) * step + shared * mixed_seconds(mixing, batch, int(tokens))
    )
    joined = mixed_seconds(mixing, batch, int(min(room, waiting * prompt)))
    assert found.first == pytest.approx(max(1, waiting * prompt / room) * joined)
    most = 8192 // prompt
    prompts = min(most, max(1, ending))
    found = cycle_with_engine(apart, ENGINES["sglang"], step, batch)
    assert found.seconds == pytest.approx(64 * step + batch / prompts * prefills_seconds(apart, prompts))
    joined = prefills_seconds(apart, min(most, waiting))
    assert found.first == pytest.approx(max(1, waiting / most) * joined)
    assert prefills_seconds(apart, 1) == apart.prefill_seconds()[0]


@pytest.mark.parametrize(("ranks", "batch", "prompt", "output"), [(1, 256, 2048, 17), (4, 541, 2048, 64)])
def test_requests_whose_prompts_wait_decode_in_no_step(ranks, batch, prompt, output):
    """With prompts that fill every step, all steps are full: of prompts and of the tokens that go with them."""
    layout = Layout(tensor_parallel=ranks)
    served = service("vllm", LLAMA, prompt=prompt, output=output, layout=layout)
    steps = ReplicaSteps(served, hardware("h200-sxm"))
    full = batch * (prompt + output - 1) / 8192
    mixed = mixed_seconds(steps, batch * (output - 1) / full, int(batch * prompt / full))
    found = cycle_with_engine(steps, ENGINES["vllm"], 0.01, batch).seconds
    assert found == pytest.approx(full * mixed)
    run = {"concurrency": batch, "requests": 6 * batch, "layout": layout, "engine": "vllm"}
    simulated = simulate(LLAMA, "h200-sxm", prompt=prompt, output=output, **run)
    assert batch / found == pytest.approx(simulated.requests / simulated.seconds, rel=0.03)


def test_a_pipeline_prefills_one_prompt_after_the_other_under_an_engine():
    staged = service("vllm", LLAMA, layout=Layout(pipeline_parallel=2))
    found, steps = figures(staged, hardware(H100), 32), ReplicaSteps(staged, hardware(H100))
    cycle = staged.steps * steps.decode_seconds(32) + 32 * steps.occupied()
    assert found.requests_per_second == pytest.approx(32 / cycle)
    waiting = 31 / staged.steps * steps.occupied()
    assert found.ttft == pytest.approx(found.ttft_alone + waiting)


def test_prompts_wait_for_those_of_their_own_group():
    """Without an engine, ranks with separate requests prefill beside each other."""
    served = service(None, "qwen3-30b-a3b", layout=Layout(expert_parallel=2))
    assert served.layout.data_parallel == 2
    found, steps = figures(served, hardware(H100), 32), ReplicaSteps(served, hardware(H100))
    waiting = (32 / 2 - 1) / served.steps * 2 * steps.occupied()
    assert found.ttft == pytest.approx(found.ttft_alone + waiting)


def test_host_time_is_before_the_first_token():
    alone, served = (figures(service(engine, TINY), hardware(H100), 8) for engine in (None, "vllm"))
    kernels = sum(part.times for part in ReplicaSteps(service(None, TINY), hardware(H100)).prefill().parts)
    waits = ENGINES["vllm"].step_host - STEP_HOST
    assert served.ttft_alone == pytest.approx(alone.ttft_alone + waits + LAUNCH * kernels)
    assert served.step == pytest.approx(alone.step + waits, rel=0.01)  # blocks of 16 tokens aside
    run = {"prompt": 512, "output": 8, "concurrency": 1, "requests": 20}
    with_engine = simulate(TINY, H100, engine="sglang", **run)
    without = simulate(TINY, H100, policy="prefill-first", engine=None, **run)
    assert with_engine.ttft.mean - without.ttft.mean == pytest.approx(REQUEST + EAGER * kernels, rel=1e-6)
    assert with_engine.policy == "prefill-first"
    assert simulate(TINY, H100, engine="vllm", **run).policy == "chunked"


def test_plan_and_fleet_take_an_engine():
    chat = {"prompt": 2048, "output": 256}
    found = plan(LLAMA, H100, engine="vllm", **chat)
    assert found.batch == service("vllm", LLAMA, 2048, 256).most_requests(hardware(H100)) < 1024
    assert found.memory.block == 16
    targets = {"load": 20.0, "ttft": 0.5, "tpot": 0.05, **chat}
    least = fleet(LLAMA, H100, engine="vllm", **targets).best
    assert least.fits < fleet(LLAMA, H100, engine=None, **targets).best.fits
    with pytest.raises(UnknownNameError, match="engine: 'vlm' is unknown; did you mean 'vllm'"):
        plan(LLAMA, H100, engine="vlm", **chat)


# The engine that is assumed


@at_most(4)
@given(
    st.sampled_from([TINY, LLAMA, "gpt-oss-20b", "gemma-3-4b"]),
    st.sampled_from([H100, "mi300x", "l40s", "tpu-v5p"]),
    st.integers(1, 2000),
    st.integers(2, 300),
)
def test_a_plan_without_an_engine_names_the_one_that_it_assumes(name, device, prompt, output):
    asked = {"model": name, "hardware": device, "prompt": prompt, "output": output, "count": 1, "layout": Layout()}
    found, known = plan(**asked), assumed_on(hardware(device))
    assert found == plan(**asked, engine="auto")
    assert found.engine == (None if known is None else "vllm")
    assert any(text.startswith("the engine is vllm") for text in found.assumed) == (known is not None)
    bare = plan(**asked, engine=None)
    assert (found == bare) == (known is None)
    assert bare == plan(**asked, engine="none")
    if known is not None:
        told = plan(**asked, engine="vllm")
        assert found.memory == told.memory  # the host alone differs
        assert found.ttft <= told.ttft
        assert found.figures.step == pytest.approx(told.figures.step - 5e-4)


def test_every_verb_assumes_the_same_engine():
    asked = {"prompt": 512, "output": 64, "layout": Layout()}
    found = plan(TINY, H100, **asked)
    for answer in (
        memory_plan(TINY, H100, **asked),
        simulate(TINY, H100, concurrency=2, requests=4, **asked),
        fleet(TINY, H100, load=1, ttft=5, tpot=1, **asked).best,
        disaggregate(TINY, H100, H100, link=1e10, **asked).decode,
    ):
        fits = answer.memory.fits if hasattr(answer, "memory") else answer.fits
        assert fits == found.memory.fits
    point = pareto(TINY, H100, batches=[found.batch], **asked).front[0]
    many = plan_array(TINY, H100, **asked)
    assert (point.ttft, point.tpot) == (found.ttft, found.tpot)
    assert (float(many.ttft), int(many.fits)) == (pytest.approx(found.ttft), found.memory.fits)
    alone = plan(TINY, H100, prompt=512, output=1, layout=Layout(), batch=1)
    assert disaggregate(TINY, H100, H100, link=1e10, **asked).ttft == alone.ttft
