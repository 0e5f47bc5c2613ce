"""Time of collectives between the devices that share a model.

A ring all-reduce sends 2 (n - 1) / n of the data from each rank, in 2 (n - 1) steps (Patarasuk and Yuan 2009, J.
Parallel Distrib. Comput. 69:117). An all-to-all exchange sends (n - 1) / n of a rank's data. Start and step costs are
those of NCCL's tuning model for its low-latency protocol over NVLink (github.com/NVIDIA/nccl, src/graph/tuning.cc:
baseLat, hwLat). Long transfers reach a share of the link. Nothing overlaps with products.
"""

from __future__ import annotations

from iomodel.devices.cache import per_device
from iomodel.devices.device import Hardware
from iomodel.errors import SpecError
from iomodel.timing.span import Span

START = 6.6e-6
"""Start of an NCCL ring with the low-latency protocol [s]."""
STEP = 0.6e-6
"""One step of the ring over NVLink [s]."""
ACHIEVED = 0.8
"""Share of the bandwidth of the links that a long transfer reaches [-]: NCCL takes 0.28 ms for 51 MB among eight H100
(A. Agrawal et al., arXiv:2405.05465, data/profiling)."""


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


def all_reduce(device: Hardware, ranks: int, size: int) -> Span:
    """Time the sum over ranks of `size` bytes on each."""
    sent = -(-2 * (ranks - 1) * size // ranks)
    return _span(device, sent, START + 2 * (ranks - 1) * STEP)


def all_to_all(device: Hardware, ranks: int, size: int) -> Span:
    """Time an exchange in which every rank sends `size` bytes to all ranks, including itself."""
    return _span(device, -(-(ranks - 1) * size // ranks), START + STEP)


def send(device: Hardware, size: int) -> Span:
    """Time a transfer of `size` bytes to the next stage."""
    return _span(device, size, START + STEP)


def _span(device: Hardware, sent: int, latency: float) -> Span:
    seconds = sent / (ACHIEVED * link(device))
    return Span(seconds + latency, 0, 0, 0, (("link", seconds), ("launch", latency)))
