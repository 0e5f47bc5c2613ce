"""Evaluation of one device and layout: the load of a replica within the targets, or the reason of a rejection."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, SpecError
from iomodel.planning.fleet_batches import BatchTimes
from iomodel.planning.fleet_queue import Replica
from iomodel.planning.fleet_result import FleetOption, Refusal
from iomodel.planning.service import Service
from iomodel.planning.steps import ReplicaSteps
from iomodel.planning.text import gigabytes, seconds


def replica(service: Service, device: Hardware, deviations: float) -> Replica:
    """Model one replica, with its steps computed on demand."""
    steps = ReplicaSteps(service, device)
    step = BatchTimes(steps.decode_seconds)
    loads = steps.load_seconds() / service.layout.data_parallel  # one request after the other
    occupied = max(steps.occupied(), loads)
    fits = service.memory(device).fits
    return Replica(steps.first_token_seconds(), occupied, step, service.steps, fits, deviations)


def tried_on(
    service: Service, device: Hardware, targets: Mapping[str, float], price: float | None, most: int, deviations: float
) -> FleetOption | Refusal:
    """Evaluate one device and layout: a FleetOption, or a Refusal with the reason."""
    name, layout = device.id or device.name, service.layout
    try:
        memory = service.memory(device)
        if not memory.fits:
            reason = f"memory: one request needs {gigabytes(memory.missing)} more on each device"
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
