"""Comparison of algorithms by their time on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from iomodel.algorithms import name_of
from iomodel.common.display import Result, Table, shared_notes, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError
from iomodel.placement.implementations import lacks_kernels, no_kernel
from iomodel.solving.question import Question
from iomodel.studies.comparison import approximations, bests, footnotes, marked
from iomodel.studies.comparison_entries import By, Entries
from iomodel.studies.estimate import estimated
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.workload import Workload


@dataclass(frozen=True)
class TimeComparison(Entries, Result, Tabular):
    """The estimates of all algorithms in order of time, and the algorithms without a fitting tile.

    Attributes
    ----------
    workload : Attention or Linear
        The call.
    hardware : Hardware
        The device.
    estimates : tuple of Estimate
        The estimate of each algorithm that fits, at the default tiles of :func:`iomodel.estimate`.
    infeasible : mapping of str to str
        The algorithms that do not fit, with the reason.
    approximates : mapping of str to str
        The listed approximate algorithms, each with the operation that it computes in place of attention.
    without_kernels : mapping of str to str
        The listed algorithms whose kernels do not run the call on the device, with the reason. Their times are those of
        the textbook's machine; they come after all that run, and are the `best` only where none runs.
    """

    workload: Annotated[Any, Workload]
    hardware: Hardware
    estimates: tuple[Estimate, ...]
    infeasible: Mapping[str, str]
    approximates: Mapping[str, str] = field(default_factory=FrozenDict)
    without_kernels: Mapping[str, str] = field(default_factory=FrozenDict)

    @property
    def by(self) -> By:
        """The quantity that orders the entries."""
        return "time"

    @property
    def answers(self) -> tuple[Estimate, ...]:
        """The full answers, in the order of the entries."""
        return self.estimates

    @property
    def best(self) -> Estimate:
        """The fastest exact algorithm that runs on the device."""
        return next(candidate for candidate in self.estimates if candidate.algorithm not in self.approximates)

    @property
    def best_approximate(self) -> Estimate | None:
        """The fastest approximate algorithm, if any is listed."""
        return next((candidate for candidate in self.estimates if candidate.algorithm in self.approximates), None)

    def relative(self, estimate: Estimate) -> float:
        """Return the time over that of the best [-]; below 1 for an approximate algorithm that is faster."""
        return estimate.seconds / self.best.seconds

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        data = super().to_dict()
        for candidate, entry in zip(self.estimates, data["estimates"], strict=True):
            entry["relative"] = self.relative(candidate)
        return {**data, **bests(self)}

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per algorithm: tiles, time and rates; the reason where no tile fits."""
        timed = [
            {
                "algorithm": candidate.algorithm,
                **candidate.tiles,
                "seconds": candidate.seconds,
                "relative": self.relative(candidate),
                "flops_per_second": candidate.flops_per_second,
                "mfu": candidate.mfu,
                "bound": candidate.bound,
                "runs": candidate.algorithm not in self.without_kernels,
                "least_dram_bytes": candidate.dram_bytes[0],
                "most_dram_bytes": candidate.dram_bytes[1],
            }
            for candidate in self.estimates
        ]
        return [*timed, *({"algorithm": name, "reason": reason} for name, reason in self.infeasible.items())]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        columns = ("algorithm", "tiles", ">time [us]", ">relative to best", ">TFLOP/s", ">MFU [%]", "bound by",
                   ">DRAM traffic [MB]")  # fmt: skip
        rows = [
            (
                self._marked(candidate.algorithm),
                sizes_text(candidate.tiles),
                f"{candidate.seconds * 1e6:,.1f}",
                f"{self.relative(candidate):,.2f}",
                f"{candidate.flops_per_second / 1e12:,.1f}",
                f"{100 * candidate.mfu:.1f}",
                candidate.bound,
                " to ".join(dict.fromkeys(f"{size / 1e6:,.0f}" for size in candidate.dram_bytes)),
            )
            for candidate in self.estimates
        ]
        rows += [(marked(name, self.approximates), "none fits", "", "", "", "", "", "") for name in self.infeasible]
        trusted = [
            *shared_notes("left out", {one.algorithm: one.left_out for one in self.estimates}),
            *shared_notes("assumed", {one.algorithm: one.rates.assumed for one in self.estimates}),
        ]
        return [
            Table(
                f"algorithms on {self.hardware.name}, by time",
                columns,
                rows,
                [*footnotes(self.approximates), *self._absent()],
                extra=("relative to best", "MFU [%]", "DRAM traffic [MB]", "TFLOP/s"),
            ),
            *trusted,
        ]

    def _marked(self, name: str) -> str:
        own = marked(name, self.approximates)
        return f"* {own}" if name in self.without_kernels else own

    def _absent(self) -> list[str]:
        """Name the algorithms without a kernel for the device."""
        if not self.without_kernels:
            return []
        names = ", ".join(self.without_kernels)
        return [f"* idealised, one memory per block: no kernel on file runs this call on {self.hardware.name}: {names}"]


def by_time(questions: Sequence[Question]) -> TimeComparison:
    """Estimate each contender, those that run first; InfeasibleError if no exact algorithm fits."""
    estimates, infeasible, absent = [], {}, {}
    least: list[InfeasibleError] = []
    for question in questions:
        try:
            candidate = estimated(question)
        except InfeasibleError as error:
            infeasible[name_of(question.algorithm)] = str(error)
            if not question.algorithm.approximates:
                least.append(error)
            continue
        estimates.append(candidate)
        if question.implementation is None and lacks_kernels(question.algorithm, question.call, question.device):
            absent[candidate.algorithm] = no_kernel(question.algorithm, question.call, question.device)
    inexact = approximations(name_of(question.algorithm) for question in questions)
    if all(candidate.algorithm in inexact for candidate in estimates):
        raise min(least, key=lambda error: error.least)
    estimates.sort(key=lambda candidate: (candidate.algorithm in absent, candidate.seconds))
    first = questions[0]
    return TimeComparison(
        first.call, first.device, tuple(estimates), FrozenDict(infeasible), inexact, FrozenDict(absent)
    )
