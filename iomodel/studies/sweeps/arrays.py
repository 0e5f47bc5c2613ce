"""Arrays of the variables of a sweep, counted at given tiles or at the best tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from iomodel.counting.cost_array import CostArray, cost_array
from iomodel.nests.alphabet import TILE_NAMES
from iomodel.solving.batch.solutions import SolutionArray
from iomodel.solving.solve_many import solve_array
from iomodel.studies.sweeps.fields import SOLVER


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
