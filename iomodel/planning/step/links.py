"""Time of collectives between the devices that share a model.

A ring all-reduce sends 2 (n - 1) / n of the data from each rank, in 2 (n - 1) steps (Patarasuk and Yuan 2009, J.
Parallel Distrib. Comput. 69:117). An all-to-all exchange sends (n - 1) / n of a rank's data. Start and step costs are
those of NCCL's tuning model for its three protocols over NVLink (github.com/NVIDIA/nccl, src/graph/tuning.cc: baseLat,
hwLat, ring); the fastest protocol is taken. Long transfers reach a share of the link. Nothing overlaps with products.

Within a node, engines sum few bytes with a kernel of their own: each rank reads the data of all others at once, or in a
second pass the sums of the others' shares (vLLM's custom_all_reduce.cuh, which TensorRT-LLM and SGLang have in their
own versions). The fastest of these and of the rings is taken. Of more than two devices on a bus, without links of
their own, all transfers are rings: vLLM has no such kernel for them, and the cards share the bridges of the host.

A layout with nodes, by default where a device's links do not join all ranks, has two networks: the links within a node,
and the network between nodes, which takes what crosses.
"""

from __future__ import annotations

from math import inf
from operator import attrgetter
from typing import NamedTuple

from iomodel.common.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.errors import SpecError
from iomodel.planning.step.layout import Layout
from iomodel.timing.span import Span


class Protocol(NamedTuple):
    """A protocol of NCCL: its start, a step over NVLink, over PCIe and over a network [s], data per byte sent [-], and
    its most bandwidth [B/s].
    """

    start: float
    step: float
    bus_step: float
    network_step: float
    data: float
    most: float = inf

    def rate(self, bandwidth: float, share: float) -> float:
        """Compute the data of a long transfer that reaches a share of the bandwidth of links [B/s]."""
        return min(self.most, share * self.data * bandwidth)

    def latency(self, steps: int, hops: int, bus: bool) -> float:
        """Compute the start and the steps of a transfer, `hops` more of which cross a network [s]."""
        return self.start + steps * (self.bus_step if bus else self.step) + hops * self.network_step


PROTOCOLS = (
    Protocol(6.6e-6, 0.6e-6, 1e-6, 22e-6, 1 / 2, 141e9),  # LL: a flag of four bytes with every four bytes; llMaxBws
    Protocol(14e-6, 1.9e-6, 2.5e-6, 4e-6, 120 / 128),  # LL128: a flag of eight bytes in every 128
    Protocol(8.4e-6, 3.4e-6, 5.7e-6, 14e-6, 1.0),  # Simple
)
"""Protocols of NCCL, which takes the fastest.

A step of LL over a network is longer than the 2.7 us of the tuning model: sums of 128 to 4096 bytes on nodes of H100
took 62 to 75 us where the model said 25 to 26 (github.com/NVIDIA/nccl/issues/1453). With it a sum of 1 MB among two
nodes takes 80 us, and took 88 (github.com/drmysore/nebius-h100-16gpu-benchmark).
"""
PASS = 5e-6
"""One pass of an engine's own kernel: its launch, and the barrier of its ranks [s]. Graphs of vLLM, SGLang and
TensorRT-LLM take 3 to 7 us for 8 KiB among two to eight H100, H200 and B200 (aiconfigurator 0.12.0,
custom_allreduce_perf), and another 3 to 7 us for two passes."""
PEERS = 0.65
"""Share of the links that the loads of such a kernel reach [-]: A100 and H200, the same tables."""
PEER_BANDWIDTH = 270e9
"""Most that the few blocks of such a kernel load from peers (36 in vLLM) [B/s]: vLLM with one to eight MiB among four
H200; links of B200, twice as fast, did not make the kernels of 2025 faster."""
ACHIEVED = 0.8
"""Share of the bandwidth of the links that a long transfer reaches [-]: NCCL takes 0.28 ms for 51 MB among eight H100
(A. Agrawal et al., arXiv:2405.05465, data/profiling)."""
ON_BUS = (0.55, 0.37)
"""The same over PCIe, among two devices and among more [-]: sums, exchanges and gathers of 32 to 256 MB in 16 bits on
RTX PRO 6000 of one node (aiconfigurator 0.12.0, nccl_perf; 0.40 to 0.59 among two, 0.29 to 0.40 among four and eight).
Two L40S reach 0.63 to 0.7; four and eight on a host that passes their data through its memory 0.16 and 0.05."""
ONE_NODE = Layout()
SECONDS = attrgetter("seconds")


@per_device
def link(device: Hardware) -> float:
    """Return the bandwidth from one device to others: one direction of all its links [B/s].

    Raises
    ------
    SpecError
        The hardware file has no link bandwidth, or states that there is no link.

    Examples
    --------
    >>> from iomodel.devices.device import hardware
    >>> link(hardware("h100-sxm5"))
    450000000000.0
    """
    links = device.interconnect
    candidates = ((links.per_direction, 1), (links.total, 2), (links.pcie_per_direction, 1), (links.pcie_total, 2))
    for figure, directions in candidates:
        if figure is not None and figure.value:
            return float(figure.value) / directions
    raise SpecError(
        f"interconnect: {device.label} has no link on file; tensor_parallel, pipeline_parallel and "
        "expert_parallel above 1 need interconnect.per_direction"
    )


def reached(device: Hardware, ranks: int) -> float:
    """Return the share of the links that a long transfer among some ranks reaches [-].

    >>> from iomodel.devices.device import hardware
    >>> reached(hardware("h100-sxm5"), 8), reached(hardware("l4"), 2), reached(hardware("l4"), 4)
    (0.8, 0.55, 0.37)
    """
    return ON_BUS[ranks > 2] if on_bus(device) else ACHIEVED


