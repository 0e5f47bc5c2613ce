"""Computation of one chunk of a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from iomodel.counting.arrays.integers import at_place
from iomodel.studies.sweeps.arrays import answers
from iomodel.studies.sweeps.axes import Block
from iomodel.studies.sweeps.check import LARGEST, too_large
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.point_question import question
from iomodel.workloads.varlen import IntArray


def compute(plan: SweepPlan, block: Block) -> dict[str, IntArray]:
    """Evaluate every variable at the points of a chunk as int64; InputError if a value exceeds 64 bits."""
    slices = plan.slices(block)
    arrays = _spread(plan, slices)
    shape = tuple(part.stop - part.start for part in slices)
    results = {name: np.empty(shape, np.int64) for name in plan.variables}
    for index, fixed in plan.combinations(slices):
        point = question({**fixed, **{name: int(array.flat[0]) for name, array in arrays.items()}}, plan.solving)
        fields = {name: value for name, value in {**fixed, **arrays}.items() if name in point.taken}
        answered = answers(point.algorithm, fields, plan.variables, plan.solving)
        for name in plan.variables:
            values = np.asarray(answered[name])
            if values.dtype == object and values.max() > LARGEST:
                raise _refused(plan, name, values, fields)
            results[name][index] = values
    return results


def _spread(plan: SweepPlan, slices: tuple[slice, ...]) -> dict[str, IntArray]:
    """Return the numbers of a chunk, shaped so that they broadcast to the dimensions that are not looped over."""
    parts = [(axis, part) for axis, part in zip(plan.axes, slices, strict=True) if not axis.looped]
    arrays = {}
    for place, (axis, part) in enumerate(parts):
        spread = [1] * len(parts)
        spread[place] = -1
        for name, values in axis.fields.items():
            arrays[name] = np.asarray(values[part]).reshape(spread)
    return arrays


def _refused(plan: SweepPlan, name: str, values: Any, fields: dict[str, Any]) -> Exception:
    worst = tuple(map(int, np.unravel_index(int(values.argmax()), values.shape)))
    point = {field: at_place(value, worst, values.shape) for field, value in fields.items()}
    return too_large(plan, name, int(values[worst]), point)
