"""Plan of a model on a number of devices: memory, speed, bound, and cost per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, SpecError, shown
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import TARGETS, of_command, settled
from iomodel.planning.checked_numbers import as_price, as_real, as_targets
from iomodel.planning.layout_search import BETTER, LayoutRate, Wanted, at_targets, best_layout, largest, rated, refusal
from iomodel.planning.layouts import check_count, no_room, too_small
from iomodel.planning.plan_result import Plan
from iomodel.planning.replica_figures import Figures, figures
from iomodel.planning.sensitivity import sensitivities
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import LoadedOptions, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_result import bound_of
from iomodel.planning.step.step_search import crossover_context
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.trust import trust

ROWS = 4
"""Other batches in the table, powers of four."""
PAYS = 1.1
"""Least speed-up from a doubled batch at which memory counts as the bound [-]."""
LONGEST = 1 << 20
"""Longest context searched, for a model without a stated limit [tokens]."""


@strict
@takes(LoadedOptions)
def plan(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    prompt: int,
    output: int,
    batch: int | None = None,
    clients: int | None = None,
    count: int | None = None,
    sensitivity: bool = False,
    **service: Unpack[LoadedOptions],
) -> Plan:
    """Plan a model on some devices: memory, speed, limiting resource, and cost per token.

    Without a layout, the search of :mod:`iomodel.planning.layout_search` takes the one with the most tokens per second
    that keeps the targets: on `count` devices, or the fewest devices for `load`, or else on one device. Where one does
    not hold the model, it is that of a replica of up to eight with the most tokens per second and device. Without
    `batch` or `clients`, the batch is the largest that fits and keeps the targets.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine, such as "vllm serve ...".
    hardware : Hardware or str
        The device.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    batch : int, optional
        Requests decoded together in a replica; by default as many as fit.
    clients : int, optional
        Clients of a closed loop on all devices, each of which sends its next request when its last one ends. TTFT then
        is that of a server: it includes the time of the host, of HTTP and of the tokeniser.
    count : int, optional
        Number of devices; by default those of one replica, or those that `load` needs. With `load` too, the batch is
        that in flight at this load, and the layout that with the least TPOT.
    sensitivity : bool
        Compute the effect of one more GB/s, GB, SM and TFLOP/s.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or the device lacks a required figure.
    InfeasibleError
        The model with the batch does not fit, or no batch keeps the targets.

    Examples
    --------
    >>> from iomodel.planning.plan import plan
    >>> result = plan("llama-3-8b", "h100-sxm5", prompt=2048, output=256)
    >>> result.memory.fits == result.memory.left // (131072 * 2304), result.decode_bound
    (True, 'KV cache')
    >>> best = plan("llama-3.1-70b", "h100-sxm5", count=8, prompt=2048, output=512)
    >>> best.layout.tensor_parallel, best.replicas
    (4, 2)
    """
    model, given, told, ignored = of_command(model, service, batch=batch, count=count)
    asked = settled(plan, given, **TARGETS, **told)
    if not isinstance(sensitivity, bool):
        raise InputError(f"sensitivity: {shown(sensitivity)} given; allowed: True or False")
    device = as_device(hardware)
    served = as_service(model, prompt, output, asked.start, **asked.service).on(device)
    targets = as_targets(asked.own["ttft"], asked.own["tpot"])
    wanted = as_wanted(asked.own["count"], asked.own["load"], asked.own["batch"], clients, targets)
    options = best_layout(served, device, wanted) if asked.layout is None else []
    if options:
        served = served.laid_out(options[0].layout)
    reached = reached_on(served, device, wanted)
    replicas = wanted.replicas(served, reached.requests_per_second)
    steps = ReplicaSteps(served, device)
    assumed, left_out = trust(served, [device], [served.layout]).of(device)
    memory = served.memory(device)
    fixed = None if asked.own["batch"] is None and clients is None else reached.batch
    later: dict[str, Callable[[Plan], Any]] = {
        "prefill": lambda _: steps.prefill(),
        "decode": lambda _: steps.decode(reached.batch, sum(served.contexts) // 2),
        "prefill_bound": lambda plan: bound_of(plan.prefill),
        "decode_bound": lambda plan: bound_of(plan.decode),
        "throughput_bound": lambda plan: _throughput_bound(plan, served, device),
        "crossover_context": lambda _: _crossover(served, device, reached.batch),
        "batches": lambda _: _batches(served, device, reached),
        "better": lambda _: None if options else _better(served, device, wanted, reached),
        "ttft_uncached": lambda _: _uncached(served, device),
        "step_batch": lambda _: _step_batch(served, device, wanted),
    }
    return Plan.deferring(
        later,
        model=served.name,
        hardware=device.label,
        count=replicas * served.devices,
        replicas=replicas,
        layout=served.layout,
        prompt=served.prompt,
        output=served.output,
        memory=memory,
        figures=reached,
        price_per_hour=price_on(device, asked.own["price"]),
        prefix_cache=served.prefix_cache,
        speculation=served.speculation,
        lora=served.lora,
        page_size=served.page_size,
        assumed=(*ignored, *_assumed(wanted), *_too_small(served, device, wanted, asked.layout), *assumed),
        left_out=left_out,
        sensitivities=sensitivities(served, device, fixed, replicas) if sensitivity else (),
        engine=None if served.engine is None else served.engine.asked,
        clients=wanted.clients,
        load=wanted.load,
        layouts=tuple(options),
    )


def as_wanted(count: object, load: object, batch: object, clients: object, targets: dict[str, float]) -> Wanted:
    """Validate devices, load, batch and clients of a plan."""
    if load is not None and count is not None and (batch is not None or clients is not None):
        other = "batch" if clients is None else "clients"
        raise InputError(f"{other}: given with load and count; allowed: two of them, because these set the batch")
    if batch is not None and clients is not None:
        raise InputError("clients: given with batch; allowed: one of both, because clients set the batch")
    return Wanted(
        None if count is None else as_integer("count", count),
        None if load is None else as_real("load", load),
        None if batch is None else as_integer("batch", batch),
        None if clients is None else as_integer("clients", clients),
        FrozenDict(targets),
    )


def reached_on(service: Service, device: Hardware, wanted: Wanted) -> Figures:
    """Compute the figures of one replica of a layout at the largest batch that is wanted, or raise InfeasibleError."""
    check_count(service, wanted.count)
    reached = at_targets(service, device, wanted)
    if reached is not None:
        return reached
    fits = service.memory(device).fits
    if not fits or (wanted.batch or 0) > fits:
        raise no_room(service, device, wanted.batch or 1)
    raise refusal(service, device, wanted, [service.layout])


def price_on(device: Hardware, price: object) -> float | None:
    """Return the price of a device; None without one [1/h]."""
    single, table = as_price(price)
    return table_price(device, table) if single is None else single


def table_price(device: Hardware, table: Mapping[str, float]) -> float | None:
    """Look up the price of a device in a table by names or files [1/h]."""
    return next((price for name, price in table.items() if as_device(name) is device), None)


def _assumed(wanted: Wanted) -> tuple[str, ...]:
    """State the load that TTFT and TPOT hold at."""
    if wanted.clients is not None:
        return ("clients in a closed loop, whose lengths vary a little; a server and its host before the first token",)
    if wanted.load is not None and wanted.count is not None:
        return ("requests arrive evenly; simulate has the times at random arrivals",)
    if wanted.load is not None:
        return (
            "requests arrive evenly; at random arrivals fleet needs more devices, and takes the least TPOT of as many",
        )
    return ()


def _step_batch(service: Service, device: Hardware, wanted: Wanted) -> int | None:
    """Return the largest batch whose decode step alone keeps the target of a token; None without a target [-]."""
    target, fits = wanted.targets.get("tpot"), service.most_requests(device)
    if target is None or wanted.batch is not None or wanted.clients is not None:
        return None
    return largest(1, fits, lambda batch: figures(service, device, batch).step <= target)


def _uncached(service: Service, device: Hardware) -> float | None:
    """Return the time to the first token of a request alone whose prompt is in no cache; None without a cache [s]."""
    return None if service.prefix_cache is None else figures(replace(service, prefix_cache=None), device, 1).ttft_alone


def _too_small(service: Service, device: Hardware, wanted: Wanted, layout: Layout | None) -> tuple[str, ...]:
    """Say of a device that was named without a count why the answer is for several, where its memory decides."""
    given = layout is not None or wanted.count is not None or wanted.load is not None
    return () if given else too_small(service, device)


def _better(service: Service, device: Hardware, wanted: Wanted, reached: Figures) -> LayoutRate | None:
    """Find a layout whose rate is a tenth higher than that of a given one, on the same devices; None without one."""
    here = replace(wanted, count=wanted.count or service.devices)
    try:
        others = rated(service, device, here)
    except SpecError:
        return None
    own = (here.count or 1) // service.devices * reached.tokens_per_second
    return others[0] if others and others[0].tokens_per_second > BETTER * own else None


def _batches(service: Service, device: Hardware, full: Figures) -> tuple[Figures, ...]:
    """Compute the figures of the replica at smaller batches, and at the requested one."""
    powers = [1 << power for power in range(2, full.batch.bit_length(), 2) if 1 << power < full.batch]
    smaller = {1, *powers[-ROWS:]} - {full.batch}
    return (*(figures(service, device, batch) for batch in sorted(smaller)), full)


def _throughput_bound(plan: Plan, service: Service, device: Hardware) -> str:
    """Name the resource that limits throughput: memory if a larger batch pays, otherwise the limit of the longer
    phase.
    """
    full = plan.figures
    if full.batch == plan.memory.fits:
        doubled = figures(service, device, 2 * full.batch)
        if doubled.tokens_per_second > PAYS * full.tokens_per_second:
            return "memory capacity"
    decoding = service.steps * full.step
    return plan.decode_bound if 2 * decoding > service.steps * full.cycle_per_token else plan.prefill_bound


def _crossover(service: Service, device: Hardware, batch: int) -> int | None:
    """Find the context from which attention takes longer than the products in a decode step of the batch."""
    part = -(-batch // service.layout.pipeline_parallel)
    longest = service.model.max_positions or LONGEST
    return crossover_context(service.model, device, batch=part, longest=longest, layout=service.layout, **service.types)
