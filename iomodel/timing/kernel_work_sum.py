"""Work of one launch over sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from iomodel.common.arithmetic import larger
from iomodel.timing.kernel_work import KernelWork, MatrixWork, TensorTraffic
from iomodel.workloads.attention import Attention


def together(parts: Sequence[tuple[KernelWork, Attention]]) -> KernelWork:
    """Sum the work of one kernel on several calls in one launch, keeping the parts for non-additive quantities."""
    return replace(added([demand for demand, _ in parts]), sequences=tuple(parts))


def added(demands: Sequence[KernelWork]) -> KernelWork:
    """Sum the work of one kernel on several shapes in one launch."""
    products: dict[Any, MatrixWork] = {}
    for demand in demands:
        for place, product in enumerate(demand.products):
            arrays = any(isinstance(extent, np.ndarray) for extent in product.extents)
            same = product.axes, place if arrays else product.extents  # arrays are over tiles, the same for all shapes
            earlier = products.get(same)
            products[same] = product if earlier is None else replace(product, runs=earlier.runs + product.runs)
    moved: dict[tuple[str, int], TensorTraffic] = {}
    for demand in demands:
        seen: dict[str, int] = {}
        for tensor in demand.moved:
            number = seen[tensor.name] = seen.get(tensor.name, -1) + 1  # its reads, then its writes
            before = moved.get((tensor.name, number))
            moved[tensor.name, number] = tensor if before is None else _sum(before, tensor)
    streamed = [demand.streamed for demand in demands]
    return replace(
        demands[0],
        products=tuple(products.values()),
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
        footprint=larger(*(demand.footprint for demand in demands)),
        streamed=None if None in streamed else sum(filter(None, streamed)),
    )


def _sum(a: TensorTraffic, b: TensorTraffic) -> TensorTraffic:
    return replace(
        a, requested=a.requested + b.requested, distinct=a.distinct + b.distinct, instances=a.instances + b.instances
    )
