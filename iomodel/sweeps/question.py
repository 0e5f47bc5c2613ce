"""What one point of a sweep asks of an algorithm: the call, its tiles and options, and what the answers are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.arrays.calls import SIDES
from iomodel.cost import Cost, cost, tally_for
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.expressions import only_taken
from iomodel.solve import solve
from iomodel.sweeps.fields import NUMBER_OPTIONS, SOLVER, TILE_NAMES, switches
from iomodel.workload import Attention, Window

TOTALS = ("hbm_reads", "hbm_writes", "hbm_elements")
QUANTITIES = (*(field.name for field in fields(Cost) if field.type == "int"), *TOTALS)
"""What a sweep answers beside the tensors' reads and writes."""


@dataclass(frozen=True)
class Question:
    """What one choice of names and switches asks of an algorithm, at one point.

    Attributes
    ----------
    tiles, options : mapping
        Those that the algorithm heeds here: other algorithms of the sweep may take more.
    budget : mapping or None
        What the tiles are found within, as the arguments of a solver; None where they are given.
    """

    algorithm: str
    workload: Attention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    budget: Mapping[str, Any] | None

    @property
    def taken(self) -> frozenset[str]:
        """The fields that make a difference."""
        return frozenset({*Attention.model_fields, *SIDES, *self.tiles, *self.options, *(self.budget or ())})

    def answers(self) -> dict[str, int]:
        """Every quantity at this point by the name of its variable, and the tiles if they are found: 0 if none fits."""
        if self.budget is None:
            return _named(cost(self.algorithm, self.workload, self.tiles or None, **self.options))
        try:
            found = solve(self.algorithm, self.workload, **self.budget, **self.options)
            return {**_named(found.cost), **found.tiles}
        except InfeasibleError:
            chosen = tally_for(self.algorithm, self.workload, self.options, tiled=True)[0]
            sides = {"reads": chosen.formulas.reads, "writes": chosen.formulas.writes}
            tensors = [f"{side}_{tensor}" for side, moved in sides.items() for tensor in moved]
            return dict.fromkeys((*QUANTITIES, *tensors, *chosen.tiles), 0)


def _named(found: Cost) -> dict[str, int]:
    sides = {"reads": found.reads, "writes": found.writes}
    tensors = {f"{side}_{tensor}": moved for side, of in sides.items() for tensor, moved in of.items()}
    return {**{name: getattr(found, name) for name in QUANTITIES}, **tensors}


def question(given: Mapping[str, Any], solving: bool) -> Question:
    """The call, the tiles and the options that a mapping of fields holds, left out what this algorithm lacks."""
    name = given["algorithm"]
    found = find_algorithm(name)
    workload = Attention(**{field: value for field, value in _call(given).items() if field in Attention.model_fields})
    named = {field: value for field, value in given.items() if field in (*switches(), *NUMBER_OPTIONS)}
    if workload.direction not in found.directions:
        allowed = ", ".join(found.directions)
        raise InputError(f"direction: {workload.direction!r} given; allowed: {allowed}, for {name} does no more")
    options = only_taken(found, workload.direction, named)
    if solving:
        return Question(name, workload, {}, options, {field: given[field] for field in SOLVER if field in given})
    sizes = {field: value for field, value in given.items() if field in TILE_NAMES}
    untiled = found.tiled_by is not None and options.get(found.tiled_by) is False
    known = tally_for(name, workload, options, tiled=bool(sizes) and not untiled)[0].tiles
    return Question(name, workload, {tile: size for tile, size in sizes.items() if tile in known}, options, None)


def _call(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a call, the widths of a window where they are given beside it."""
    mask = given.get("mask", "full")
    widths = {side: given[name] for name, side in SIDES.items() if name in given}
    for name, side in SIDES.items():
        if name in given and (not isinstance(mask, Window) or getattr(mask, side) is None):
            raise InputError(
                f"{name}: given with mask {shown(mask)}; allowed: with a Window that is bounded on this side, whose "
                "width it stands in for"
            )
    return {**given, "mask": mask.model_copy(update=widths)} if widths else given
