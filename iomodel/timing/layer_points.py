"""Times of linear layers at arrays of shapes and tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, algorithm
from iomodel.common.arithmetic import at_places
from iomodel.counting.kinds import kind_of
from iomodel.nests.execution import PIPELINED
from iomodel.placement.gemm_tiles import Tile, competing, room, warps_of
from iomodel.timing.clock_points import Fastest, PointCalls
from iomodel.timing.gemm_ranking import in_waves, masked_layouts
from iomodel.timing.gemm_waves import layout
from iomodel.timing.kernel_time import Launched, elapsed
from iomodel.timing.layer_clock import LayerClock
from iomodel.timing.work_at_point import demands
from iomodel.workloads.linear import Linear


@dataclass(frozen=True)
class LayerNumbers:
    """The numbers of many linear layers, which share the types and the features of the first."""

    first: Linear
    numbers: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a number, as floats if it is an array, or an attribute that the layers share."""
        if name in self.numbers and name != "scale_block":
            value = self.numbers[name]
            return value.astype(np.float64) if isinstance(value, np.ndarray) else value
        return getattr(self.first, name)

    @property
    def parameters(self) -> Any:
        """Number of weights, as :attr:`iomodel.Linear.parameters` [elements]."""
        return self.groups * self.in_features * self.out_features * (2 if self.first.gated else 1)

    @property
    def flops(self) -> Any:
        """FLOPs, 2 per row and weight [FLOP]."""
        return 2 * self.rows * self.parameters

    def at(self, where: Any) -> LayerNumbers:
        """Return the layers at some places."""
        return LayerNumbers(self.first, {name: at_places(value, where) for name, value in self.numbers.items()})


def times_at(
    clock: LayerClock, layers: LayerNumbers, tiles: Mapping[str, Any], size: int, name: AlgorithmLike
) -> Fastest:
    """Time layers at given tiles; `tiles` has the splits too, and may have warps and stages."""
    keys = ("block_m", "block_n", "block_k", "warps", "stages")
    columns = [np.broadcast_to(tiles.get(key, 0), size) for key in keys]
    points, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
    rooms, warps = [], []
    for point in points.T.tolist():
        sizes = dict(zip(keys, point, strict=True))
        rooms.append(room(clock.device, layers.first, sizes, sizes["stages"] or None))
        warps.append(sizes["warps"] or warps_of(sizes["block_m"], sizes["block_n"]))
    each = {
        "blocks_per_sm": [found.blocks for found in rooms],
        "stages": [found.stages for found in rooms],
        "warps": warps,
    }
    own: dict[str, Any] = {key: np.array(values)[places.ravel()] for key, values in each.items()}
    sizes = {key: np.broadcast_to(tiles[key], size) for key in (*keys[:3], "splits")}
    where = np.flatnonzero(own["blocks_per_sm"])
    found = Fastest.none(size)
    if len(where):
        here: dict[str, Any] = {key: values[where] for key, values in {**own, **sizes}.items()}
        found.place(where, _timed(clock, layers.at(where), Tile(**here), name))
    return found


def fastest_at(clock: LayerClock, layers: LayerNumbers, splits: Any, size: int, name: AlgorithmLike) -> Fastest:
    """Time layers at the fastest of the common tiles; `splits` are searched if they are None."""
    scale, best = layers.first.scale_block, Fastest.none(size)
    known = clock.rates_of(layers.first)[0]
    narrow = np.broadcast_to(scale is not None and layers.in_features > scale, size)
    for group in (np.flatnonzero(narrow), np.flatnonzero(~narrow)):
        if not len(group):
            continue
        here = layers.at(group)
        given = at_places(splits, group)
        for tile, competes in competing(clock.device, (here,), known.units, given):
            chosen = np.flatnonzero(np.broadcast_to(competes, len(group)))
            if not len(chosen):
                continue
            own: dict[str, Any] = {key: value[chosen] if isinstance(value, np.ndarray) else np.full(len(chosen), value)
                   for key, value in ((key, getattr(tile, key)) for key in Tile.__dataclass_fields__)}  # fmt: skip
            timed = _timed(clock, here.at(chosen), Tile(**own), name)
            offered = Fastest.none(size)
            offered.place(group[chosen], timed)
            best.offer(np.isfinite(offered.seconds), offered.seconds, offered.columns)
    return best


def _timed(clock: LayerClock, layers: LayerNumbers, tile: Any, name: AlgorithmLike) -> Fastest:
    """Time layers at tiles that fit; all numbers are arrays."""
    known, free = clock.rates_of(layers.first)
    size = len(tile.block_m)
    sizes = {key: getattr(tile, key) for key in ("block_m", "block_n", "block_k", "splits")}
    call = PointCalls(layers.numbers, layers.first.element_size)
    work = demands(algorithm(name), kind_of(layers.first), (), PIPELINED).over(call, call, sizes, sizes)
    distinct, places = np.unique(tile.warps, return_inverse=True)
    layouts = [layout(clock.device, warps, layers.first) for warps in distinct.tolist()]
    launched = Launched(layouts[0], tile.blocks_per_sm, layouts=masked_layouts([layouts[at] for at in places.tolist()]))
    floor, launch = clock.floor(layers, tile, known), clock.launch(free)
    total: Any = np.zeros(size)
    columns: dict[str, Any] = {"kernels": np.zeros(size)}
    for number, demand in enumerate(work):
        moved = in_waves(demand, layers, layers.rows, tile, tile.blocks_per_sm, known)
        took = elapsed(moved, None, False, free, PIPELINED, launched, clock.parameters)
        runs = demand.requested_bytes > 0  # without traffic it is not launched
        total = total + np.where(runs, took.seconds if number else np.maximum(took.seconds, floor), 0.0)
        for key, value in {**took.breakdown, "launch": launch, "streamed": took.streamed, "kernels": 1}.items():
            columns[key] = columns.get(key, 0.0) + np.where(runs, value, 0.0)
    columns |= {"host": clock.parameters.host_launch, **sizes, "warps": tile.warps, "stages": tile.stages}
    return Fastest(total, {key: np.broadcast_to(value, size) for key, value in columns.items()})
