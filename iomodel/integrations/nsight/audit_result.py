"""Result of an audit: measured bytes of each level beside the predicted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from iomodel.common.display import Result, Table, interval
from iomodel.common.results import Record, column
from iomodel.common.tabular import Tabular
from iomodel.errors import shown_name

Verdict = Literal["inside", "above", "below"]
LEVEL = ("name", "measured", "predicted", "verdict")
"""Columns of a level, in their order."""
NAME = 300
"""Characters of a kernel's name that are printed; a template can have thousands."""


@dataclass(frozen=True)
class AuditedLevel(Record):
    """Measured and predicted bytes over the boundary of one level of the memory.

    Attributes
    ----------
    name : str
        "L2", the sectors that the SMs ask the L2 cache for; "DRAM", and apart from each other "DRAM reads" and
        "DRAM writes".
    predicted : tuple of int
        Least and most bytes predicted [B].
    measured : int
        Measured bytes [B].
    verdict : {"inside", "above", "below"}
        Place of the measured bytes, with a margin of one per cent.
    """

    name: str = field(metadata=column("level"))
    predicted: tuple[int, int] = field(metadata=column(">predicted [B]", interval))
    measured: int = field(metadata=column(">measured [B]", ","))
    verdict: Verdict = field(metadata=column("verdict"))


@dataclass(frozen=True)
class AuditedCall(Record):
    """One call, as one or several kernels, against its prediction.

    Attributes
    ----------
    pattern, kernel, launch : str
        The pattern that selected the kernels; the kernel, the longest one of several; its identifier in the report.
    algorithm : str
        The predicted algorithm.
    levels : tuple of AuditedLevel
        The levels with counters in the report.
    explanations : tuple of str
        Reasons of the differences, and what else the counters say.
    seconds, predicted_seconds : float or None, float
        Measured and predicted time [s].
    """

    pattern: str
    kernel: str
    launch: str
    algorithm: str
    levels: tuple[AuditedLevel, ...]
    explanations: tuple[str, ...]
    seconds: float | None
    predicted_seconds: float

    @property
    def inside(self) -> bool:
        """Check whether every level is inside its prediction."""
        return all(level.verdict == "inside" for level in self.levels)


@dataclass(frozen=True)
class Audit(Result, Tabular):
    """A report of a profiler against predictions.

    Attributes
    ----------
    report : str
        Name of the report.
    calls : tuple of AuditedCall
        The audited calls, in the order of the report.
    unmatched : mapping of str to int
        Kernels that no pattern selects, with their launches [-].
    inside : bool
        True if every level of every call is inside its prediction.
    """

    derived = ("inside",)

    report: str
    calls: tuple[AuditedCall, ...]
    unmatched: Mapping[str, int]

    @property
    def inside(self) -> bool:
        """Check whether every level of every call is inside its prediction."""
        return all(call.inside for call in self.calls)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per call and level."""
        return [
            {
                "kernel": call.kernel,
                "launch": call.launch,
                "algorithm": call.algorithm,
                "level": level.name,
                "measured": level.measured,
                "least": level.predicted[0],
                "most": level.predicted[1],
                "verdict": level.verdict,
            }
            for call in self.calls
            for level in call.levels
        ]

    def tables(self) -> list[Table | str]:
        """Return a table per call, with its explanations below."""
        parts: list[Table | str] = []
        for call in self.calls:
            title = f"{shown_name(call.kernel, NAME)} ({shown_name(call.launch)}): {call.algorithm}"
            parts.append(Table.of(title, AuditedLevel, call.levels, call.explanations, LEVEL))
        if self.unmatched:
            names = ", ".join(f"{shown_name(name, NAME)} ({times})" for name, times in self.unmatched.items())
            parts.append(f"not audited: {names}")
        return parts
