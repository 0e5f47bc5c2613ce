"""Time of collectives between the devices that share a model.

A ring all-reduce sends 2 (n - 1) / n of the data from each rank, in 2 (n - 1) steps (Patarasuk and Yuan 2009, J.
Parallel Distrib. Comput. 69:117). An all-to-all exchange sends (n - 1) / n of a rank's data. Start and step costs are
those of NCCL's tuning model for its low-latency protocol over NVLink (github.com/NVIDIA/nccl, src/graph/tuning.cc:
baseLat, hwLat). Long transfers reach a share of the link. Nothing overlaps with products.

A layout with nodes, by default where a device's links do not join all ranks, has two networks: the links within a node,
and the network between nodes, which takes what crosses.
"""

from __future__ import annotations

from iomodel.devices.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.errors import SpecError
from iomodel.planning.step.layout import Layout
from iomodel.timing.span import Span

START = 6.6e-6
"""Start of an NCCL ring with the low-latency protocol [s]."""
STEP = 0.6e-6
"""One step of the ring over NVLink [s]."""
NETWORK_STEP = 2.7e-6
"""One step of the ring over a network [s]."""
ACHIEVED = 0.8
"""Share of the bandwidth of the links that a long transfer reaches [-]: NCCL takes 0.28 ms for 51 MB among eight H100
(A. Agrawal et al., arXiv:2405.05465, data/profiling)."""
ONE_NODE = Layout()


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
        f"interconnect: {device.id or device.name} has no link on file; tensor_parallel, pipeline_parallel and "
        "expert_parallel above 1 need interconnect.per_direction"
    )


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
    """Time the sum over ranks of `size` bytes on each.

    Over several nodes, each node first scatters its sums among its ranks; each rank then exchanges its share with those
    of the other nodes. With equal bandwidths that is the ring over all ranks.
    """
    steps, nodes = 2 * (ranks - 1), layout.nodes(ranks)
    between = -(-2 * (nodes - 1) * size // ranks)
    hops = 2 * (nodes - 1)
    latency = START + (steps - hops) * STEP + hops * NETWORK_STEP
    return _span(device, -(-steps * size // ranks) - between, latency, between, layout)


def all_to_all(device: Hardware, ranks: int, size: int, layout: Layout = ONE_NODE) -> Span:
    """Time an exchange in which every rank sends `size` bytes to all ranks, including itself.

    What goes to ranks of other nodes takes the network, once for each rank; the networks take turns.
    """
    nodes = layout.nodes(ranks)
    between = (ranks - ranks // nodes) * size // ranks
    latency = START + (STEP if nodes == 1 else NETWORK_STEP)
    return _span(device, -(-(ranks - 1) * size // ranks) - between, latency, between, layout)


def send(device: Hardware, size: int, layout: Layout | None = None) -> Span:
    """Time a transfer of `size` bytes to the next stage, over the network of a layout if one is given."""
    if layout is None:
        return _span(device, size, START + STEP)
    return _span(device, 0, START + NETWORK_STEP, size, layout)


def _span(device: Hardware, sent: int, latency: float, between: int = 0, layout: Layout = ONE_NODE) -> Span:
    """Time bytes over the links and bytes over the network, one after the other."""
    seconds = sent / (ACHIEVED * link(device)) if sent else 0.0
    parts = [("link", seconds), ("launch", latency)]
    if between:
        across = between / (ACHIEVED * layout.network)
        parts.insert(1, ("network", across))
        seconds += across
    return Span(seconds + latency, 0, 0, 0, tuple(parts))
