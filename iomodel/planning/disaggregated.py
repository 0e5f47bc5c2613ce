"""Plan of prefill and decode on separate devices, with the transfer of the cache over a stated link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Unpack

from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.models.registry import ModelSpec
from iomodel.planning.checked_numbers import as_prices, as_real
from iomodel.planning.disaggregated_result import Disaggregation, Pool
from iomodel.planning.layouts import no_room, with_least_layout
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import CapacityOptions, check_names, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.weights import stage_layers


@takes(CapacityOptions)
def disaggregate(
    model: ModelSpec | str,
    prefill: Hardware | str,
    decode: Hardware | str,
    *,
    prompt: int,
    output: int,
    link: float | str,
    prefill_layout: Layout | None = None,
    decode_layout: Layout | None = None,
    batch: int | None = None,
    load: float | None = None,
    prices: Mapping[str, float] | None = None,
    **service: Unpack[CapacityOptions],
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
        The model, its name, or its file.
    prefill : Hardware or str
        Device that prefills.
    decode : Hardware or str
        Device that decodes, which may be the same.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    link : float
        Bandwidth from one device of a pool to one of the other, in one direction [B/s].
    prefill_layout, decode_layout : Layout, optional
        Layouts of the replicas; by default the least tensor parallelism, up to eight devices, that holds the model.
    batch : int, optional
        Requests decoded together in a replica; by default as many as fit.
    load : float, optional
        Arrival rate of requests, which sets the numbers of replicas; by default one of each [1/s].
    prices : mapping of str to float, optional
        Price of one device, by name [1/h].
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
    check_names(disaggregate, service)
    senders, receivers = as_device(prefill), as_device(decode)
    bandwidth = as_real("link", link)
    rate = None if load is None else as_real("load", load)
    price_table = as_prices(prices)
    costs = {id(as_device(name)): price for name, price in price_table.items()}
    services: list[Service] = []
    for device, layout, tokens in ((senders, prefill_layout, 1), (receivers, decode_layout, output)):
        whole = as_service(model, prompt, output, Layout() if layout is None else layout, **service)
        served = replace(whole, output=as_integer("output", tokens))
        services.append(with_least_layout(served, device) if layout is None else served)
        if not services[-1].memory(device).fits:
            raise no_room(services[-1], device)
    most = services[1].memory(receivers).fits
    size = most if batch is None else as_integer("batch", batch)
    if size > most:
        raise no_room(services[1], receivers, size)
    (sender, receiver), (filling, later) = services, map(ReplicaSteps, services, (senders, receivers))
    step = later.decode_seconds(size) if receiver.steps else 0.0
    parts = [_device_bytes(served) for served in services]
    transfer = max(parts) / bandwidth
    # A link carries one cache at a time, beside the work of its device.
    busy = [part / bandwidth / served.layout.data_parallel for part, served in zip(parts, services, strict=True)]
    prefilling, first = max(filling.occupied(), busy[0]), filling.prefill().seconds
    decoding = max((receiver.steps * step + transfer) / size, busy[1])
    whole = sender.laid_out(Layout())
    return Disaggregation(
        model=whole.name,
        prompt=whole.prompt,
        output=receiver.output,
        link=bandwidth,
        prefill=_pool(sender, senders, 1, first, 1 / prefilling, rate, costs),
        decode=_pool(receiver, receivers, size, step, 1 / decoding, rate, costs),
        kv_bytes=whole.requests.own(whole.model.counted, whole.prompt),
        device_bytes=max(parts),
        transfer_seconds=transfer,
        ttft=first,
        tpot=step + transfer / receiver.steps if receiver.steps else 0.0,
        load=rate,
    )


def _pool(
    service: Service,
    device: Hardware,
    batch: int,
    seconds: float,
    requests_per_second: float,
    load: float | None,
    prices: Mapping[int, float],
) -> Pool:
    """Count the replicas of a pool that a load needs."""
    return Pool(
        hardware=device.label,
        layout=service.layout,
        memory=service.memory(device),
        batch=batch,
        seconds=seconds,
        requests_per_second=requests_per_second,
        replicas=1 if load is None else ceil(load / requests_per_second),
        price_per_hour=prices.get(id(device)),
    )


def _device_bytes(service: Service) -> int:
    """Compute the cache and states of a prompt on the fullest device of a replica [B]."""
    stages = stage_layers(service.model, service.layout)
    return max(service.requests.own(Counter(layers), service.prompt) for layers in stages)
