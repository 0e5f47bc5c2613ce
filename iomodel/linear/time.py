"""The time of linear layers and elementwise kernels on a device: their demands, by the clock of attention.

Nothing here knows a roofline of its own: a tile is folded to a demand (:mod:`iomodel.linear.fold`), which
:func:`iomodel.timing.kernel_time` holds against the device's rates. The tile is the fastest of the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from iomodel.demand import Demand
from iomodel.demand_sum import added
from iomodel.errors import InfeasibleError
from iomodel.execution import PIPELINED
from iomodel.hardware import Hardware
from iomodel.linear.fold import folded_gemm, folded_pointwise
from iomodel.linear.layer import Linear
from iomodel.linear.span import Span, span_of
from iomodel.linear.tiles import Tile, candidates, layout, wave_trips
from iomodel.parameters import DEFAULT, Parameters
from iomodel.per_device import per_device
from iomodel.rates import Rates, rates
from iomodel.timing import KernelTime, Launched, kernel_time
from iomodel.workload import ELEMENT_SIZE

MOST = 1 << 16
"""Answers that a clock keeps."""


@dataclass(frozen=True)
class LinearClock:
    """What times linear layers and elementwise kernels on one device."""

    device: Hardware
    parameters: Parameters = DEFAULT
    known: dict[Any, Span] = field(default_factory=dict, compare=False, repr=False)

    def linear(self, *layers: Linear) -> Span:
        """The fastest way to run layers of one width, of different rows (experts), as one launch."""
        found = self.known.get(layers)
        if found is None:
            found = self._keep(layers, self._linear(layers))
        return found

    def pointwise(self, name: str, rows: int, channels: int, others: int, dtype: str, kv_dtype: str) -> Span:
        """The time of an elementwise kernel."""
        point = (name, rows, channels, others, dtype, kv_dtype)
        found = self.known.get(point)
        if found is None:
            size = ELEMENT_SIZE[dtype]
            shape = (rows, channels, others, size, 32 * size, ELEMENT_SIZE[kv_dtype])
            demands = folded_pointwise(name).demands(shape)
            known = rates(self.device, dtype)
            found = self._keep(point, span_of([self._timed(demand, known, Launched()) for demand in demands], 0))
        return found

    def _keep(self, point: Any, span: Span) -> Span:
        if len(self.known) >= MOST:
            self.known.pop(next(iter(self.known)), None)
        self.known[point] = span
        return span

    def _timed(self, demand: Demand, known: Rates, launched: Launched) -> KernelTime:
        return kernel_time(demand, None, False, known, PIPELINED, launched, self.parameters, quick=True)

    def _linear(self, layers: tuple[Linear, ...]) -> Span:
        first = layers[0]
        known = rates(self.device, first.dtype)
        # What a product reached in a benchmark holds its trips and tails too: a floor of time, no rate to add them to.
        reached = known.matrix
        free = replace(known, matrix=known.peak, warp_matrix=max(known.warp_matrix, known.peak * _share(known)))
        flops = sum(layer.flops for layer in layers)
        best: tuple[float, list[KernelTime], Tile] | None = None
        for tile in candidates(self.device, layers, known.units):
            kernels = [
                self._timed(demand, free, Launched(layout(self.device, tile, first), tile.blocks_per_sm))
                for demand in self._demands(layers, tile, known)
            ]
            floor = flops / reached
            if kernels[0].seconds < floor:
                kernels[0] = replace(kernels[0], seconds=floor)
            seconds = sum(kernel.seconds for kernel in kernels)
            if best is None or seconds < best[0]:
                best = seconds, kernels, tile
        if best is None:
            limit = self.device.sram_per_block
            raise InfeasibleError(
                f"hardware: no tile of a linear layer fits the {limit:,} B of a block on {self.device.name}",
                least=limit + 1,
                unit="B",
            )
        return span_of(best[1], flops, best[2].sizes)

    def _demands(self, layers: tuple[Linear, ...], tile: Tile, known: Rates) -> Iterator[Demand]:
        each = []
        for layer in layers:
            sizes = dict(tile.sizes)
            found = folded_gemm(layer.form(sizes["splits"])).demands(layer.point(**sizes))
            at_once = None if known.units is None else known.units * tile.blocks_per_sm
            each.append([_streamed(demand, layer, tile, known.l2_capacity, at_once) for demand in found])
        for parts in zip(*each, strict=True):
            yield parts[0] if len(parts) == 1 else added(parts)


def _share(known: Rates) -> float:
    return known.warp_matrix / known.matrix if known.matrix else 1.0


def _streamed(demand: Demand, layer: Linear, tile: Tile, capacity: int | None, at_once: int | None) -> Demand:
    """The same demand with its DRAM traffic: the blocks of a wave lie in a rectangle of output tiles."""
    if not demand.products or capacity is None or at_once is None:
        return demand
    over_x, over_w = wave_trips(layer, tile, at_once, capacity)
    streamed = 0
    for moved in demand.moved:
        trips = over_x if moved.name == "X" else over_w if moved.name in ("W", "W_gate", "W_up") else 1
        streamed += min(moved.requested, moved.distinct * trips)
    return replace(demand, streamed=streamed)


@per_device
def linear_clock(device: Hardware, parameters: Parameters = DEFAULT) -> LinearClock:
    """The clock of a device, one for each device and parameters.

    >>> from iomodel.hardware import hardware
    >>> span = linear_clock(hardware("h100-sxm5")).linear(Linear(rows=1, in_features=4096, out_features=4096))
    >>> span.hbm_bytes >= 2 * 4096**2
    True
    """
    return LinearClock(device, parameters)
