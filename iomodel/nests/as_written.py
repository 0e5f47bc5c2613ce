"""Options that count what the source of a kernel does, each declared once as a transformation of any nest.

====================  ==================================================================================================
padded_statistics     statistics of rows (LSE, m, l, D) are stored and loaded for whole tiles; D is made tile by tile
masked_loads          K, V and their scales per key are loaded up to the last key that the query tile sees, by a mask of
                      the load; work and skipping stay those of whole tiles
eager_loads           the stationary tile is loaded before the range of the loop is known: also where nothing is seen
unskipped_window      keys before a window are masked, but their tiles are not skipped
padded_queries        rows that pad the last query tile see keys, as queries after the last one would
bias_vector           the bias has one row per head for all queries
order                 "serpentine": every second query tile walks the keys backwards, and the tile at the turn is kept
====================  ==================================================================================================

All are off by default, and each applies to the nest of a call with its features. The sources that each one describes
are in ``docs/features.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sympy import Expr

from iomodel.nests.feature_names import AS_WRITTEN
from iomodel.nests.language import (
    Compound,
    Fill,
    Idle,
    Live,
    Load,
    Lookup,
    Loop,
    Nest,
    Sight,
    Statement,
    Store,
    Tensor,
    everywhere,
    rebuilt,
    same_body,
    walk,
)
from iomodel.nests.symbols import ONE, B_r
from iomodel.nests.tensors import D, bias_rows, key, query, split


def as_written(nest: Nest, names: Iterable[str]) -> Nest:
    """Apply options to a nest with its features."""
    wanted = set(names)
    for name, apply in CHANGES.items():
        if name in wanted:
            nest = apply(nest)
    return nest


def _statistic(tensor: Tensor) -> bool:
    return tensor.dtype == "fp32" and query in tensor.axes and {*tensor.axes} <= {query, split}


def _of_keys(tensor: Tensor) -> bool:
    return key in tensor.axes and query not in tensor.axes


def _with_padded_statistics(nest: Nest) -> Nest:
    blocks = any(getattr(block, "tile", None) == B_r for _, path in walk(nest) for block in path)

    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load | Store | Fill) and _statistic(statement.tensor):
            return (replace(statement, padded=(query,)),)
        if isinstance(statement, Loop) and statement.axis == query and statement.tile == ONE:
            made = any(isinstance(inner, Store) and inner.tensor == D for inner in statement.body)
            return (replace(statement, tile=B_r) if made and blocks else statement,)
        return (statement,)

    return everywhere(nest, change)


def _with_masked_loads(nest: Nest) -> Nest:
    def clip(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load) and _of_keys(statement.tensor):
            return (replace(statement, clipped=True),)
        return (statement,)

    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Loop) and statement.masked and statement.axis == key:
            return (statement.with_body(rebuilt(statement.body, clip)),)
        return (statement,)

    return everywhere(nest, change)


def _with_eager_loads(nest: Nest) -> Nest:
    """Move the loads of the stationary tile, and the look-up of its pages, in front of the guard."""

    def change(statement: Statement) -> Sequence[Statement]:
        if not isinstance(statement, Live):
            return (statement,)
        stationary = {query: key, key: query}.get(statement.axis)

        def early(inner: Statement) -> bool:
            return (isinstance(inner, Load) and stationary in inner.tensor.axes) or (
                isinstance(inner, Lookup) and stationary == key
            )

        rest = [inner for inner in statement.body if not early(inner)]
        return (*filter(early, statement.body), statement.with_body(rest))

    return everywhere(nest, change)


def _with_sight(nest: Nest, left: bool = True, padded: bool = False) -> Nest:
    def inside(block: Any, tile: Expr | None) -> Any:
        return block.with_body(tuple(seeing(inner, tile) for inner in block.body))

    def seeing(statement: Any, tile: Expr | None) -> Any:
        """Set the sight of the loops and guards of a statement, where the query tile around it is known."""
        if not isinstance(statement, Compound):
            return statement
        if isinstance(statement, Loop) and statement.axis == query:
            tile = statement.tile
        bounded = isinstance(statement, Live | Idle) or (isinstance(statement, Loop) and statement.masked)
        if bounded and statement.axis in (query, key):
            rows = tile if statement.axis == key else _query_tile(statement)
            sight: Sight = statement.sight
            if padded and rows not in (None, ONE):
                sight = replace(sight, query_tile=rows)
            statement = replace(statement, sight=replace(sight, left=sight.left and left))
        return inside(statement, tile)

    return tuple(inside(kernel, None) for kernel in nest)


def _query_tile(block: Any) -> Expr | None:
    """Return the tile of a masked loop over queries, or of the one in a guard."""
    if isinstance(block, Loop) and block.axis == query and block.masked:
        return block.tile
    inner = (_query_tile(statement) for statement in block.body if isinstance(statement, Compound))
    return next((tile for tile in inner if tile is not None), None)


def _with_bias_vector(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load) and statement.tensor.name == bias_rows.name:
            return (replace(statement, tensor=bias_rows),)
        return (statement,)

    return everywhere(nest, change)


def _with_serpentine_order(nest: Nest) -> Nest:
    def turn(inner: Statement) -> Sequence[Statement]:
        if isinstance(inner, Loop) and inner.masked and inner.axis == key:
            return (replace(inner, serpentine=True),)
        return (inner,)

    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Loop) and statement.axis == query:
            walks = [inner for inner in same_body(statement) if isinstance(inner, Loop)]
            if len(walks) == 1 and any(isinstance(leaf, Load) and _of_keys(leaf.tensor) for leaf in walks[0].body):
                return (statement.with_body(rebuilt(statement.body, turn)),)
        return (statement,)

    return everywhere(nest, change)


_CHANGES: tuple[Callable[[Nest], Nest], ...] = (
    _with_padded_statistics,
    _with_masked_loads,
    _with_eager_loads,
    partial(_with_sight, left=False),
    partial(_with_sight, padded=True),
    _with_bias_vector,
    _with_serpentine_order,
)
CHANGES: dict[str, Callable[[Nest], Nest]] = dict(zip(AS_WRITTEN, _CHANGES, strict=True))
"""Every option, in the order of application."""


def changes_anything(nest: Nest, name: str) -> bool:
    """Return True if an option has a meaning for a nest."""
    return CHANGES[name](nest) != nest
