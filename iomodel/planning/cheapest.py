"""Cheapest point that keeps latency targets, by the times of a plan or by percentiles of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.planning.layout_search import excess, missed
from iomodel.planning.pareto_result import ParetoPoint
from iomodel.planning.service import Service
from iomodel.planning.simulation.simulate import simulate

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
