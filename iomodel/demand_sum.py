"""What one launch asks for that goes over sequences of different lengths: the sum over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iomodel.demand import Demand, Moved, Product
from iomodel.workload import Attention


def together(parts: Sequence[tuple[Demand, Attention]]) -> Demand:
    """The demands of one kernel on several calls, as of one launch; each part stays known for what does not add up."""
    return replace(added([demand for demand, _ in parts]), sequences=tuple(parts))


def added(demands: Sequence[Demand]) -> Demand:
    """The demands of one kernel on several shapes, as of one launch."""
    products: dict[tuple[tuple[str, str, str], tuple[int, int, int]], int] = {}
    for demand in demands:
        for product in demand.products:
            same = product.axes, product.extents
            products[same] = products.get(same, 0) + product.runs
    moved: dict[tuple[str, int], Moved] = {}
    for demand in demands:
        seen: dict[str, int] = {}
        for one in demand.moved:
            number = seen[one.name] = seen.get(one.name, -1) + 1  # its reads, then its writes
            before = moved.get((one.name, number))
            moved[one.name, number] = one if before is None else _sum(before, one)
    streamed = [demand.streamed for demand in demands]
    return replace(
        demands[0],
        products=tuple(Product(runs, axes, extents) for (axes, extents), runs in products.items()),
        exps=sum(demand.exps for demand in demands),
        scores=sum(demand.scores for demand in demands),
        gradients=sum(demand.gradients for demand in demands),
        randoms=sum(demand.randoms for demand in demands),
        staged=sum(demand.staged for demand in demands),
        atomic_bytes=sum(demand.atomic_bytes for demand in demands),
        moved=tuple(moved.values()),
        blocks=sum(demand.blocks for demand in demands),
        trips=sum(demand.trips for demand in demands),
        exps_once=sum(demand.exps_once for demand in demands),
        footprint=max(demand.footprint for demand in demands),
        streamed=None if None in streamed else sum(filter(None, streamed)),
    )


def _sum(a: Moved, b: Moved) -> Moved:
    return replace(
        a,
        requested=a.requested + b.requested,
        distinct=a.distinct + b.distinct,
        instances=a.instances + b.instances,
    )
