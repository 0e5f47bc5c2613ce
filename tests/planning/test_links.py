"""Laws of links: one direction of what a file states, and tokens that each cross once to each of their experts."""

import pytest

from iomodel.devices.device import hardware
from iomodel.models.registry import model
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import ACHIEVED, START, STEP, link
from iomodel.planning.step.step import step

FIGURES = {"per_direction": 1, "total": 2, "pcie_per_direction": 1, "pcie_total": 2}


@pytest.mark.parametrize("name", FIGURES)
def test_a_link_is_one_direction_of_the_figure_on_file(name):
    device = hardware("h100-sxm5")
    alone = device.model_copy(update={"interconnect": type(device.interconnect)(**{name: "100 GB/s"})})
    assert link(alone) == 100e9 / FIGURES[name]


@pytest.mark.parametrize(("tensor", "ranks"), [(1, 8), (2, 8), (4, 8), (2, 4)])
def test_each_token_crosses_once_to_each_of_its_experts(tensor, ranks):
    """All ranks together send every token to its experts, but for the share that stays on its rank."""
    spec, device, batch = model("mixtral-8x7b"), hardware("h100-sxm5"), 1 << 14
    layout = Layout(tensor_parallel=tensor, expert_parallel=ranks)
    even = [batch * 2 // spec.layers[0].mlp.experts] * spec.layers[0].mlp.experts
    parts = step(spec, device, batch=batch, q_len=1, kv_len=64, layout=layout, routing=even).parts
    (part,) = [part for part in parts if part.name == "all-to-all"]
    sent = batch * 2 * spec.hidden_size * 2 * (ranks - 1) / ranks  # two experts of a token, two bytes of an element
    assert part.seconds / part.times - START - STEP == pytest.approx(sent / ranks / (ACHIEVED * link(device)), rel=1e-6)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(("logits", "rows"), [("last", 3), ("all", 3 * 64)])
def test_logits_of_all_ranks_are_gathered(ranks, logits, rows):
    spec, device = model("llama-3-8b"), hardware("h100-sxm5")
    parts = step(spec, device, batch=3, q_len=64, kv_len=64, logits=logits, layout=Layout(tensor_parallel=ranks)).parts
    (part,) = [part for part in parts if part.name == "gather logits"]
    sent = rows * spec.vocab_size * 2 * (ranks - 1) / ranks
    assert part.seconds - START - STEP == pytest.approx(sent / (ACHIEVED * link(device)), rel=1e-6)
