"""Solutions: the best tiles with their exact cost and certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iomodel.common.display import Result, Table
from iomodel.counting.cost import Cost
from iomodel.nests.alphabet import (
    LAUNCH,
    TILES,
)
from iomodel.placement.budget import Budget
from iomodel.placement.check import Check
from iomodel.solving.certificate import Certificate


@dataclass(frozen=True)
class Solution(Result):
    """The best tiles of a call with their exact cost and certificate.

    Attributes
    ----------
    tiles : mapping of tile name to int
        The tiles chosen [rows].
    cost : Cost
        Traffic and operations at these tiles.
    certificate : Certificate
        The limiting resource, the next infeasible step, the runner-up and the lower bound.
    budget : Budget
        The memory that the tiles must fit.
    epsilon : float
        The share of the least traffic allowed in exchange for a larger block_kv [-].
    saturated : bool
        True if every tile fits, so that more memory has no effect.
    placed : Check or None
        With a residency: the placement of the tiles, the use of each resource, and the blocks per SM.
    seconds : float or None
        With ``objective="time"``: the time of the call with these tiles [s].
    """

    derived = ("footprint",)
    unless_none = ("placed", "seconds")
    enclosing = ("relative",)

    algorithm: str
    tiles: Mapping[str, int]
    cost: Cost
    certificate: Certificate
    budget: Budget
    epsilon: float
    saturated: bool
    placed: Check | None = None
    seconds: float | None = None

    @property
    def footprint(self) -> int:
        """The on-chip memory of the tiles, in the unit of the budget."""
        if self.placed is not None:
            return self.placed.resources["shared memory"].used
        return self.cost.footprint_bytes if self.budget.unit == "B" else self.cost.footprint_elements

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        unit, why, step = self.budget.unit, self.certificate, self.certificate.next_step
        units = {entry.name: entry.unit for entry in (*TILES, *LAUNCH)}
        rows = [(name, f"{size:,}", units[name]) for name, size in self.tiles.items()]
        if self.seconds is not None:
            rows.append(("time", f"{self.seconds * 1e6:,.1f}", "us"))
        rows += [
            ("HBM traffic", f"{self.cost.hbm_bytes:,}", "B"),
            ("HBM accesses", f"{self.cost.hbm_elements:,}", "elements"),
            ("arithmetic intensity", f"{self.cost.intensity:,.1f}", "FLOP/B"),
            *(
                self.placed.resource_rows()
                if self.placed
                else [(f"SRAM used of {self.budget.amount:,}", f"{self.footprint:,}", unit)]
            ),
            ("binding constraint", why.binding, ""),
            (f"{step.tile} = {step.size:,} would exceed the {step.resource} by", f"{step.excess:,}", step.unit or unit),
        ]
        if why.runner_up is not None:
            tiles = ", ".join(f"{name} = {size:,}" for name, size in why.runner_up.tiles.items())
            slower = why.runner_up.seconds
            shown = (f"{why.runner_up.hbm_bytes:,}", "B") if slower is None else (f"{slower * 1e6:,.1f}", "us")
            rows.append((f"runner-up: {tiles}", *shown))
        if why.least_hbm_bytes != self.cost.hbm_bytes:
            rows.append(("least traffic of all tiles", f"{why.least_hbm_bytes:,}", "B"))
        rows += [
            (f"lower bound ({why.lower_bound.name})", f"{why.lower_bound.bytes:,}", "B"),
            ("traffic / lower bound", f"{why.ratio:,.3f}", "-"),
            ("tiles examined", f"{why.examined:,}", "-"),
        ]
        return [Table(f"{self.algorithm} on {self.budget.label or self.budget}", ("", ">value", "unit"), rows)]
