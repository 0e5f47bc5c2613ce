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
from iomodel.solving.certificate import TIE
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
KEPT = 3
"""Fastest tiles beside which others are tried."""
FINER = 8
"""Steps to which a power of two is divided beside the fastest tiles [-]."""


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
        places = np.sort(np.unique(self.tiles, axis=1, return_index=True)[1])
        return self.at(places[np.argsort(self.seconds[places], kind="stable")])

    def fastest(self, count: int) -> list[tuple[int, ...]]:
        """List the sizes and the splits of the fastest tiles."""
        many = min(len(self.seconds), len(STAGES) * count)
        places = np.argpartition(self.seconds, many - 1)[:many]
        each = self.tiles[:4, places[self.seconds[places].argsort()]].T.tolist()
        return [*dict.fromkeys(map(tuple, each))][:count]

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
        """Time the common tiles, with others where one of these is faster by more than a tie; None if none fits.

        Powers of two of the steps of an instruction are timed along with the common tiles; sizes between them, only
        near the fastest, as long as one of these is faster by more than a tie.
        """
        common = [tile for tile in self._common if tile.blocks_per_sm >= self.least_blocks]
        if not common:
            return None
        listed: Any = np.array([[getattr(tile, name) for name in COLUMNS] for tile in common], dtype=np.int64).T
        parts = [self._timed(np.concatenate([listed, self._powers], axis=1))]
        fastest = parts[0].at(slice(len(common)))
        starts = parts[0].fastest(KEPT)
        least, best = np.inf, parts[0].seconds.min()
        while best < least / (1 + TIE):
            least = best
            parts.append(self._timed(self._near(starts)))
            best, starts = min(best, parts[-1].seconds.min()), parts[-1].fastest(KEPT)
        if fastest.seconds.min() <= best * (1 + TIE):
            return fastest
        return Timed(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))

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
    def _powers(self) -> Any:
        """Powers of two of the steps up to the extents of the layer."""
        layer, most = self.layer, largest(self.clock.device)
        narrowest, widest = (max(1, width // layer.element_size) for width in (NARROWEST, WIDEST))
        least = {"block_m": FEWEST, "block_n": 1, "block_k": narrowest}
        extents = dict(zip(SIZES, (layer.rows, layer.out_features, layer.in_features), strict=True))
        limits = {"block_m": most, "block_n": most, "block_k": widest}
        sizes = []
        for name in SIZES:
            step = self._steps[name]
            each = [step << power for power in range(limits[name].bit_length())]
            enough = next((size for size in each if size >= min(extents[name], limits[name])), each[-1])
            sizes.append([size for size in each if min(least[name], enough) <= size <= enough])
        return self._fitting([self._each(*sizes, self._searched)])

    @property
    def _searched(self) -> Sequence[int]:
        return splits_of(self.layer) if self.splits is None else (self.splits,)

    def _near(self, starts: Sequence[tuple[int, ...]]) -> Any:
        """Lay out, near each start, the sizes from half of a tile to twice as much, and other slices and splits."""

        def around(name: str, size: int) -> list[int]:
            step, power = self._steps[name], 1 << size.bit_length() - 1
            finer = step * max(1, power // (FINER * step))
            below = range(step * max(1, size // (2 * step)), size, finer)
            return [*below, *range(size, 2 * size + 1, 2 * finer)]

        found = []
        for block_m, block_n, block_k, splits in starts:
            parts = (splits,) if self.splits is not None else range(max(1, splits // 2), 2 * splits + 1)
            found.append(self._each(around("block_m", block_m), around("block_n", block_n), [block_k], [splits]))
            found.append(self._each([block_m], [block_n], around("block_k", block_k), parts))
        return self._fitting(found)

    def _each(self, *sizes_and_splits: Sequence[int]) -> Any:
        """Lay out every combination of sizes and splits in columns."""
        return np.stack(np.meshgrid(*sizes_and_splits, indexing="ij")).reshape(4, -1)

    def _fitting(self, found: Sequence[Any]) -> Any:
        """Choose the tiles that fit and whose splits may pay, in each number of stages with more blocks than others.

        More stages at as many blocks per SM are not slower.
        """
        layer, scale = self.layer, self.layer.scale_block
        m, n, k, splits = each = np.concatenate(found, axis=1)
        allowed = splits == (1 if self.splits is None else self.splits)
        if self.splits is None:
            tiles = layer.groups * ceil_div(layer.rows, m) * ceil_div(layer.out_features, n)
            most = ceil_div(layer.in_features, np.maximum(k, scale or 1))
            allowed |= (splits <= most) & (tiles * splits <= 2 * (self._units or 0))
        if scale is not None and scale < layer.in_features:
            allowed &= scale % k == 0
        m, n, k, splits = each = each[:, allowed]
        sizes = {name: size[:, None] for name, size in zip(SIZES, (m, n, k), strict=True)}
        blocks = blocks_at(self.clock.device, layer, sizes, STAGES)
        pays = blocks >= self.least_blocks
        pays[:, 1:] &= blocks[:, 1:] > np.maximum.accumulate(blocks, axis=1)[:, :-1]
        places, stages = pays.nonzero()
        m, n, k, splits = each[:, places]
        return np.stack([m, n, k, splits, blocks[pays], warps_of(m, n), STAGES[stages]])

    def _timed(self, tiles: Any) -> Timed:
        seconds: Any = 0.0
        requested: Any = 0.0
        layers = LayerNumbers(self.layer, self.layer.numbers)
        for time, moved, _ in self.clock.kernels_at(layers, GemmTile(*tiles), self.name):
            seconds, requested = seconds + time, requested + moved
        return Timed(tiles, *(np.broadcast_to(each, tiles.shape[1]) for each in (seconds, requested)))
