"""Tiles of a linear layer, timed in arrays: the common ones, powers of two beside them, and sizes near the fastest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.common.arithmetic import ceil_div
from iomodel.placement.gemm_tiles import GemmTile, blocks_at, candidates, largest, splits_of, warps_of
from iomodel.solving.near import around, grid, planes, search
from iomodel.timing.error_interval import place_of
from iomodel.timing.layer_clock import LayerClock, LayerNumbers
from iomodel.workloads.linear import Linear

COLUMNS = tuple(GemmTile.__dataclass_fields__)
SIZES = ("block_m", "block_n", "block_k")
NARROWEST, WIDEST = 32, 512
"""Slices of X: a sector of DRAM, and four lines of swizzled shared memory [B]."""
FEWEST = 16
"""Rows of a tile below which a layer with more rows is not tried [rows]."""
STAGES = np.array([4, 3, 2, 1])
"""Buffers of a slice, of which fewer leave room for more blocks."""


class Timed(NamedTuple):
    """Tiles as columns of the fields of `GemmTile`, with the time [s] and the requests [B] of each."""

    tiles: Any
    seconds: Any
    requested: Any

    def at(self, places: Any) -> Timed:
        """Return the tiles at some places."""
        return Timed(self.tiles[:, places], self.seconds[places], self.requested[places])

    @property
    def in_order(self) -> Timed:
        """The tiles, each once, the fastest first."""
        above = self.tiles - self.tiles.min(axis=1, keepdims=True)
        number = np.ravel_multi_index([*above], tuple(above.max(axis=1) + 1))
        places = np.sort(np.unique(number, return_index=True)[1])
        return self.at(places[np.argsort(self.seconds[places], kind="stable")])

    def tile(self, place: int) -> GemmTile:
        """Return one of the tiles."""
        return GemmTile(*self.tiles[:, place].tolist())


@dataclass(frozen=True)
class LayerTiles:
    """The tiles of a layer that fit a device with at least so many blocks per SM; `splits` may be given."""

    clock: LayerClock
    layer: Linear
    name: AlgorithmLike
    splits: int | None
    least_blocks: int

    def ranked(self) -> Timed | None:
        """Time the common tiles, with others where one of these is faster beyond the error; None if none fits.

        Powers of two of the steps of an instruction are timed along with the common tiles. Within the interval of the
        model a tile that libraries have is the better answer: what makes others faster may be what is not modelled.
        """
        common = [tile for tile in self._common if tile.blocks_per_sm >= self.least_blocks]
        if not common:
            return None
        listed: Any = np.array([[getattr(tile, name) for name in COLUMNS] for tile in common], dtype=np.int64).T
        requested: list[Any] = []

        def seconds(tiles: Any) -> Any:
            took, moved = self._times(tiles)
            requested.append(moved)
            return took

        tiles, times = search(
            np.concatenate([listed, self._powers], axis=1), seconds, self._near, COLUMNS.index("blocks_per_sm")
        )
        known = Timed(tiles, times, np.concatenate(requested))
        fastest = known.at(slice(len(common)))
        least = fastest.seconds.min()
        error = place_of(self.clock.device, self.layer, float(least)).half_width
        return fastest if least <= times.min() * (1 + error) else known

    @cached_property
    def _units(self) -> int | None:
        return self.clock.rates_of(self.layer)[0].units

    @property
    def _common(self) -> Iterator[GemmTile]:
        return candidates(self.clock.device, (self.layer,), self._units, self.splits)

    @cached_property
    def _steps(self) -> Mapping[str, int]:
        """The sizes of a matrix instruction, where they are on file: the tiles are multiples of them."""
        mma = self.clock.device.compute.mma
        figures = mma.rows, mma.columns, mma.depth
        if None in figures:
            return dict.fromkeys(SIZES, 1)
        rows, columns, depth = (int(figure.value) for figure in figures if figure is not None)
        return {"block_m": rows, "block_n": columns, "block_k": max(1, depth // self.layer.element_size)}

    @cached_property
    def _extents(self) -> Mapping[str, int]:
        return dict(zip(SIZES, (self.layer.rows, self.layer.out_features, self.layer.in_features), strict=True))

    @property
    def _powers(self) -> Any:
        """Powers of two of the steps up to the extents of the layer."""
        layer, most = self.layer, largest(self.clock.device)
        narrowest, widest = (max(1, width // layer.element_size) for width in (NARROWEST, WIDEST))
        limits = {"block_m": most, "block_n": most, "block_k": widest}
        least = {"block_m": FEWEST, "block_n": 1, "block_k": narrowest}
        sizes = []
        for name, extent in self._extents.items():
            powers = [self._steps[name] << power for power in range(limits[name].bit_length())]
            enough = next((size for size in powers if size >= min(extent, limits[name])), powers[-1])
            sizes.append([size for size in powers if min(least[name], enough) <= size <= enough])
        return self._fitting(grid([*sizes, splits_of(layer) if self.splits is None else (self.splits,)]))

    def _near(self, start: Sequence[int]) -> Any:
        """Lay out heights and widths near those of a tile, and other slices and splits."""
        tile = dict(zip((*SIZES, "splits"), start, strict=False))
        sizes: dict[str, Sequence[int]] = {name: self._filled(name, tile[name]) for name in SIZES}
        parts = tile["splits"]
        sizes["splits"] = (parts,) if self.splits is not None else range(max(1, parts // 2), 2 * parts + 1)
        return self._fitting(planes(tile, sizes, [("block_m", "block_n"), ("block_k", "splits")]))

    def _filled(self, name: str, size: int) -> list[int]:
        """List sizes near one, each the least that cuts its axis into as many parts."""
        extent, step = self._extents[name], self._steps[name]
        cut = (-(-extent // -(-extent // near)) for near in around(size, step))
        return [*dict.fromkeys(-(-least // step) * step for least in cut), size]

    def _fitting(self, tiles: Any) -> Any:
        """Choose the tiles that fit and whose splits may pay, in each number of stages with more blocks than others.

        More stages at as many blocks per SM are not slower.
        """
        layer, scale = self.layer, self.layer.scale_block
        m, n, k, splits = tiles
        allowed = splits == (1 if self.splits is None else self.splits)
        if self.splits is None and self._units is not None:
            blocks = layer.groups * ceil_div(layer.rows, m) * ceil_div(layer.out_features, n) * splits
            most = ceil_div(layer.in_features, np.maximum(k, scale or 1))
            allowed |= (splits <= most) & (blocks <= 2 * self._units)
        if scale is not None and scale < layer.in_features:
            allowed &= scale % k == 0
        tiles = tiles[:, allowed]
        sizes = {name: size[:, None] for name, size in zip(SIZES, tiles, strict=False)}
        blocks = blocks_at(self.clock.device, layer, sizes, STAGES)
        pays = blocks >= self.least_blocks
        pays[:, 1:] &= blocks[:, 1:] > np.maximum.accumulate(blocks, axis=1)[:, :-1]
        places, stages = pays.nonzero()
        warps = warps_of(tiles[0], tiles[1])
        return np.stack([*tiles[:, places], blocks[pays], warps[places], STAGES[stages]])

    def _times(self, tiles: Any) -> tuple[Any, Any]:
        """Time tiles [s], and count what they request [B]."""
        seconds: Any = np.zeros(tiles.shape[1])
        requested: Any = np.zeros(tiles.shape[1])
        layers = LayerNumbers(self.layer, self.layer.numbers)
        for took, moved, _ in self.clock.kernels_at(layers, GemmTile(*tiles), self.name):
            seconds, requested = seconds + took, requested + moved
        return seconds, requested
