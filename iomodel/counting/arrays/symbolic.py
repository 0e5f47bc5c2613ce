"""Formulas compiled for arrays: shared arrays become one input, and counts without a closed form are enumerated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.bands import Count
from iomodel.counting.enumerated import counted
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.nests.symbols import BY_NAME, NAME_OF

Number = Callable[[str], Any]
"""The value of a symbol at the points, by Python name."""
LEADERS = ("q_len", "kv_len", "heads", "kv_heads", "head_dim", "value_dim")
COUNTED = ("q_len", "kv_len", "page_size", "window_left", "window_right")


def inputs_of(
    formula: Expr, calls: Calls | Layers, tiles: Mapping[str, Any], number: Number, unchecked: list[str]
) -> tuple[Compiled, list[str], list[Any]]:
    """Compile a formula for arrays; return it with the names and the values of its inputs."""
    same = _same(calls, tiles)
    compiled, nodes = compiled_for(formula, same)
    values = [
        _enumerated(nodes[symbol], calls, number) if symbol in nodes else number(NAME_OF[symbol])
        for symbol in compiled.inputs
    ]
    if unchecked and np.broadcast_shapes(*map(np.shape, values)) == calls.shape:
        symbols = {BY_NAME[name] for name in unchecked} - dict(same).keys() - {*compiled.inputs}
        beside = tuple(sorted(symbols, key=str))
        if beside:  # one pass over all the arrays takes less than two over some
            compiled, _ = compiled_for(formula, same, beside)
            values += [number(NAME_OF[symbol]) for symbol in beside]
    return compiled, [NAME_OF.get(symbol, str(symbol)) for symbol in compiled.inputs], values


def _same(calls: Calls | Layers, tiles: Mapping[str, Any]) -> tuple[tuple[Symbol, Symbol], ...]:
    """List the pairs of symbols with one array: the lengths of self attention, the widths of K and V."""
    fields = {**{name: calls.fields[name] for name in LEADERS if name in calls.fields}, **tiles}
    first: dict[int, str] = {}
    pairs = []
    for name, value in fields.items():
        if isinstance(value, np.ndarray) and first.setdefault(id(value), name) != name:
            pairs.append((BY_NAME[name], BY_NAME[first[id(value)]]))
    return tuple(pairs)


def _enumerated(node: Count, calls: Calls | Layers, number: Number) -> Any:
    """Compute a count without a closed form, once for each distinct set of its inputs."""
    assert isinstance(calls, Calls)  # only a mask has counts without a formula
    quantity, outer, *sizes = node.args
    compiled = Compiled(sizes)
    tile_sizes = np.broadcast_arrays(*compiled.arrays(*(number(NAME_OF[symbol]) for symbol in compiled.inputs)))
    inputs = [*tile_sizes, *(calls.number(name) for name in COUNTED)]
    columns = [np.asarray(column).astype(object) for column in np.broadcast_arrays(*inputs)]
    known: dict[tuple[int, ...], int] = {}
    result = np.empty(columns[0].shape, dtype=object)
    for place in np.ndindex(result.shape):
        point = tuple(int(column[place]) for column in columns)
        if point not in known:
            u, v, group, q_len, kv_len, page_size, left, right = point
            mask = calls.first.mask
            if calls.widths:
                sides = {"left": left, "right": right}
                mask = mask.model_copy(update={s: n for s, n in sides.items() if getattr(mask, s) is not None})  # type: ignore[union-attr]
            call: Any = SimpleNamespace(q_len=q_len, kv_len=kv_len, page_size=page_size, mask=mask)
            known[point] = counted(str(quantity), str(outer), u, v, group, call)
        result[place] = known[point]
    return result


@lru_cache(maxsize=1024)
def compiled_for(
    formula: Expr, same: tuple[tuple[Symbol, Symbol], ...], beside: tuple[Symbol, ...] = ()
) -> tuple[Compiled, dict[Symbol, Count]]:
    """Compile one formula over its own symbols, and return the symbols that replace counts with these counts.

    Symbols that share an array become one symbol. The symbols `beside` are inputs that the formula ignores.
    """
    nodes = sorted(formula.atoms(Count), key=str)
    names = {node: Symbol(f"count_{i}", integer=True, nonnegative=True) for i, node in enumerate(nodes)}
    compiled = Compiled([formula.xreplace(names)], same=dict(same))
    if beside:
        compiled = Compiled([formula.xreplace(names)], (*compiled.inputs, *beside), dict(same))
    return compiled, {name: node for node, name in names.items()}
