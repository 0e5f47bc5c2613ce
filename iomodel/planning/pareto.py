"""Search over devices, layouts, types and batches: throughput of a device against speed of a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, shown
from iomodel.models.registry import ModelSpec
from iomodel.planning.cheapest import cheapest_point
from iomodel.planning.figures import figures
from iomodel.planning.fleet import as_devices, as_layouts
from iomodel.planning.layouts import every_layout, with_divided_caches
from iomodel.planning.memory import fit, most_requests
from iomodel.planning.numbers import as_choice, as_prices, as_real, as_share
from iomodel.planning.pareto_result import Pareto, ParetoPoint, divided
from iomodel.planning.prefix_cache import PrefixCache
from iomodel.planning.service import Service, as_service
from iomodel.planning.speculation import Speculation
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.lora import Lora
from iomodel.planning.step.precision import service_types
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.text import gigabytes, layout_text
from iomodel.planning.trust import trust

Device = Hardware | str
MOST_DEVICES = 8
"""Devices of a replica by default: those of a common server."""
PERCENTILES = ("p50", "p90", "p99")


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
    prices: Mapping[str, float] | None = None,
    ttft: float | None = None,
    tpot: float | None = None,
    percentile: str | None = None,
    power_utilization: float = 1.0,
    max_count: int = MOST_DEVICES,
    dtype: str | None = None,
    linear_dtype: str | None = None,
    precision: str | None = None,
    page_size: int | None = None,
    memory_utilization: float | None = None,
    overhead_bytes: int | None = None,
    engine: str | None = None,
    prefix_cache: PrefixCache | None = None,
    speculation: Speculation | None = None,
    lora: Lora | None = None,
) -> Pareto:
    """Search devices, layouts, types and batches for the best throughput at every speed of a user.

    A point is one replica with a full batch, as in :func:`iomodel.plan`. More replicas of it have the same tokens/s per
    device and per user, so data parallelism adds no point.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware, str, or several, optional
        Devices to choose from; by default all devices in `prices`.
    prompt, output : int
        Tokens of a prompt, and of its output, at least 2.
    layouts : iterable of Layout, optional
        Layouts of a replica; by default all with powers of two as degrees and at most `max_count` devices, and where
        ranks would hold copies of a head, those with a cache that they divide too.
    batches : iterable of int, optional
        Requests decoded together; by default the powers of two that fit, and all that fit.
    weight_dtypes, kv_dtypes : iterable of str, optional
        Types to choose from; by default those of the model.
    prices : mapping of str to float, optional
        Price of one device, by name [1/h].
    ttft, tpot : float, optional
        Targets: time to the first token without queueing, and time per output token [s].
    percentile : {"p50", "p90", "p99"}, optional
        Percentile that has to keep the targets too, in a simulation of as many clients as the batch has requests. It
        includes queueing, and needs tensor parallelism alone.
    power_utilization : float
        Share of the TDP that a device draws; by default all of it, an upper bound of its energy [-].
    max_count : int
        Most devices of a replica.
    dtype, linear_dtype, precision, page_size, memory_utilization, overhead_bytes, engine
        As for :func:`iomodel.plan`.
    prefix_cache, speculation, lora
        As for :func:`iomodel.plan`.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or a device lacks a required figure.
    InfeasibleError
        No point fits, or none keeps the targets; the message names the nearest.

    Examples
    --------
    >>> from iomodel.planning.pareto import pareto
    >>> result = pareto("llama-3-8b", "h100-sxm5", prompt=1024, output=128, batches=[1, 64], max_count=2, tpot=0.01)
    >>> [(point.layout.tensor_parallel, point.batch) for point in result.front]
    [(2, 1), (1, 1), (2, 64), (1, 64)]
    >>> result.cheapest.batch
    1
    """
    types = service_types(precision, dtype, None, None, linear_dtype, page_size)
    service = as_service(
        model, prompt, output, Layout(), types, memory_utilization, overhead_bytes, engine, prefix_cache=prefix_cache,
        speculation=speculation, lora=lora,
    )  # fmt: skip
    if service.steps < 1:
        raise InputError(f"output: {service.output} given; allowed: at least 2, because a speed needs a second token")
    share, most = as_share("power_utilization", power_utilization), as_integer("max_count", max_count)
    targets = {name: as_real(name, value) for name, value in (("ttft", ttft), ("tpot", tpot)) if value is not None}
    kind = None if percentile is None else as_choice("percentile", percentile, PERCENTILES)
    if kind is not None and not targets:
        raise InputError(f"percentile: {kind!r} given without a target; allowed: with ttft or tpot")
    price_table = {} if prices is None else as_prices(prices)
    sizes = None if batches is None else _sizes(batches)
    devices = as_devices(hardware, price_table)
    cost = _costs(devices, price_table, bool(targets))
    services = [
        replace(service, types=as_service(model, prompt, output, Layout(), {**types, **chosen}, 1.0, 0).types)
        for chosen in _types(weight_dtypes, kv_dtypes)
    ]
    found: list[tuple[ParetoPoint, Service, Hardware]] = []
    skipped: list[str] = []
    lacking: list[int] = []
    if layouts is None:
        choices = with_divided_caches(every_layout(service.model, most), service)
    else:
        choices = as_layouts(layouts, service)
    for device in devices:
        for asked in (each.laid_out(layout) for each in services for layout in choices):
            try:
                points = list(_points(asked, device, sizes, cost.get(id(device)), share))
            except (SpecError, InfeasibleError) as error:
                points = []
                skipped.append(f"{_where(asked, device)}: {error}")
            else:
                if not points:
                    missing = fit(asked, device).missing
                    lacking += [missing] if missing else []
                    reason = f"{gigabytes(missing)} too little memory" if missing else "no given batch fits"
                    skipped.append(f"{_where(asked, device)}: {reason}")
            found += [(point, asked, device) for point in points]
    if not found:
        if lacking:
            raise InfeasibleError(
                f"memory: no device and layout holds a batch; nearest lacks {gigabytes(min(lacking))} on each device",
                least=min(lacking),
                unit="B",
            )
        raise SpecError("; ".join(skipped[:3]))
    trusted = trust(service, devices, {point.layout for point, _, _ in found})
    front, dominated = divided(point for point, _, _ in found)
    return Pareto(
        model=service.name,
        prompt=service.prompt,
        output=service.output,
        front=front,
        dominated=dominated,
        ttft=targets.get("ttft"),
        tpot=targets.get("tpot"),
        percentile=kind,
        cheapest=cheapest_point(found, targets, kind) if targets else None,
        power_utilization=share,
        skipped=tuple(skipped),
        prefix_cache=service.prefix_cache,
        speculation=service.speculation,
        lora=service.lora,
        assumed=FrozenDict({name: (*trusted.common, *texts) for name, texts in trusted.assumed.items()}),
        left_out=trusted.left_out,
    )


def _points(
    service: Service, device: Hardware, sizes: list[int] | None, price: float | None, share: float
) -> Iterator[ParetoPoint]:
    """Compute the figures of a replica at every batch that fits."""
    fits = most_requests(service, device)
    tried = {1 << power for power in range(fits.bit_length())} | {fits} if sizes is None else set(sizes)
    tdp = device.power.tdp
    for batch in sorted(size for size in tried if 0 < size <= fits):
        reached = figures(service, device, batch)
        decode = ReplicaSteps(service, device).decode(batch, service.contexts[0])
        yield ParetoPoint(
            device=device.id or device.name,
            layout=service.layout,
            devices=service.devices,
            weight_dtype=decode.weight_dtype,
            kv_dtype=decode.kv_dtype,
            batch=batch,
            fits=fits,
            ttft=reached.ttft,
            tpot=reached.tpot,
            requests_per_second=reached.requests_per_second,
            tokens_per_second=reached.tokens_per_second,
            price_per_hour=price,
            watts=None if tdp is None else share * tdp.value,
        )


def _costs(devices: list[Hardware], prices: Mapping[str, float], compared: bool) -> dict[int, float]:
    """Return the price of each device by identity; all or none have one where they are compared."""
    known = {id(as_device(name)): price for name, price in prices.items()}
    lacking = [device.id or device.name for device in devices if id(device) not in known]
    if known and lacking and compared:
        raise InputError(f"prices: none for {lacking[0]}; allowed: a price for each device, or for none")
    return known


def _types(weights: Iterable[str] | None, caches: Iterable[str] | None) -> Iterator[dict[str, str | None]]:
    for weight_dtype in _names("weight_dtypes", weights):
        for kv_dtype in _names("kv_dtypes", caches):
            yield {"weight_dtype": weight_dtype, "kv_dtype": kv_dtype}


def _names(field: str, names: Iterable[str] | None) -> list[Any]:
    if names is None:
        return [None]
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise InputError(f"{field}: {shown(names)} given; allowed: a list of types, such as ['bf16', 'fp8']")
    listed = _bounded(field, names)
    if not listed:
        raise InputError(f"{field}: an empty list given; allowed: at least one type")
    return list(dict.fromkeys(name if isinstance(name, str) else shown(name) for name in listed))


def _sizes(batches: Iterable[int]) -> list[int]:
    if isinstance(batches, str | bytes | Mapping) or not isinstance(batches, Iterable):
        raise InputError(f"batches: {shown(batches)} given; allowed: a list of integers, such as [1, 8, 64]")
    sizes = [as_integer("batches", size) for size in _bounded("batches", batches)]
    if not sizes:
        raise InputError("batches: an empty list given; allowed: at least one batch")
    return sizes


MOST_CHOICES = 1000
"""Most batches or types to choose from."""


def _bounded(field: str, values: Iterable[Any]) -> list[Any]:
    """List a few values, or raise InputError for a list without an end."""
    listed = []
    try:
        for value in values:
            listed.append(value)
            if len(listed) > MOST_CHOICES:
                raise InputError(f"{field}: more than {MOST_CHOICES:,} values given; allowed: up to {MOST_CHOICES:,}")
    except IOModelError:
        raise
    except Exception:  # an iterator that fails, such as a 0-dimensional array
        raise InputError(f"{field}: {shown(values)} given; allowed: a list") from None
    return listed


def _where(service: Service, device: Hardware) -> str:
    chosen = [str(service.types[name]) for name in ("weight_dtype", "kv_dtype") if service.types.get(name)]
    return ", ".join([device.id or device.name, layout_text(service.layout), *chosen])
