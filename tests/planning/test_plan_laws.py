"""Laws over plans: more of a device is never worse, a longer request is never cheaper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.devices.device import hardware
from iomodel.planning.memory import fit
from iomodel.planning.pareto import pareto
from iomodel.planning.plan import plan
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from tests.support.device_edits import edited

TINY = "llama-3.2-1b"
DEVICES = ["h100-sxm5", "h200-sxm", "b200", "mi300x", "a100-sxm4-80gb", "l4"]
FEATURES = st.sampled_from(
    [
        {},
        {"prefix_cache": PrefixCache(shared_tokens=100, hit_rate=0.25)},
        {"speculation": Speculation(tokens=2, acceptance=0.5)},
    ]
)


@given(st.sampled_from(DEVICES), st.integers(1, 64), FEATURES, st.integers(200, 4000), st.integers(1, 500))
def test_more_memory_never_fits_fewer(name, more, features, prompt, output):
    device = hardware(name)
    asked = as_service(TINY, prompt, output, Layout(), {}, 0.9, OVERHEAD, **features)
    changes = {
        path: device.quantities[path].value + (more << 30)
        for path in ("memory.hbm.capacity", "memory.hbm.capacity_reported")
        if path in device.quantities
    }
    small, large = fit(asked, device), fit(asked, edited(device, changes))
    assert large.fits >= small.fits
    longer = as_service(TINY, prompt + 100, output, Layout(), {}, 0.9, OVERHEAD, **features)
    assert fit(longer, device).fits <= small.fits


@pytest.mark.parametrize("name", ["h100-sxm5", "mi300x"])
@pytest.mark.parametrize("features", [{}, {"prefix_cache": PrefixCache(shared_tokens=100, hit_rate=0.25)}])
def test_a_longer_prompt_is_never_cheaper(name, features):
    at = {"output": 3, "batch": 4, "price_per_hour": 1.0, **features}
    found = [plan(TINY, name, prompt=size, **at) for size in (256, 384, 1000, 3000)]
    for figure in ("ttft", "tpot", "cost_per_million_output_tokens"):
        figures = [getattr(one, figure) for one in found]
        assert figures == sorted(figures)


@pytest.mark.parametrize("name", ["h100-sxm5", "mi300x"])
@pytest.mark.parametrize("path", ["memory.hbm.bandwidth", "interconnect.per_direction", "memory.hbm.capacity"])
def test_one_better_figure_is_never_worse(name, path):
    device = hardware(name)
    quantity = device.quantities.get(path)
    if quantity is None:
        return
    better = edited(device, {path: 2 * quantity.value})
    at = {"prompt": 512, "output": 3, "batch": 8, "count": 2, "layout": Layout(tensor_parallel=2)}
    base, raised = (plan(TINY, one, **at) for one in (device, better))
    assert raised.ttft <= base.ttft
    assert raised.tpot <= base.tpot
    assert raised.memory.fits >= base.memory.fits
    fronts = [pareto(TINY, one, prompt=512, output=3, batches=[8], max_count=1).front[0] for one in (device, better)]
    assert fronts[1].tokens_per_second_per_device >= fronts[0].tokens_per_second_per_device
