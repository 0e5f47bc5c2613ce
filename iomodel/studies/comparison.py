"""Result of a comparison of algorithms by traffic, in one memory, and the marks of approximate algorithms in tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common import labels
from iomodel.common.display import Result, Table, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.tabular import Tabular
from iomodel.counting.bounds import visible_pairs
from iomodel.placement.budget import Budget
from iomodel.solving.solution import Solution
from iomodel.studies.comparison_entries import By, Entries
from iomodel.workloads.workload import Workload


def approximations(algorithms: Iterable[AlgorithmLike]) -> FrozenDict[str, str]:
    """Collect the approximate algorithms by name, each with the operation that it computes in place of attention."""
    return FrozenDict({str(name): text for name in algorithms if (text := find_algorithm(name).approximates)})


def marked(name: str, approximates: Mapping[str, str]) -> str:
    """Format a name for a table, with a tilde before an approximate algorithm."""
    return f"~ {name}" if name in approximates else name


def footnotes(approximates: Mapping[str, str]) -> list[str]:
    """Return a line for each approximate algorithm of a table."""
    return [f"~ {name}: {text}" for name, text in approximates.items()]


def counted_pairs(workload: Workload) -> list[str]:
    """Return the line of a table that counts the visible pairs of a call with a mask."""
    count = None if getattr(workload, "mask", "full") == "full" else visible_pairs(workload)
    return [] if count is None else [f"visible pairs, over all batches and heads: {count:,}"]


def bests(comparison: Any) -> dict[str, str | None]:
    """Return the names of the best algorithms of a comparison, exact and approximate, as plain data."""
    approximate = comparison.best_approximate
    return {"best": comparison.best.algorithm, "best_approximate": approximate and approximate.algorithm}


@dataclass(frozen=True)
class DoesNotFit(Record):
    """An algorithm without a fitting tile, with its smallest feasible budget, in the unit of the budget."""

    enclosing = ("unit",)

    algorithm: str
    least: int


@dataclass(frozen=True)
class Comparison(Entries, Result, Tabular):
    """The solved algorithms in order of requests, and the algorithms that do not fit.

    An approximate algorithm is listed on request, but is never the `best`: it computes another function, and the model
    would need another training.

    Attributes
    ----------
    workload : Attention, VarlenAttention or Linear
        The call.
    budget : Budget
        The memory that the tiles of every algorithm must fit.
    solutions : tuple of Solution
        The solution of each algorithm that fits, least traffic [B] first.
    infeasible : tuple of DoesNotFit
        The algorithms that do not fit, smallest feasible budget first.
    approximates : mapping of str to str
        The listed approximate algorithms, each with the operation that it computes in place of attention.
    """

    workload: Annotated[Any, Workload]
    budget: Budget
    solutions: tuple[Solution, ...]
    infeasible: tuple[DoesNotFit, ...]
    approximates: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def by(self) -> By:
        """The quantity that orders the entries."""
        return "traffic"

    @property
    def answers(self) -> tuple[Solution, ...]:
        """The full answers, in the order of the entries."""
        return self.solutions

    @property
    def best(self) -> Solution:
        """The exact algorithm with the least traffic."""
        return next(solution for solution in self.solutions if solution.algorithm not in self.approximates)

    @property
    def best_approximate(self) -> Solution | None:
        """The approximate algorithm with the least traffic, if any is listed."""
        return next((solution for solution in self.solutions if solution.algorithm in self.approximates), None)

    def relative(self, solution: Solution) -> float:
        """Return the traffic over that of the best [-]; below 1 for an approximate algorithm that moves less."""
        return solution.cost.hbm_bytes / self.best.cost.hbm_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        data = super().to_dict()
        for solution, entry in zip(self.solutions, data["solutions"], strict=True):
            entry["relative"] = self.relative(solution)
        for entry in data["infeasible"]:
            entry["unit"] = self.budget.unit
        return {**data, **bests(self)}

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per algorithm: tiles, quantities and ratio to the best; the least budget where none fits."""
        solved = [
            {
                "algorithm": solution.algorithm,
                **solution.tiles,
                **solution.cost.quantities,
                "footprint": solution.footprint,
                "relative": self.relative(solution),
            }
            for solution in self.solutions
        ]
        return [*solved, *({"algorithm": unfit.algorithm, "least_budget": unfit.least} for unfit in self.infeasible)]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        unit = self.budget.unit
        columns = ("algorithm", "tiles", f">{labels.REQUESTS} [B]", ">relative to best", ">FLOPs",
                   f">{labels.OVER_REQUESTS} [FLOP/B]", f">SRAM used of {self.budget.amount:,} [{unit}]")  # fmt: skip
        rows = [
            (
                marked(solution.algorithm, self.approximates),
                sizes_text(solution.tiles),
                f"{solution.cost.hbm_bytes:,}",
                f"{self.relative(solution):,.3f}",
                f"{solution.cost.flops:,}",
                f"{solution.cost.intensity:,.1f}",
                f"{solution.footprint:,}",
            )
            for solution in self.solutions
        ]
        unfit = [
            (marked(u.algorithm, self.approximates), "none fits", "", "", "", "", f"needs {u.least:,}")
            for u in self.infeasible
        ]
        return [
            Table(
                f"algorithms on {self.budget.label or self.budget}",
                columns,
                [*rows, *unfit],
                [*counted_pairs(self.workload), *footnotes(self.approximates)],
                extra=("relative to best", columns[-1].removeprefix(">"), f"{labels.OVER_REQUESTS} [FLOP/B]", "FLOPs"),
            )
        ]
