"""Laws over plans: more of a device is never worse, a longer request is never cheaper."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iomodel import hardware, list_hardware
from iomodel.errors import InfeasibleError, SpecError
from iomodel.planning.pareto import pareto
from iomodel.planning.plan import plan
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import link
from iomodel.planning.step.step import step
from tests.support.device_edits import edited
from tests.support.inside import rates
from tests.support.strategies import at_most


def timed(name):
    """True if a step can be timed on a device: it has a matrix peak, a bandwidth and a memory."""
    try:
        rates(hardware(name), "bf16")
    except SpecError:
        return False
    return "memory.hbm.capacity" in hardware(name).quantities


def linked(device):
    """True if the bandwidth between devices is known."""
    try:
        return link(device) > 0
    except SpecError:
        return False


TINY = "llama-3.2-1b"
DEVICES = [name for name in list_hardware() if timed(name)]
MODELS = [TINY, "gemma-3-4b", "qwen3-30b-a3b", "gpt-oss-20b", "nemotron-h-56b", "deepseek-v2-lite"]
"""Dense, with windows, with experts, with windows, experts and sinks, with recurrent layers, and with latents."""
BETTER = ("compute.peak.", "memory.hbm.", "memory.l2.", "interconnect.", "clock.")
"""Figures of which more is better, unlike times and the sizes of instructions."""
ON_CHIP = ("memory.sram.per_block", "memory.sram.per_sm", "memory.accumulator.", "limits.registers_per_sm")
"""Memories of an SM; where one memory stands in for those of a device, its tiles are those of least traffic."""
FEATURES = st.sampled_from(
    [
        {},
        {"prefix_cache": PrefixCache(shared_tokens=100, hit_rate=0.25)},
        {"speculation": Speculation(tokens=2, acceptance=0.5)},
    ]
)


@given(
    st.sampled_from(DEVICES),
    st.sampled_from(MODELS),
    st.integers(1, 64),
    FEATURES,
    st.integers(200, 4000),
    st.integers(1, 500),
)
def test_more_memory_never_fits_fewer(name, model, more, features, prompt, output):
    device = hardware(name)
    if model != TINY and "speculation" in features:
        features = {}
    asked = as_service(model, prompt, output, memory_utilization=0.9, overhead_bytes=OVERHEAD, **features)
    changes = {
        path: device.quantities[path].value + (more << 30)
        for path in ("memory.hbm.capacity", "memory.hbm.capacity_reported")
        if path in device.quantities
    }
    small, large = asked.memory(device), asked.memory(edited(device, changes))
    assert large.fits >= small.fits
    longer = as_service(model, prompt + 100, output, memory_utilization=0.9, overhead_bytes=OVERHEAD, **features)
    assert longer.memory(device).fits <= small.fits


@pytest.mark.parametrize("name", ["h100-sxm5", "mi300x"])
@pytest.mark.parametrize("features", [{}, {"prefix_cache": PrefixCache(shared_tokens=100, hit_rate=0.25)}])
def test_a_longer_prompt_is_never_cheaper(name, features):
    at = {"output": 3, "batch": 4, "price": 1.0, **features}
    found = [plan(TINY, name, prompt=size, **at) for size in (256, 384, 1000, 3000)]
    for figure in ("ttft", "tpot", "price_per_million_output_tokens"):
        figures = [getattr(one, figure) for one in found]
        assert figures == sorted(figures)


@at_most(20)
@given(
    st.sampled_from(DEVICES),
    st.sampled_from(MODELS),
    st.sampled_from([1, 2, 16, 100]),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
)
@example("h100-sxm5", TINY, 1, 384, 116)  # fewer splits than key tiles
@example("h100-sxm5", TINY, 1, 1500, 500)
@example("b200", TINY, 1, 5000, 3000)
@example("a10", "gpt-oss-20b", 1, 300, 212)  # a window across one key tile more
@example("gaudi2", "gemma-3-4b", 16, 8192, 11_808)
def test_a_decode_step_is_never_faster_with_a_longer_context(name, model, batch, keys, more):
    short, long = (
        step(model, name, batch=batch, q_len=1, kv_len=size, layout=Layout()) for size in (keys, keys + more)
    )
    assert long.seconds >= short.seconds * (1 - 1e-12)


@at_most(12)
@given(
    st.data(),
    st.sampled_from(DEVICES),
    st.sampled_from([TINY, "qwen3-30b-a3b", "deepseek-v2-lite"]),
    st.floats(1.01, 4),
)
def test_one_better_figure_is_never_worse(data, name, model, factor):
    device = hardware(name)
    more = BETTER + (ON_CHIP if "memory.sram.per_sm" in device.quantities else ())
    paths = sorted(path for path in device.quantities if path.startswith(more) and "latency" not in path)
    path = data.draw(st.sampled_from(paths))
    value = device.quantities[path].value * factor
    better = edited(device, {path: int(value) if isinstance(device.quantities[path].value, int) else value})
    layout = Layout(tensor_parallel=2 if linked(device) else 1)
    service = as_service(model, 512, 3, layout, memory_utilization=0.9, overhead_bytes=OVERHEAD)
    assert service.memory(better).fits >= service.memory(device).fits
    for batch, queries in ((1, 512), (8, 1)):
        at = {"batch": batch, "q_len": queries, "kv_len": 512, "layout": layout}
        try:
            base, raised = (step(model, one, **at).seconds for one in (device, better))
        except InfeasibleError:  # no kernel of latents runs there, and no tile of the textbook's fits
            assert model == "deepseek-v2-lite"
            continue
        assert raised <= base * (1 + 1e-12)


@pytest.mark.parametrize("path", ["memory.hbm.bandwidth", "memory.hbm.capacity"])
def test_a_front_is_never_worse_with_one_better_figure(path):
    device = hardware("h100-sxm5")
    better = edited(device, {path: 2 * device.quantities[path].value})
    fronts = [
        pareto(TINY, one, prompt=512, output=3, batches=[8], replica_devices=1).front[0] for one in (device, better)
    ]
    assert fronts[1].tokens_per_second_per_device >= fronts[0].tokens_per_second_per_device


@pytest.mark.parametrize("model", [TINY, "deepseek-v3", "gpt-oss-20b"])
def test_a_hit_rate_of_zero_is_the_plan_without_a_cache(model):
    asked = {"prompt": 512, "output": 3, "batch": 8, "count": 8, "layout": Layout(tensor_parallel=8)}
    caches = None, PrefixCache(hit_rate=0.0)
    plain, none = (plan(model, "h200-sxm", prefix_cache=cache, **asked) for cache in caches)
    assert (plain.memory, plain.figures, plain.batches) == (none.memory, none.figures, none.batches)
