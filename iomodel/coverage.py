"""What a statement of a nest covers, and how often, under a mask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from sympy import Add, Expr, Integer, Max, Min, Mul, ceiling, count_ops, expand
from sympy.core.symbol import Str

from iomodel.floorsum import FloorSum
from iomodel.masks import CAUSAL, FULL, Band, Count, MaskKind, Tabulated, Tiled, Visits, visible_pairs, visits
from iomodel.nest import Axis, Cut, Idle, Kernel, Live, Loop, Path, Piece, When, loops
from iomodel.symbols import B, G, H, H_kv, N_k, p
from iomodel.tensors import grouped, head, key, query

ONE = Integer(1)
PIECE_MASKS = {"full": FULL, "causal": CAUSAL, "window": MaskKind(left=True, right=True, causal=True)}


@dataclass(frozen=True)
class View:
    """How a nest of one head is read: under which mask, and with the rows of a GQA group packed or not."""

    mask: MaskKind = FULL
    packed: bool = False

    def instances(self, path: Path) -> Expr:
        """How often a kernel runs: once a query head, or once a key/value head when packed [-]."""
        kernel = path[0]
        assert isinstance(kernel, Kernel)
        alone = any(isinstance(block, When) and block.unless and block.condition == grouped for block in path)
        shared = self.packed or alone  # a head that shares its keys with no other is as good as its key/value head
        heads = {"head": B * (H_kv if shared else H), "kv_head": B * H_kv, "batch": B, "call": ONE}
        return heads[kernel.per]

    def decided(self, condition: Expr) -> Expr:
        """1 or 0, or an expression that is: whether heads share keys depends on the packing."""
        return condition.subs(grouped, 0 if self.packed else Min(1, G - 1))

    def condition(self, path: Path) -> Expr:
        """1 where a statement runs at all, 0 where it does not."""
        return self.decided(Mul(*(block.holds for block in path if isinstance(block, When))))

    def tiled(self, axis: Axis, tile: Expr = ONE, paged: bool = False) -> Tiled:
        """The axis cut into tiles; packed queries have one row for each head of the group."""
        stored = p * ceiling(N_k / p) if paged and axis == key else None
        return Tiled(axis.length, tile, G if self.packed and axis in (query, head) else ONE, stored)

    def rows(self, axis: Axis) -> Expr:
        """The whole extent of an axis [rows]."""
        return self.tiled(axis).rows

    def band(self, outer: Axis, inner: Axis) -> Band | None:
        """What a position of `outer` sees of `inner`, None for all of it; masks bind queries and keys only."""
        if {outer, inner} != {query, key} or self.mask == FULL:
            return None
        band = self.mask.query_to_key()
        return band if outer == query else band.transposed()

    def visits(self, outer_axis: Axis, outer: Tiled, inner_axis: Axis, inner: Tiled) -> Visits | Tabulated:
        """The counts of what the tiles of one axis see of another."""
        if self.mask.tabulated:
            return Tabulated(outer_axis.name, outer, inner)
        return visits(outer, inner, self.band(outer_axis, inner_axis) or Band())

    @property
    def visible_pairs(self) -> Expr:
        """Pairs of a query and a key that sees it, of one head [-]."""
        if self.mask.tabulated:
            return Tabulated(query.name, Tiled(query.length), Tiled(key.length)).pairs
        return visible_pairs(self.mask.query_to_key(), Tiled(query.length), Tiled(key.length))

    def covered(self, axes: Iterable[Axis], path: Path, paged: bool = False) -> Expr:
        """Elements over `axes` that a statement touches in one run of the nest, conditions apart [elements]."""
        axes, around = set(axes), loops(path)
        if (cut := _cut(path)) is not None:
            inside = tuple(block for block in path if block is not cut)
            each = ((piece, self.within(piece).covered(axes, inside, paged)) for piece in cut.pieces)
            total = Add(*(piece.times * _sized(counted, piece) for piece, counted in each))
            return min(total, expand(total), key=count_ops)  # what is the same in every row adds up to the whole
        factors, done = self._masked(axes, path, paged)
        for axis, loop in around.items():
            tiled = self.tiled(axis, loop.tile, paged)
            if axis in done or axis.of in around:
                continue  # the trips of a partition share out those of the loop over its axis
            factors.append(tiled.moved if axis in axes else tiled.trips)
        rest = sorted(axes - around.keys(), key=lambda axis: axis.name)
        return Mul(*factors, *(self.extent(axis, path, paged) for axis in rest))

    def within(self, piece: Piece) -> View:
        """How the nest is read on a piece, a call of its own."""
        return replace(self, mask=PIECE_MASKS[piece.mask])

    def extent(self, axis: Axis, path: Path, paged: bool = False) -> Expr:
        """The rows of an axis that no loop walks [rows]; a single row of queries is of a single head."""
        around = loops(path)
        if axis == head and query in around and around[query].tile == ONE:
            return ONE
        rows = self.tiled(axis, ONE, paged).moved
        return rows if (cut := _cut(path)) is None else rows.xreplace(dict(cut.pieces[0].sizes))

    def first_trip(self, path: Path, axis: Axis) -> Path:
        """The path of what runs once where the masked loop over `axis` makes a trip at all."""
        return tuple(
            Live(axis, block.body) if isinstance(block, Loop) and block.axis == axis else block for block in path
        )

    def _masked(self, axes: set[Axis], path: Path, paged: bool) -> tuple[list[Expr], set[Axis]]:
        """The factor of a masked pair of loops, or of the guards, and the axes they account for."""
        guards: dict[Axis, Expr] = {}
        also: set[Axis] = set()
        turned: set[tuple[Axis | None, type]] = set()
        pair: tuple[list[Expr], set[Axis]] | None = None
        for i, block in enumerate(path):
            if not isinstance(block, Live | Idle) and not (isinstance(block, Loop) and block.masked):
                continue
            enclosing = loops(path[:i])
            parted = next((part for part in enclosing if part.of == block.axis), None)
            outer_axis = next((axis for axis in enclosing if self.band(axis, block.axis) is not None), None)
            turned.add((outer_axis, type(block)))
            if isinstance(block, Live) and parted is not None:
                if block.axis in loops(path):
                    continue  # what the loop over the axis visits is live
                outer_axis = next(axis for axis in enclosing if {axis, block.axis} == {query, key})
                assert parted.chunk is not None
                outer = self.tiled(outer_axis, enclosing[outer_axis].tile)
                seen = self.visits(outer_axis, outer, block.axis, self.tiled(block.axis, parted.chunk))
                guards[outer_axis] = seen.outer_rows if outer_axis in axes else seen.pairs
                also.add(parted)
                continue
            if outer_axis is None:
                continue
            outer = self.tiled(outer_axis, enclosing[outer_axis].tile, paged)
            if isinstance(block, Loop):
                inner = self.tiled(block.axis, block.tile, paged)
                seen = self.visits(outer_axis, outer, block.axis, inner)
                factor = {  # a visited pair is live on both sides, so no guard binds further
                    (True, True): seen.area,
                    (True, False): seen.outer_rows,
                    (False, True): seen.inner_rows,
                    (False, False): seen.pairs,
                }[outer_axis in axes, block.axis in axes]
                pair = [factor], {outer_axis, block.axis}
                continue
            inner = self.tiled(block.axis)  # what is live does not depend on the inner tile
            seen = self.visits(outer_axis, outer, block.axis, inner)
            live, every = seen.live_outer_tiles, outer.trips
            if outer_axis in axes:
                live, every = seen.live_outer_rows, outer.moved
            guards[outer_axis] = live if isinstance(block, Live) else every - live
        idle = {axis for axis, kind in turned if kind is Idle}
        if idle and (pair or any(axis is None or (axis, Live) in turned for axis in idle)):
            return [Integer(0)], set()  # without a mask every tile sees something; what is live is not idle
        return pair or (list(guards.values()), set(guards) | also)

    def pages(self, path: Path) -> Expr:
        """Pages that the key tiles around a statement touch, each counted at every touch [-]."""
        around = loops(path)
        if key not in around:
            return self.covered((), path) * ceiling(N_k / p)
        if self.covered((), path) == 0:
            return Integer(0)
        inner, band = self.tiled(key, around[key].tile), self.band(key, query)
        beside = tuple(block for block in path if not _about_keys(block))
        if any(
            isinstance(block, Loop) and block.masked and self._binds(block, path[:i]) for i, block in enumerate(path)
        ):
            outer = self.tiled(query, around[query].tile)
            visited = Count(Str("pages"), Str(query.name), outer.tile, inner.tile, outer.group)
            others = (block for block in beside if not isinstance(block, Live | Loop) or block.axis not in (query, key))
            return self.covered((), tuple(others)) * visited
        every = live = self._pages_up_to(inner.trips, inner)
        by_keys = {
            type(block)
            for i, block in enumerate(path)
            if isinstance(block, Live | Idle) and block.axis == query and key in loops(path[:i])
        }
        if band is not None and by_keys:
            seen = visits(inner, self.tiled(query), band)
            live = self._pages_up_to(seen.stop, inner) - self._pages_up_to(seen.start, inner)
            if Idle in by_keys:
                live = every - live
        return self.covered((), beside) * live

    def _binds(self, block: Loop, outside: Path) -> bool:
        """Whether the mask bounds a masked loop: whether a tile around it does the seeing."""
        return any(self.band(axis, block.axis) is not None for axis in loops(outside))

    def _pages_up_to(self, tiles: Expr, inner: Tiled) -> Expr:
        """Pages that the first tiles of an axis touch, one tile after the other."""
        ends = FloorSum(tiles, p, inner.tile, inner.tile + p - 1)
        starts = FloorSum(tiles, p, inner.tile, Integer(0))
        beyond = ceiling(inner.trips * inner.tile / p) - ceiling(inner.length / p)
        last = ONE if tiles == inner.trips else Max(0, tiles - inner.trips + 1)
        if tiles == 0:
            return Integer(0)
        return ends - starts - last * beyond


def _sized(counted: Expr, piece: Piece) -> Expr:
    """A count at the sizes of a piece."""
    return Mul(*(_factor_sized(factor, piece) for factor in Mul.make_args(counted)))


@lru_cache(maxsize=4096)
def _factor_sized(factor: Expr, piece: Piece) -> Expr:
    """What a mask counts is a factor of many counts, and slow to rebuild."""
    return factor.xreplace(dict(piece.sizes))


def _cut(path: Path) -> Cut | None:
    """The cut around a statement, if there is one."""
    return next((block for block in path if isinstance(block, Cut)), None)


def _about_keys(block: object) -> bool:
    """Whether a block is a loop over keys or a part of them, or a guard that keys are seen."""
    return (isinstance(block, Loop) and key in (block.axis, block.axis.of)) or (
        isinstance(block, Live | Idle) and block.axis == query
    )
