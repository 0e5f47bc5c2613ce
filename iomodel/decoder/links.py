"""The time of collectives between the devices that share a model.

A ring all-reduce sends 2 (n - 1) / n of the data from each rank, in 2 (n - 1) steps (Patarasuk and Yuan 2009, J.
Parallel Distrib. Comput. 69:117). An exchange of all with all sends (n - 1) / n of a rank's data. Start and step cost
what NCCL's own tuning model says of its protocol of low latency over NVLink (github.com/NVIDIA/nccl,
src/graph/tuning.cc: baseLat, hwLat). Nothing overlaps with products.
"""

from __future__ import annotations

from iomodel.errors import SpecError
from iomodel.hardware import Hardware
from iomodel.linear.span import Span
from iomodel.per_device import per_device

START = 6.6e-6
"""A ring of NCCL by its protocol of low latency [s]."""
STEP = 0.6e-6
"""Each step of the ring over NVLink [s]."""


@per_device
def link(device: Hardware) -> float:
    """What a device sends to others, one direction of all its links [B/s].

    Raises
    ------
    SpecError
        Its file has no figure of a link, or says that there is none.

    Examples
    --------
    >>> from iomodel.hardware import hardware
    >>> link(hardware("h100-sxm5"))
    450000000000.0
    """
    links = device.interconnect
    ways = ((links.per_direction, 1), (links.total, 2), (links.pcie_per_direction, 1), (links.pcie_total, 2))
    for figure, directions in ways:
        if figure is not None and figure.value:
            return float(figure.value) / directions
    raise SpecError(
        f"interconnect: {device.id or device.name} has no link on file; tensor_parallel, pipeline_parallel and "
        "expert_parallel above 1 need interconnect.per_direction"
    )


def all_reduce(device: Hardware, ranks: int, size: int) -> Span:
    """The sum over ranks of `size` bytes on each."""
    sent = -(-2 * (ranks - 1) * size // ranks)
    return _span(device, sent, START + 2 * (ranks - 1) * STEP)


def all_to_all(device: Hardware, ranks: int, size: int) -> Span:
    """Every rank sends `size` bytes to all, itself among them."""
    return _span(device, -(-(ranks - 1) * size // ranks), START + STEP)


def send(device: Hardware, size: int) -> Span:
    """From one stage to the next."""
    return _span(device, size, START + STEP)


def _span(device: Hardware, sent: int, latency: float) -> Span:
    seconds = sent / link(device)
    return Span(seconds + latency, 0, 0, 0, (("link", seconds), ("launch", latency)))
