"""What the shape of a nest lets the solver prove: independent parts, and the stationary and streamed tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sympy import Symbol

from iomodel.masks import FULL, MaskKind
from iomodel.nest import (
    Accumulate,
    Axis,
    Block,
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
from iomodel.symbols import TILES

TILE_ORDER = [entry.symbol for entry in TILES]
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
    """

    nest: Nest
    outer: Symbol
    inner: Symbol
    axes: dict[Symbol, Axis]
    masked: bool

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


def _tiles(kernel: Kernel) -> dict[Symbol, Axis]:
    return {
        block.tile: block.axis
        for _, path in walk((kernel,))
        for block in path
        if isinstance(block, Loop) and block.tile in TILE_ORDER
    }


def parts(nest: Nest, mask: MaskKind) -> tuple[list[Part], Nest]:
    """The parts of a nest, and the kernels that have no tile to choose."""
    groups: list[tuple[set[Symbol], list[Kernel]]] = []
    fixed = []
    for kernel in nest:
        tiles = set(_tiles(kernel))
        if not tiles:
            fixed.append(kernel)
            continue
        joined = [group for group in groups if group[0] & tiles]
        groups = [group for group in groups if not group[0] & tiles]
        groups.append((tiles.union(*(g[0] for g in joined)), [k for g in joined for k in g[1]] + [kernel]))
    return [_part(tuple(kernels), mask) for _, kernels in groups], tuple(fixed)


def _part(nest: Nest, mask: MaskKind) -> Part:
    axes: dict[Symbol, Axis] = {}
    for kernel in nest:
        axes.update(_tiles(kernel))
    ordered = sorted(axes, key=TILE_ORDER.index)
    if len(ordered) != 2:
        raise DeclarationError(f"{nest[0].title}: the solver chooses tiles in pairs; found {ordered}")
    uneven = any(
        isinstance(statement, Lookup) or any(axis.of is not None for axis in loops(path))
        for statement, path in walk(nest)
    )
    pair = next(_masked_pairs(nest), None) if mask != FULL or uneven else None
    outer, inner = pair or tuple(ordered)
    return Part(nest, outer, inner, axes, pair is not None)


def _masked_pairs(nest: Nest) -> Iterator[tuple[Symbol, Symbol]]:
    for _, path in walk(nest):
        for i, block in enumerate(path):
            if isinstance(block, Loop) and block.masked:
                outer = next(b for b in reversed(path[:i]) if isinstance(b, Loop) and b.tile in TILE_ORDER)
                yield outer.tile, block.tile
