"""What the shape of a nest lets the solver prove: independent parts, and the stationary and streamed tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sympy import Integer, Max, Symbol

from iomodel.masks import FULL, MaskKind
from iomodel.nest import (
    Accumulate,
    Axis,
    Block,
    Cut,
    DeclarationError,
    Fill,
    Idle,
    Kernel,
    Leaf,
    Load,
    Lookup,
    Loop,
    Nest,
    Path,
    Statement,
    Store,
    loops,
    walk,
)
from iomodel.symbols import B_1, TILES

TILE_ORDER = [entry.symbol for entry in TILES]
NO_AXIS = Axis("none", Integer(1))
"""What the missing tile of a part with a single one cuts."""
Role = Literal["fixed", "once a tile", "streamed", "area", "loose"]


@dataclass(frozen=True)
class Part:
    """Kernels that share tile sizes; the tile sizes of different parts can be chosen apart.

    Attributes
    ----------
    outer, inner : Symbol
        The two tile sizes. Under a mask `outer` is the stationary tile.
    axes : dict of Symbol to Axis
        The axis that each tile cuts.
    masked : bool
        Whether the cost is no function of the trip counts alone: a mask bounds a loop, an axis is partitioned, or
        pages are looked up.
    irregular : bool
        Whether nothing is known of the cost: pieces of several lengths are cut into tiles.
    """

    nest: Nest
    outer: Symbol
    inner: Symbol
    axes: dict[Symbol, Axis]
    masked: bool
    irregular: bool = False

    def only(self, *roles: Role) -> Nest:
        """The nest without the moves of other roles (:func:`role`)."""

        def strip(body: Sequence[Statement], path: Path) -> tuple[Statement, ...]:
            kept: list[Statement] = []
            for statement in body:
                if isinstance(statement, Block):
                    kept.append(statement.with_body(strip(statement.body, (*path, statement))))
                elif not isinstance(statement, MOVES) or role(statement, path, *self._pair) in roles:
                    kept.append(statement)
            return tuple(kept)

        return tuple(kernel.with_body(strip(kernel.body, (kernel,))) for kernel in self.nest)

    @property
    def prefers_inner(self) -> bool:
        """Whether, of tiles that cost as much, the one with the larger inner tile is taken: keys, if there are any."""
        return self.outer not in TILE_ORDER or TILE_ORDER.index(self.outer) < TILE_ORDER.index(self.inner)

    @cached_property
    def provable(self) -> bool:
        """Whether the bounds of a staircase hold for all of the cost (:mod:`iomodel.search`)."""
        found = (
            role(statement, path, *self._pair) for statement, path in walk(self.nest) if isinstance(statement, MOVES)
        )
        return "loose" not in found

    @property
    def _pair(self) -> tuple[Axis, Axis]:
        return self.axes[self.outer], self.axes[self.inner]


MOVES = (Load, Lookup, Store, Fill, Accumulate)


def role(statement: Leaf, path: Path, outer: Axis, inner: Axis) -> Role:
    """What a move depends on, where `outer` is the stationary axis of a masked pair of loops.

    ``fixed``: on no tile, but for the rows of idle tiles. ``once a tile``: on the number of outer tiles.
    ``streamed``: on the inner rows that each outer tile visits. ``area``: on the elements visited. ``loose``: else.
    """
    idle = any(isinstance(block, Idle) for block in path)  # the smaller the tiles, the more of them see nothing
    if idle or isinstance(statement, Lookup) or (isinstance(statement, Load) and statement.after_first):
        return "loose"
    assert isinstance(statement, Load | Store | Fill | Accumulate)
    axes = set(statement.axes if isinstance(statement, Accumulate) else statement.tensor.axes)
    around = loops(path)
    if any(isinstance(block, Loop) and block.masked for block in path):
        return {(False, True): "streamed", (True, True): "area"}.get((outer in axes, inner in axes), "loose")  # type: ignore[return-value]
    if around.keys() <= axes:
        return "fixed"
    return "once a tile" if around.keys() <= axes | {outer} else "loose"


def _union(axes: Sequence[Axis]) -> Axis:
    """What a tile cuts that cuts several lengths: as long as the longest, for which of them that is numbers say."""
    lengths = tuple(dict.fromkeys(axis.length for axis in axes))
    return axes[-1] if len(lengths) == 1 else replace(axes[-1], length=Max(*lengths))


def _sections(kernel: Kernel) -> set[tuple[Symbol, Axis]]:
    """The tiles that pieces are as long as, with the axes whose lengths they are in place of."""
    cuts = {block for _, path in walk((kernel,)) for block in path if isinstance(block, Cut)}
    axes = {leaf_axis for leaf, _ in walk((kernel,)) for leaf_axis in _axes_of(leaf)}
    return {
        (size, axis)
        for cut in cuts
        for piece in cut.pieces
        for symbol, size in piece.sizes.items()
        for axis in axes
        if size in TILE_ORDER and axis.length == symbol
    }


def _axes_of(leaf: Leaf) -> Iterator[Axis]:
    if isinstance(leaf, Load | Store):
        yield from leaf.tensor.axes


def _tiles(kernel: Kernel) -> dict[tuple[Symbol, Axis], None]:
    return {
        (block.tile, _longest(block.axis, path)): None
        for _, path in walk((kernel,))
        for block in path
        if isinstance(block, Loop) and block.tile in TILE_ORDER
    }


def _longest(axis: Axis, path: Path) -> Axis:
    """An axis as long as the largest piece has it: a tile that covers that covers every piece."""
    for block in path:
        if isinstance(block, Cut):
            length = axis.length.xreplace(dict(block.pieces[0].sizes))
            return axis if length.free_symbols & {*TILE_ORDER} else replace(axis, length=length)
    return axis


def _lengths(kernel: Kernel) -> set[Symbol]:
    """The tiles that say how long an axis is, as the number of chunks, which another kernel cuts."""
    walked = {axis for _, path in walk((kernel,)) for axis in loops(path)}
    return {symbol for axis in walked for symbol in axis.length.free_symbols if symbol in TILE_ORDER}


def parts(nest: Nest, mask: MaskKind) -> tuple[list[Part], Nest]:
    """The parts of a nest, and the kernels that have no tile to choose."""
    groups: list[tuple[set[Symbol], list[Kernel]]] = []
    fixed = []
    for kernel in nest:
        tiles = {tile for tile, _ in (*_tiles(kernel), *_sections(kernel))} | _lengths(kernel)
        if not tiles:
            fixed.append(kernel)
            continue
        joined = [group for group in groups if group[0] & tiles]
        groups = [group for group in groups if not group[0] & tiles]
        groups.append((set(tiles).union(*(g[0] for g in joined)), [k for g in joined for k in g[1]] + [kernel]))
    return [_part(tuple(kernels), mask) for _, kernels in groups], tuple(fixed)


def _part(nest: Nest, mask: MaskKind) -> Part:
    every = [pair for cut in (_tiles, _sections) for kernel in nest for pair in cut(kernel)]
    axes = {tile: _union([axis for other, axis in every if other == tile]) for tile, _ in every}
    ordered = sorted(axes, key=TILE_ORDER.index)
    if not 1 <= len(ordered) <= 2:
        raise DeclarationError(f"{nest[0].title}: the solver chooses two tiles at a time; found {ordered}")
    if len(ordered) == 1:  # the one there is streams, so that the largest is taken
        ordered, axes = [B_1, *ordered], {**axes, B_1: NO_AXIS}
    if any(isinstance(block, Cut) for _, path in walk(nest) for block in path):
        return Part(nest, ordered[0], ordered[1], axes, masked=False, irregular=True)
    uneven = any(
        isinstance(statement, Lookup) or any(axis.of is not None for axis in loops(path))
        for statement, path in walk(nest)
    )
    pair = next(_masked_pairs(nest), None) if mask != FULL or uneven else None
    outer, inner = pair or (ordered[0], ordered[1])
    return Part(nest, outer, inner, axes, pair is not None)


def _masked_pairs(nest: Nest) -> Iterator[tuple[Symbol, Symbol]]:
    for _, path in walk(nest):
        for i, block in enumerate(path):
            if isinstance(block, Loop) and block.masked:
                outer = next(b for b in reversed(path[:i]) if isinstance(b, Loop) and b.tile in TILE_ORDER)
                yield outer.tile, block.tile
