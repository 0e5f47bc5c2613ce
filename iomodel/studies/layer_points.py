"""Times of linear layers at arrays of shapes, tiles and splits, as the points of one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.common.arithmetic import at_places
from iomodel.counting.arrays.integers import common_shape
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.nests.implementation import Implementation
from iomodel.placement.implementations import check_layer_kernels
from iomodel.studies.attention_points import flat
from iomodel.studies.pass_points import Columns
from iomodel.timing.clock_points import Fastest, in_sequence
from iomodel.timing.layer_clock import LayerClock, layer_clock
from iomodel.timing.layer_points import LayerNumbers, fastest_at, times_at
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
