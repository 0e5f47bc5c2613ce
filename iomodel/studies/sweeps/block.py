"""Computation of one chunk of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from iomodel.counting.arrays.integers import at_place
from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.nests.alphabet import TILE_NAMES
from iomodel.solving.batch.solutions import SolutionArray
from iomodel.solving.solve_many import solve_array
from iomodel.studies.sweeps.axes import Block
from iomodel.studies.sweeps.check import LARGEST, too_large
from iomodel.studies.sweeps.fields import SOLVER
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.point_question import question
from iomodel.workloads.varlen import IntArray


def answers(algorithm: str, fields: Mapping[str, Any], names: Iterable[str], solving: bool) -> dict[str, Any]:
    """Evaluate the variables of one algorithm over arrays of numbers; 0 for a tensor or a tile that it lacks."""
    if not solving:
        costs = cost_array(algorithm, **fields)
        return {name: _quantity(costs, name) for name in names}
    solutions = solve_array(algorithm, **{"implementation": "textbook", **fields}, infeasible="mark")
    wanted = [name for name in names if name not in TILE_NAMES and name != "hbm_bytes"]
    return {
        "hbm_bytes": solutions.hbm_bytes,
        **{name: solutions.tiles.get(name, 0) for name in TILE_NAMES},
        **(_costs(solutions, fields, wanted) if wanted else {}),
    }


def _quantity(costs: CostArray, name: str) -> Any:
    side, _, tensor = name.partition("_")
    if side not in ("reads", "writes"):
        return getattr(costs, name)
    moved = getattr(costs, side)
    return moved.get(tensor, 0)


def _costs(solutions: SolutionArray, fields: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Evaluate the costs at the solved tiles, 0 where none fits."""
    fits = np.asarray(solutions.feasible)
    answered: dict[str, Any] = {name: np.zeros(fits.shape, dtype=object) for name in names}
    if fits.any():
        known = {name: value for name, value in fields.items() if name not in SOLVER}
        at = {
            name: np.broadcast_to(value, fits.shape)[fits] if isinstance(value, np.ndarray) else value
            for name, value in {**known, **solutions.tiles}.items()
        }
        costs = cost_array(solutions.algorithm, **at)
        for name in names:
            answered[name][fits] = _quantity(costs, name)
    return answered


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
