"""Plan of a model on a number of devices: memory, speed, bound, and cost per token."""

from __future__ import annotations

from typing import Unpack

from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.models.registry import ModelSpec
from iomodel.planning.checked_numbers import as_real
from iomodel.planning.layouts import SERVER, no_room, with_least_layout
from iomodel.planning.plan_result import Plan
from iomodel.planning.replica_figures import Figures, figures
from iomodel.planning.sensitivity import sensitivities
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_memory import Fit
from iomodel.planning.service_options import ServiceOptions, check_names, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_result import bound_of
from iomodel.planning.step.step_search import crossover_context
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.trust import trust

ROWS = 4
"""Other batches in the table, each a quarter of the next."""
PAYS = 1.1
"""Least speed-up from a doubled batch at which memory counts as the bound [-]."""
LONGEST = 1 << 20
"""Longest context searched, for a model without a stated limit [tokens]."""


@takes(ServiceOptions)
def plan(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    count: int | None = None,
    layout: Layout | None = None,
    prompt: int,
    output: int,
    batch: int | None = None,
    price_per_hour: float | None = None,
    sensitivity: bool = False,
    **service: Unpack[ServiceOptions],
) -> Plan:
    """Plan a model on some devices: memory, speed, limiting resource, and cost per token.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware or str
        The device.
    count : int, optional
        Number of devices; by default those of one replica.
    layout : Layout, optional
        Parallel layout of a replica; by default the least tensor parallelism that holds the model and one request, on
        up to eight devices or `count`.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    batch : int, optional
        Requests decoded together in a replica; by default as many as fit.
    price_per_hour : float, optional
        Price of one device [1/h].
    sensitivity : bool
        Compute the effect of one more GB/s, GB, SM and TFLOP/s.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or the device lacks a required figure.
    InfeasibleError
        The model with the batch does not fit.

    Examples
    --------
    >>> from iomodel.planning.plan import plan
    >>> result = plan("llama-3-8b", "h100-sxm5", prompt=2048, output=256)
    >>> result.memory.fits == result.memory.left // (131072 * 2304), result.decode_bound
    (True, 'KV cache')
    >>> plan("llama-3.1-405b", "h200-sxm", prompt=2048, output=256, precision="fp8").layout.tensor_parallel
    4
    """
    check_names(plan, service)
    device = as_device(hardware)
    served = as_service(model, prompt, output, Layout() if layout is None else layout, **service)
    price = None if price_per_hour is None else as_real("price_per_hour", price_per_hour)
    if layout is None:
        most = SERVER if count is None else as_integer("count", count)
        served = with_least_layout(served, device, most)
    devices = served.devices if count is None else as_integer("count", count)
    replicas = _replicas(served, devices)
    memory = served.memory(device)
    size = served.most_requests(device) if batch is None else as_integer("batch", batch)
    if not size or size > memory.fits:
        raise no_room(served, device, size)
    steps = ReplicaSteps(served, device)
    reached = figures(served, device, size)
    prefill, decode = steps.prefill(), steps.decode(size, sum(served.contexts) // 2)
    bounds = bound_of(prefill), bound_of(decode)
    assumed, left_out = trust(served, [device], [served.layout]).of(device)
    return Plan(
        model=served.name,
        hardware=device.label,
        count=devices,
        replicas=replicas,
        layout=served.layout,
        prompt=served.prompt,
        output=served.output,
        memory=memory,
        figures=reached,
        prefill=prefill,
        decode=decode,
        prefill_bound=bounds[0],
        decode_bound=bounds[1],
        throughput_bound=_throughput_bound(served, device, reached, bounds, memory),
        crossover_context=_crossover(served, device, size),
        price_per_hour=price,
        batches=_batches(served, device, reached),
        prefix_cache=served.prefix_cache,
        speculation=served.speculation,
        lora=served.lora,
        page_size=served.page_size,
        assumed=assumed,
        left_out=left_out,
        sensitivities=sensitivities(served, device, batch if batch is None else size, replicas) if sensitivity else (),
    )


def _replicas(service: Service, devices: int) -> int:
    """Divide devices among replicas evenly."""
    each = service.devices
    if devices % each:
        lower = devices - devices % each
        near = " or ".join(f"{n:,}" for n in (lower, lower + each) if n)
        raise InputError(
            f"count: {devices:,} given for replicas of {each} devices; allowed: a multiple, such as {near}"
        )
    return devices // each


def _batches(service: Service, device: Hardware, full: Figures) -> tuple[Figures, ...]:
    """Compute the figures of the replica at smaller batches, and at the requested one."""
    smaller = {1, *(full.batch // 4**n for n in range(1, ROWS + 1))} - {0, full.batch}
    return (*(figures(service, device, batch) for batch in sorted(smaller)), full)


def _throughput_bound(service: Service, device: Hardware, full: Figures, bounds: tuple[str, str], memory: Fit) -> str:
    """Name the resource that limits throughput: memory if a larger batch pays, otherwise the limit of the longer
    phase.
    """
    if full.batch == memory.fits:
        doubled = figures(service, device, 2 * full.batch)
        if doubled.tokens_per_second > PAYS * full.tokens_per_second:
            return "memory capacity"
    decoding = service.steps * full.step
    return bounds[1] if 2 * decoding > service.steps * full.tpot else bounds[0]


def _crossover(service: Service, device: Hardware, batch: int) -> int | None:
    """Find the context from which attention takes longer than the products in a decode step of the batch."""
    part = -(-batch // service.layout.pipeline_parallel)
    longest = service.model.max_positions or LONGEST
    return crossover_context(service.model, device, batch=part, longest=longest, layout=service.layout, **service.types)
