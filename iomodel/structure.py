"""What the shape of a nest lets the solver prove: independent parts, and the stationary and streamed tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sympy import Symbol

from iomodel.masks import FULL, MaskKind
from iomodel.nest import Axis, DeclarationError, Kernel, Live, Load, Loop, Nest, Path, Statement, Store, loops, walk
from iomodel.symbols import TILES

TILE_ORDER = [entry.symbol for entry in TILES]


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
        Whether a mask bounds a loop: the cost is then no function of the trip counts alone.
    provable : bool
        Whether the bounds of a staircase hold (:mod:`iomodel.search`): everything in the masked loop streams along
        the inner axis, and nothing outside it is repeated.
    """

    nest: Nest
    outer: Symbol
    inner: Symbol
    axes: dict[Symbol, Axis]
    masked: bool
    provable: bool


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
    pair = next(_masked_pairs(nest), None) if mask != FULL else None
    outer, inner = pair or tuple(ordered)
    return Part(nest, outer, inner, axes, pair is not None, _provable(nest, axes[outer], axes[inner]))


def _masked_pairs(nest: Nest) -> Iterator[tuple[Symbol, Symbol]]:
    for _, path in walk(nest):
        for i, block in enumerate(path):
            if isinstance(block, Loop) and block.masked:
                outer = next(b for b in reversed(path[:i]) if isinstance(b, Loop))
                yield outer.tile, block.tile


def _in_masked_loop(path: Path) -> bool:
    return any(isinstance(block, Loop) and block.masked for block in path)


def _provable(nest: Nest, outer: Axis, inner: Axis) -> bool:
    for statement, path in walk(nest):
        if isinstance(statement, Load | Store):
            axes = set(statement.tensor.axes)
            if _in_masked_loop(path) and not (inner in axes and outer not in axes):
                return False
            if not _in_masked_loop(path) and not loops(path).keys() <= axes:
                return False
    return True


def without_masked_loops(nest: Nest) -> Nest:
    """What is left when the masked loops run no trip: the part of the cost that does not stream."""

    def strip(body: Sequence[Statement]) -> tuple[Statement, ...]:
        kept: list[Statement] = []
        for statement in body:
            if isinstance(statement, Loop | Live):
                if isinstance(statement, Loop) and statement.masked:
                    continue
                kept.append(statement.with_body(strip(statement.body)))
            else:
                kept.append(statement)
        return tuple(kept)

    return tuple(kernel.with_body(strip(kernel.body)) for kernel in nest)
