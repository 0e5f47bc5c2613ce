"""The largest proved lower bound on traffic, for arrays of problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.arrays.calls import Calls
from iomodel.counting.arrays.layers import Layers
from iomodel.counting.bounds import VALUES, best_bound, classes_of, counts_of
from iomodel.counting.evaluation.array_engine import narrowed
from iomodel.counting.kinds import kind_of
from iomodel.workloads.attention import Attention


def bound_bytes(algorithm: AlgorithmLike, calls: Calls | Layers, budget: Any, unit: str) -> Any:
    """Evaluate :func:`iomodel.counting.bounds.best_bound` for each call with its budget [B]."""
    first, shape, point = calls.first, calls.shape, calls.point
    if not isinstance(first, Attention):
        held = budget if unit == "elements" else np.maximum(1, 32 * budget // first.narrowest)
        return _one_by_one(algorithm, calls, held)
    kind = kind_of(first)
    formulas = counts_of(kind.mask, kind.direction, first.latent)
    narrowest = np.minimum(point["element_size"], point["kv_element_size"])
    sizes = budget if unit == "elements" else np.maximum(1, budget // narrowest)
    if formulas.nodes:  # a mask given by data
        return _one_by_one(algorithm, calls, sizes)
    _, compulsory, pairs = formulas.arrays([*point.values()], (), ())
    values = [
        VALUES[name] for name in sorted(classes_of(find_algorithm(algorithm).classes, first.direction, first.latent))
    ]

    def best(least: int, pairs: int, width: int, value_width: int, size: int, element: int) -> int:
        bounds = (value(pairs, width, 0 if first.latent else value_width, value_width, size) for value in values)
        return max(least, *((bound or 0) * element for bound in bounds), 0)

    numbers = (compulsory, pairs, point["head_dim"], point["value_dim"], sizes, narrowest)
    whole = [np.asarray(number).astype(object) for number in numbers]
    largest = np.frompyfunc(best, len(whole), 1)(*whole)
    return narrowed(np.broadcast_to(np.asarray(largest, dtype=object), shape))


def _one_by_one(algorithm: AlgorithmLike, calls: Calls | Layers, sizes: Any) -> Any:
    shape = np.broadcast_shapes(calls.shape, np.shape(sizes))
    bounds = [
        best_bound(algorithm, calls.call(place, shape), int(np.broadcast_to(sizes, shape)[place])).bytes
        for place in np.ndindex(*shape)
    ]
    return narrowed(np.array(bounds, dtype=object).reshape(shape))
