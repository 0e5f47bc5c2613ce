"""What a number of devices does for a model: what fits, how fast it is, what binds, what a token costs."""

from __future__ import annotations

from iomodel.check import as_device
from iomodel.decoder.layout import Layout
from iomodel.decoder.search import crossover_context
from iomodel.errors import InputError
from iomodel.hardware import Hardware
from iomodel.model import ModelSpec
from iomodel.planning.bound import bound_of
from iomodel.planning.figures import Figures, figures
from iomodel.planning.layouts import least_layout
from iomodel.planning.memory import Fit, fit, too_large
from iomodel.planning.numbers import as_real
from iomodel.planning.result import Plan
from iomodel.planning.sensitivity import sensitivities
from iomodel.planning.service import OVERHEAD, Service, as_service
from iomodel.planning.steps import Steps
from iomodel.validation import as_integer

ROWS = 4
"""Other batches in the table: each a quarter of the one after it."""
PAYS = 1.1
"""Throughput of twice the batch, over that of the batch, from which more memory pays [-]."""
LONGEST = 1 << 20
"""Where the search for a context ends, of a model that does not say how long one may be [tokens]."""


def plan(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    count: int = 1,
    layout: Layout | None = None,
    prompt: int,
    output: int,
    batch: int | None = None,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    page_size: int | None = None,
    price_per_hour: float | None = None,
    memory_utilization: float = 0.9,
    overhead_bytes: int = OVERHEAD,
    sensitivity: bool = False,
) -> Plan:
    """Say what fits some devices, how fast a model answers on them, what binds, and what a token costs.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware or str
        The device.
    count : int
        How many of them there are.
    layout : Layout, optional
        How a replica shares out the model; the least tensor parallelism that holds it, if not given.
    prompt, output : int
        Tokens of a request, and of its answer.
    batch : int, optional
        Requests that decode together in a replica; as many as fit if not given.
    dtype, weight_dtype, kv_dtype : str, optional
        Types of activations, weights and cache; the model's if not given.
    page_size : int, optional
        The cache lies in pages of so many tokens.
    price_per_hour : float, optional
        Price of one device [1/h].
    memory_utilization : float
        Share of a device's memory that may be used [-].
    overhead_bytes : int
        What a device needs beside weights and cache [B].
    sensitivity : bool
        Whether to say what one more GB/s, GB, SM and TFLOP/s would buy.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name, a wrong number; a device without a figure that is needed.
    InfeasibleError
        The model with the batch does not fit.

    Examples
    --------
    >>> from iomodel.plan import plan
    >>> found = plan("llama-3-8b", "h100-sxm5", prompt=2048, output=256)
    >>> found.memory.fits == found.memory.left // (131072 * 2304), found.decode_bound
    (True, 'KV cache')
    """
    types = {"dtype": dtype, "weight_dtype": weight_dtype, "kv_dtype": kv_dtype, "page_size": page_size}
    device, devices = as_device(hardware), as_integer("count", count)
    first = Layout() if layout is None else layout
    service = as_service(model, prompt, output, first, types, memory_utilization, overhead_bytes)
    price = None if price_per_hour is None else as_real("price_per_hour", price_per_hour)
    if layout is None:
        service = service.laid_out(least_layout(service, device, devices))
    if devices % service.devices:
        lower = devices - devices % service.devices
        near = " or ".join(f"{n:,}" for n in (lower, lower + service.devices) if n)
        raise InputError(
            f"count: {devices:,} given for replicas of {service.devices} devices; allowed: a multiple, such as {near}"
        )
    found = fit(service, device)
    size = found.fits if batch is None else as_integer("batch", batch)
    if not size or size > found.fits:
        raise too_large(service, device, found, size)
    replicas, steps = devices // service.devices, Steps(service, device)
    at = figures(service, device, size)
    prefill, decode = steps.prefill(), steps.decode(size, sum(service.contexts) // 2)
    bounds = bound_of(prefill), bound_of(decode)
    return Plan(
        model=service.name,
        hardware=device.id or device.name,
        count=devices,
        replicas=replicas,
        layout=service.layout,
        prompt=service.prompt,
        output=service.output,
        memory=found,
        figures=at,
        prefill=prefill,
        decode=decode,
        prefill_bound=bounds[0],
        decode_bound=bounds[1],
        throughput_bound=_throughput_bound(service, device, at, bounds, found),
        crossover_context=_crossover(service, device, size),
        price_per_hour=price,
        batches=_batches(service, device, at),
        sensitivities=sensitivities(service, device, batch if batch is None else size, replicas) if sensitivity else (),
    )


def _batches(service: Service, device: Hardware, at: Figures) -> tuple[Figures, ...]:
    """The same replica at smaller batches, and at the one that was asked for."""
    smaller = {1, *(at.batch // 4**n for n in range(1, ROWS + 1))} - {0, at.batch}
    return (*(figures(service, device, batch) for batch in sorted(smaller)), at)


def _throughput_bound(service: Service, device: Hardware, at: Figures, bounds: tuple[str, str], found: Fit) -> str:
    """What would serve more: memory where a larger batch pays, else what the longer part of a cycle waits for."""
    if at.batch == found.fits:
        doubled = figures(service, device, 2 * at.batch)
        if doubled.tokens_per_second > PAYS * at.tokens_per_second:
            return "memory capacity"
    decoding = service.steps * at.step
    return bounds[1] if 2 * decoding > service.steps * at.tpot else bounds[0]


def _crossover(service: Service, device: Hardware, batch: int) -> int | None:
    """The context from which attention takes longer than the products in a decode step of the batch."""
    part = -(-batch // service.layout.pipeline_parallel)
    longest = service.model.max_positions or LONGEST
    return crossover_context(service.model, device, batch=part, longest=longest, layout=service.layout, **service.types)
