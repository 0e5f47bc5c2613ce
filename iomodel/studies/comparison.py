"""Result of a comparison: answers of algorithms on devices side by side, by time or by traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common import labels
from iomodel.common.display import Result, Table, shared_notes, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record, named
from iomodel.counting.bounds import visible_pairs
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, IOModelError
from iomodel.nests.implementation import TEXTBOOK
from iomodel.placement.budget import Budget
from iomodel.solving.solution import Solution
from iomodel.studies.comparison_entries import By, Entry
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.workload import Workload

Answer = Estimate | Solution


def approximations(algorithms: Iterable[AlgorithmLike]) -> FrozenDict[str, str]:
    """Collect the approximate algorithms by name, each with the operation that it computes in place of attention."""
    return FrozenDict({str(name): text for name in algorithms if (text := find_algorithm(name).approximates)})


def marked(name: str, approximates: Mapping[str, str]) -> str:
    """Format a name for a table, with a tilde before an approximate algorithm."""
    return f"~ {name}" if name in approximates else name


def footnotes(approximates: Mapping[str, str]) -> list[str]:
    """Return a line for each approximate algorithm of a table."""
    return [f"~ {name}: {text}" for name, text in approximates.items()]


@dataclass(frozen=True)
class Absent(Record):
    """An algorithm without an answer on a device or under a budget, or a device without any.

    Attributes
    ----------
    algorithm : str or None
        None for all algorithms of a device.
    hardware : str or None
        None under a bare budget.
    reason : str
        The refusal.
    least : int or None
        The smallest feasible budget, in its unit, where no tile fits.
    runs : bool
        False where no kernel runs the call on the device.
    defined : bool
        False where the algorithm is not defined for the call, such as for its mask.
    implementation : str or None
        The kernels that were asked for, if any were.
    """

    algorithm: str | None
    hardware: str | None
    reason: str
    least: int | None = None
    runs: bool = True
    defined: bool = True
    implementation: str | None = None


@dataclass(frozen=True)
class Comparison(Result):
    """Answers side by side, of algorithms, of devices or of both, the best first.

    An approximate algorithm is listed on request, but is never the `best`: it computes another function, and the model
    would need another training.

    Attributes
    ----------
    workload : Attention, VarlenAttention or Linear
        The call.
    by : {"time", "traffic"}
        The quantity that orders the answers: the seconds, or the bytes that the blocks request.
    answers : tuple of Estimate or of Solution
        The full answers, the best first. By time each algorithm is at the default tiles of :func:`iomodel.estimate`.
    entries : tuple of iomodel.results.Entry
        The answers in one form, whatever decides.
    absent : tuple of Absent
        The algorithms and the devices without an answer, with the reason.
    approximates : mapping of str to str
        The listed approximate algorithms, each with the operation that it computes in place of attention.
    budget : Budget or None
        The memory that the tiles of every algorithm must fit; None by time, and on several devices.
    """

    unless_none = ("budget",)
    derived = ("entries",)
    enclosing = ("answers", "hardware", "hardware_data")
    renamed = FrozenDict(
        solutions=("answers", ".entries, or .answers for whole results"),
        estimates=("answers", ".entries, or .answers for whole results"),
        infeasible=("_infeasible", ".absent"),
        without_kernels=("_without_kernels", ".absent"),
    )

    workload: Annotated[Any, Workload]
    by: By
    answers: tuple[Answer, ...]
    absent: tuple[Absent, ...] = ()
    approximates: Mapping[str, str] = field(default_factory=FrozenDict)
    budget: Budget | None = None

    @classmethod
    def joined(cls, parts: Sequence[Comparison], absent: Iterable[Absent] = ()) -> Comparison:
        """Join comparisons on several devices by the same quantity."""
        first, answers = parts[0], [answer for part in parts for answer in part.answers]
        approximates = {name: text for part in parts for name, text in part.approximates.items()}
        missing = [one for part in parts for one in part.absent]
        return cls(first.workload, first.by, ordered(answers, first.by), (*missing, *absent), FrozenDict(approximates))

    @classmethod
    def over(cls, workload: Workload, devices: Sequence[str], answer: Callable[[str], Answer]) -> Comparison:
        """Ask for an answer on each device; raise the first error if every device is refused."""
        answers, absent, errors = [], [], []
        for device in devices:
            try:
                answers.append(answer(device))
            except IOModelError as error:
                least = error.least if isinstance(error, InfeasibleError) else None
                absent.append(Absent(None, device, str(error), least))
                errors.append(error)
        if not answers:
            raise errors[0]
        by: By = "time" if any(_timed(one) for one in answers) else "traffic"
        names = dict.fromkeys(one.algorithm for one in answers)
        return cls(workload, by, ordered(answers, by), tuple(absent), approximations(names))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The answers in one form, whatever decides, the best first."""
        return tuple(Entry.of(answer, self.by) for answer in self.answers)

    @property
    def best(self) -> Answer:
        """The first exact algorithm: the fastest, or the one with the least traffic."""
        return next(answer for answer in self.answers if answer.algorithm not in self.approximates)

    @property
    def best_approximate(self) -> Answer | None:
        """The first approximate algorithm, if any is listed."""
        return next((answer for answer in self.answers if answer.algorithm in self.approximates), None)

    @property
    def hardware(self) -> Hardware | None:
        """The device; None under a bare budget and for several devices."""
        devices = {answer.hardware.label: answer.hardware for answer in self.answers if answer.hardware is not None}
        others = {one.hardware for one in self.absent} - {*devices, None}
        return None if len(devices) != 1 or others else next(iter(devices.values()))

    @property
    def _infeasible(self) -> Any:
        unfit = [one for one in self.absent if one.runs and one.algorithm is not None]
        return tuple(unfit) if self.budget else FrozenDict({one.algorithm: one.reason for one in unfit})

    @property
    def _without_kernels(self) -> Mapping[str, str]:
        return FrozenDict({str(one.algorithm): one.reason for one in self.absent if not one.runs})

    def relative(self, answer: Answer) -> float:
        """Return the time or the traffic over that of the best [-]; below 1 for a better approximate algorithm."""
        return _measure(answer, self.by) / _measure(self.best, self.by)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        data = super().to_dict()
        rows = data.pop("answers")
        for answer, row in zip(self.answers, rows, strict=True):
            if _timed(answer) or self.by == "traffic":
                row["relative"] = self.relative(answer)
        data |= {"solutions" if isinstance(self.best, Solution) else "estimates": rows}
        data |= {} if self.hardware is None else named("hardware", self.hardware)
        infeasible, unit = self._infeasible, self.budget and self.budget.unit
        listed = [{"algorithm": one.algorithm, "least": one.least, "unit": unit} for one in infeasible] if unit else {}
        data |= {"infeasible": listed or dict(infeasible), "without_kernels": dict(self._without_kernels)}
        approximate = self.best_approximate
        return {**data, "best": self.best.algorithm, "best_approximate": approximate and approximate.algorithm}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Comparison:
        """Rebuild the comparison from its plain data; the figures relative to the best are computed again."""
        if isinstance(data, Mapping):
            rows = next((name for name in ("solutions", "estimates") if name in data), "answers")
            data = {"answers" if key == rows else key: value for key, value in data.items()}
        found: Comparison = super().from_dict(data)
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per answer: tiles, quantities and ratio to the best; the reason where there is none."""
        several, rows = self.hardware is None and self.budget is None, []
        for answer in self.answers:
            device = {"hardware": answer.hardware.label} if several and answer.hardware else {}
            record = _timed_record(answer) if isinstance(answer, Estimate) else _solved_record(answer)
            relative = {} if self.by == "time" and not _timed(answer) else {"relative": self.relative(answer)}
            rows.append({"algorithm": answer.algorithm, **device, **answer.tiles, **record, **relative})
        for one in self.absent:
            row = {"algorithm": one.algorithm, "reason": one.reason, "least_budget": one.least}
            row |= {"hardware": one.hardware} if several else {}
            rows.append({name: value for name, value in row.items() if value is not None} | _unless(one.runs))
        return rows

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        columns = [one for one in _COLUMNS if one.listed(self)]
        names = [f">{one.label(self)}" if one.right else one.label(self) for one in columns]
        rows = [tuple(one.cell(self, answer) for one in columns) for answer in self.answers]
        missing = [one for one in self.absent if one.algorithm is not None]
        rows += [tuple(one.missing(self, absent) for one in columns) for absent in missing]
        notes = footnotes(self.approximates)
        notes += [
            f"{one.implementation or one.algorithm or one.hardware}: {one.reason}"
            for one in self.absent
            if one.algorithm is None or not one.defined or (one.implementation and not one.runs)
        ]
        timed = [answer for answer in self.answers if isinstance(answer, Estimate)]
        trusted = [
            *shared_notes("left out", {one.algorithm: one.left_out for one in timed}),
            *shared_notes("assumed", {one.algorithm: one.assumed for one in timed}),
        ]
        extra = tuple(one.label(self) for one in columns if one.extra)
        return [Table(self._title, names, rows, [*counted_pairs(self.workload), *notes], extra=extra), *trusted]

    @property
    def _title(self) -> str:
        if self.budget is not None:
            return f"algorithms on {self.budget.label or self.budget}"
        devices = {*(entry.hardware for entry in self.entries), *(one.hardware for one in self.absent)}
        place = f"{len(devices)} devices" if self.hardware is None else self.hardware.name
        return f"algorithms on {place}, by {self.by}"


def ordered(answers: Iterable[Answer], by: By) -> tuple[Answer, ...]:
    """Put the best answers first, and those without a time last."""
    return tuple(sorted(answers, key=lambda answer: _measure(answer, by)))


def _timed(answer: Answer) -> bool:
    return isinstance(answer, Estimate) or answer.timed


def _measure(answer: Answer, by: By) -> float:
    if by == "traffic":
        return answer.cost.hbm_bytes
    return answer.seconds if _timed(answer) else float("inf")


def _unless(runs: bool) -> dict[str, bool]:
    return {} if runs else {"runs": False}


def _timed_record(estimate: Estimate) -> dict[str, Any]:
    """Return the figures of an estimate."""
    return {
        "implementation": estimate.implementation,
        "seconds": estimate.seconds,
        "flops_per_second": estimate.flops_per_second,
        "mfu": estimate.mfu,
        "limited_by": estimate.limited_by,
        "bound": estimate.limited_by,  # its old name
        "runs": True,
        "least_dram_bytes": estimate.dram_bytes[0],
        "most_dram_bytes": estimate.dram_bytes[1],
    }


def _solved_record(solution: Solution) -> dict[str, Any]:
    """Return the figures of a solution."""
    seconds = {"seconds": solution.seconds} if solution.timed else {}
    return {**seconds, **solution.cost.quantities, "footprint": solution.footprint}


def counted_pairs(workload: Workload) -> list[str]:
    """Return the line of a table that counts the visible pairs of a call with a mask."""
    count = None if getattr(workload, "mask", "full") == "full" else visible_pairs(workload)
    return [] if count is None else [f"visible pairs, over all batches and heads: {count:,}"]


TimeComparison = Comparison
"""An old spelling."""
Words = Callable[[Comparison, Any], str]


@dataclass(frozen=True)
class _Column:
    """A column of the table: its label, the comparisons that list it, and its cells; `extra` may be left out."""

    title: str | Callable[[Comparison], str]
    cell: Words
    listed: Callable[[Comparison], bool]
    missing: Words = lambda _, __: ""
    right: bool = True
    extra: bool = False

    def label(self, comparison: Comparison) -> str:
        """Write the heading."""
        return self.title if isinstance(self.title, str) else self.title(comparison)


def _always(_: Comparison) -> bool:
    return True


def _by_time(comparison: Comparison) -> bool:
    return comparison.by == "time"


def _by_traffic(comparison: Comparison) -> bool:
    return comparison.by == "traffic"


def _estimated(comparison: Comparison) -> bool:
    return isinstance(comparison.best, Estimate)


def _on_devices(comparison: Comparison) -> bool:
    return comparison.budget is None and comparison.hardware is None


def _marked(comparison: Comparison, one: Answer | Absent) -> str:
    return marked(str(one.algorithm), comparison.approximates)


def _device(_: Comparison, one: Answer | Absent) -> str:
    device = one.hardware
    return device.label if isinstance(device, Hardware) else str(device)


def _tiles(comparison: Comparison, answer: Answer) -> str:
    return str(Entry.of(answer, comparison.by)) if _on_devices(comparison) else sizes_text(answer.tiles)


def _no_kernel(_: Comparison, absent: Absent) -> str:
    return "" if absent.runs or not absent.defined else f"no {absent.implementation or 'kernel'}"


def _unfit(comparison: Comparison, absent: Absent) -> str:
    """Describe tiles that do not fit; a comparison by traffic has the memory needed in a column of its own."""
    if not absent.runs:
        return "" if absent.defined else "not defined for this call"
    return f"none fits, needs {absent.least:,} B" if comparison.by == "time" and absent.least else "none fits"


def _kernels(_: Comparison, answer: Answer) -> str:
    return "idealised" if answer.implementation == TEXTBOOK.name else answer.implementation


def _seconds(_: Comparison, answer: Answer) -> str:
    if isinstance(answer, Estimate):
        return answer.time_in(answer.seconds)[0]
    return f"{answer.seconds * 1e6:,.1f}" if answer.timed else ""


def _relative(comparison: Comparison, answer: Answer) -> str:
    if _by_traffic(comparison):
        return f"{comparison.relative(answer):,.3f}"
    return f"{comparison.relative(answer):,.2f}" if _timed(answer) else ""


def _limit(_: Comparison, answer: Answer) -> str:
    return str(answer.limited_by if isinstance(answer, Estimate) else answer.certificate.binding)


def _unit(comparison: Comparison) -> str:
    first = comparison.answers[0]
    return f"time [{first.time_in(0.0)[1] if isinstance(first, Estimate) else 'us'}]"


def _memory(comparison: Comparison) -> str:
    budget = comparison.budget
    return "SRAM used" if budget is None else f"SRAM used of {budget.amount:,} [{budget.unit}]"


_COLUMNS = (
    _Column("algorithm", _marked, _always, _marked, right=False),
    _Column("device", _device, _on_devices, _device, right=False),
    _Column("kernel", _kernels, _by_time, _no_kernel, right=False),
    _Column("tiles", _tiles, _always, _unfit, right=False),
    _Column(_unit, _seconds, _by_time),
    _Column(f"{labels.REQUESTS} [B]", lambda _, answer: f"{answer.cost.hbm_bytes:,}", _by_traffic),
    _Column("relative to best", _relative, _always, extra=True),
    _Column("TFLOP/s", lambda _, answer: f"{answer.flops_per_second / 1e12:,.1f}", _estimated, extra=True),
    _Column("MFU [%]", lambda _, answer: f"{100 * answer.mfu:.1f}", _estimated, extra=True),
    _Column("bound by", _limit, _by_time, right=False),
    _Column(f"{labels.DRAM} [MB]", lambda _, answer: f"{answer.streamed_bytes / 1e6:,.0f}", _estimated, extra=True),
    _Column(f"{labels.REQUESTS} [MB]", lambda _, answer: f"{answer.cost.hbm_bytes / 1e6:,.0f}", _by_time, extra=True),
    _Column("FLOPs", lambda _, answer: f"{answer.cost.flops:,}", _by_traffic, extra=True),
    _Column(f"{labels.OVER_REQUESTS} [FLOP/B]", lambda _, answer: f"{answer.cost.intensity:,.1f}", _by_traffic,
            extra=True),
    _Column(_memory, lambda _, answer: f"{answer.footprint:,}", _by_traffic,
            lambda _, absent: "" if absent.least is None else f"needs {absent.least:,}", extra=True),
)  # fmt: skip
