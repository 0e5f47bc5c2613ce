"""Times of linear layers at arrays of shapes and tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.common.elementwise import at_places
from iomodel.placement.gemm_tiles import Tile, blocks_of, buffered, competing, warps_of
from iomodel.timing.clock_points import Fastest
from iomodel.timing.layer_clock import LayerClock, LayerNumbers


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
    size, known = len(tile.block_m), clock.rates_of(layers.first)[1]
    total: Any = np.zeros(size)
    columns: dict[str, Any] = {"kernels": np.zeros(size)}
    for seconds, runs, took in clock.kernels_at(layers, tile, name):
        total = total + seconds
        parts = {**took.breakdown, "launch": clock.launch(known), "streamed": took.streamed, "kernels": 1}
        for key, value in parts.items():
            columns[key] = columns.get(key, 0.0) + np.where(runs, value, 0.0)
    columns |= {"host": clock.parameters.host_launch, "warps": tile.warps, "stages": tile.stages}
    columns |= {key: getattr(tile, key) for key in ("block_m", "block_n", "block_k", "splits")}
    return Fastest(total, {key: np.broadcast_to(value, size) for key, value in columns.items()})
