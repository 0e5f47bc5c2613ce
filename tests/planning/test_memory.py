"""Laws of memory: a batch that fits, fits every stage, and one request more does not."""

from collections import Counter

import pytest

from iomodel import hardware, model
from iomodel.planning.service import as_service
from iomodel.planning.service_memory import RequestMemory
from iomodel.planning.step.layout import Layout
from iomodel.planning.weights import stage_layers

LAYOUTS = [
    Layout(pipeline_parallel=4),
    Layout(tensor_parallel=2, pipeline_parallel=3),
    Layout(),
    Layout(expert_parallel=2),
]


@pytest.mark.parametrize("name", ["gpt-oss-120b", "llama-3-8b", "gemma-3-27b"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_fits_fits_every_stage_and_one_more_fits_not_all(name, layout):
    if layout.expert_parallel > 1 and name != "gpt-oss-120b":
        layout = Layout(tensor_parallel=2)
    service = as_service(name, 4000, 500, layout, memory_utilization=0.9, overhead_bytes=2**31, engine=None)
    memory = service.memory(hardware("h200-sxm"))
    assert memory.fits > 0

    def used(requests):
        each = -(-requests // layout.data_parallel)
        return [
            service.weights.of_stage(layers, place) + service.overhead_bytes
            + each * service.requests.of_request(Counter(layers), service.tokens)
            for place, layers in enumerate(stage_layers(service.model, layout))
        ]  # fmt: skip

    assert max(used(memory.fits)) <= memory.usable < max(used(memory.fits + 1))


@pytest.mark.parametrize("name", ["qwen3-next-80b-a3b", "nemotron-h-56b"])
def test_ranks_hold_a_share_of_a_state_each(name):
    """The states of a request on all ranks together are those of one device."""
    spec = model(name)
    states = sum(layer.state_bytes for layer in spec.layers)
    assert states > 0
    for ranks in (1, 2, 4, 8):
        assert (
            sum(ranks * RequestMemory(Layout(tensor_parallel=ranks), "bf16").state(layer) for layer in spec.layers)
            == states
        )
