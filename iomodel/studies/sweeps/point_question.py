"""One point of a sweep: the call, its tiles and options, and the names of its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.arrays.calls import SIDES
from iomodel.counting.cost import Cost, cost
from iomodel.counting.options import only_taken
from iomodel.counting.quantities import QUANTITIES, TOTALS
from iomodel.errors import InfeasibleError, InputError, shown
from iomodel.nests.alphabet import NUMBERS, TILE_NAMES
from iomodel.solving.question import Question
from iomodel.solving.solve import solve
from iomodel.studies.sweeps.fields import OF_KIND, SOLVER, switches
from iomodel.workloads.attention import Attention
from iomodel.workloads.window import Window
from iomodel.workloads.workload import Shape
from iomodel.workloads.workload_kinds import KINDS

ANSWERS = {**QUANTITIES, **TOTALS}
"""The quantities of a sweep beside the reads and writes of tensors."""


@dataclass(frozen=True)
class PointQuestion:
    """The call, tiles and options at one point of a sweep.

    Attributes
    ----------
    tiles, options : mapping
        Those that the algorithm takes here; other algorithms of the sweep may take more.
    budget : mapping or None
        The budget for the tiles, as arguments of a solver; None if tiles are given.
    """

    algorithm: str
    workload: Shape
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    budget: Mapping[str, Any] | None

    @property
    def taken(self) -> frozenset[str]:
        """The fields that affect the result."""
        return frozenset({*OF_KIND[self.workload.operation], *self.tiles, *self.options, *(self.budget or ())})

    def answers(self) -> dict[str, int]:
        """Compute every quantity at this point by the name of its variable, and solved tiles; 0 if none fits."""
        if self.budget is None:
            return _named(cost(self.algorithm, self.workload, self.tiles or None, **self.options))
        try:
            solution = solve(self.algorithm, self.workload, implementation="textbook", **self.budget, **self.options)
            return {**_named(solution.cost), **solution.tiles}
        except InfeasibleError:
            chosen = Question.ask(self.algorithm, self.workload, None, options=self.options).bound.compiled
            sides = {"reads": chosen.reads, "writes": chosen.writes}
            tensors = [f"{side}_{tensor}" for side, moved in sides.items() for tensor in moved]
            return dict.fromkeys((*ANSWERS, *tensors, *chosen.tiles), 0)


def _named(costs: Cost) -> dict[str, int]:
    sides = {"reads": costs.reads, "writes": costs.writes}
    tensors = {f"{side}_{tensor}": moved for side, of in sides.items() for tensor, moved in of.items()}
    return {**costs.quantities, **tensors}


def question(fields: Mapping[str, Any], solving: bool) -> PointQuestion:
    """Build the call, tiles and options from a mapping of fields, without those that this algorithm lacks."""
    name = fields["algorithm"]
    declaration = find_algorithm(name)
    kind = KINDS[declaration.answers]
    whole = _call(fields) if kind is Attention else fields
    workload = kind(**{field: value for field, value in whole.items() if field in kind.model_fields})
    named = {field: value for field, value in fields.items() if field in (*switches([name]), *NUMBERS)}
    named = {field: value for field, value in named.items() if field not in kind.model_fields}
    if workload.direction not in declaration.directions:
        allowed = ", ".join(declaration.directions)
        raise InputError(
            f"direction: {workload.direction!r} given; allowed: {allowed}, because {name} supports no other"
        )
    options = only_taken(declaration, workload.direction, named)
    if solving:
        return PointQuestion(name, workload, {}, options, {field: fields[field] for field in SOLVER if field in fields})
    sizes = {field: value for field, value in fields.items() if field in TILE_NAMES}
    untiled = declaration.tiled_by is not None and options.get(declaration.tiled_by) is False
    question = Question.ask(name, workload, None, options=options)
    known = (question.bound if sizes and not untiled else question.untiled).tiles
    return PointQuestion(name, workload, {tile: size for tile, size in sizes.items() if tile in known}, options, None)


def _call(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a call, with the separately given widths of a window."""
    mask = fields.get("mask", "full")
    widths = {side: fields[name] for name, side in SIDES.items() if name in fields}
    for name, side in SIDES.items():
        if name in fields and (not isinstance(mask, Window) or getattr(mask, side) is None):
            raise InputError(
                f"{name}: given with mask {shown(mask)}; allowed: with a Window that is bounded on this side, whose "
                "width it stands in for"
            )
    return {**fields, "mask": mask.model_copy(update=widths)} if widths else fields
