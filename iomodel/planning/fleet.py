"""The smallest or the cheapest fleet that serves a load within latency targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Unpack

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, shown
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import of_command, settled
from iomodel.planning.checked_numbers import as_price, as_real
from iomodel.planning.fleet_queue import Replica
from iomodel.planning.fleet_result import Fleet, FleetOption, Refusal
from iomodel.planning.formatting import gigabytes, layout_text, seconds
from iomodel.planning.layout_search import LayoutRate, Wanted, rated
from iomodel.planning.layouts import default_layouts
from iomodel.planning.replica_figures import engine_host
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import PlanOptions, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.steps import BatchTimes, ReplicaSteps
from iomodel.planning.trust import QUEUE, trust

OBJECTIVES = ("devices", "cost")
MOST_DEVICES = 1024
Device = Hardware | str


@strict
@takes(PlanOptions)
def fleet(
    model: ModelSpec | str,
    hardware: Device | Iterable[Device] | None = None,
    *,
    prompt: int,
    output: int,
    ttft: float | str,
    tpot: float | str,
    load: float | None = None,
    clients: int | None = None,
    price: float | Mapping[str, float] | None = None,
    layouts: Iterable[Layout] | None = None,
    max_devices: int | None = None,
    objective: str = "devices",
    deviations: float = 2.0,
    **service: Unpack[PlanOptions],
) -> Fleet:
    """Find the smallest or the cheapest fleet of one device that meets latency targets at a load.

    Every device and layout is tried. A replica takes the highest load at which both mean targets hold and the requests
    in flight fit its memory; the fleet has as many replicas as the load needs. TTFT and TPOT under load are
    approximate: :mod:`iomodel.planning.fleet_queue` states the assumptions. Random arrivals need more devices than even
    ones, whose number `steady` states as :func:`iomodel.plan` with a load counts it.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine.
    hardware : Hardware, str, or several, optional
        Devices to choose from; by default all devices in `price`.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    ttft : float or str
        Target of the mean time to the first token, including queueing, such as "500ms" [s].
    tpot : float or str
        Target of the mean time per output token behind it [s].
    load : float, optional
        Arrival rate of requests [1/s].
    clients : int, optional
        In place of a load: users who each wait for an answer before the next request. The load is that of answers
        which take as long as the targets allow [-].
    price : float or mapping of str to float, optional
        Price of one device, or of each device by name [1/h].
    layouts : iterable of Layout, optional
        Layouts of a replica. By default tensor parallelism of up to eight ranks, with the cache divided among those
        that would hold copies of a head or not, and pipelines of these for a model that does not fit.
    max_devices : int, optional
        Largest number of devices, by default 1,024.
    objective : "devices" or "cost"
        Quantity to minimise.
    deviations : float
        Number of standard deviations above the mean requests in flight that must fit in memory [-].
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or a device lacks a required figure.
    InfeasibleError
        No fleet reaches the targets; the message names the nearest device and layout.

    Examples
    --------
    >>> from iomodel.planning.fleet import fleet
    >>> result = fleet("llama-3-8b", "h100-sxm5", load=20, prompt=2048, output=256, ttft=0.5, tpot=0.05)
    >>> result.best.device, result.best.operating.ttft < 0.5, result.best.operating.tpot < 0.05
    ('h100-sxm5', True, True)
    """
    model, told, own, ignored = of_command(model, service)
    asked = settled(fleet, told, price=price, max_devices=max_devices, **own)
    served = as_service(model, prompt, output, asked.start, **asked.service)
    single, price_table = as_price(asked.own["price"])
    devices = as_devices(hardware, price_table)
    known = {as_device(key).label: price for key, price in price_table.items()}
    known = known if single is None else {device.label: single for device in devices}
    targets = {name: as_real(name, value) for name, value in (("ttft", ttft), ("tpot", tpot))}
    targets["load"], offered = _load(load, clients, targets, served)
    most = as_integer("max_devices", MOST_DEVICES if asked.own["max_devices"] is None else asked.own["max_devices"])
    spare = as_real("deviations", deviations, zero=True)
    minimised = as_choice(
        "objective", "cost" if isinstance(objective, str) and objective == "price" else objective, OBJECTIVES
    )
    given = layouts_of(layouts, asked.layout, served)
    options, refused = [], []
    for device in devices:
        name, here = device.label, served.on(device)
        if minimised == "cost" and name not in known:
            raise InputError(f"price: none for {name}; allowed: a price for each device if objective = 'cost'")
        for tried in given or default_layouts(here, device, most):
            outcome = tried_on(here.laid_out(tried), device, targets, known.get(name), most, spare)
            options += [outcome] if isinstance(outcome, FleetOption) else []
            refused += [outcome] if isinstance(outcome, Refusal) else []
    if not options:
        raise unreachable(refused, targets, most)
    layouts_tried = {option.layout for option in options} | {refusal.layout for refusal in refused}
    trusted = trust(served, devices, layouts_tried)
    common = *ignored, *offered, QUEUE, *trusted.common
    options.sort(key=lambda option: _rank(option, minimised))
    return Fleet(
        model=served.name,
        objective=minimised,
        load=targets["load"],
        ttft=targets["ttft"],
        tpot=targets["tpot"],
        prompt=served.prompt,
        output=served.output,
        best=options[0],
        runners_up=tuple(options[1:]),
        refused=tuple(refused),
        assumed=FrozenDict({name: (*common, *texts) for name, texts in trusted.assumed.items()}),
        left_out=trusted.left_out,
        steady=_steady(served, devices, options[0], targets, given),
    )


def _load(
    load: object, clients: object, targets: Mapping[str, float], service: Service
) -> tuple[float, tuple[str, ...]]:
    """Return the arrival rate of a fleet [1/s], and how it follows from clients.

    A fleet that serves this rate within the targets serves the clients within the time of an answer at the targets: its
    throughput grows with the requests in flight.
    """
    if clients is None and load is None:
        raise InputError("load: not given, but required; allowed: requests a second, such as 20, or clients")
    if clients is None:
        return as_real("load", load), ()
    if load is not None:
        raise InputError("clients: given with load; allowed: one of both")
    users, answer = as_integer("clients", clients), targets["ttft"] + targets["tpot"] * (service.output - 1)
    rate = users / answer
    return rate, (f"{users:,} clients with answers of {seconds(answer)}, the targets, send {rate:.3g} requests/s",)


def _steady(
    service: Service,
    devices: Iterable[Hardware],
    best: FleetOption,
    targets: Mapping[str, float],
    layouts: list[Layout] | None,
) -> LayoutRate | None:
    """Search the layouts of the best device at even arrivals; None where no batch keeps the targets."""
    device = next(device for device in devices if device.label == best.device)
    limits = FrozenDict({name: targets[name] for name in ("ttft", "tpot")})
    options = rated(service.on(device), device, Wanted(load=targets["load"], targets=limits), layouts)
    return options[0] if options else None


def layouts_of(layouts: object, single: Layout | None, service: Service) -> list[Layout] | None:
    """Validate the layouts to choose from, several or a single one; None for those of the search."""
    if layouts is not None and single is not None:
        raise InputError("layouts: given with a layout; allowed: one of both")
    return None if layouts is None and single is None else as_layouts([single] if layouts is None else layouts, service)


def as_devices(hardware: Any, prices: Mapping[str, float]) -> list[Hardware]:
    """List the devices to choose from, without duplicates."""
    if hardware is None:
        if not prices:
            raise InputError("hardware: not given, but required; allowed: a list of devices, or prices")
        hardware = list(prices)
    if not isinstance(hardware, Hardware | str | Iterable):
        raise InputError(f"hardware: {shown(hardware)} given; allowed: a device, or a list of devices to choose from")
    candidates = [hardware] if isinstance(hardware, Hardware | str) else hardware
    devices = {id(device): device for device in map(as_device, candidates)}
    if not devices:
        raise InputError("hardware: an empty list given; allowed: at least one device")
    return list(devices.values())


def as_layouts(layouts: object, service: Service) -> list[Layout]:
    """Validate layouts of a model, at least one."""
    if not isinstance(layouts, Iterable):
        raise InputError(f"layouts: {shown(layouts)} given; allowed: a list of iomodel.Layout")
    candidates = []
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise InputError(f"layouts: {shown(layout)} given; allowed: a list of iomodel.Layout")
        layout.check(service.model)
        if service.engine is not None:
            service.engine.check_cache(service.model, layout)
        candidates.append(layout)
    if not candidates:
        raise InputError("layouts: an empty list given; allowed: at least one layout")
    return candidates


def _rank(option: FleetOption, objective: str) -> tuple[Any, ...]:
    price = float("inf") if option.price_per_hour is None else option.price_per_hour
    first = (price, option.devices) if objective == "cost" else (option.devices, price)
    return (*first, option.operating.tpot, option.device)


def replica(service: Service, device: Hardware, deviations: float) -> Replica:
    """Model one replica, with its steps computed on demand."""
    steps = ReplicaSteps(service, device)
    step = BatchTimes(steps.decode_seconds)
    loads = steps.load_seconds() / service.layout.data_parallel  # one request after the other
    occupied = max(steps.occupied(), loads)
    fits = service.memory(device).fits
    return Replica(steps.first_token_seconds() + engine_host(steps), occupied, step, service.steps, fits, deviations)


def tried_on(
    service: Service, device: Hardware, targets: Mapping[str, float], price: float | None, most: int, deviations: float
) -> FleetOption | Refusal:
    """Evaluate one device and layout: a FleetOption, or a Refusal with the reason."""
    name, layout = device.label, service.layout
    try:
        memory = service.memory(device)
        if not memory.fits:
            reason = f"memory: one request does not fit by {gigabytes(memory.missing)} per device"
            return Refusal(name, layout, reason, missing=memory.missing)
        single_replica = replica(service, device, deviations)
        alone = single_replica.prefill, single_replica.step(1) if single_replica.steps else 0.0
    except (SpecError, InfeasibleError) as error:  # a figure is missing, or no tile fits
        return Refusal(name, layout, str(error))
    for target, value in zip(("ttft", "tpot"), alone, strict=True):
        if value > targets[target]:
            reason = f"{target.upper()}: {seconds(value)} at best, {seconds(targets[target])} required"
            return Refusal(name, layout, reason, *alone)
    best = single_replica.most(targets["ttft"], targets["tpot"])
    if best is None:
        return Refusal(name, layout, "memory: no room for the requests in flight at any load", *alone)
    replicas = ceil(targets["load"] / best.load)
    devices = replicas * service.devices
    if devices > most:
        return Refusal(name, layout, f"devices: {devices:,} needed, {most:,} allowed", *alone, needed=devices)
    at = single_replica.at(targets["load"] / replicas) or best
    cost = None if price is None else price * devices
    return FleetOption(name, layout, replicas, devices, cost, best.load, at, memory.fits)


def unreachable(refused: Sequence[Refusal], targets: Mapping[str, float], most: int) -> IOModelError:
    """Build the error for targets that no device and layout meets."""
    counted = [refusal for refusal in refused if refusal.needed]
    if counted:
        near = min(counted, key=lambda refusal: refusal.needed)
        return InfeasibleError(
            f"load: {targets['load']:g} requests/s given; max_devices = {most:,} are too few; at least "
            f"{near.needed:,} are needed ({_where(near)})",
            least=near.needed,
            unit="devices",
        )
    timed = [refusal for refusal in refused if refusal.ttft is not None and refusal.tpot is not None]
    if timed:
        return _late(timed, targets)
    small = [refusal for refusal in refused if refusal.missing]
    if small:
        near = min(small, key=lambda refusal: refusal.missing)
        return InfeasibleError(
            f"memory: no device and layout holds the model and one request; nearest is {_where(near)}, by "
            f"{gigabytes(near.missing)} per device",
            least=near.missing,
            unit="B",
        )
    return SpecError("; ".join(dict.fromkeys(f"{refusal.device}: {refusal.reason}" for refusal in refused)))


def _late(timed: Sequence[Refusal], targets: Mapping[str, float]) -> InfeasibleError:
    """Build the error for missed latency targets, with the least times of a single request."""
    quick = min(timed, key=lambda refusal: refusal.ttft or 0.0)
    smooth = min(timed, key=lambda refusal: refusal.tpot or 0.0)
    first, later = quick.ttft or 0.0, smooth.tpot or 0.0
    late = [name for name, least in (("ttft", first), ("tpot", later)) if least > targets[name]]
    field = " and ".join(late or ["ttft", "tpot"])
    limits = " and ".join(seconds(targets[name]) for name in late or ["ttft", "tpot"])
    return InfeasibleError(
        f"{field}: {limits} given; allowed: more, because the least TTFT of a single request is {seconds(first)} "
        f"({_where(quick)}), the least TPOT {seconds(later)} ({_where(smooth)})",
        least=ceil(1e6 * (later if late == ["tpot"] else first)),
        unit="us",
    )


def _where(refusal: Refusal) -> str:
    return f"{refusal.device}, {layout_text(refusal.layout)}"
