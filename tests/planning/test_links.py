"""Laws of links and of networks between nodes: bytes that each take one of the two, and what equal networks cost."""

from itertools import pairwise, product

import pytest

from iomodel import InputError, hardware, model
from iomodel.planning.formatting import layout_text
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import (
    ACHIEVED,
    PASS,
    PEER_BANDWIDTH,
    PEERS,
    PROTOCOLS,
    all_gather,
    all_reduce,
    all_to_all,
    link,
    reached,
    send,
)
from iomodel.planning.step.step import step

FIGURES = {"per_direction": 1, "total": 2, "pcie_per_direction": 1, "pcie_total": 2}


def fastest(inside, steps, bandwidth, across=0, hops=0, network=50e9, joined=sum):
    """Take the fastest protocol for bytes over links and over a network, of which `hops` steps are [s]."""
    return min(
        one.start
        + (steps - hops) * one.step
        + hops * one.network_step
        + joined(
            (
                inside / min(one.most, ACHIEVED * one.data * bandwidth),
                across / min(one.most, ACHIEVED * one.data * network),
            )
        )
        for one in PROTOCOLS
    )


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
    assert part.seconds / part.times == pytest.approx(fastest(sent / ranks, 1, link(device)), rel=1e-6)


def test_over_a_bus_rows_go_out_in_the_type_of_the_products():
    layout = Layout(expert_parallel=8)
    for name, ratio in (("rtx-pro-6000", 32 / 9), ("b200", 1)):
        parts = step(
            "qwen3-30b-a3b", name, batch=1 << 17, q_len=1, kv_len=64, weight_dtype="nvfp4", layout=layout
        ).parts
        times = [part.seconds / part.times for part in parts if part.name == "all-to-all"]  # out and back
        assert times[-1] == pytest.approx(ratio * times[0], rel=0.02)


def test_on_a_bus_more_cards_reach_less_and_sum_in_rings_alone():
    card = hardware("rtx-pro-6000")
    assert reached(card, 2) > reached(card, 4) == reached(card, 8)
    for ranks, steps in ((4, 6), (8, 14)):
        data = 2 * (ranks - 1) * 4096 / ranks
        slowest = [
            one.start + steps * one.bus_step + data / one.rate(link(card), reached(card, ranks)) for one in PROTOCOLS
        ]
        assert all_reduce(card, ranks, 4096).seconds == pytest.approx(min(slowest), rel=1e-3)


def test_a_send_between_cards_on_a_bus_is_that_of_two():
    card, size = hardware("rtx-pro-6000"), 1 << 28
    assert send(card, size).seconds == all_to_all(card, 2, 2 * size).seconds


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(("logits", "rows"), [("last", 3), ("all", 3 * 64)])
def test_logits_of_all_ranks_are_gathered(ranks, logits, rows):
    spec, device = model("llama-3-8b"), hardware("h100-sxm5")
    parts = step(spec, device, batch=3, q_len=64, kv_len=64, logits=logits, layout=Layout(tensor_parallel=ranks)).parts
    (part,) = [part for part in parts if part.name == "gather logits"]
    sent = rows * spec.vocab_size * 2 * (ranks - 1) / ranks
    assert part.seconds == pytest.approx(fastest(sent, 1, link(device)), rel=1e-6)


H100 = hardware("h100-sxm5")
NODES = [(ranks, node) for ranks, node in product((2, 8, 16, 32), (1, 2, 8, 32)) if ranks > node]


def crossed(ranks, node, collective):
    """Send pieces of one byte from rank to rank, and count those that leave the node of their sender, by rank."""
    leaving = [0] * ranks
    for sender, receiver in collective:
        leaving[sender] += sender // node != receiver // node
    return leaving


@pytest.mark.parametrize(("ranks", "node"), NODES)
def test_an_exchange_over_nodes_sends_what_leaves_a_node_over_the_network(ranks, node):
    """Every rank sends one piece to each rank; the pieces are counted one by one."""
    (leaving,) = set(crossed(ranks, node, product(range(ranks), repeat=2)))
    size = ranks << 20
    layout = Layout(expert_parallel=ranks, devices_per_node=node, network_bandwidth=25e9)
    inside, across = (ranks - 1 - leaving) << 20, leaving << 20
    expected = fastest(inside, 1, link(H100), across, 1, 25e9)
    assert all_to_all(H100, ranks, size, layout).seconds == pytest.approx(expected)


