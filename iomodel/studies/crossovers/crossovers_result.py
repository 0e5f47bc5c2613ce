"""Results of :func:`iomodel.crossovers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, check_keys, decoded_fields, decoded_values, named, plain
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.errors import UnknownNameError
from iomodel.studies.crossovers.contenders import METRICS, Contender, VariedAxis, axis_for
from iomodel.studies.crossovers.formula import CrossingFormula
from iomodel.workloads.attention import Attention

KEPT = 1000
"""The most intervals that a result holds; it counts the others."""
Interval = tuple[int, int]
"""First and last point."""


@dataclass(frozen=True)
class Crossover(Result):
    """One algorithm against another; an algorithm without a counterpart counts as lower.

    Attributes
    ----------
    challenger, incumbent : str
        Labels of the two.
    first : int or None
        The least point at which the challenger is below the incumbent; None if it never is.
    lasting : int or None
        The least point from which the challenger is below at every point up to the limit; None if it is not at the
        limit.
    changes : int
        Points at which the order of the two differs from that at the point before [-].
    below : tuple of (int, int)
        Intervals in which the challenger is below; the first 1,000.
    equal : int
        Evaluated points at which both are equal [-].
    formula : CrossingFormula or None
        The point at which the relaxed counts are equal.
    no_formula : str
        The reason why there is no formula.
    """

    challenger: str
    incumbent: str
    first: int | None
    lasting: int | None
    changes: int
    below: tuple[Interval, ...]
    equal: int
    formula: CrossingFormula | None
    no_formula: str

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        from iomodel.studies.crossovers.tables import pairs

        return [pairs([self], "")]

    def _repr_latex_(self) -> str | None:
        return None if self.formula is None else f"$$\n{self.formula.latex()}\n$$"


@dataclass(frozen=True)
class Crossovers(Result, Tabular):
    """A study of which of several algorithms is least over the range of an axis.

    Attributes
    ----------
    contenders : tuple of Contender
        The algorithms compared.
    workload : Attention
        The call; the axis replaces some of its fields.
    hardware : Hardware or None
        The device of a time or of a budget.
    budget : mapping
        The budget of the best tiles; empty where tiles were given.
    over, metric : str
        The axis and the metric.
    start, limit, step : int
        The points: start, start + step, ... up to limit.
    looked : int
        Points that were evaluated [-].
    proof : str
        The extent to which the answer is proven.
    winners : tuple of (int, int, tuple of str)
        First and last point of an interval, and the algorithms with the least value there: several where they are
        equal, none where no tile fits. The first 1,000 intervals.
    changes : int
        Points at which the winners differ from those at the point before [-].
    missing : mapping of str to int
        Points without a value, because no tile fits or requirements of the algorithm fail, by label [-].
    pairs : tuple of Crossover
        Every ordered pair of algorithms.
    points : tuple of int
        Points spread evenly over a logarithmic axis, for a plot.
    values : mapping of str to tuple
        The metric of each algorithm at these points; None where it has no value.
    """

    contenders: tuple[Contender, ...]
    workload: Attention
    hardware: Hardware | None
    budget: Mapping[str, Any]
    axis: VariedAxis
    metric: str
    start: int
    limit: int
    step: int
    looked: int
    proof: str
    winners: tuple[tuple[int, int, tuple[str, ...]], ...]
    changes: int
    missing: Mapping[str, int]
    pairs: tuple[Crossover, ...]
    points: tuple[int, ...]
    values: Mapping[str, tuple[int | float | None, ...]]

    @property
    def over(self) -> str:
        """The name of the axis."""
        return self.axis.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the algorithms."""
        return tuple(contender.label for contender in self.contenders)

    @property
    def unordered(self) -> tuple[Crossover, ...]:
        """Every pair once, in the order of the labels."""
        place = self.labels.index
        return tuple(pair for pair in self.pairs if place(pair.challenger) < place(pair.incumbent))

    def pair(self, challenger: str, incumbent: str) -> Crossover:
        """Return one algorithm against another, by their labels.

        Raises
        ------
        UnknownNameError
            No algorithm has this label.
        """
        for label in (challenger, incumbent):
            if label not in self.labels:
                raise UnknownNameError("algorithm of this answer", label, self.labels)
        for pair in self.pairs:
            if (pair.challenger, pair.incumbent) == (challenger, incumbent):
                return pair
        raise UnknownNameError("incumbent", incumbent, [label for label in self.labels if label != challenger])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        workload = self.workload.to_dict()
        return {
            "algorithms": [contender.to_dict() for contender in self.contenders],
            "workload": {name: None if name in self.axis.fields else value for name, value in workload.items()},
            "workload_data": workload,
            **(named("hardware", self.hardware) if self.hardware else {"hardware": None}),
            "budget": {name: value for name, value in self.budget.items() if name != "hardware"},
            "over": self.over,
            "unit": self.axis.unit,
            "metric": self.metric,
            "metric_unit": METRICS[self.metric].unit,
            "start": self.start,
            "limit": self.limit,
            "step": self.step,
            "looked": self.looked,
            "proof": self.proof,
            "winners": [{"first": first, "last": last, "least": list(least)} for first, last, least in self.winners],
            "changes": self.changes,
            "missing": dict(self.missing),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "points": list(self.points),
            "values": {label: list(values) for label, values in self.values.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Crossovers:
        """Rebuild the study from its plain data.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        kinds = {"algorithms": Any, "workload": Attention, "over": str, "winners": tuple[Mapping[str, Any], ...]}
        known = decoded_values(kinds, (), data, cls.__name__)
        winners = [[winner.get(name) for name in ("first", "last", "least")] for winner in known["winners"]]
        axis = plain(axis_for(known["over"], known["workload"]))
        fields = {**data, "contenders": data["algorithms"], "axis": axis, "winners": winners}
        values = decoded_fields(cls, fields)
        if values["hardware"] is not None:
            values["budget"] = FrozenDict({**values["budget"], "hardware": values["hardware"]})
        study = cls(**values)
        check_keys(data, study.to_dict())
        return study

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per ordered pair of algorithms."""
        return [{n: v for n, v in Record.to_dict(pair).items() if n not in ("below", "formula")} for pair in self.pairs]

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        from iomodel.studies.crossovers.tables import whole

        return whole(self)

    def _repr_latex_(self) -> str | None:
        rows = [
            rf"\text{{{pair.challenger} = {pair.incumbent}:}}\quad {pair.formula.latex()}"
            for pair in self.unordered
            if pair.formula
        ]
        return "$$\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n$$" if rows else None
