"""Times of linear layers at arrays of shapes, tiles and splits, as the points of one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.common.arithmetic import at_places
from iomodel.counting.arrays.integers import common_shape
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.gemm_tiles import GemmTile, blocks_of, buffered, competing, warps_of
from iomodel.placement.implementations import check_layer_kernels
from iomodel.solving.batch.pass_points import Columns
from iomodel.studies.attention_points import flat
from iomodel.timing.clock_points import Fastest, in_sequence
from iomodel.timing.layer_clock import LayerClock, LayerNumbers, layer_clock
from iomodel.timing.parameters import Parameters
from iomodel.workloads.linear import Linear

SIZES = ("block_m", "block_n", "block_k")
"""Tiles of a linear layer."""


@dataclass(frozen=True)
class LayerPoints:
    """The points of one question as flat columns, with the timer of the device.

    `tiled` is True if the tiles are given; `splits` are those that are given, else None.
    """

    algorithm: Algorithm
    called: Layers
    counted: CostArray
    arguments: Mapping[str, Any]
    shape: tuple[int, ...]
    clock: LayerClock
    tiled: bool
    numbers: Columns
    splits: Any

    @classmethod
    def of(
        cls, algorithm: Algorithm, device: Hardware, implementation: str | Implementation | None,
        parameters: Parameters, arguments: Mapping[str, Any], launch: Mapping[str, Any],
    ) -> LayerPoints:  # fmt: skip
        """Check the arguments and lay them out."""
        tiled = bool(launch or TILE_NAMES & arguments.keys())
        counted = cost_array(algorithm, **arguments) if tiled else _untiled(algorithm, arguments)
        called = counted.calls
        assert isinstance(called, Layers)
        assert isinstance(called.first, Linear)
        if isinstance(called.fields.get("scale_block"), np.ndarray):
            raise InputError("scale_block: an array given; allowed: one for all points, in an array of times")
        check_layer_kernels(algorithm, called.first, device, implementation)
        shape = common_shape({"layers and tiles": np.empty(counted.shape, dtype=bool), **launch})
        sizes = counted.tiles if tiled else {}
        splits = counted.options["splits"] if tiled or "splits" in arguments else None
        return cls(
            algorithm, called, counted, arguments, shape, layer_clock(device, parameters), tiled,
            {name: flat(value, shape) for name, value in {**called.point, **sizes, **launch}.items()},
            flat(splits, shape),
        )  # fmt: skip

    def implementations(self, _: Mapping[str, Any]) -> Any:
        """Name the implementation of each point."""
        return np.broadcast_to(self.algorithm.implementations[0].name, self.shape)

    @property
    def chosen(self) -> set[str]:
        """Names of the columns that are chosen for each point."""
        splits = () if self.splits is not None else ("splits",)
        return {*LAUNCH_NAMES, *splits, *(() if self.tiled else SIZES)}

    def fastest(self, part: slice) -> Fastest:
        """Time a block of points."""
        size = part.stop - part.start
        numbers = {name: at_places(value, part) for name, value in self.numbers.items()}
        first, splits = self.called.first, at_places(self.splits, part)
        assert isinstance(first, Linear)
        layers = LayerNumbers(first, {name: numbers[name] for name in first.numbers})
        if self.tiled:
            timed = times_at(self.clock, layers, {**numbers, "splits": splits}, size, self.algorithm)
        else:
            timed = fastest_at(self.clock, layers, splits, size, self.algorithm)
        kept = {*SIZES, "splits"} - self.chosen
        return in_sequence([Fastest(timed.seconds, {n: v for n, v in timed.columns.items() if n not in kept})])

    def costs(self, tiles: Mapping[str, Any], found: Any) -> CostArray:
        """Count the layers at the tiles that they choose."""
        if self.tiled:
            return self.counted
        sizes = {name: np.where(found.reshape(self.shape), tiles.get(name, 1), 1) for name in SIZES}
        return cost_array(self.algorithm, **{**self.arguments, **sizes})


def _untiled(algorithm: Algorithm, arguments: Mapping[str, Any]) -> CostArray:
    """Check the arguments at placeholders of the tiles that are chosen later."""
    return cost_array(algorithm, **{**arguments, **dict.fromkeys(SIZES, 16)})


def times_at(
    clock: LayerClock, layers: LayerNumbers, tiles: Mapping[str, Any], size: int, name: AlgorithmLike
) -> Fastest:
    """Time layers at given tiles; `tiles` has the splits too, and may have warps and stages."""
    keys = ("block_m", "block_n", "block_k", "warps", "stages")
    columns = [np.broadcast_to(tiles.get(key, 0), size) for key in keys]
    points, places = np.unique(np.stack(columns), axis=1, return_inverse=True)
    blocks, warps = [], []
    for point in points.T.tolist():
        sizes = dict(zip(keys, point, strict=True))
        blocks.append(buffered(clock.device, layers.first, sizes, sizes["stages"] or None))
        warps.append(sizes["warps"] or warps_of(sizes["block_m"], sizes["block_n"]))
    each = {
        "blocks_per_sm": [blocks_of(each.fit) for each in blocks],
        "stages": [each.stages for each in blocks],
        "warps": warps,
    }
    own: dict[str, Any] = {key: np.array(values)[places.ravel()] for key, values in each.items()}
    sizes = {key: np.broadcast_to(tiles[key], size) for key in (*keys[:3], "splits")}
    where = np.flatnonzero(own["blocks_per_sm"])
    found = Fastest.none(size)
    if len(where):
        here: dict[str, Any] = {key: values[where] for key, values in {**own, **sizes}.items()}
        found.place(where, _timed(clock, layers.at(where), GemmTile(**here), name))
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
                   for key, value in ((key, getattr(tile, key)) for key in GemmTile.__dataclass_fields__)}  # fmt: skip
            timed = _timed(clock, here.at(chosen), GemmTile(**own), name)
            offered = Fastest.none(size)
            offered.place(group[chosen], timed)
            best.offer(np.isfinite(offered.seconds), offered.seconds, offered.columns)
    return best


def _timed(clock: LayerClock, layers: LayerNumbers, tile: Any, name: AlgorithmLike) -> Fastest:
    """Time layers at tiles that fit; all numbers are arrays."""
    size = len(tile.block_m)
    total: Any = np.zeros(size)
    columns: dict[str, Any] = {"kernels": np.zeros(size)}
    for seconds, requested, took in clock.kernels_at(layers, tile, name):
        total, runs = total + seconds, requested > 0
        parts = {**took.breakdown, "streamed": took.streamed, "kernels": 1}
        for key, value in parts.items():
            columns[key] = columns.get(key, 0.0) + np.where(runs, value, 0.0)
    columns |= {"host": clock.parameters.host_launch, "warps": tile.warps, "stages": tile.stages}
    columns |= {key: getattr(tile, key) for key in ("block_m", "block_n", "block_k", "splits")}
    return Fastest(total, {key: np.broadcast_to(value, size) for key, value in columns.items()})
