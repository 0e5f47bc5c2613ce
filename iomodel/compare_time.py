"""Every algorithm side by side by its time on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.approximate import approximations, marked, with_footnotes
from iomodel.errors import InfeasibleError
from iomodel.estimate import estimate
from iomodel.estimate_result import Estimate
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.show import Shown, table
from iomodel.workload import Attention


@dataclass(frozen=True)
class TimeComparison(Shown):
    """The estimates of all algorithms, the fastest first, and those of which no tile fits.

    Attributes
    ----------
    workload : Attention
        The attention call.
    hardware : Hardware
        The device.
    estimates : tuple of Estimate
        One for each algorithm that fits, each at its fastest tiles.
    infeasible : mapping of str to str
        The others, with the reason.
    approximates : mapping of str to str
        Of those in the row that are not exact, what they compute in place of attention.
    """

    workload: Attention
    hardware: Hardware
    estimates: tuple[Estimate, ...]
    infeasible: Mapping[str, str]
    approximates: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def best(self) -> Estimate:
        """The fastest that is exact."""
        return next(found for found in self.estimates if found.algorithm not in self.approximates)

    @property
    def best_approximate(self) -> Estimate | None:
        """The fastest that is approximate, if any is in the row."""
        return next((found for found in self.estimates if found.algorithm in self.approximates), None)

    def relative(self, found: Estimate) -> float:
        """Time over that of the best [-]; below 1 for an approximate one that is faster."""
        return found.seconds / self.best.seconds

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "workload": self.workload.to_dict(),
            "hardware": self.hardware.id or self.hardware.name,
            "best": self.best.algorithm,
            "best_approximate": self.best_approximate and self.best_approximate.algorithm,
            "approximates": dict(self.approximates),
            "estimates": [{**found.to_dict(), "relative": self.relative(found)} for found in self.estimates],
            "infeasible": dict(self.infeasible),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        columns = ("algorithm", "tiles", ">time\n[us]", ">relative\nto best", ">TFLOP/s", ">MFU\n[%]", "bound by",
                   ">DRAM traffic\n[MB]", "left out")  # fmt: skip
        rows = [
            (
                marked(found.algorithm, self.approximates),
                ", ".join(f"{name}={size}" for name, size in found.tiles.items()),
                f"{found.seconds * 1e6:,.1f}",
                f"{self.relative(found):,.2f}",
                f"{found.flops_per_second / 1e12:,.1f}",
                f"{100 * found.mfu:.1f}",
                found.bound,
                " to ".join(dict.fromkeys(f"{size / 1e6:,.0f}" for size in found.dram_bytes)),
                f"{len(found.left_out)} parts" if found.left_out else "",
            )
            for found in self.estimates
        ]
        rows += [(marked(name, self.approximates), "none fits", "", "", "", "", "", "", "") for name in self.infeasible]
        made = table(f"all algorithms on {self.hardware.name}, by time", columns, rows)
        for column in made.columns:
            column.overflow = "fold"
        made.columns[0].no_wrap = True
        return with_footnotes(made, self.approximates)


def by_time(algorithms: Mapping[str, Mapping[str, Any]], workload: Attention, device: Hardware) -> TimeComparison:
    """Estimate each algorithm under its options; InfeasibleError if none that is exact fits."""
    found, infeasible = [], {}
    least: list[InfeasibleError] = []
    for name, options in algorithms.items():
        try:
            found.append(estimate(name, workload, device, **options))
        except InfeasibleError as error:
            infeasible[name] = str(error)
            if not find_algorithm(name).approximates:
                least.append(error)
    inexact = approximations(algorithms)
    if all(one.algorithm in inexact for one in found):
        raise min(least, key=lambda error: error.least)
    found.sort(key=lambda one: one.seconds)
    return TimeComparison(workload, device, tuple(found), FrozenDict(infeasible), inexact)
