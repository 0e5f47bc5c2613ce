"""The largest proved lower bound on traffic, for arrays of problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.bound_values import VALUES, Pairs, bound_bytes_of, classes_of
from iomodel.counting.bounds import best_bound, counts_of
from iomodel.counting.evaluation.array_engine import narrowed
from iomodel.counting.kinds import kind_of
from iomodel.workloads.attention import Attention


def bound_bytes(algorithm: AlgorithmLike, calls: Calls | Layers, budget: Any, unit: str) -> Any:
    """Evaluate :func:`iomodel.counting.bounds.best_bound` for each call with its budget [B]."""
    first, shape, point = calls.first, calls.shape, calls.point
    if not isinstance(first, Attention):
        return _one_by_one(algorithm, calls, budget, unit)
    kind = kind_of(first)
    formulas = counts_of(kind.mask, kind.direction, first.latent)
    narrowest = np.minimum(32 * point["element_size"], point["kv_size"])
    sizes = budget if unit == "elements" else np.maximum(1, 32 * budget // narrowest)
    if formulas.nodes:  # a mask given by data
        return _one_by_one(algorithm, calls, budget, unit)
    _, compulsory, pairs, gradients = formulas.arrays([*point.values()], (), ())
    names = classes_of(find_algorithm(algorithm).classes, first.direction, first.latent)

    def best(least: int, pairs: int, summed: int, groups: int, rows: int, keys: int, *others: int) -> int:
        width, values, size, amount, *widths = others
        apart, shared = 0 if first.latent else values, ((groups, -pairs // groups),)
        counted = Pairs(pairs, width, apart, values, summed, shared, rows if pairs == rows * keys else 0, keys)
        known = None if unit == "elements" else amount
        bounds = ((name, VALUES[name](counted, size)) for name in names)
        held = [bound_bytes_of(name, counted, value, widths, known) for name, value in bounds if value]  # type: ignore[arg-type]
        return max(least, *held, 0)

    widths = 32 * point["element_size"], point["kv_size"]
    groups, rows = point["batch"] * point["kv_heads"], point["batch"] * point["heads"] * point["q_len"]
    shapes = groups, rows, point["kv_len"], point["head_dim"], point["value_dim"]
    numbers = (compulsory, pairs, gradients, *shapes, sizes, budget, *widths)
    whole = [np.asarray(number).astype(object) for number in numbers]
    largest = np.frompyfunc(best, len(whole), 1)(*whole)
    return narrowed(np.broadcast_to(np.asarray(largest, dtype=object), shape))


def _one_by_one(algorithm: AlgorithmLike, calls: Calls | Layers, budget: Any, unit: str) -> Any:
    shape = np.broadcast_shapes(calls.shape, np.shape(budget))
    amounts, memory = np.broadcast_to(budget, shape), f"sram_{'elements' if unit == 'elements' else 'bytes'}"
    bounds = [
        best_bound(algorithm, calls.call(place, shape), **{memory: int(amounts[place])}).bytes
        for place in np.ndindex(*shape)
    ]
    return narrowed(np.array(bounds, dtype=object).reshape(shape))
