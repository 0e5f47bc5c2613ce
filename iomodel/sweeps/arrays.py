"""Arrays of answers by the names of a sweep's variables: counted at given tiles, or at the best that are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from iomodel.cost_array import CostArray, cost_array
from iomodel.many.result import Solutions
from iomodel.solve_many import solve_many
from iomodel.sweeps.fields import SOLVER, TILE_NAMES


def answers(algorithm: str, given: Mapping[str, Any], names: Iterable[str], solving: bool) -> dict[str, Any]:
    """The variables of one algorithm, whose numbers may be arrays; 0 for a tensor or a tile that it does not have."""
    if not solving:
        costs = cost_array(algorithm, **given)
        return {name: _quantity(costs, name) for name in names}
    found = solve_many(algorithm, **given, infeasible="mark")
    wanted = [name for name in names if name not in TILE_NAMES and name != "hbm_bytes"]
    return {
        "hbm_bytes": found.hbm_bytes,
        **{name: found.tiles.get(name, 0) for name in TILE_NAMES},
        **(_costs(found, given, wanted) if wanted else {}),
    }


def _quantity(costs: CostArray, name: str) -> Any:
    side, _, tensor = name.partition("_")
    if side not in ("reads", "writes"):
        return getattr(costs, name)
    moved = getattr(costs, side)
    return moved.get(tensor, 0)


def _costs(found: Solutions, given: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """What the tiles cost where any fits, and 0 elsewhere."""
    fits = np.asarray(found.feasible)
    answered: dict[str, Any] = {name: np.zeros(fits.shape, dtype=object) for name in names}
    if fits.any():
        known = {name: value for name, value in given.items() if name not in SOLVER}
        at = {
            name: np.broadcast_to(value, fits.shape)[fits] if isinstance(value, np.ndarray) else value
            for name, value in {**known, **found.tiles}.items()
        }
        costs = cost_array(found.algorithm, **at)
        for name in names:
            answered[name][fits] = _quantity(costs, name)
    return answered
