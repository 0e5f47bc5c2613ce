"""Search over devices, layouts, types and batches: throughput of a device against speed of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import ceil
from typing import Any, NamedTuple, Unpack, cast

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, shown
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import TARGETS, of_command, settled
from iomodel.planning.checked_numbers import as_price, as_real, as_share, as_targets
from iomodel.planning.fleet import as_devices, layouts_of
from iomodel.planning.formatting import gigabytes, layout_text
from iomodel.planning.layout_search import Wanted, at_targets, excess, missed
from iomodel.planning.layouts import default_layouts
from iomodel.planning.pareto_result import Pareto, ParetoPoint, divided
from iomodel.planning.replica_figures import figures
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import LoadedOptions, ServiceOptions, takes
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_arguments import types_of
from iomodel.planning.trust import trust

PER_CLIENT = 200
"""Simulated requests per client: those that arrive together at the start are half a percent."""

Found = tuple[ParetoPoint, Service, Hardware]


def cheapest_point(
    found: Sequence[Found], targets: Mapping[str, float], percentile: str | None, load: float | None = None
) -> ParetoPoint:
    """Find the cheapest point that keeps the targets, or raise InfeasibleError with the nearest.

    For a load, it is the one whose whole replicas are the fewest devices, or cost least.
    """
    kept = [entry for entry in found if excess(entry[0], targets) <= 1]
    if not kept:
        near = min((point for point, _, _ in found), key=lambda point: excess(point, targets))
        raise missed(targets, {name: getattr(near, name) for name in targets}, "point", f" ({near.where})")
    kept.sort(key=lambda entry: _cost(entry[0], load))
    if percentile is None:
        return kept[0][0]
    nearest: tuple[float, ParetoPoint, dict[str, float]] | None = None
    for point, service, device in kept:
        reached = _simulated(point, service, device, targets, percentile)
        if reached is None:
            continue
        late = max(reached[name] / targets[name] for name in targets)
        if late <= 1:
            return point
        if nearest is None or late < nearest[0]:
            nearest = late, point, reached
    if nearest is None:
        raise InputError(f"percentile: {percentile!r} given; allowed: with layouts that have no pipeline")
    raise missed(targets, nearest[2], "point", f" ({nearest[1].where})", f" ({percentile})")


def _cost(point: ParetoPoint, load: float | None) -> tuple[float, ...]:
    """Rank by the price of the replicas of a load or per token, or without prices by their devices; then by TPOT."""
    price = point.price_per_million_tokens
    each = 1 / point.tokens_per_second_per_device if price is None else price
    if load is None:
        return each, point.tpot
    devices = ceil(load / point.requests_per_second) * point.devices
    return devices * (point.price_per_hour or 1.0), each, point.tpot


def _simulated(
    point: ParetoPoint, service: Service, device: Hardware, targets: Mapping[str, float], percentile: str
) -> dict[str, float] | None:
    """Simulate a closed loop of as many clients as the batch has requests; None for a layout that is not simulated."""
    if service.layout.pipeline_parallel > 1:
        return None
    engine = simulate(
        service.model,
        device,
        prompt=service.prompt,
        output=service.output,
        concurrency=point.batch,
        requests=PER_CLIENT * point.batch,
        batch=point.batch,
        layout=service.layout,
        **service.options,
    )
    return {name: getattr(getattr(engine, name), percentile) for name in targets}


Device = Hardware | str
MOST_DEVICES = 8
"""Devices of a replica by default: those of a common server."""
PERCENTILES = ("p50", "p90", "p99")
MOST_CHOICES = 1000
"""Most batches or types to choose from."""


@strict
@takes(LoadedOptions)
def pareto(
    model: ModelSpec | str,
    hardware: Device | Iterable[Device] | None = None,
    *,
    prompt: int,
    output: int,
    layouts: Iterable[Layout] | None = None,
    batches: Iterable[int] | None = None,
    weight_dtypes: Iterable[str] | None = None,
    kv_dtypes: Iterable[str] | None = None,
    percentile: str | None = None,
    power_utilization: float = 1.0,
    replica_devices: int | None = None,
    **service: Unpack[LoadedOptions],
) -> Pareto:
    """Search devices, layouts, types and batches for the best throughput at every speed of a user.

    A point is one replica with a full batch, as in :func:`iomodel.plan`. More replicas of it have the same tokens/s per
    device and per user, so data parallelism adds no point. A target holds with as many clients as the batch has
    requests; a load is served by the whole replicas of the cheapest point.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine.
    hardware : Hardware, str, or several, optional
        Devices to choose from; by default all devices in `price`.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output, at least 2.
    layouts : iterable of Layout, optional
        Layouts of a replica; by default those of the search of :func:`iomodel.plan` with at most `replica_devices`
        devices.
    batches : iterable of int, optional
        Requests decoded together; by default the powers of two that fit, all that fit, and the most that keep the
        targets.
    weight_dtypes, kv_dtypes : iterable of str, optional
        Types to choose from; by default those of the service.
    percentile : {"p50", "p90", "p99"}, optional
        Percentile that has to keep the targets too, in a simulation of as many clients as the batch has requests. It
        includes queueing, and needs layouts without a pipeline.
    power_utilization : float
        Share of the TDP that a device draws; by default all of it, an upper bound of its energy [-].
    replica_devices : int, optional
        Most devices of a replica, by default 8.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or a device lacks a required figure.
    InfeasibleError
        No point fits, or none keeps the targets; the message names the nearest.

    Examples
    --------
    >>> from iomodel.planning.pareto import pareto
    >>> asked = {"prompt": 1024, "output": 128, "batches": [1, 64], "replica_devices": 2}
    >>> result = pareto("llama-3-8b", "h100-sxm5", tpot=0.01, **asked)
    >>> [(point.layout.tensor_parallel, point.batch) for point in result.front]
    [(2, 1), (1, 1), (2, 64), (1, 64)]
    >>> result.cheapest.batch
    1
    """
    model, given, told, ignored = of_command(model, service)
    asked = settled(pareto, given, **TARGETS, replica_devices=replica_devices, **told)
    served = as_service(model, prompt, output, asked.start, **asked.service)
    if served.steps < 1:
        raise InputError(f"output: {served.output} given; allowed: at least 2, because a speed needs a second token")
    most = MOST_DEVICES if asked.own["replica_devices"] is None else asked.own["replica_devices"]
    share, most = as_share("power_utilization", power_utilization), as_integer("replica_devices", most)
    targets, load = as_targets(asked.own["ttft"], asked.own["tpot"]), asked.own["load"]
    needed = None if load is None else as_real("load", load)
    kind = None if percentile is None else as_choice("percentile", percentile, PERCENTILES)
    if kind is not None and not targets:
        raise InputError(f"percentile: {kind!r} given without a target; allowed: with ttft or tpot")
    single, price_table = as_price(asked.own["price"])
    sizes = None if batches is None else _sizes(batches)
    devices = as_devices(hardware, price_table)
    cost = _costs(devices, price_table, bool(targets))
    if single is not None:
        cost = dict.fromkeys(map(id, devices), single)
    chosen = _types(asked.service, weight_dtypes, kv_dtypes)
    services = [as_service(model, prompt, output, asked.start, **each) for each in chosen]
    laid = layouts_of(layouts, asked.layout, served)
    searched = _searched(services, devices, laid, most)
    wanted = _Wanted(sizes, share, FrozenDict(targets))
    found, skipped = _search(searched, wanted, cost)
    trusted = trust(served, devices, {point.layout for point, _, _ in found})
    front, dominated = divided(point for point, _, _ in found)
    return Pareto(
        model=served.name,
        prompt=served.prompt,
        output=served.output,
        front=front,
        dominated=dominated,
        ttft=targets.get("ttft"),
        tpot=targets.get("tpot"),
        percentile=kind,
        cheapest=cheapest_point(found, targets, kind, needed) if targets or needed else None,
        power_utilization=share,
        skipped=tuple(skipped),
        prefix_cache=served.prefix_cache,
        speculation=served.speculation,
        lora=served.lora,
        assumed=FrozenDict({name: (*ignored, *trusted.common, *texts) for name, texts in trusted.assumed.items()}),
        left_out=trusted.left_out,
        load=needed,
    )


class _Wanted(NamedTuple):
    """Batches or None for a search, share of the TDP, and targets [s]."""

    sizes: list[int] | None
    share: float
    targets: Mapping[str, float]


def _searched(
    services: Sequence[Service], devices: Sequence[Hardware], layouts: list[Layout] | None, most: int
) -> Iterator[tuple[Hardware, Service]]:
    """List the services with the layouts given, or with those of the search on each device."""
    for device, service in product(devices, services):
        service = service.on(device)
        for layout in default_layouts(service, device, most) if layouts is None else layouts:
            yield device, service.laid_out(layout)


def _search(
    services: Iterable[tuple[Hardware, Service]], wanted: _Wanted, cost: Mapping[int, float]
) -> tuple[list[Found], list[str]]:
    """Compute the points of services on devices, and the reasons of those without one."""
    found: list[Found] = []
    skipped: list[str] = []
    lacking: list[int] = []
    for device, service in services:
        try:
            points = list(_points(service, device, wanted, cost.get(id(device))))
            missing = 0 if points else service.memory(device).missing
            reason = f"{gigabytes(missing)} too little memory" if missing else "no given batch fits"
        except (SpecError, InfeasibleError) as error:
            points, missing, reason = [], 0, str(error)
        found += [(point, service, device) for point in points]
        skipped += [] if points else [f"{_where(service, device)}: {reason}"]
        lacking += [missing] if missing else []
    if not found and lacking:
        raise InfeasibleError(
            f"memory: no device and layout holds a batch; nearest lacks {gigabytes(min(lacking))} on each device",
            least=min(lacking),
            unit="B",
        )
    if not found:
        raise SpecError("; ".join(skipped[:3]))
    return found, skipped


def _points(service: Service, device: Hardware, wanted: _Wanted, price: float | None) -> Iterator[ParetoPoint]:
    """Compute the figures of a replica at every batch that fits, and at the most that keep the targets."""
    fits = service.most_requests(device)
    tried = set(wanted.sizes or ())
    if wanted.sizes is None:
        best = at_targets(service, device, Wanted(targets=wanted.targets)) if wanted.targets else None
        tried = {1 << power for power in range(fits.bit_length())} | {fits} | ({best.batch} if best else set())
    tdp, types = device.power.tdp, types_of(service.model, device, service.types)
    for batch in sorted(size for size in tried if 0 < size <= fits):
        reached = figures(service, device, batch)
        yield ParetoPoint(
            device=device.label,
            layout=service.layout,
            devices=service.devices,
            weight_dtype=types["weight_dtype"],
            kv_dtype=types["kv_dtype"],
            batch=batch,
            fits=fits,
            ttft=reached.ttft,
            tpot=reached.tpot or 0.0,
            requests_per_second=reached.requests_per_second,
            tokens_per_second=reached.tokens_per_second,
            price_per_hour=price,
            watts=None if tdp is None else wanted.share * tdp.value,
        )


def _costs(devices: list[Hardware], prices: Mapping[str, float], compared: bool) -> dict[int, float]:
    """Return the price of each device by identity; all or none have one where they are compared."""
    known = {id(as_device(name)): price for name, price in prices.items()}
    lacking = [device.label for device in devices if id(device) not in known]
    if known and lacking and compared:
        raise InputError(f"price: none for {lacking[0]}; allowed: a price for each device, or for none")
    return known


def _types(
    service: Mapping[str, Any], weights: Iterable[str] | None, caches: Iterable[str] | None
) -> Iterator[ServiceOptions]:
    """List the options of the service with each combination of the types to choose from."""
    axes = {"weight_dtype": weights, "kv_dtype": caches}
    listed = {name: _names(f"{name}s", names) for name, names in axes.items() if names is not None}
    for name in listed:
        if service.get(name) is not None:
            raise InputError(f"{name}s: given with {name}; allowed: one of both")
    for chosen in product(*listed.values()):
        yield cast(ServiceOptions, {**service, **dict(zip(listed, chosen, strict=True))})


def _listed(field: str, values: object, allowed: str, one: str) -> list[Any]:
    """List values to choose from, or raise InputError for none, or for a list without an end."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{field}: {shown(values)} given; allowed: a list of {allowed}")
    try:
        listed = list(islice(values, MOST_CHOICES + 1))
    except IOModelError:
        raise
    except Exception:  # an iterator that fails, such as a 0-dimensional array
        raise InputError(f"{field}: {shown(values)} given; allowed: a list") from None
    if len(listed) > MOST_CHOICES:
        raise InputError(f"{field}: more than {MOST_CHOICES:,} values given; allowed: up to {MOST_CHOICES:,}")
    if not listed:
        raise InputError(f"{field}: an empty list given; allowed: at least one {one}")
    return listed


def _names(field: str, names: Iterable[str]) -> list[Any]:
    listed = _listed(field, names, "types, such as ['bf16', 'fp8']", "type")
    return list(dict.fromkeys(name if isinstance(name, str) else shown(name) for name in listed))


def _sizes(batches: Iterable[int]) -> list[int]:
    listed = _listed("batches", batches, "integers, such as [1, 8, 64]", "batch")
    return [as_integer("batches", size) for size in listed]


def _where(service: Service, device: Hardware) -> str:
    chosen = [str(service.types[name]) for name in ("weight_dtype", "kv_dtype") if service.types.get(name)]
    return ", ".join([device.label, layout_text(service.layout), *chosen])
