"""Candidate layouts: tensor parallelism within a server first, then pipelines of servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.models.registry import ModelSpec
from iomodel.planning.formatting import gigabytes, layout_text
from iomodel.planning.service import Service
from iomodel.planning.step.layout import Layout, cache_ranks, has_experts
from iomodel.planning.step.links import has_link

SERVER = 8
"""Most ranks of tensor parallelism: the devices of a common server."""
STAGES = (1, 2, 4, 8)
SHARES = (0.92, 0.93, 0.94, 0.95)
"""Shares of memory beyond the default that an error proposes [-]: vLLM's own since 0.21 (vllm-project/vllm#38284), and
those up to the one of throughput pages (docs/source/performance/perf-overview.md of TensorRT-LLM at 00f3768)."""
MOST_RANKS = 1024
"""Largest degree of a layout that is tried."""


def degrees(model: ModelSpec, allowed: Iterable[int]) -> list[int]:
    """List the numbers of ranks that divide every layer evenly.

    >>> from iomodel.models.registry import model
    >>> degrees(model("llama-3-8b"), range(1, 9))
    [1, 2, 4, 8]
    """
    return [ranks for ranks in allowed if _divides(model, Layout(tensor_parallel=ranks))]


def default_layouts(service: Service, device: Hardware, most: int, count: int | None = None) -> list[Layout]:
    """List tensor parallelism over 1, 2, 4 or 8 devices; if no request fits, add pipelines of more stages.

    With `count` devices to fill, any number of ranks up to eight that divides them. A model with experts is also tried
    with expert parallelism and data-parallel attention over as many devices, and ranks with copies of a head also with
    a cache that they divide. A device without a link on file is tried alone. llama.cpp gives each device some of the
    layers (``--split-mode layer``). The nodes are those of the service's own layout.
    """
    most = most if has_link(device) else 1
    usual = (1, 2, 4, SERVER) if count is None else [n for n in range(1, SERVER + 1) if count % n == 0]
    if service.alone:
        return [Layout(pipeline_parallel=n) for n in usual if n <= min(most, len(service.model.layers))]
    nodes = service.layout
    ranks = [n for n in degrees(service.model, (n for n in usual if n <= most)) if nodes.in_whole_nodes(n)]
    tried: list[Layout] = []
    for stages in STAGES:
        if stages > len(service.model.layers) or (tried and stages * max(ranks) > most):
            break
        some = ranks if stages == 1 else ranks[-1:]
        wide = [nodes.divided(tensor_parallel=n, pipeline_parallel=stages) for n in some]
        tried += with_divided_caches(wide, service)
        if stages == 1:
            whole = [n for n in usual if 1 < n <= most and nodes.in_whole_nodes(n)]
            tried += [nodes.divided(expert_parallel=n) for n in whole if _divides_experts(service.model, n)]
        if count is not None:
            tried = [layout for layout in tried if count % layout.devices == 0]
        if any(_holds(service.laid_out(layout), device) for layout in tried):
            break
    return tried


def with_divided_caches(layouts: Iterable[Layout], service: Service) -> list[Layout]:
    """Add to each layout the same one with as many ranks for the tokens of a cache as would hold copies of a head.

    >>> from iomodel.planning.service import as_service
    >>> latents = as_service("deepseek-v3", 100, 10)
    >>> [layout.decode_context_parallel for layout in with_divided_caches([Layout(tensor_parallel=8)], latents)]
    [1, 8]
    """
    caches = {layer.attention for layer in service.model.counted if layer.attention is not None}
    tried = []
    for layout in layouts:
        tried.append(layout)
        common = set.intersection(*({*cache_ranks(each, layout.tensor_parallel)} for each in caches)) if caches else {1}
        wider = layout.model_copy(update={"decode_context_parallel": max(common)})
        if max(common) > 1 and _takes(service, wider):
            tried.append(wider)
    return tried


def _takes(service: Service, layout: Layout) -> bool:
    """Check that a model, and the engine and the prefix cache of a service, take a layout."""
    try:
        layout.check(service.model)
        if service.engine is not None:
            service.engine.check_cache(service.model, layout)
    except InputError:
        return False
    return service.prefix_cache is None or not service.prefix_cache.cascade


def every_layout(model: ModelSpec, most: int, start: Layout = Layout()) -> list[Layout]:  # noqa: B008 - frozen
    """List all layouts of up to `most` devices with powers of two as degrees, in nodes like those of `start`.

    >>> from iomodel.models.registry import model
    >>> [(layout.tensor_parallel, layout.pipeline_parallel) for layout in every_layout(model("llama-3-8b"), 4)]
    [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)]
    """
    powers = [1 << power for power in range(min(most, MOST_RANKS).bit_length())]
    experts = powers if has_experts(model) else [1]
    tried = (
        start.divided(tensor_parallel=tensor, pipeline_parallel=stages, expert_parallel=many)
        for tensor in powers
        for stages in powers
        for many in experts
        if start.in_whole_nodes(tensor) and start.in_whole_nodes(many)
    )
    return [layout for layout in tried if layout.devices <= most and _divides(model, layout)]


def _divides(model: ModelSpec, layout: Layout) -> bool:
    try:
        layout.check(model)
    except InputError:
        return False
    return True


def _holds(service: Service, device: Hardware) -> bool:
    """Check that a request fits; True if the memory is unknown, because further layouts would not help."""
    try:
        return service.memory(device).fits > 0
    except SpecError:
        return True


def _divides_experts(model: ModelSpec, ranks: int) -> bool:
    """Check for experts that ranks can divide, with whole heads on each."""
    return has_experts(model) and not any(layer.mlp.experts % ranks for layer in model.counted if layer.mlp is not None)


def with_least_layout(service: Service, device: Hardware, count: int = SERVER) -> Service:
    """Lay a service out by the least tensor parallelism that divides devices and heads, and has room for a request."""
    tried = divided(service, device, count)
    return next((each for each in tried if each.memory(device).fits), tried[-1])


def with_most_room(service: Service, device: Hardware, count: int) -> Service:
    """Lay a service out by the tensor ranks with which all devices take most requests, the widest if none fits."""
    tried = divided(service, device, count)
    best = max(tried, key=lambda each: (each.memory(device).fits * (count // each.devices), -each.devices))
    return best if best.memory(device).fits else tried[-1]


def divided(service: Service, device: Hardware, count: int) -> list[Service]:
    """Lay a service out by each tensor parallelism that divides devices and heads, or by stages."""
    if service.alone:
        return [service.laid_out(layout) for layout in default_layouts(service, device, count, count)]
    heads = [layer.attention.heads for layer in service.model.counted if layer.attention is not None]
    most = min([count if has_link(device) else 1, *heads])  # at most one rank per head
    return [
        service.laid_out(service.layout.divided(tensor_parallel=n))
        for n in degrees(service.model, (n for n in range(1, most + 1) if count % n == 0))
        if service.layout.in_whole_nodes(n)
    ]


def check_count(service: Service, devices: int | None) -> None:
    """Raise InputError for devices that replicas do not divide evenly."""
    each = service.devices
    if devices is not None and devices % each:
        lower = devices - devices % each
        near = " or ".join(f"{n:,}" for n in (lower, lower + each) if n)
        raise InputError(
            f"count: {devices:,} given for replicas of {each} devices; allowed: a multiple, such as {near}"
        )


def too_small(service: Service, device: Hardware) -> tuple[str, ...]:
    """Say why a model is on several devices, where the memory of one decides."""
    if service.devices == 1:
        return ()
    alone = service.laid_out(Layout()).memory(device)
    short = f"{gigabytes(alone.missing)} are missing for one request"
    return () if alone.fits else (f"{service.devices} devices, for one does not hold the model: {short}",)


def no_room(service: Service, device: Hardware, batch: int = 1) -> InfeasibleError:
    """Build the error for a batch that does not fit, or a device without room for one request.

    The latter names the least share of memory, and the least layout, that hold a request.
    """
    memory, where = service.memory(device), f"{device.label}, {layout_text(service.layout)}"
    if memory.fits:
        return InfeasibleError(
            f"batch: {batch:,} requests of {service.tokens:,} tokens given; allowed: at most {memory.fits:,}, which "
            f"fit a replica ({where}); of clients = {batch:,} in a plan, the others wait",
            least=memory.needed(batch),
            unit="B",
        )
    wider = default_layouts(service, device, MOST_RANKS)
    larger = next((layout for layout in wider if service.laid_out(layout).memory(device).fits), None)
    nearest = "more devices per replica" if larger is None else f"{larger.devices} devices ({layout_text(larger)})"
    raised = (share for share in SHARES if replace(service, memory_utilization=share).memory(device).fits)
    nearest = next((f"memory_utilization = {share}, " for share in raised), "") + nearest
    return InfeasibleError(
        f"memory: {service.name} and one request of {service.tokens:,} tokens do not fit by "
        f"{gigabytes(memory.missing)} per device ({where}); try {nearest}, narrower weights, or a shorter request",
        least=memory.needed(1),
        unit="B",
    )
