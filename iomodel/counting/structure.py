"""Parts of a nest that can be tiled independently, with the stationary and the streamed tile of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sympy import Integer, Max, Symbol

from iomodel.counting.mask_kind import FULL, MaskKind
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Compound,
    Cut,
    Fill,
    Idle,
    Kernel,
    Leaf,
    Live,
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
from iomodel.nests.rules import DeclarationError
from iomodel.nests.symbols import B_1, TILE_ORDER
from iomodel.nests.tensors import head

NO_AXIS = Axis("none", Integer(1))
"""The axis of the missing second tile of a part with one tile."""
Role = Literal["fixed", "once a tile", "streamed", "area", "begun", "revisited", "loose"]


@dataclass(frozen=True)
class Part:
    """Kernels that share tile sizes; the tile sizes of different parts can be chosen independently.

    Attributes
    ----------
    outer, inner : Symbol
        The two tile sizes. Under a mask `outer` is the stationary tile.
    axes : dict of Symbol to Axis
        The axis that each tile cuts.
    masked : bool
        True if the cost depends on more than the trip counts: a mask bounds a loop, an axis is partitioned, or pages
        are looked up.
    least : tuple of Symbol
        Further tiles whose trips repeat no move, since every move covers their axes; the smallest size is the best.
    irregular : bool
        True if the cost has no known structure, as where pieces of several lengths are cut into tiles, whole tiles
        are moved, only parts that hold a position leave anything, packed tiles move a value per head, or every second
        walk goes backwards.
    serpentine : bool
        True for an irregular cost that is known from its trip counts but for the tile at which a walk turns: every
        move but those of serpentine walks without a mask is separable.
    """

    nest: Nest
    outer: Symbol
    inner: Symbol
    axes: dict[Symbol, Axis]
    masked: bool
    irregular: bool = False
    least: tuple[Symbol, ...] = ()
    serpentine: bool = False

    def only(self, *roles: Role) -> Nest:
        """Return the nest with the moves of the given roles alone (:func:`role`), those revisited at every visit."""

        def strip(body: Sequence[Statement], path: Path) -> tuple[Statement, ...]:
            kept: list[Statement] = []
            for statement in body:
                if isinstance(statement, Compound):
                    kept.append(statement.with_body(strip(statement.body, (*path, statement))))
                elif not isinstance(statement, MOVES):
                    kept.append(statement)
                elif (of := role(statement, path, *self._pair)) in roles:
                    again = of == "revisited" and isinstance(statement, Load)
                    kept.append(replace(statement, after_first=None) if again else statement)  # type: ignore[arg-type]
            return tuple(kept)

        return tuple(kernel.with_body(strip(kernel.body, (kernel,))) for kernel in self.nest)

    @property
    def first_visits(self) -> Nest:
        """Return a nest that loads once what is loaded at every visit but the first."""
        loads = tuple(
            replace(statement, after_first=None)
            for statement, path in walk(self.nest)
            if isinstance(statement, Load) and role(statement, path, *self._pair) == "revisited"
        )
        return (Kernel("first visits", [Loop(self.axes[self.inner], self.inner, loads)]),) if loads else ()

    @property
    def prefers_inner(self) -> bool:
        """True if ties in cost go to the larger inner tile; the inner tile cuts the keys where the part has keys."""
        return self.outer not in TILE_ORDER or TILE_ORDER.index(self.outer) < TILE_ORDER.index(self.inner)

    @cached_property
    def provable(self) -> bool:
        """True if the staircase bounds of :mod:`iomodel.solving.search` hold for the whole cost."""
        roles = (
            role(statement, path, *self._pair) for statement, path in walk(self.nest) if isinstance(statement, MOVES)
        )
        return not {"begun", "revisited", "loose"} & set(roles)

    @property
    def _pair(self) -> tuple[Axis, Axis]:
        return self.axes[self.outer], self.axes[self.inner]


MOVES = (Load, Lookup, Store, Fill, Accumulate)


def role(statement: Leaf, path: Path, outer: Axis, inner: Axis) -> Role:
    """Classify a move by the quantity that its traffic depends on; `outer` is the stationary axis of a masked pair.

    ``fixed``: no tile, apart from the rows of idle tiles. ``once a tile``: the number of outer tiles.
    ``streamed``: the inner rows that each outer tile visits. ``area``: the elements visited. ``begun`` and
    ``revisited``: streamed at the first visit alone, and at all others. ``loose``: anything else.
    """
    idle = any(isinstance(block, Idle) for block in path)  # smaller tiles leave more of them idle
    later, first = (getattr(statement, name, None) for name in ("after_first", "only_first"))
    if idle or isinstance(statement, Lookup):
        return "loose"
    assert isinstance(statement, Load | Store | Fill | Accumulate)
    axes = set(statement.axes if isinstance(statement, Accumulate) else statement.tensor.axes)
    around = loops(path)
    if later or first:
        streamed = (later or first) == outer and inner in axes and outer not in axes
        return "loose" if not streamed else "begun" if first else "revisited"
    if any(isinstance(block, Loop) and block.masked for block in path):
        return {(False, True): "streamed", (True, True): "area"}.get((outer in axes, inner in axes), "loose")  # type: ignore[return-value]
    if around.keys() <= axes:
        return "fixed"
    return "once a tile" if around.keys() <= axes | {outer} else "loose"


def _union(axes: Sequence[Axis]) -> Axis:
    """Return one axis for a tile that cuts several lengths: the maximum of the lengths, decided by the numbers."""
    lengths = tuple(dict.fromkeys(axis.length for axis in axes))
    return axes[-1] if len(lengths) == 1 else replace(axes[-1], length=Max(*lengths))


def _sections(kernel: Kernel) -> set[tuple[Symbol, Axis]]:
    """Return the tiles that are the length of a piece, each with the axis whose length it replaces."""
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
    """Return an axis at its length in the largest piece: a tile that covers this length covers every piece."""
    for block in path:
        if isinstance(block, Cut):
            length = axis.length.xreplace(dict(block.pieces[0].sizes))
            return axis if length.free_symbols & {*TILE_ORDER} else replace(axis, length=length)
    return axis


def _lengths(kernel: Kernel) -> set[Symbol]:
    """Return the tiles in the lengths of the axes of a kernel, such as a number of chunks that another kernel cuts."""
    walked = {axis for _, path in walk((kernel,)) for axis in loops(path)}
    return {symbol for axis in walked for symbol in axis.length.free_symbols if symbol in TILE_ORDER}


def parts(nest: Nest, mask: MaskKind, packed: bool = False) -> tuple[list[Part], Nest]:
    """Split a nest into its parts and the kernels that have no tile to choose; `packed` rows are of grouped heads."""
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
    return [_part(tuple(kernels), mask, packed and not kernels[0].unpacked) for _, kernels in groups], tuple(fixed)


def _part(nest: Nest, mask: MaskKind, packed: bool) -> Part:
    cuts = [pair for cut in (_tiles, _sections) for kernel in nest for pair in cut(kernel)]
    axes = {tile: _union([axis for other, axis in cuts if other == tile]) for tile, _ in cuts}
    ordered = sorted(axes, key=TILE_ORDER.index)
    least = tuple(tile for tile in ordered if not _repeats(nest, tile)) if len(ordered) > 2 else ()
    ordered = [tile for tile in ordered if tile not in least]
    if not 1 <= len(ordered) <= 2:
        raise DeclarationError(f"{nest[0].title}: the solver chooses two tiles at a time; found {ordered}")
    if len(ordered) == 1:  # the only tile takes the streamed place, so that its largest size is chosen
        ordered, axes = [B_1, *ordered], {**axes, B_1: NO_AXIS}
    blocks = [block for _, path in walk(nest) for block in path]
    uneven_blocks = any(isinstance(block, Cut) or _of_parts(block) for block in blocks)
    by_head = packed and any(head in _axes_of(leaf) for leaf, _ in walk(nest))  # as many as rows
    padded = any(getattr(leaf, "padded", ()) for leaf, _ in walk(nest))
    beyond = any(isinstance(block, Loop | Live | Idle) and block.sight.query_tile is not None for block in blocks)
    fixed = mask != FULL and any(pair is None for pair in _masked_pairs(nest))
    if uneven_blocks or by_head or padded or beyond or fixed:  # the cost falls and rises with a tile
        return Part(nest, ordered[0], ordered[1], axes, masked=False, irregular=True, least=least)
    uneven = any(
        isinstance(statement, Lookup) or any(axis.of is not None for axis in loops(path))
        for statement, path in walk(nest)
    )
    pair = next(filter(None, _masked_pairs(nest)), None) if mask != FULL or uneven else None
    outer, inner = pair or (ordered[0], ordered[1])
    turned = next((block for block in blocks if isinstance(block, Loop) and block.serpentine), None)
    if turned is not None:
        known = (
            pair is None and not least and turned.tile == inner and TILE_ORDER.index(outer) < TILE_ORDER.index(inner)
        )
        return Part(nest, outer, inner, axes, masked=False, irregular=True, serpentine=known, least=least)
    return Part(nest, outer, inner, axes, pair is not None, least=least)


def _of_parts(block: object) -> bool:
    """Return True for a guard of parts that hold a position; their number depends on the tile."""
    return isinstance(block, Live) and block.axis.of is not None


def _repeats(nest: Nest, tile: Symbol) -> bool:
    """Return True if the trips of a loop with this tile repeat any move, so that the tile affects traffic."""
    for statement, path in walk(nest):
        if not isinstance(statement, MOVES):
            continue
        covered = () if isinstance(statement, Lookup) else _covered(statement)
        if any(isinstance(block, Loop) and block.tile == tile and block.axis not in covered for block in path):
            return True
    return False


def _covered(statement: Load | Store | Fill | Accumulate) -> tuple[Axis, ...]:
    return statement.axes if isinstance(statement, Accumulate) else statement.tensor.axes


def _masked_pairs(nest: Nest) -> Iterator[tuple[Symbol, Symbol] | None]:
    """Yield the tiles of each masked loop and of the loop around it; None where either has a tile of fixed size."""
    for _, path in walk(nest):
        for i, block in enumerate(path):
            if isinstance(block, Loop) and block.masked:
                outer = next((b for b in reversed(path[:i]) if isinstance(b, Loop) and b.tile in TILE_ORDER), None)
                yield None if outer is None or block.tile not in TILE_ORDER else (outer.tile, block.tile)
