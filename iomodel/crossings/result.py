"""Who overtakes whom, and from where: the answer of :func:`iomodel.crossovers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.crossings.axes import Axis
from iomodel.crossings.contenders import Contender
from iomodel.crossings.formula import CrossingFormula
from iomodel.crossings.metrics import METRICS
from iomodel.errors import UnknownNameError
from iomodel.hardware import Hardware
from iomodel.show import Shown
from iomodel.workload import Attention

KEPT = 1000
"""The most intervals that a result holds; of more it holds the first and says how many there are."""
Interval = tuple[int, int]
"""The first and the last point of it."""


@dataclass(frozen=True)
class Crossover(Shown):
    """One algorithm against another; one that alone has a value (the other does not answer, or does not fit) is below.

    Attributes
    ----------
    challenger, incumbent : str
        Their labels.
    first : int or None
        The least point at which the challenger is below the incumbent; None if it never is.
    lasting : int or None
        The least point from which on it is below at every one up to the limit; None if it is not at the limit.
    changes : int
        How many points differ from the one before in who of the two is below, or whether they are equal [-].
    below : tuple of (int, int)
        Where it is below, first and last point; the first 1,000 intervals.
    equal : int
        At how many points looked at both are the same [-].
    for_ever : bool
        Whether what holds at the limit is proven for every point above it.
    formula : CrossingFormula or None
        Where the relaxed counts are equal.
    no_formula : str
        Why there is no formula.
    """

    challenger: str
    incumbent: str
    first: int | None
    lasting: int | None
    changes: int
    below: tuple[Interval, ...]
    equal: int
    for_ever: bool
    formula: CrossingFormula | None
    no_formula: str

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            **{name: value for name, value in self.__dict__.items() if name not in ("below", "formula")},
            "below": [list(interval) for interval in self.below],
            "formula": self.formula and self.formula.to_dict(),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        from iomodel.crossings.tables import pairs

        return pairs([self], "", "")

    def _repr_latex_(self) -> str | None:
        return None if self.formula is None else f"$$\n{self.formula.latex()}\n$$"


@dataclass(frozen=True)
class Crossovers(Shown):
    """Who is least where, and who overtakes whom.

    Attributes
    ----------
    contenders : tuple of Contender
        Who was compared.
    workload : Attention
        The call; what is varied has its place in it, not its value.
    hardware : Hardware or None
        The device of a time, or of a budget.
    budget : mapping
        What the best tiles were to keep to; empty where tiles were given.
    over, metric : str
        What was varied, what was looked at.
    start, limit, step : int
        The points: start, start + step, ... up to limit.
    looked : int
        At how many of them the values were computed [-].
    proof : str
        What of this is proven, and how.
    winners : tuple of (int, int, tuple of str)
        First and last point of an interval, and who is least there: several where they are equal, none where no tile
        of anybody fits. The first 1,000 intervals.
    changes : int
        At how many points another is least than at the one before [-].
    for_ever : bool
        Whether who is least at the limit is proven to be so at every point above it.
    missing : mapping of str to (int, int)
        Who has no value at some of the points looked at, for no tile fits or the algorithm does not answer: at how
        many, and the largest number that divides every point at which it answers.
    pairs : tuple of Crossover
        Everybody against everybody else, both ways round.
    points : tuple of int
        Some points, evenly spread on a logarithmic axis, for a picture.
    values : mapping of str to tuple
        The metric of each at these points; None where no tile fits.
    """

    contenders: tuple[Contender, ...]
    workload: Attention
    hardware: Hardware | None
    budget: Mapping[str, Any]
    axis: Axis
    metric: str
    start: int
    limit: int
    step: int
    looked: int
    proof: str
    winners: tuple[tuple[int, int, tuple[str, ...]], ...]
    changes: int
    for_ever: bool
    missing: Mapping[str, tuple[int, int]]
    pairs: tuple[Crossover, ...]
    points: tuple[int, ...]
    values: Mapping[str, tuple[int | float | None, ...]]

    @property
    def over(self) -> str:
        """What was varied."""
        return self.axis.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the contenders."""
        return tuple(contender.label for contender in self.contenders)

    def pair(self, challenger: str, incumbent: str) -> Crossover:
        """One against another, by their labels.

        Raises
        ------
        UnknownNameError
            Nobody has this label.
        """
        for label in (challenger, incumbent):
            if label not in self.labels:
                raise UnknownNameError("algorithm of this answer", label, self.labels)
        for pair in self.pairs:
            if (pair.challenger, pair.incumbent) == (challenger, incumbent):
                return pair
        raise UnknownNameError("incumbent", incumbent, [label for label in self.labels if label != challenger])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithms": [contender.to_dict() for contender in self.contenders],
            "workload": {name: None if name in self.axis.fields else value
                         for name, value in self.workload.to_dict().items()},
            "hardware": self.hardware and (self.hardware.id or self.hardware.name),
            "budget": {name: value for name, value in self.budget.items() if name != "hardware"},
            "over": self.over,
            "unit": self.axis.unit,
            "metric": self.metric,
            "metric_unit": METRICS[self.metric][1],
            "start": self.start,
            "limit": self.limit,
            "step": self.step,
            "looked": self.looked,
            "proof": self.proof,
            "winners": [{"first": first, "last": last, "least": list(least)} for first, last, least in self.winners],
            "changes": self.changes,
            "for_ever": self.for_ever,
            "missing": {label: {"points": count, "divisor": each} for label, (count, each) in self.missing.items()},
            "pairs": [pair.to_dict() for pair in self.pairs],
            "points": list(self.points),
            "values": {label: list(values) for label, values in self.values.items()},
        }  # fmt: skip

    def __rich__(self) -> Any:
        """Return tables for the terminal."""
        from iomodel.crossings.tables import whole

        return whole(self)

    def _repr_latex_(self) -> str | None:
        rows = [
            rf"\text{{{pair.challenger} = {pair.incumbent}:}}\quad {pair.formula.latex()}"
            for i, pair in enumerate(self.pairs)
            if pair.formula and (pair.incumbent, pair.challenger) not in [
                (before.challenger, before.incumbent) for before in self.pairs[:i]]
        ]  # fmt: skip
        return "$$\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n$$" if rows else None