@per_device
def on_bus(device: Hardware) -> bool:
    """Check that a device reaches others over PCIe alone."""
    links = device.interconnect
    return not any(figure is not None and figure.value for figure in (links.per_direction, links.total))


def has_link(device: Hardware) -> bool:
    """Check for the bandwidth of a link.

    >>> from iomodel.devices.device import hardware
    >>> has_link(hardware("h100-sxm5")), has_link(hardware("gb10"))
    (True, False)
    """
    try:
        return link(device) > 0
    except SpecError:
        return False


def with_nodes(layout: Layout, device: Hardware, devices: int | None = None) -> Layout:
    """Return a layout with the nodes of a device, where its devices do not fit one node and it names none.

    A node then has as many devices as its links join, or the most below that which keep groups of ranks whole.

    Examples
    --------
    >>> from iomodel.devices.device import hardware
    >>> wide = Layout(expert_parallel=144)
    >>> [with_nodes(wide, hardware(name)).devices_per_node for name in ("h100-sxm5", "gb200")]
    [8, 72]
    >>> with_nodes(Layout(expert_parallel=32), hardware("gb200")).devices_per_node is None
    True
    """
    joined = device.interconnect.devices
    count = layout.devices if devices is None else devices
    if layout.devices_per_node is not None or joined is None or count <= joined.value:
        return layout
    degrees = layout.tensor_parallel, layout.expert_parallel
    sizes = range(1, int(joined.value) + 1)
    whole = [size for size in sizes if all(size % ranks == 0 or ranks % size == 0 for ranks in degrees)]
    return layout.model_copy(update={"devices_per_node": whole[-1]})


def all_reduce(device: Hardware, ranks: int, size: int, layout: Layout = ONE_NODE) -> Span:
    """Time the sum over ranks of `size` bytes on each: a ring, or within a node an engine's own kernel if it is faster.

    Over several nodes, each node first scatters its sums among its ranks; each rank then exchanges its share with those
    of the other nodes. With equal bandwidths that is the ring over all ranks.
    """
    steps, nodes = 2 * (ranks - 1), layout.nodes(ranks)
    between = -(-2 * (nodes - 1) * size // ranks)
    around = -(-steps * size // ranks)
    ring = _fastest(device, ranks, around - between, steps, between, 2 * (nodes - 1), layout, at_once=True)
    if nodes > 1 or (ranks > 2 and on_bus(device)):
        return ring
    rate = min(min(PEERS, reached(device, ranks)) * link(device), PEER_BANDWIDTH)
    passes = (((ranks - 1) * size, 1), (around, 2))
    return min((ring, *(_span(read / rate, 0.0, times * PASS, sent=read) for read, times in passes)), key=SECONDS)


def all_to_all(device: Hardware, ranks: int, size: int, layout: Layout = ONE_NODE) -> Span:
    """Time an exchange in which every rank sends `size` bytes to all ranks, including itself.

    What goes to ranks of other nodes takes the network, once for each rank; the networks take turns.
    """
    nodes = layout.nodes(ranks)
    between = (ranks - ranks // nodes) * size // ranks
    sent = -(-(ranks - 1) * size // ranks) - between
    return _fastest(device, ranks, sent, 1, between, int(nodes > 1), layout)


def all_gather(device: Hardware, ranks: int, size: int, layout: Layout = ONE_NODE) -> Span:
    """Time a ring in which every rank gets the `size` bytes of each other rank: half of an all-reduce."""
    nodes = layout.nodes(ranks)
    between = (nodes - 1) * size
    return _fastest(device, ranks, (ranks - 1) * size - between, ranks - 1, between, nodes - 1, layout, at_once=True)


def passed_on(device: Hardware, inside: int, between: int, layout: Layout) -> Span:
    """Time an exchange in which rows cross the network once for each node, whose links pass them on (DeepEP).

    `inside` and `between` are what a rank sends over the links and over the network [B].
    """
    return _fastest(device, layout.devices_per_node or layout.ranks, inside, 1, between, int(between > 0), layout)


def send(device: Hardware, size: int, layout: Layout | None = None) -> Span:
    """Time a transfer of `size` bytes to the next stage, over the network of a layout if one is given."""
    if layout is None:
        return _fastest(device, 2, size, 1)
    return _fastest(device, 2, 0, 1, size, 1, layout)


def _fastest(
    device: Hardware,
    ranks: int,
    sent: int,
    steps: int,
    between: int = 0,
    hops: int = 0,
    layout: Layout = ONE_NODE,
    at_once: bool = False,
) -> Span:
    """Time bytes over the links and over the network, one after the other or at once, in the fastest protocol.

    `hops` of the steps go to another node.
    """
    own, share = (link(device), reached(device, ranks)) if sent else (1.0, 1.0)
    bus = sent > 0 and on_bus(device)
    return min(
        (
            _span(
                sent / protocol.rate(own, share),
                between / protocol.rate(layout.network, ACHIEVED),
                protocol.latency(steps - hops, hops, bus),
                at_once,
                sent + between,
            )
            for protocol in PROTOCOLS
        ),
        key=SECONDS,
    )


def _span(inside: float, across: float, latency: float, at_once: bool = False, sent: int = 0) -> Span:
    """Add up the time on the links, on the network, and to start [s]; of networks at once the longer counts."""
    parts = [("link", inside), *([("network", across)] if across else []), ("launch", latency)]
    moved = max(inside, across) if at_once else inside + across
    return Span(moved + latency, 0, 0, 0, tuple(parts), sent_bytes=sent)
