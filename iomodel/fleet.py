"""The smallest or the cheapest fleet that serves a load within its latency targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.check import as_device
from iomodel.decoder.layout import Layout
from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.model import ModelSpec
from iomodel.planning.fleet_result import Fleet, Refusal, Way
from iomodel.planning.fleet_try import tried_on
from iomodel.planning.fleet_unreachable import unreachable
from iomodel.planning.layouts import default_layouts
from iomodel.planning.numbers import as_choice, as_prices, as_real
from iomodel.planning.service import OVERHEAD, Service, as_service
from iomodel.validation import as_integer

OBJECTIVES = ("devices", "cost")
MOST_DEVICES = 1024
Device = Hardware | str


def fleet(
    model: ModelSpec | str,
    hardware: Device | Iterable[Device] | None = None,
    *,
    load: float,
    prompt: int,
    output: int,
    ttft: float,
    tpot: float,
    prices: Mapping[str, float] | None = None,
    layouts: Iterable[Layout] | None = None,
    max_count: int = MOST_DEVICES,
    objective: str = "devices",
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    page_size: int | None = None,
    memory_utilization: float = 0.9,
    overhead_bytes: int = OVERHEAD,
    deviations: float = 2.0,
) -> Fleet:
    """Find the smallest or the cheapest fleet of one device that meets latency targets at a load.

    Every device and layout is tried. A replica takes the most load at which both targets hold in the mean, and the
    requests in flight fit its memory; the fleet has as many replicas as the load needs. How TTFT and TPOT follow from
    a load is approximate: :mod:`iomodel.planning.fleet_queue` says what is assumed.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware, str, or several, optional
        Devices to choose from; all that have a price if not given.
    load : float
        Requests that arrive [1/s].
    prompt, output : int
        Tokens of a request, and of its answer.
    ttft, tpot : float
        Targets: the mean time to the first token, queueing included, and per output token after it [s].
    prices : mapping of str to float, optional
        Price of one device, by name [1/h].
    layouts : iterable of Layout, optional
        Ways to share out the model; those of up to eight ranks of tensor parallelism if not given, and pipelines of
        these where they do not hold the model.
    max_count : int
        The most devices there are.
    objective : "devices" or "cost"
        What is to be least.
    dtype, weight_dtype, kv_dtype, page_size
        As for :func:`iomodel.plan`.
    memory_utilization, overhead_bytes
        As for :func:`iomodel.plan`.
    deviations : float
        Standard deviations of the requests in flight that must fit above their mean [-].

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name or a wrong number; a device without a figure that is needed.
    InfeasibleError
        Nothing reaches the targets; the message says what comes nearest, and where.

    Examples
    --------
    >>> from iomodel.fleet import fleet
    >>> found = fleet("llama-3-8b", "h100-sxm5", load=20, prompt=2048, output=256, ttft=0.5, tpot=0.05)
    >>> found.best.device, found.best.operating.ttft < 0.5, found.best.operating.tpot < 0.05
    ('h100-sxm5', True, True)
    """
    types = {"dtype": dtype, "weight_dtype": weight_dtype, "kv_dtype": kv_dtype, "page_size": page_size}
    service = as_service(model, prompt, output, Layout(), types, memory_utilization, overhead_bytes)
    given = {} if prices is None else as_prices(prices)
    known = {_name(as_device(key)): price for key, price in given.items()}
    wanted = {name: as_real(name, value) for name, value in (("load", load), ("ttft", ttft), ("tpot", tpot))}
    most, spare = as_integer("max_count", max_count), as_real("deviations", deviations, zero=True)
    goal = as_choice("objective", objective, OBJECTIVES)
    ways, refused = [], []
    for device in _devices(hardware, given):
        name = _name(device)
        if goal == "cost" and name not in known:
            raise InputError(f"prices: none for {name}; allowed: a price for each device where cost is the objective")
        for layout in _layouts(layouts, service, device, most):
            tried = tried_on(service.laid_out(layout), device, wanted, known.get(name), most, spare)
            ways += [tried] if isinstance(tried, Way) else []
            refused += [tried] if isinstance(tried, Refusal) else []
    if not ways:
        raise unreachable(refused, wanted, most)
    ways.sort(key=lambda way: _rank(way, goal))
    return Fleet(
        model=service.name,
        objective=goal,
        load=wanted["load"],
        ttft=wanted["ttft"],
        tpot=wanted["tpot"],
        prompt=service.prompt,
        output=service.output,
        best=ways[0],
        runners_up=tuple(ways[1:]),
        refused=tuple(refused),
    )


def _devices(hardware: Any, prices: Mapping[str, float]) -> list[Hardware]:
    """The devices to choose from, each once."""
    if hardware is None:
        if not prices:
            raise InputError("hardware: none given; allowed: devices to choose from, or prices of some")
        hardware = list(prices)
    if not isinstance(hardware, Hardware | str | Iterable):
        raise InputError(f"hardware: {shown(hardware)} given; allowed: a device, or a list of devices to choose from")
    given = [hardware] if isinstance(hardware, Hardware | str) else list(hardware)
    if not given:
        raise InputError("hardware: an empty list given; allowed: at least one device")
    return list({id(device): device for device in map(as_device, given)}.values())


def _name(device: Hardware) -> str:
    """What a device goes by."""
    return device.id or device.name


def _layouts(layouts: Iterable[Layout] | None, service: Service, device: Hardware, most: int) -> list[Layout]:
    if layouts is None:
        return default_layouts(service, device, most)
    if not isinstance(layouts, Iterable):
        raise InputError(f"layouts: {shown(layouts)} given; allowed: a list of iomodel.Layout")
    found = list(layouts)
    for layout in found:
        if not isinstance(layout, Layout):
            raise InputError(f"layouts: {shown(layout)} given; allowed: a list of iomodel.Layout")
        layout.check(service.model)
    if not found:
        raise InputError("layouts: an empty list given; allowed: at least one layout")
    return found


def _rank(way: Way, objective: str) -> tuple[Any, ...]:
    price = float("inf") if way.price_per_hour is None else way.price_per_hour
    first = (price, way.devices) if objective == "cost" else (way.devices, price)
    return (*first, way.operating.tpot, way.device)
