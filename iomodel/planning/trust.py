"""Trust in an answer about capacity: the assumptions behind it, and the effects that no figure on file times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from iomodel.common.cache import per_device
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware
from iomodel.devices.quantity import UNVERIFIED, Quantity
from iomodel.devices.rates import has_rates, rates
from iomodel.planning.engines import ASSUMED, GGML, GIB, STEP_HOST
from iomodel.planning.service import UTILIZATION, Service
from iomodel.planning.step.layout import NETWORK, Layout, has_experts
from iomodel.planning.step.links import ACHIEVED, with_nodes
from iomodel.planning.step.step_arguments import run_in
from iomodel.workloads.dtypes import served

LINKS = ("interconnect.per_direction", "interconnect.total", "interconnect.pcie_per_direction")
NO_HOST = "no time of the host"
HOST = f"{1e3 * STEP_HOST:g} ms of the host between steps"
QUEUE = "requests of one length arrive at random; prompts are prefilled one at a time, before any decode step"


class Trust(NamedTuple):
    """Assumptions common to all devices, those about each device, and what is left out on each."""

    common: tuple[str, ...]
    assumed: FrozenDict[str, tuple[str, ...]]
    left_out: FrozenDict[str, tuple[str, ...]]

    def of(self, device: Hardware) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return all assumptions about one device, and what is left out on it."""
        name = device.label
        return (*self.common, *self.assumed[name]), self.left_out[name]


def trust(service: Service, devices: Iterable[Hardware], layouts: Iterable[Layout]) -> Trust:
    """List what answers for some devices and layouts assume, and leave out."""
    tried, given = list(layouts), service.types.get("dtype")
    assumed, left_out = {}, {}
    several, nodes = any(layout.devices > 1 for layout in tried), False
    for device in devices:
        name = device.label
        nodes |= any(_network(with_nodes(layout, device)) for layout in tried)
        dtype, usual = given or run_in(service.model, device), given or served(service.model.dtype)
        stated, left_out[name] = _of_rates(device, dtype)
        other = () if dtype == usual else (f"run in {dtype}, for {name} has no products in {usual}",)
        assumed[name] = (*other, *_of_engine(service.on(device), device), *stated, *_unsourced(device, dtype, several))
    return Trust(tuple(_common(service, tried, nodes)), FrozenDict(assumed), FrozenDict(left_out))


@per_device
def _of_rates(device: Hardware, dtype: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the rates of a device assume and leave out; nothing for a device without times in a type."""
    known = rates(device, dtype) if has_rates(device, dtype) else None
    return ((), ()) if known is None else (known.assumed, known.left_out)


def _network(layout: Layout) -> bool:
    """Check that a layout spans nodes whose network is the default."""
    return layout.nodes(layout.devices) > 1 and layout.network_bandwidth is None


def _of_engine(service: Service, device: Hardware) -> Iterator[str]:
    """List the assumptions about the engine on a device."""
    engine = service.engine
    if engine == ASSUMED:
        yield f"the engine is {engine.name}: its memory, blocks and batches"
        yield HOST
    elif engine is not None:
        yield f"memory, blocks, batches and time of the host as under {engine.name}"
        if engine.tuned:
            tokens, requests = service.limits(device)
            yield f"at most {requests:,} requests and {tokens:,} tokens in a step of a rank, as its benchmark sets them"
    else:
        if service.alone:
            yield f"{GGML} runs the model, on all of the memory and with some of the layers on each device"
        usual = service.memory_utilization is None and not service.alone
        share = f"{100 * UTILIZATION:g} % of the memory" if usual else ""
        kept = f"{service.usual_overhead / GIB:.2g} GiB for anything but weights and cache"
        less = kept if service.overhead_bytes is None else ""
        if share or less:
            yield ", less ".join(part for part in (share, less) if part)
        yield NO_HOST if device.simulated else HOST


def _common(service: Service, layouts: list[Layout], nodes: bool) -> Iterator[str]:
    """List the assumptions that do not depend on the device."""
    if has_experts(service.model):
        yield "loads of experts follow a power law; as many are hit as if tokens chose at random"
    if any(layout.devices > 1 for layout in layouts):
        yield f"long transfers reach {100 * ACHIEVED:g} % of the links; latencies are those of NCCL over NVLink"
    if nodes:
        yield f"a network of {NETWORK / 1e9:g} GB/s for each device joins nodes"
    cache = service.prefix_cache
    if cache is not None and any(cache.tiers(service.prompt, service.page_size)):
        yield "no cached block is evicted, and each prompt has the same hit rate"
    if service.speculation is not None:
        yield "each draft token is accepted with the same probability"
    if service.lora is not None:
        yield "requests are spread evenly over the adapters"


@per_device
def _unsourced(device: Hardware, dtype: str, several: bool) -> tuple[str, ...]:
    """List the figures that an answer rests on and that no document backs."""
    paths = ("memory.hbm.bandwidth", "memory.hbm.capacity", f"compute.peak.{dtype}", *(LINKS if several else ()))
    known = device.quantities
    figures = [(path, known.get(path)) for path in paths]
    return tuple(
        f"{path} is from memory, without a document"
        for path, figure in figures
        if isinstance(figure, Quantity) and set(figure.source) <= {UNVERIFIED}
    )
