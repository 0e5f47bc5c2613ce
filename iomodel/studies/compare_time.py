"""Comparison of algorithms by their time on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from iomodel.algorithms import name_of
from iomodel.common import labels
from iomodel.common.display import Result, Table, shared_notes, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError
from iomodel.nests.implementation import TEXTBOOK
from iomodel.placement.implementations import no_kernel
from iomodel.solving.default_kernel import absence, without_kernels
from iomodel.solving.question import Question
from iomodel.studies.comparison import approximations, bests, counted_pairs, footnotes, marked
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
        The algorithms whose kernels do not run the call on the device, with the reason. They have no time.
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
                "implementation": candidate.implementation,
                **candidate.tiles,
                "seconds": candidate.seconds,
                "relative": self.relative(candidate),
                "flops_per_second": candidate.flops_per_second,
                "mfu": candidate.mfu,
                "bound": candidate.bound,
                "runs": True,
                "least_dram_bytes": candidate.dram_bytes[0],
                "most_dram_bytes": candidate.dram_bytes[1],
            }
            for candidate in self.estimates
        ]
        unfit = ({"algorithm": name, "reason": reason} for name, reason in self.infeasible.items())
        absent = ({"algorithm": name, "reason": text, "runs": False} for name, text in self.without_kernels.items())
        return [*timed, *unfit, *absent]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        unit = self.estimates[0].time_in(0.0)[1]
        columns = ("algorithm", "kernel", "tiles", f">time [{unit}]", ">relative to best", ">TFLOP/s", ">MFU [%]",
                   "bound by", f">{labels.DRAM} [MB]")  # fmt: skip
        rows = [
            (
                marked(candidate.algorithm, self.approximates),
                "idealised" if candidate.implementation == TEXTBOOK.name else candidate.implementation,
                sizes_text(candidate.tiles),
                candidate.time_in(candidate.seconds)[0],
                f"{self.relative(candidate):,.2f}",
                f"{candidate.flops_per_second / 1e12:,.1f}",
                f"{100 * candidate.mfu:.1f}",
                candidate.bound,
                f"{candidate.streamed_bytes / 1e6:,.0f}",
            )
            for candidate in self.estimates
        ]
        unfit = [(marked(name, self.approximates), "", "none fits") for name in self.infeasible]
        unfit += [(marked(name, self.approximates), "no kernel", "") for name in self.without_kernels]
        rows += [(*row, "", "", "", "", "", "") for row in unfit]
        trusted = [
            *shared_notes("left out", {one.algorithm: one.left_out for one in self.estimates}),
            *shared_notes("assumed", {one.algorithm: one.assumed for one in self.estimates}),
        ]
        return [
            Table(
                f"algorithms on {self.hardware.name}, by time",
                columns,
                rows,
                [*counted_pairs(self.workload), *footnotes(self.approximates)],
                extra=("relative to best", "MFU [%]", f"{labels.DRAM} [MB]", "TFLOP/s"),
            ),
            *trusted,
        ]


def by_time(questions: Sequence[Question]) -> TimeComparison:
    """Estimate each contender that a kernel runs; InfeasibleError if no exact algorithm fits."""
    estimates, infeasible, absent = [], {}, {}
    least: list[InfeasibleError] = []
    for question in questions:
        if question.implementation is None and without_kernels(question):
            absent[name_of(question.algorithm)] = no_kernel(question.algorithm, question.call, question.device)
            continue
        try:
            candidate = estimated(question)
        except InfeasibleError as error:
            infeasible[name_of(question.algorithm)] = str(error)
            if not question.algorithm.approximates:
                least.append(error)
            continue
        estimates.append(candidate)
    inexact = approximations(name_of(question.algorithm) for question in questions)
    if all(candidate.algorithm in inexact for candidate in estimates):
        if not least:
            raise InputError(absence(next(q for q in questions if not q.algorithm.approximates)))
        raise min(least, key=lambda error: error.least)
    estimates.sort(key=lambda candidate: candidate.seconds)
    first = questions[0]
    return TimeComparison(
        first.call, first.device, tuple(estimates), FrozenDict(infeasible), inexact, FrozenDict(absent)
    )
