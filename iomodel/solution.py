"""The answer of the solver: the best tiles, their exact cost, and why they are the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.budget import Budget
from iomodel.certificate import Certificate
from iomodel.check import Check
from iomodel.cost import Cost
from iomodel.show import Shown, table
from iomodel.symbols import LAUNCH, TILES


@dataclass(frozen=True)
class Solution(Shown):
    """The best tiles, their exact cost, and why they are the best.

    Attributes
    ----------
    tiles : mapping of tile name to int
        The tiles chosen [rows].
    cost : Cost
        What they move and compute.
    certificate : Certificate
        What binds, what comes next, how far the lower bound is.
    budget : Budget
        The memory that was to be kept to.
    epsilon : float
        The share of traffic that was offered for a larger block_kv [-].
    saturated : bool
        Whether every tile fits, so that more memory cannot help.
    placed : Check or None
        With a residency: where the tiles lie, what is left of each resource, how many blocks an SM takes.
    seconds : float or None
        With ``objective="time"``: the time of the call with these tiles [s].
    """

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
        """What the tiles occupy, in the unit of the budget."""
        if self.placed is not None:
            return self.placed.resources["shared memory"].used
        return self.cost.footprint_bytes if self.budget.unit == "B" else self.cost.footprint_elements

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "tiles": dict(self.tiles),
            "budget": dict(self.budget.__dict__),
            "footprint": self.footprint,
            "epsilon": self.epsilon,
            "saturated": self.saturated,
            "cost": self.cost.to_dict(),
            "certificate": self.certificate.to_dict(),
            **({"placed": self.placed.to_dict()} if self.placed is not None else {}),
            **({"seconds": self.seconds} if self.seconds is not None else {}),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        unit, why, step = self.budget.unit, self.certificate, self.certificate.next_step
        units = {entry.name: entry.unit for entry in TILES + LAUNCH}
        rows = [(name, f"{size:,}", units[name]) for name, size in self.tiles.items()]
        if self.seconds is not None:
            rows.append(("time", f"{self.seconds * 1e6:,.1f}", "us"))
        rows += [
            ("HBM traffic", f"{self.cost.hbm_bytes:,}", "B"),
            ("HBM accesses", f"{self.cost.hbm_elements:,}", "elements"),
            ("arithmetic intensity", f"{self.cost.intensity:,.1f}", "FLOP/B"),
            *(
                self.placed.rows()
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
        return table(f"{self.algorithm} on {self.budget.label or self.budget}", ("", ">value", "unit"), rows)
