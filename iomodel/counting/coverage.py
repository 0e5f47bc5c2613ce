"""Coverage of the statements of a nest under a mask: elements, repetitions and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeGuard

from sympy import Add, Expr, Integer, Min, Mul, ceiling, count_ops, floor
from sympy.core.symbol import Str

from iomodel.common.band import Band
from iomodel.counting.bands import Count, TabulatedCounts, Tiled, Visits, query_to_key, visible_pairs, visits
from iomodel.counting.mask_kind import CAUSAL, FULL, PAGES, MaskKind
from iomodel.counting.terms import expanded, greatest, least
from iomodel.errors import InputError
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.language import (
    EXACT,
    Axis,
    Cut,
    Idle,
    Kernel,
    Live,
    Loop,
    Path,
    Per,
    Piece,
    Sight,
    Tensor,
    When,
    loops,
    outline,
)
from iomodel.nests.symbols import B, G, H, H_k, H_kv, N_k, p
from iomodel.nests.tensors import grouped, head, key, query

ONE = Integer(1)
NOTHING: Mapping[Axis, Expr] = {}
PIECE_MASKS = {"full": FULL, "causal": CAUSAL, "window": MaskKind(left=True, right=True, causal=True)}

HOW_MANY: dict[Per, Expr] = {
    "head": B * H,
    "kv_head": B * H_kv,
    "key_head": B * H_k,
    "heads": H,
    "kv_heads": H_kv,
    "batch": B,
    "call": Integer(1),
}


@dataclass(frozen=True)
class View:
    """The reading of a nest of one head under one kind of mask, with or without packed rows of a GQA group."""

    mask: MaskKind = FULL
    packed: bool = False

    def of(self, path: Path) -> View:
        """Return the view of the kernel of a path, which may take one query head at a time where others pack rows."""
        kernel = path[0]
        return replace(self, packed=False) if self.packed and isinstance(kernel, Kernel) and kernel.unpacked else self

    def instances(self, path: Path) -> Expr:
        """Return the number of runs of a kernel: one per query head, or one per key/value head when packed [-]."""
        kernel = path[0]
        assert isinstance(kernel, Kernel)
        alone = any(isinstance(block, When) and block.unless and block.condition == grouped for block in path)
        shared = self.packed or alone  # without shared keys, query heads are key/value heads
        heads = {"head": B * (H_kv if shared else H), "kv_head": B * H_kv, "key_head": B * H_k, "batch": B, "call": ONE}
        return heads[kernel.per]

    def decided(self, condition: Expr) -> Expr:
        """Return a condition as 1, 0 or an expression of these values; packing settles the condition of shared keys."""
        return _decided(condition, self.packed)

    def condition(self, path: Path) -> Expr:
        """Return 1 where the guards around a statement let it run, 0 elsewhere."""
        return self.decided(Mul(*(block.holds for block in path if isinstance(block, When))))

    def tiled(self, axis: Axis, tile: Expr = ONE, paged: bool = False, sight: Sight = EXACT) -> Tiled:
        """Cut an axis into tiles; packed queries have one row for each head of the group."""
        stored = p * ceiling(N_k / p) if paged and axis == key else None
        group, reach = G if self.packed and axis in (query, head) else ONE, None
        if sight.query_tile is not None and axis == query:
            reach = ceiling(ceiling(axis.length * group / sight.query_tile) * sight.query_tile / group)
        return Tiled(axis.length, tile, group, stored, reach)

    def rows(self, axis: Axis) -> Expr:
        """Return the whole extent of an axis [rows]."""
        return self.tiled(axis).rows

    def band(self, outer: Axis, inner: Axis, sight: Sight = EXACT) -> Band | None:
        """Return the positions of `inner` that a position of `outer` sees; None without a mask on this pair of axes.

        Only the pair of queries and keys has a mask.
        """
        mask = self.mask if sight.left or self.mask.tabulated else replace(self.mask, left=False)
        if {outer, inner} != {query, key} or not (mask.left or mask.right or mask.tabulated):
            return None
        band = query_to_key(mask)
        return band if outer == query else band.transposed()

    def visits(
        self, outer_axis: Axis, outer: Tiled, inner_axis: Axis, inner: Tiled, sight: Sight = EXACT
    ) -> Visits | TabulatedCounts:
        """Return the counts of the tiles of one axis that the tiles of another visit."""
        if self.mask.tabulated:
            return TabulatedCounts(outer_axis.name, outer, inner)
        return visits(outer, inner, self.band(outer_axis, inner_axis, sight) or Band())

    @property
    def visible_pairs(self) -> Expr:
        """Pairs of a query and a key visible to the query, of one head [-]."""
        if self.mask.tabulated:
            return TabulatedCounts(query.name, Tiled(query.length), Tiled(key.length)).pairs
        return visible_pairs(query_to_key(self.mask), Tiled(query.length), Tiled(key.length))

    def covered(self, axes: Iterable[Axis], path: Path, paged: bool = False, clipped: bool = False) -> Expr:
        """Return the elements over `axes` that a statement touches in one run of the nest, guards aside [elements]."""
        return _covered(self, frozenset(axes), outline(path), paged and not clipped, clipped)

    def _covered(self, axes: frozenset[Axis], path: Path, paged: bool, clipped: bool) -> Expr:
        around = loops(path)
        if (cut := _cut(path)) is not None:
            inside = tuple(block for block in path if block is not cut)
            each = ((piece, self.within(piece).covered(axes, inside, paged, clipped)) for piece in cut.pieces)
            total = Add(*(piece.times * _sized(counted, piece) for piece, counted in each))
            return min(total, expanded(total), key=count_ops)  # terms that pieces share add up
        if self.packed and head in axes and query in around:
            return self._heads(axes - {head}, path, paged, clipped)
        factors, done = self._masked(axes, path, paged, clipped)
        for axis, loop in around.items():
            tiled = self.tiled(axis, loop.tile, paged)
            if axis in done or axis.of in around:
                continue  # a partition shares out the trips of the loop over its axis
            factors.append(tiled.moved if axis in axes else tiled.trips)
        rest = sorted(axes - around.keys(), key=lambda axis: axis.name)
        return Mul(*factors, *(self.extent(axis, path, paged) for axis in rest))

    def _heads(self, axes: frozenset[Axis], path: Path, paged: bool, clipped: bool) -> Expr:
        """Return the coverage of the query heads of packed rows: a tile of few rows has as many, another all of them.

        Only the last tile is short, by `short` rows, and the rows that all visits lack tell the number of its visits.
        """
        outer = self.tiled(query, loops(path)[query].tile)
        visits, rows = (self.covered(over, path, paged, clipped) for over in (axes - {query}, axes | {query}))
        short = outer.trips * outer.tile - outer.rows
        of_last = floor((outer.tile * visits - rows) / greatest(1, short))
        full, last = least(G, outer.tile), least(G, outer.tile - short)
        if query in axes:
            return full * rows - of_last * (full - last) * (outer.tile - short)
        return full * visits - of_last * (full - last)

    def within(self, piece: Piece) -> View:
        """Return the view of one piece, which is a call with a mask of its own."""
        return replace(self, mask=PIECE_MASKS[piece.mask])

    def extent(self, axis: Axis, path: Path, paged: bool = False) -> Expr:
        """Return the rows of an axis without a loop [rows]; a tile of fewer rows than heads has as many heads."""
        around = loops(path)
        rows = self.tiled(axis, ONE, paged).moved
        if axis == head and query in around and self.packed:
            return least(rows, around[query].tile)
        return rows if (cut := _cut(path)) is None else rows.xreplace(dict(cut.pieces[0].sizes))

    def buffer(self, tensor: Tensor, path: Path) -> Expr:
        """Return the size of a buffer: the tile of each looped axis, the extent of any other [elements]."""
        around = loops(path)
        return Mul(*(around[axis].tile if axis in around else self.extent(axis, path) for axis in tensor.axes))

    def stored(self, tensor: Tensor, padded: Mapping[Axis, Expr] = NOTHING) -> Expr:
        """Return the size of a tensor in HBM over all batches and heads [elements].

        In whole pages if paged; with as many rows of a program as `padded` tells.
        """
        rows = (padded.get(axis) or self.tiled(axis, paged=tensor.paged).stored or axis.length for axis in tensor.axes)
        per: Per = "kv_head" if self.packed and tensor.per == "head" and query in padded else tensor.per
        return Mul(HOW_MANY[per], *rows)

    def at_trips(self, statement: object, axes: Iterable[Axis], path: Path, *how: bool) -> Expr:
        """Return what a statement covers at the trips of a masked loop at which it runs: all, the first, or later ones.

        `how` is as for :meth:`covered`.
        """
        only, skipped = getattr(statement, "only_first", None), getattr(statement, "after_first", None)
        if only is not None:
            return self.covered(axes, _first_trip(path, only), *how)
        every = self.covered(axes, path, *how)
        return every if skipped is None else every - self.covered(axes, _first_trip(path, skipped), *how)

    def kept(
        self, axes: Iterable[Axis], path: Path, paged: bool = False, loads: bool = False, whole: Iterable[Axis] = ()
    ) -> Expr:
        """Return the elements over `axes`, or the loads, that find their tile where a serpentine walk has turned.

        `whole` are further axes of the tensor, in which whole tiles are moved. The rules of the language place such a
        walk (:mod:`iomodel.nests.rules`).
        """
        axes, inner = frozenset(axes), path[-1]
        if not (isinstance(inner, Loop) and inner.serpentine):
            return Integer(0)
        outer = next(block for block in reversed(path[:-1]) if isinstance(block, Loop))
        named = axes.union(whole)
        by_row = self.packed and head in named and query in (outer.axis, inner.axis)
        if inner.axis not in axes or outer.axis in named or by_row:
            return Integer(0)
        if self.mask.tabulated:
            raise InputError("mask: given by data with a serpentine loop; allowed: full, causal or a window")
        tiled = (self.tiled(block.axis, block.tile, paged, inner.sight) for block in (outer, inner))
        turns = self.visits(outer.axis, next(tiled), inner.axis, next(tiled), inner.sight)
        assert isinstance(turns, Visits)
        others = tuple(
            block
            for block in path
            if block not in (outer, inner) and not (isinstance(block, Live) and block.axis == inner.axis)
        )
        if loads:
            return turns.kept_pairs * self.covered((), others)
        return turns.kept_rows * self.covered(axes - {inner.axis}, others)

    def _masked(self, axes: frozenset[Axis], path: Path, paged: bool, clipped: bool) -> tuple[list[Expr], set[Axis]]:
        """Return the factors of a masked pair of loops, or of the guards, and the axes that the factors cover."""
        guards: dict[Axis, Expr] = {}
        partitions: set[Axis] = set()
        turned: set[tuple[Axis | None, type]] = set()
        pair: tuple[list[Expr], set[Axis]] | None = None
        for i, block in enumerate(path):
            if not isinstance(block, Live | Idle) and not (isinstance(block, Loop) and block.masked):
                continue
            enclosing, sight = loops(path[:i]), block.sight
            if block.axis.of is not None and block.axis in enclosing:
                if block.axis.of not in loops(path):
                    guards[block.axis] = ceiling(self.rows(block.axis.of) / block.axis.chunk)
                continue
            parted = next((part for part in enclosing if part.of == block.axis), None)
            outer_axis = next((axis for axis in enclosing if self.band(axis, block.axis, sight) is not None), None)
            turned.add((outer_axis, type(block)))
            if isinstance(block, Live) and parted is not None:
                if block.axis in loops(path):
                    continue  # the loop over the axis visits live tiles only
                outer_axis = next(axis for axis in enclosing if {axis, block.axis} == {query, key})
                assert parted.chunk is not None
                outer = self.tiled(outer_axis, enclosing[outer_axis].tile, sight=sight)
                seen = self.visits(outer_axis, outer, block.axis, self.tiled(block.axis, parted.chunk), sight)
                guards[outer_axis] = seen.outer_rows if outer_axis in axes else seen.pairs
                partitions.add(parted)
                continue
            if outer_axis is None:
                continue
            outer = self.tiled(outer_axis, enclosing[outer_axis].tile, paged, sight)
            if isinstance(block, Loop):
                inner = self.tiled(block.axis, block.tile, paged, sight)
                seen = self.visits(outer_axis, outer, block.axis, inner, sight)
                factor = {  # a visited pair is live on both sides, so no guard binds further
                    (True, True): seen.area,
                    (True, False): seen.outer_rows,
                    (False, True): seen.clipped_inner_rows if clipped else seen.inner_rows,
                    (False, False): seen.pairs,
                }[outer_axis in axes, block.axis in axes]
                pair = [factor], {outer_axis, block.axis}
                continue
            inner = self.tiled(block.axis, sight=sight)  # the live outer tiles do not depend on the inner tile
            seen = self.visits(outer_axis, outer, block.axis, inner, sight)
            live, total = seen.live_outer_tiles, outer.trips
            if outer_axis in axes:
                live, total = seen.live_outer_rows, outer.moved
            guards[outer_axis] = live if isinstance(block, Live) else total - live
        for part in partitions:
            guards.pop(part, None)  # a part that a tile sees holds a position
        idle = {axis for axis, kind in turned if kind is Idle}
        if idle and (pair or any(axis is None or (axis, Live) in turned for axis in idle)):
            return [Integer(0)], set()  # without a mask no tile is idle; a live tile never is
        return pair or (list(guards.values()), set(guards) | partitions)

    def pages(self, path: Path) -> Expr:
        """Return the pages that the key tiles around a statement touch, each counted at every touch [-]."""
        around = loops(path)
        if key not in around:
            return self.covered((), path) * ceiling(N_k / p)
        if self.covered((), path) == 0:
            return Integer(0)
        inner, beside = self.tiled(key, around[key].tile), tuple(block for block in path if not _about_keys(block))
        bound = (block.sight for i, block in enumerate(path) if self._binds(block, path[:i]))
        if (sight := next(bound, None)) is not None:
            outer = self.tiled(query, around[query].tile)
            quantity = PAGES[sight.left, sight.query_tile is not None]
            visited = Count(Str(quantity), Str(query.name), outer.tile, inner.tile, outer.group)
            others = (block for block in beside if not isinstance(block, Live | Loop) or block.axis not in (query, key))
            return self.covered((), tuple(others)) * visited
        all_pages = live = self._pages_up_to(inner.trips, inner)
        by_keys = {
            type(block): block.sight
            for i, block in enumerate(path)
            if isinstance(block, Live | Idle) and block.axis == query and key in loops(path[:i])
        }
        sight = next(iter(by_keys.values()), EXACT)
        band = self.band(key, query, sight)
        if band is not None and by_keys:
            seen = visits(inner, self.tiled(query, sight=sight), band)
            live = self._pages_up_to(seen.stop, inner) - self._pages_up_to(seen.start, inner)
            if Idle in by_keys:
                live = all_pages - live
        return self.covered((), beside) * live

    def _binds(self, block: object, outside: Path) -> TypeGuard[Loop]:
        """Return True if the mask bounds a masked loop, by a loop around it over the other axis of the mask."""
        return (
            isinstance(block, Loop)
            and block.masked
            and any(self.band(axis, block.axis, block.sight) is not None for axis in loops(outside))
        )

    def _pages_up_to(self, tiles: Expr, inner: Tiled) -> Expr:
        """Return the pages that the first tiles of an axis touch, one tile after the other [-]."""
        ends = FloorSum(tiles, p, inner.tile, inner.tile + p - 1)
        starts = FloorSum(tiles, p, inner.tile, Integer(0))
        beyond = ceiling(inner.trips * inner.tile / p) - ceiling(inner.length / p)
        last = ONE if tiles == inner.trips else greatest(0, tiles - inner.trips + 1)
        if tiles == 0:
            return Integer(0)
        return ends - starts - last * beyond


def _first_trip(path: Path, axis: Axis) -> Path:
    """Replace the masked loop over `axis` by a guard, which runs its body once where the loop makes any trip.

    If the loop over `axis` is around the masked loop, a tile of the masked loop runs once where it sees any of `axis`.
    """
    inner = next(block for block in path if isinstance(block, Loop) and block.masked)
    if inner.axis != axis:
        others = (block for block in path if getattr(block, "axis", None) not in (axis, inner.axis))
        return *others, replace(inner, masked=False), Live(axis, (), inner.sight)
    return tuple(Live(axis, block.body, block.sight) if block == inner else block for block in path)


@lru_cache(maxsize=4096)
def _covered(view: View, axes: frozenset[Axis], path: Path, paged: bool, clipped: bool) -> Expr:
    # Many statements of a nest share their axes and the blocks around them.
    return view._covered(axes, path, paged, clipped)


@lru_cache(maxsize=256)
def _decided(condition: Expr, packed: bool) -> Expr:
    return condition.subs(grouped, 0 if packed else Min(1, G - 1))


def _sized(counted: Expr, piece: Piece) -> Expr:
    return Mul(*(_factor_sized(factor, piece) for factor in Mul.make_args(counted)))


@lru_cache(maxsize=4096)
def _factor_sized(factor: Expr, piece: Piece) -> Expr:
    # The factor of a mask occurs in many counts and is slow to rebuild.
    return factor.xreplace(dict(piece.sizes))


def _cut(path: Path) -> Cut | None:
    return next((block for block in path if isinstance(block, Cut)), None)


def _about_keys(block: object) -> bool:
    return (isinstance(block, Loop) and key in (block.axis, block.axis.of)) or (
        isinstance(block, Live | Idle) and block.axis == query
    )
