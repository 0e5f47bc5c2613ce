"""One device and layout: the load that a replica takes within the targets, or why it does not do."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from iomodel.errors import InfeasibleError, SpecError
from iomodel.hardware import Hardware
from iomodel.planning.fleet_batches import BatchTimes
from iomodel.planning.fleet_queue import Replica
from iomodel.planning.fleet_result import Refusal, Way
from iomodel.planning.memory import Fit, fit
from iomodel.planning.service import Service
from iomodel.planning.steps import Steps
from iomodel.planning.text import gigabytes, seconds


def replica(service: Service, device: Hardware, found: Fit, deviations: float) -> Replica:
    """One replica, its steps computed when they are asked for."""
    steps = Steps(service, device)
    step = BatchTimes(steps.decode_seconds)
    return Replica(steps.prefill().seconds, steps.occupied(), step, service.steps, found.fits, deviations)


def tried_on(
    service: Service, device: Hardware, wanted: Mapping[str, float], price: float | None, most: int, deviations: float
) -> Way | Refusal:
    """One device and layout: what it takes, or why it does not do."""
    name, layout = device.id or device.name, service.layout
    try:
        found = fit(service, device)
        if not found.fits:
            reason = f"memory: one request needs {gigabytes(found.missing)} more on each device"
            return Refusal(name, layout, reason, missing=found.missing)
        one = replica(service, device, found, deviations)
        alone = one.prefill, one.step(1) if one.steps else 0.0
    except (SpecError, InfeasibleError) as error:  # a figure is missing, or no tile fits
        return Refusal(name, layout, str(error))
    for target, value in zip(("ttft", "tpot"), alone, strict=True):
        if value > wanted[target]:
            reason = f"{target.upper()}: {seconds(value)} at the least, {seconds(wanted[target])} wanted"
            return Refusal(name, layout, reason, *alone)
    best = one.most(wanted["ttft"], wanted["tpot"])
    if best is None:
        return Refusal(name, layout, "memory: no room for the requests in flight at any load", *alone)
    replicas = ceil(wanted["load"] / best.load)
    devices = replicas * service.devices
    if devices > most:
        return Refusal(name, layout, f"devices: {devices:,} needed, {most:,} allowed", *alone, needed=devices)
    at = one.at(wanted["load"] / replicas) or best
    cost = None if price is None else price * devices
    return Way(name, layout, replicas, devices, cost, best.load, at, found.fits)
