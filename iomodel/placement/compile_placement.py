"""The tiles of a residency compiled to bytes of shared memory, tensor memory and registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Integer, Max, ceiling

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.compile import compile_formulas
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.folds import buffers, in_bytes, largest
from iomodel.counting.kinds import FormulaKind
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Compound, Kernel, Loop, Nest, Path, walk
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.rules import DeclarationError
from iomodel.nests.symbols import NAME_OF, TILE_ORDER
from iomodel.placement.placement import PlacementFormulas


def compiled_placement(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], residency: Residency
) -> PlacementFormulas:
    """Compile the bytes that a residency takes in shared memory, tensor memory and registers."""
    names, sizes = tile_sizes(algorithm, kind, options)
    return _compiled(names, tuple(sizes.items()), residency)


@lru_cache(maxsize=1024)  # most masks and options leave the tiles as they are
def _compiled(names: tuple[str, str], tiles: tuple[tuple[str, Expr], ...], residency: Residency) -> PlacementFormulas:
    sizes = dict(tiles)

    def held(phase: Sequence[Fragment]) -> Expr:
        return Add(*(fragment_bytes(part, sizes) for part in phase))

    inputs = (*names, "stages", "warps")
    memories = [
        ceiling(Add(*(stored_bytes(part, sizes) for part in parts))) for parts in (residency.shared, residency.tensor)
    ]
    shared = compile_formulas(memories, (), inputs)
    registers = compile_formulas([ceiling(Max(Integer(0), *map(held, residency.phases)))], (), inputs)
    return PlacementFormulas(shared, registers, names)


@lru_cache(maxsize=64)
def tile_sizes(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]
) -> tuple[tuple[str, str], Mapping[str, Expr]]:
    """Return the names of the two tiles of an algorithm, and the size of each buffer [elements]."""
    chosen = dict(options)
    nest = declared(algorithm, replace(kind, features=()), chosen)
    sizes = on_chip(nest, View(kind.mask, chosen["packed"]))
    tiles = sorted(
        {tile for expr in sizes.values() for tile in expr.free_symbols & {*TILE_ORDER}}, key=TILE_ORDER.index
    )
    if len(tiles) != 2:
        raise DeclarationError(f"{algorithm}: a residency is of a kernel with two tiles; found {tiles}")
    return (NAME_OF[tiles[0]], NAME_OF[tiles[1]]), FrozenDict(sizes)


def stored_bytes(part: Shared | Reused, sizes: Mapping[str, Expr]) -> Expr:
    """Weigh a part of shared or tensor memory; the largest of groups that use it in turn counts [B]."""
    if isinstance(part, Reused):
        return largest(Add(*(stored_bytes(tile, sizes) for tile in group)) for group in part.groups)
    return part.copies * sizes[part.tensor.name] * in_bytes(part.dtype or part.tensor.dtype)


def fragment_bytes(part: Fragment, sizes: Mapping[str, Expr]) -> Expr:
    """Weigh a tile in the registers of all computing warps [B]."""
    return part.share * sizes[part.tensor.name] * in_bytes(part.dtype)


def on_chip(nest: Nest, view: View) -> dict[str, Expr]:
    """List the tiles of the kernels that have tiles to choose, by the name of the tensor [elements]."""
    found: dict[str, Expr] = {}

    def inside(block: Any, path: Path) -> None:
        here = (*path, block)
        for tensor, _, around in buffers(block.body, here):
            found.setdefault(tensor.name, view.buffer(tensor, around))
        for statement in block.body:
            if isinstance(statement, Compound):
                inside(statement, here)

    for kernel in nest:
        if _tiled(kernel):
            inside(kernel, ())
    return found


def _tiled(kernel: Kernel) -> bool:
    return any(isinstance(b, Loop) and b.tile in TILE_ORDER for _, path in walk((kernel,)) for b in path)