@pytest.mark.parametrize(("ranks", "node"), NODES)
def test_a_sum_over_nodes_exchanges_each_share_among_the_nodes(ranks, node):
    """A node's ranks each hold a share of its sums, which goes around a ring of one rank of each node, twice."""
    nodes, size = ranks // node, ranks << 20
    layout = Layout(tensor_parallel=ranks, devices_per_node=node)
    around = 2 * (nodes - 1) * (size // node // nodes)
    inside = 2 * (node - 1) * (size // node)
    expected = fastest(inside, 2 * (ranks - 1), link(H100), around, 2 * (nodes - 1), joined=max)
    assert all_reduce(H100, ranks, size, layout).seconds == pytest.approx(expected)


MEASURED = {128: 61.58e-6, 4096: 75.38e-6, 10**6: 88e-6, 10**7: 157e-6, 10**8: 647e-6, 10**9: 4520e-6}
"""Sums among two nodes of eight H100 over InfiniBand [s]: below 1 MB github.com/NVIDIA/nccl/issues/1453, which LL was
read off; from there github.com/drmysore/nebius-h100-16gpu-benchmark."""


@pytest.mark.parametrize("size", MEASURED)
def test_a_sum_among_two_nodes_takes_what_nccl_takes(size):
    layout = Layout(tensor_parallel=16, devices_per_node=8)
    assert all_reduce(H100, 16, size, layout).seconds == pytest.approx(MEASURED[size], rel=0.2)


@pytest.mark.parametrize(("ranks", "node"), NODES)
def test_two_equal_networks_are_one(ranks, node):
    """The bytes take as long; only steps to another node start later."""
    layout = Layout(expert_parallel=ranks, devices_per_node=node, network_bandwidth=link(H100))
    size = (ranks << 16) + 12_345
    sent = size * (ranks - 1) // ranks
    assert all_to_all(H100, ranks, size).seconds == pytest.approx(fastest(sent, 1, link(H100)))
    assert all_to_all(H100, ranks, size, layout).seconds == pytest.approx(fastest(sent, 1, link(H100), 0, 1))


@pytest.mark.parametrize("size", [1 << 8, 1 << 24, 1 << 28])
@pytest.mark.parametrize(
    ("name", "ranks", "node"), [("l4", 4, None), ("rtx4090", 8, None), ("h100-sxm5", 16, 8), ("h200-sxm", 64, 8)]
)
def test_a_gather_is_half_of_the_ring_of_a_sum(name, ranks, node, size):
    """Of sums that are rings alone: half of the bytes and of the steps, beside the start of the protocol."""
    layout = Layout(devices_per_node=node)
    gather = all_gather(hardware(name), ranks, size, layout).seconds
    whole = all_reduce(hardware(name), ranks, ranks * size, layout).seconds
    assert any(2 * gather - whole == pytest.approx(one.start, abs=1e-9) for one in PROTOCOLS)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("name", ["a100-sxm4-80gb", "h100-sxm5", "b200"])
def test_a_sum_takes_the_fastest_of_one_pass_two_passes_and_a_ring(name, ranks):
    """One pass sends everything to everyone, two passes and a ring 2 (n - 1) / n of it; each wins at some size."""
    device = hardware(name)
    rate = min(PEERS * link(device), PEER_BANDWIDTH)
    won = []
    for power in range(10, 31):
        size = ranks << power
        around = 2 * (ranks - 1) << power
        ways = {
            "one pass": PASS + (ranks - 1) * size / rate,
            "two passes": 2 * PASS + around / rate,
            "ring": fastest(around, 2 * (ranks - 1), link(device)),
        }
        assert all_reduce(device, ranks, size).seconds == pytest.approx(min(ways.values()))
        won.append(min(ways, key=ways.__getitem__))
    expected = ["one pass", "ring"] if ranks == 2 else ["one pass", "two passes", "ring"]
    assert [way for way, last in zip(won, [None, *won], strict=False) if way != last] == expected


TIMED = [
    ("h200-sxm", 4, 14, (2.9, 4.8)), ("h200-sxm", 8, 14, (3.5, 5.3)), ("b200", 4, 14, (4.8, 7.6)),
    ("b200", 8, 14, (5.3, 8.2)), ("h200-sxm", 8, 20, (13.1, 43.9)), ("b200", 4, 20, (9.7, 19.0)),
    ("b200", 8, 20, (15.0, 27.3)), ("h200-sxm", 4, 23, (43.4, 61.8)), ("h200-sxm", 8, 23, (48.4, 80.8)),
    ("b200", 4, 23, (31.4, 75.5)), ("b200", 8, 23, (36.2, 80.4)), ("h200-sxm", 4, 27, (608.4, 617.0)),
    ("b200", 8, 27, (396.1, 442.3)),
]  # fmt: skip
"""Sums of 2^n bytes in graphs of vLLM, SGLang and TensorRT-LLM, the fastest and slowest [us]: aiconfigurator 0.12.0,
custom_allreduce_perf. Left out are long ones over two ranks, which reach less of the links than four and eight."""


@pytest.mark.parametrize(("name", "ranks", "power", "timed"), TIMED)
def test_sums_take_what_engines_were_timed_with(name, ranks, power, timed):
    fast, slow = timed
    assert fast / 1.1 < all_reduce(hardware(name), ranks, 1 << power).seconds * 1e6 < slow * 1.1


@pytest.mark.parametrize("degrees", [{"expert_parallel": 16}, {"tensor_parallel": 8, "pipeline_parallel": 4}])
def test_a_node_of_all_devices_is_one_network_and_smaller_or_slower_ones_cost_more(degrees):
    asked = {"batch": 512, "q_len": 1, "kv_len": 2048}

    def seconds(**network):
        name = "mixtral-8x22b" if "tensor_parallel" in degrees else "deepseek-v3"
        found = step(name, H100, layout=Layout(**degrees, **network), **asked)
        sends = sum(part.times for part in found.parts if part.name.startswith("send"))
        assert sends == found.layout.pipeline_parallel - 1
        return found.seconds, found.stage_seconds

    whole = seconds(devices_per_node=Layout(**degrees).devices)
    apart = [seconds(devices_per_node=8, network_bandwidth=rate) for rate in (100e9, 50e9, 12.5e9)]
    assert [*apart] == sorted(apart)
    assert all(a < b for a, b in zip(whole, apart[0], strict=True))
    assert seconds(devices_per_node=8) == seconds() == apart[1]  # an H100 has links to seven others


@pytest.mark.parametrize(("ranks", "node", "stages"), list(product((1, 2, 4), (1, 2, 4, 8), range(1, 9))))
def test_stages_border_on_each_other_within_nodes_and_between_them(ranks, node, stages):
    layout = Layout(tensor_parallel=ranks, pipeline_parallel=stages, devices_per_node=node)
    first = [stage * ranks // node for stage in range(stages)]
    between = sum(a != b for a, b in pairwise(first))
    assert layout.sends == (stages - 1 - between, between)


def test_nodes_are_named_and_their_sizes_checked():
    assert layout_text(Layout(tensor_parallel=16, devices_per_node=8)) == "TP 16, nodes of 8"
    assert layout_text(Layout(tensor_parallel=8, devices_per_node=8)) == "TP 8"
    with pytest.raises(InputError, match=r"^devices_per_node: 6 given with tensor_parallel = 4; allowed: [^\n]* 4$"):
        Layout(tensor_parallel=4, devices_per_node=6)
    with pytest.raises(InputError, match=r"^network_bandwidth: 5e\+10 given without devices_per_node; [^\n]*$"):
        Layout(tensor_parallel=4, network_bandwidth=50e9)


@pytest.mark.parametrize(
    ("name", "lanes"), [("a10", 4), ("a10g", 4), ("rtx-a6000", 4), ("rtx4090", 4), ("rtx5090", 5), ("t4", 3)]
)
def test_cards_without_nvlink_are_joined_by_pcie(name, lanes):
    """Sixteen lanes of 1 GB/s for PCIe 3, doubled in each generation, in one direction."""
    assert link(hardware(name)) == 2 ** (lanes - 3) * 16e9
