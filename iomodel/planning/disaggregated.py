"""Plan of prefill and decode on separate devices, with the transfer of the cache over a stated link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf
from typing import NamedTuple, Unpack

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import of_command, settled
from iomodel.planning.checked_numbers import as_price, as_real, as_targets
from iomodel.planning.disaggregated_result import Disaggregation, Pool
from iomodel.planning.formatting import seconds
from iomodel.planning.layout_search import LayoutRate, Wanted, largest, rated
from iomodel.planning.layouts import SERVER, default_layouts, no_room, with_least_layout
from iomodel.planning.replica_figures import engine_host
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import ServiceOptions, takes
from iomodel.planning.step.layout import NETWORK, Layout
from iomodel.planning.step.step_arguments import as_layout
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.weights import stage_layers

EQUAL_SHARE = 0.005
"""Share by which the devices or rates of two layouts of a pool may differ and count as equal [-]."""


@strict
@takes(ServiceOptions)
def disaggregate(
    model: ModelSpec | str,
    prefill: Hardware | str,
    decode: Hardware | str | None = None,
    *,
    prompt: int,
    output: int,
    link: float | str | None = None,
    prefill_layout: Layout | None = None,
    decode_layout: Layout | None = None,
    batch: int | None = None,
    load: float | None = None,
    tpot: float | str | None = None,
    price: float | Mapping[str, float] | None = None,
    **service: Unpack[ServiceOptions],
) -> Disaggregation:
    """Plan a model with prompts prefilled on one pool of devices and tokens decoded on another.

    The cache of a prompt moves once, after its prefill; devices of a replica send and receive their parts at the same
    time, beside the work of the devices (Y. Zhong et al., *DistServe: disaggregating prefill and decoding for
    goodput-optimized large language model serving*, OSDI 2024). Nothing of the transfer overlaps with its own prefill.
    A request holds its memory in the decode pool from the start of the transfer, so a batch of b takes b requests per
    transfer and output.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine, whose layout is that of both pools.
    prefill : Hardware or str
        Device that prefills.
    decode : Hardware or str, optional
        Device that decodes, by default the same.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    link : float or str, optional
        Bandwidth from one device of a pool to one of the other, in one direction, such as "50GB/s"; by default that of
        the network of a :class:`iomodel.Layout`, a port of 400 Gb/s for each device [B/s].
    prefill_layout, decode_layout : Layout, optional
        Layouts of the replicas; by default those of the candidates of :func:`iomodel.plan` with the fewest devices for
        the load, or the most requests per second and device.
    batch : int, optional
        Requests decoded together in a replica; by default as many as fit and keep the target.
    load : float, optional
        Arrival rate of requests, evenly spaced, which sets the numbers of replicas; by default one replica of the pool
        that takes more requests, and as many of the other as give the most tokens per device [1/s].
    tpot : float or str, optional
        Target of the time per output token, the transfer included [s].
    price : float or mapping of str to float, optional
        Price of one device, or of each device by name [1/h].
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or a device lacks a required figure.
    InfeasibleError
        The model with the batch does not fit.

    Examples
    --------
    >>> from iomodel.planning.disaggregated import disaggregate
    >>> chat = {"prompt": 2048, "output": 256}
    >>> found = disaggregate("llama-3-8b", "h100-sxm5", "h200-sxm", link=50e9, load=20, **chat)
    >>> found.kv_bytes == 2048 * 131072, found.transfer_seconds == found.kv_bytes / 50e9
    (True, True)
    """
    model, told, own, ignored = of_command(model, service, layout=None, batch=batch)
    asked = settled(disaggregate, told, price=price, batch=own["batch"], layout=own["layout"])
    senders = as_device(prefill)
    receivers = senders if decode is None else as_device(decode)
    bandwidth = NETWORK if link is None else as_real("link", link)
    rate = None if load is None else as_real("load", load)
    single, price_table = as_price(asked.own["price"])
    costs = {id(as_device(name)): price for name, price in price_table.items()}
    costs = costs if single is None else dict.fromkeys((id(senders), id(receivers)), single)
    size = None if asked.own["batch"] is None else as_integer("batch", asked.own["batch"])
    whole = as_service(model, prompt, output, asked.start, **asked.service)
    filling = replace(whole, output=1)
    goal = Goal(bandwidth, rate, size, as_targets(None, tpot).get("tpot", inf))
    sender = _best_pool(filling, senders, _either(prefill_layout, asked.layout), goal, _prefilled)
    goal = goal._replace(sent=_device_bytes(sender.service))
    receiver = _best_pool(whole, receivers, _either(decode_layout, asked.layout), goal, _decoded)
    busiest = max(goal.sent, _device_bytes(receiver.service))
    transfer = busiest / bandwidth
    senders_needed, receivers_needed = _replicas((sender, receiver), rate)
    alone = filling.laid_out(Layout())
    return Disaggregation(
        model=alone.name,
        prompt=alone.prompt,
        output=receiver.service.output,
        link=bandwidth,
        prefill=_pool(sender, senders, senders_needed, costs),
        decode=_pool(receiver, receivers, receivers_needed, costs),
        kv_bytes=alone.requests.own(alone.model.counted, alone.prompt),
        device_bytes=busiest,
        transfer_seconds=transfer,
        ttft=sender.seconds,
        tpot=receiver.seconds + transfer / whole.steps if whole.steps else 0.0,
        load=rate,
        steady=_together(whole, senders, receivers, goal),
        notes=ignored,
    )


def _either(own: object, shared: Layout | None) -> Layout | None:
    """Return the layout of a pool, else that of both, else None."""
    return shared if own is None else as_layout(own)


class Goal(NamedTuple):
    """Figures that pools are chosen for.

    `link` is the bandwidth [B/s], `load` the arrival rate [1/s], `tpot` the target [s]; `sent` is the part of a cache
    that a device of the other pool sends [B].
    """

    link: float
    load: float | None
    batch: int | None
    tpot: float
    sent: int = 0


class Reached(NamedTuple):
    """One replica of a pool: its service, batch, time of a step [s], and requests that it takes [1/s]."""

    service: Service
    batch: int
    seconds: float
    requests_per_second: float


def _prefilled(service: Service, device: Hardware, goal: Goal) -> Reached:
    """Compute the prefills of a replica; a link carries one cache at a time, beside the work of its device."""
    steps = ReplicaSteps(service, device)
    busy = _device_bytes(service) / goal.link / service.layout.data_parallel
    return Reached(service, 1, steps.prefill_seconds()[0] + engine_host(steps), 1 / max(steps.occupied(), busy))


def _decoded(service: Service, device: Hardware, goal: Goal) -> Reached | None:
    """Compute the decode steps of a replica at the largest batch that keeps the target; None if none does."""
    steps, part = ReplicaSteps(service, device), _device_bytes(service)
    transfer = max(part, goal.sent) / goal.link
    spare = goal.tpot - (transfer / service.steps if service.steps else 0.0)

    def holds(size: int) -> bool:
        return not service.steps or steps.decode_seconds(size) <= spare

    fits = service.memory(device).fits
    if goal.batch is not None and goal.batch > fits:
        raise no_room(service, device, goal.batch)
    most = goal.batch or service.most_requests(device)
    size = most if holds(most) else 0 if goal.batch else largest(1, most, holds)
    if not size:
        return None
    step = steps.decode_seconds(size) if service.steps else 0.0
    busy = part / goal.link / service.layout.data_parallel
    return Reached(service, size, step, 1 / max((service.steps * step + transfer) / size, busy))


def _best_pool(
    service: Service,
    device: Hardware,
    layout: Layout | None,
    goal: Goal,
    reached: Callable[[Service, Hardware, Goal], Reached | None],
) -> Reached:
    """Choose the layout of a pool: the fewest devices for the load, or the most requests per second and device."""
    service = service.on(device)
    layouts = default_layouts(service, device, SERVER) if layout is None else [layout]
    laid = [service.laid_out(each) for each in layouts]
    for each in laid:
        each.layout.check(service.model)
    held = [each for each in laid if each.memory(device).fits]
    if not held:
        raise no_room(laid[0] if layout else with_least_layout(service, device), device)
    roomy = [each for each in held if goal.batch is None or goal.batch <= each.memory(device).fits]
    if not roomy:
        raise no_room(max(held, key=lambda each: each.memory(device).fits), device, goal.batch or 1)
    found = [pool for pool in (reached(each, device, goal) for each in roomy) if pool is not None]
    if not found:
        least = min(ReplicaSteps(each, device).decode_seconds(1) for each in roomy)
        raise InfeasibleError(
            f"tpot: {seconds(goal.tpot)} given; allowed: more, because a step takes {seconds(least)} at least",
            least=ceil(1e6 * least),
            unit="us",
        )

    def each_device(pool: Reached) -> float:
        if goal.load is None:
            return -pool.requests_per_second / pool.service.devices
        return ceil(goal.load / pool.requests_per_second) * pool.service.devices

    least = min(map(each_device, found))
    equal = [pool for pool in found if each_device(pool) <= least + EQUAL_SHARE * abs(least)]
    return min(equal, key=lambda pool: pool.service.devices)


def _together(service: Service, prefill: Hardware, decode: Hardware, goal: Goal) -> LayoutRate | None:
    """Search one pool of the same device that prefills and decodes; None for two devices or without a load."""
    if prefill is not decode or goal.load is None:
        return None
    limits = FrozenDict({} if goal.tpot == inf else {"tpot": goal.tpot})
    options = rated(service.on(prefill), prefill, Wanted(load=goal.load, targets=limits))
    return options[0] if options else None


def _replicas(pools: Sequence[Reached], load: float | None) -> list[int]:
    """Count the replicas of each pool that a load needs, or those of the most requests per device without one."""
    if load is not None:
        return [ceil(load / pool.requests_per_second) for pool in pools]
    most = max(pool.requests_per_second for pool in pools)

    def each_device(counts: Sequence[int]) -> float:
        taken = min(count * pool.requests_per_second for count, pool in zip(counts, pools, strict=True))
        return taken / sum(count * pool.service.devices for count, pool in zip(counts, pools, strict=True))

    rounded = ([round_to(most / pool.requests_per_second) for pool in pools] for round_to in (floor, ceil))
    return max(rounded, key=each_device)


def _pool(reached: Reached, device: Hardware, replicas: int, prices: Mapping[int, float]) -> Pool:
    """Describe the replicas of a pool."""
    return Pool(
        hardware=device.label,
        layout=reached.service.layout,
        memory=reached.service.memory(device),
        batch=reached.batch,
        seconds=reached.seconds,
        requests_per_second=reached.requests_per_second,
        replicas=replicas,
        price_per_hour=prices.get(id(device)),
    )


def _device_bytes(service: Service) -> int:
    """Compute the cache and states of a prompt on the fullest device of a replica [B]."""
    stages = stage_layers(service.model, service.layout)
    return max(service.requests.own(Counter(layers), service.prompt) for layers in stages)
