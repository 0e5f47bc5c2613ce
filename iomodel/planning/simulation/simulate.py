"""Simulation of a serving engine: distributions of TTFT and TPOT under continuous batching."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np

from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, SpecError
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import of_command, settled
from iomodel.planning.checked_numbers import as_real
from iomodel.planning.engines import step_host
from iomodel.planning.formatting import gigabytes
from iomodel.planning.layout_search import Wanted, rated
from iomodel.planning.layouts import SERVER, default_layouts, no_room, with_least_layout
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.replica_figures import server_host
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import RequestOptions, SimulationOptions, takes
from iomodel.planning.simulation.arrivals import Requests, as_requests
from iomodel.planning.simulation.engine_run import percentiles, run
from iomodel.planning.simulation.event_loop import Scheduler
from iomodel.planning.simulation.prefix_hits import hits
from iomodel.planning.simulation.simulation_result import Simulation
from iomodel.planning.step.layout import Layout
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.trust import HOST, NO_HOST, trust

POLICIES = ("prefill-first", "chunked")
TOKEN_BUDGET = 8192
"""Tokens of a step by default, a common setting of engines."""
MOST_BUDGET = 1 << 24


@strict
@takes(SimulationOptions)
def simulate(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    policy: str | None = None,
    token_budget: int | None = None,
    batch: int | None = None,
    host_seconds: float | str | None = None,
    **service: Unpack[SimulationOptions],
) -> Simulation:
    """Simulate one serving engine step by step: percentiles of TTFT, TPOT and latency, throughput and utilisation.

    Requests enter in the order of their arrival, as soon as their complete cache fits the memory, so none is preempted.
    Under ``prefill-first``, waiting prompts are prefilled together, up to the token budget, before any decode step.
    Under ``chunked``, each step decodes one token of every running request and fills the rest of the budget with
    prompts, the last of which may be divided (A. Agrawal et al., *Taming throughput-latency tradeoff in LLM inference
    with Sarathi-Serve*, OSDI 2024, section 4). Step times are approximate:
    :mod:`iomodel.planning.simulation.step_table` states the interpolation. With an engine, the time to the first token
    includes the host time of the prefill and of the server. The drafts that a step accepts are drawn at random. Without
    a layout, the engine has that of the search of :func:`iomodel.plan` on up to eight devices. Pipelines are refused;
    of data-parallel groups, which take requests in turn and are alike, one is simulated.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine.
    hardware : Hardware or str
        The device.
    policy : "prefill-first" or "chunked", optional
        Order of prefills and decode steps; by default that of the engine, or ``prefill-first``.
    token_budget : int, optional
        Most tokens of a step of each data-parallel group, by default those of the engine, or 8192; under
        ``prefill-first`` a longer prompt runs alone [tokens].
    batch : int, optional
        Most requests in the engine; by default as many as fit.
    host_seconds : float, optional
        Time of each step on the host that the device does not overlap [s]; by default that of a plan.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, a trace is malformed, or the device lacks a required figure.
    InfeasibleError
        A request does not fit the memory.

    Examples
    --------
    >>> from iomodel.planning.simulation.simulate import simulate
    >>> result = simulate("llama-3-8b", "h100-sxm5", prompt=1024, output=64, load=4.0, requests=200)
    >>> result.ttft.p50 < result.ttft.p90 < result.ttft.p99 < 0.2
    True
    """
    model, told, own, ignored = of_command(model, service, batch=batch)
    asked = settled(simulate, told, batch=own["batch"])
    named = {name: asked.service.pop(name) for name in RequestOptions.__annotations__ if name in asked.service}
    requested = cast(RequestOptions, named)
    device = as_device(hardware)
    arriving, seed = as_requests(**requested), int(requested.get("seed", 0))
    served = _service(model, arriving, asked.start, asked.service).on(device)
    serving = served.engine
    usual = "chunked" if serving is not None and serving.mixes else "prefill-first"
    order = usual if policy is None else as_choice("policy", policy, POLICIES)
    usual_tokens = served.step_tokens or TOKEN_BUDGET if serving is None else served.limits(device)[0]
    budget = usual_tokens if token_budget is None else as_integer("token_budget", token_budget)
    if budget > MOST_BUDGET:
        raise InputError(f"token_budget: {budget:,} given; allowed: at most {MOST_BUDGET:,} tokens")
    host = step_host(serving, device) if host_seconds is None else as_real("host_seconds", host_seconds, zero=True)
    most = None if asked.own["batch"] is None else as_integer("batch", asked.own["batch"])
    if asked.layout is None:
        served = _laid_out(served, device, most)
    _check_layout(served.layout)
    memory = served.memory(device)
    need = _memory_of(served, arriving)
    _check_memory(served, device, arriving, need)
    groups = served.layout.data_parallel
    fits = memory.left // int(need.min())
    fits = served.at_once(device, groups * min(fits, memory.slots or fits))
    limit = fits if most is None else min(most, fits)
    turns = _with_hits(served, arriving.of_group(groups), memory.left, need[::groups])
    together = min(-(-limit // groups), turns.concurrency or limit, len(turns.prompt))
    chunked, each = order == "chunked", served.tokens_at_once
    scheduler = Scheduler(turns.concurrency or 0, memory.left, together, budget, each, chunked, host)
    totals, (ttft, tpot, latency) = run(served, device, turns, need[::groups], scheduler, seed)
    totals = totals.of_groups(groups)
    if serving is not None:
        waited = server_host(ReplicaSteps(served, device))
        ttft, latency = ttft + waited, latency + waited
    assumed, left_out = trust(served, [device], [served.layout]).of(device)
    assumed = tuple(text for text in assumed if text not in (HOST, NO_HOST))  # stated with the time of a step
    return Simulation(
        model=served.name,
        hardware=device.label,
        layout=served.layout,
        policy=order,
        token_budget=budget,
        batch=limit,
        host_seconds=host,
        requests=len(need),
        prompt_tokens=int(arriving.prompt.sum()),
        output_tokens=int(arriving.output.sum()),
        concurrency=arriving.concurrency,
        load=arriving.load,
        seed=seed,
        memory=memory,
        ttft=percentiles(ttft),
        tpot=percentiles(tpot),
        latency=percentiles(latency),
        **totals._asdict(),
        assumed=(*ignored, *turns.notes, *_lengths(turns), *_assumed(host, served), *assumed),
        notes=(
            *served.model.notes,
            *_overload(arriving.load, len(need) / totals.seconds, totals.largest_batch >= limit),
        ),
        prefix_cache=served.prefix_cache,
        speculation=served.speculation,
        lora=served.lora,
        left_out=left_out,
    )


SUSTAINED = 0.9
"""Least share of a load that an engine with all places taken serves while its waits do not grow with the run."""


def _overload(load: float | None, served: float, full: bool) -> tuple[str, ...]:
    """Say that an engine whose places are all taken serves less than its load.

    >>> _overload(20.0, 12.0, True), _overload(20.0, 19.0, True), _overload(20.0, 12.0, False)
    (('overloaded: 12 of 20 requests/s are served; waits grow with the number of requests',), (), ())
    """
    if load is None or not full or served >= SUSTAINED * load:
        return ()
    return (f"overloaded: {served:.3g} of {load:g} requests/s are served; waits grow with the number of requests",)


def _with_hits(service: Service, arriving: Requests, room: int, need: Any) -> Requests:
    """Find the cached prefixes by the hash ids of a trace, unless the service has a prefix cache of its own."""
    if arriving.blocks is None or service.prefix_cache is not None:
        return arriving
    longest = int(need.argmax())
    tokens = int(arriving.prompt[longest] + arriving.output[longest])
    capacity = int(room * tokens // max(int(need[longest]), 1))
    cached = hits(arriving.blocks, arriving.prompt, capacity)
    share = cached.sum() / arriving.prompt.sum()
    note = (
        f"{100 * share:.0f} % of the tokens of prompts are hits by the hash ids of the trace, in a cache of "
        f"{capacity:,} tokens that keeps the blocks used last"
    )
    return replace(arriving, cached=cached, notes=(*arriving.notes, note))


def _laid_out(service: Service, device: Hardware, batch: int | None) -> Service:
    """Lay a service out by the best of the layouts of a plan that are simulated; the least where none can be timed."""
    layouts = [each for each in default_layouts(service, device, SERVER) if each.pipeline_parallel == 1]
    try:
        options = rated(service, device, Wanted(batch=batch), layouts) or rated(service, device, Wanted(), layouts)
    except SpecError:
        options = []
    return service.laid_out(options[0].layout) if options else with_least_layout(service, device)


def _lengths(arriving: Requests) -> tuple[str, ...]:
    """Say of clients of one length that they stay in step."""
    single = len({*map(int, arriving.prompt[:64])}) == len({*map(int, arriving.output[:64])}) == 1
    if not single or arriving.concurrency in (None, 1):
        return ()
    return ("requests of one length stay in step, so that prompts arrive together; lengths=(0.8, 1.0) spreads them",)


def _service(model: ModelSpec | str, arriving: Requests, layout: Layout, service: Mapping[str, Any]) -> Service:
    """Build the service of the longest request, or raise an error with the row of a trace that it is in."""
    place = int((arriving.prompt + arriving.output).argmax())
    lengths = int(arriving.prompt[place]), int(arriving.output[place])
    try:
        served = as_service(model, *lengths, layout, **service)
        if served.prefix_cache is not None:
            place = int(arriving.prompt.argmin())
            served.prefix_cache.check(int(arriving.prompt[place]))
            _check_tiers(served.prefix_cache)
    except InputError as error:
        if arriving.rows is not None and str(error).startswith(("prompt + output", "prefix_cache.shared")):
            raise InputError(f"{arriving.where(place)}: {error}") from None
        raise
    return served


def _check_tiers(cache: PrefixCache) -> None:
    """Raise InputError for a cache outside of the devices, whose loads a simulation does not have."""
    for field in ("host_rate", "disk_rate"):
        if getattr(cache, field):
            raise InputError(
                f"prefix_cache.{field}: {getattr(cache, field):g} given; allowed: 0, because a simulation loads nothing"
            )


def _check_layout(layout: Layout) -> None:
    if layout.pipeline_parallel > 1:
        raise InputError(
            f"layout.pipeline_parallel: {layout.pipeline_parallel} given; allowed: ranks that run each step together"
        )


def _memory_of(service: Service, arriving: Requests) -> Any:
    """Compute the memory of each request [B]."""
    tokens, places = np.unique(arriving.prompt + arriving.output, return_inverse=True)
    services = [each for each in (service, service.draft) if each is not None]
    sizes = [sum(each.requests.own(each.model.counted, int(some)) for each in services) for some in tokens]
    return np.array(sizes)[places]


def _check_memory(service: Service, device: Hardware, arriving: Requests, need: Any) -> None:
    worst, memory = int(need.argmax()), service.memory(device)
    if need[worst] <= memory.left:
        return
    if arriving.rows is None:
        raise no_room(service, device)
    tokens = f"{arriving.prompt[worst]:,} + {arriving.output[worst]:,}"
    raise InfeasibleError(
        f"{arriving.where(worst)}: a request of {tokens} tokens needs {gigabytes(need[worst])} on each device; "
        f"allowed: at most {gigabytes(max(0, memory.left))}, the memory left",
        least=memory.needed(1),
        unit="B",
    )


def _assumed(host: float, service: Service) -> tuple[str, ...]:
    engine, drafts, groups = service.engine, service.speculation, service.layout.data_parallel
    alike = (f"{groups} groups of ranks take requests in turn and are alike: one is simulated",) if groups > 1 else ()
    where = "host" if engine is not None and engine.tuned else "host and server"
    waited = () if engine is None else (f"{where} before the first token as under {engine.name}",)
    accepted = (
        () if drafts is None else ("each draft is accepted independently; a request grows evenly with its steps",)
    )
    return (
        *alike,
        *waited,
        *accepted,
        "memory is reserved for the complete answer of a request, so none is preempted",
        "a batch of different contexts takes the time of their mean; attention of prompts together is the sum of each",
        "no host time" if not host else f"{host:g} s on the host in each step",
    )
