"""Distance of a measured time of a PyTorch program from its bound, and what a fused version could save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.validation import finite
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.torch.operator_call import OperatorCall
from iomodel.torch.program_bound import ProgramBound, bound
from iomodel.torch.program_fusion import Chain, chains
from iomodel.torch.report import OperatorTraffic, TrafficReport

SHOWN = 12
"""Operators and chains in the printed tables."""


@dataclass(frozen=True)
class OperatorGap(Record):
    """Time of the calls of one operator, beside that of a program that keeps its intermediates on the chip.

    Attributes
    ----------
    operator : str
        The operator.
    times : int
        Calls [-].
    seconds : float
        Time of all calls: measured, where the profile has one, else predicted [s].
    measured : bool
        True if `seconds` is measured.
    bound : float
        Least time of the calls as launches of their own: each tensor once, at the datasheet's bandwidth [s].
    below_bound : bool
        True if a measured time is impossible for launches whose tensors come from memory.
    """

    operator: str
    times: int
    seconds: float
    measured: bool
    bound: float
    below_bound: bool


@dataclass(frozen=True)
class ProgramGap(Result):
    """A measured time beside the bound of a program.

    Attributes
    ----------
    seconds : float
        The measured time [s].
    bound : ProgramBound
        The bound.
    predicted : float
        Time of the operators as PyTorch launches them [s].
    operators : tuple of OperatorGap
        The operators, the longest time first.
    chains : tuple of Chain
        Chains of operators that one kernel could run, the largest saving first.
    headroom : float
        Measured time over the bound [-].
    below_bound : bool
        True if the time is impossible on the device.
    violated : mapping of str to float
        Limits that the time is below, each with the least time it asks for over the measured time [-].
    fused_saving : float
        Time that a version without intermediates in memory could save of the predicted time [s].
    """

    derived = ("headroom", "below_bound", "violated", "fused_saving")

    seconds: float
    bound: ProgramBound
    predicted: float
    operators: tuple[OperatorGap, ...]
    chains: tuple[Chain, ...]

    @property
    def headroom(self) -> float:
        """Measured time over the bound [-]; infinite for a program that needs no time."""
        return self.seconds / self.bound.seconds if self.bound.seconds else float("inf")

    @property
    def violated(self) -> Mapping[str, float]:
        """Limits that the time is below, with the least time of each over the measured one [-].

        Gathers may take one row again and again, so `memory` counts it once here.
        """
        memory = min(self.bound.terms.get("memory", 0.0), self.bound.least_memory)
        terms = {**self.bound.terms, "memory": memory}
        return FrozenDict({name: least / self.seconds for name, least in terms.items() if least > self.seconds})

    @property
    def below_bound(self) -> bool:
        """True if the time is impossible on the device."""
        return bool(self.violated)

    @property
    def fused_saving(self) -> float:
        """Time that a version without intermediates in memory could save of the predicted time [s]."""
        return max(0.0, self.predicted - self.bound.seconds)

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        verdict = (
            "; ".join(f"impossible: {name} alone takes {by:,.3g} times as long" for name, by in self.violated.items())
            or f"headroom {self.headroom:,.2f}"
        )
        rows = [
            ("measured", _us(self.seconds)),
            ("operators as PyTorch launches them, predicted", _us(self.predicted)),
            (f"bound ({self.bound.binds})", _us(self.bound.seconds)),
            ("a fused version could save", _us(self.fused_saving)),
        ]
        operators = [(o.operator, f"{o.times:,}", _us(o.seconds), _us(o.bound)) for o in self.operators[:SHOWN]]
        fused = [chain.row() for chain in self.chains[:SHOWN]]
        return [
            Table(f"gap on {self.bound.hardware.name}: {verdict}", ("", ">time [us]"), rows),
            Table("operators", ("operator", ">calls", ">time [us]", ">bound [us]"), operators),
            *([Table("chains", Chain.columns, fused)] if fused else []),
            *self.bound.at_least,
        ]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def gap(
    calls: Iterable[OperatorCall], report: TrafficReport, hardware: Hardware, seconds: Any, warm: bool = False
) -> ProgramGap:
    """Hold a measured time against the bound of recorded calls; a mapping has times by operator.

    Raises
    ------
    InputError
        A time that is no number above 0, an operator that the program does not call.
    """
    listed = list(calls)
    names = {call.operator for call in listed}
    by_operator = _times(seconds, names) if isinstance(seconds, Mapping) else {}
    total = sum(by_operator.values()) if by_operator else _time("seconds", seconds)
    least = bound(listed, hardware, warm)
    bandwidth = 1 / _bandwidth(hardware)
    sums: dict[str, list[OperatorTraffic]] = {}
    for each in report.operators:
        sums.setdefault(each.operator, []).append(each)
    operators = []
    for name, parts in sums.items():
        own = sum(part.hbm_bytes for part in parts) * bandwidth
        measured = by_operator.get(name)
        took = sum(part.seconds or 0.0 for part in parts) if measured is None else measured
        below = measured is not None and measured < own
        operators.append(OperatorGap(name, sum(part.times for part in parts), took, measured is not None, own, below))
    operators.sort(key=lambda each: -each.seconds)
    return ProgramGap(total, least, report.seconds or 0.0, tuple(operators), chains(listed))


def _bandwidth(hardware: Hardware) -> float:
    from iomodel.devices.rates import rates

    return rates(hardware, "").hbm_peak


def _time(name: str, value: Any) -> float:
    if not finite(value) or value <= 0:
        raise InputError(f"{name}: {shown(value)} given; allowed: a time above 0 in seconds, such as 0.00183")
    return float(value)


def _times(seconds: Mapping[Any, Any], names: set[str]) -> dict[str, float]:
    """Validate times by operator."""
    unknown = next((name for name in seconds if name not in names), None)
    if unknown is not None:
        raise InputError(
            f"seconds: {shown(unknown)} given; allowed: the program's operators, {', '.join(sorted(names))}"
        )
    return {name: _time(f"seconds.{name}", value) for name, value in seconds.items()}
