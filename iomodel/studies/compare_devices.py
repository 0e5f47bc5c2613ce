"""Comparison of algorithms on several devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from iomodel.common import labels
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.devices.device import Hardware, as_device
from iomodel.devices.rates import has_rates
from iomodel.errors import InfeasibleError, InputError, IOModelError, shown
from iomodel.solving.solution import Solution
from iomodel.studies.compare_time import TimeComparison
from iomodel.studies.comparison import Comparison
from iomodel.studies.comparison_entries import By, Entries, Entry
from iomodel.timing.estimate_result import Estimate
from iomodel.workloads.workload import Workload


@dataclass(frozen=True)
class DeviceComparison(Entries, Result):
    """The comparisons of algorithms on several devices, in one order.

    Attributes
    ----------
    workload : Attention, VarlenAttention or Linear
        The call.
    parts : tuple of Comparison or TimeComparison
        The comparison on each device, in the order given.
    refused : mapping of str to str
        The devices without an answer, with the reason.
    entries : tuple of Entry
        The answers on all devices, the best first.
    """

    derived = ("entries",)

    workload: Annotated[Any, Workload]
    parts: tuple[Comparison | TimeComparison, ...]
    refused: Mapping[str, str]

    @property
    def by(self) -> By:
        """The quantity that orders the entries, the same on all devices."""
        return self.parts[0].by

    @property
    def answers(self) -> Sequence[Solution | Estimate]:
        """The full answers, in the order of the entries."""
        every = [answer for part in self.parts for answer in part.answers]
        return sorted(every, key=lambda answer: answer.seconds if self.by == "time" else answer.cost.hbm_bytes)

    @property
    def best(self) -> Entry:
        """The best exact algorithm on any device."""
        return next(entry for entry in self.entries if entry.algorithm not in self.parts[0].approximates)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per entry, its choice apart; the reason for a device without an answer."""
        rows = [{**entry.to_dict(), "choice": str(entry)} for entry in self.entries]
        return [*rows, *({"hardware": name, "reason": reason} for name, reason in self.refused.items())]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        unit = ">time [us]" if self.by == "time" else f">{labels.REQUESTS} [B]"
        rows = [
            (
                entry.algorithm,
                entry.implementation,
                str(entry.hardware),
                str(entry),
                f"{entry.hbm_bytes:,}" if entry.seconds is None else f"{entry.seconds * 1e6:,.1f}",
            )
            for entry in self.entries
        ]
        notes = [f"{name}: {reason}" for name, reason in self.refused.items()]
        columns = ("algorithm", "kernels", "device", "choice", unit)
        return [Table(f"algorithms on {len(self.parts)} devices, by {self.by}", columns, rows, notes)]


def on_devices(
    workload: Workload, devices: Sequence[Hardware | str], objective: str | None, one: Callable[..., Any]
) -> DeviceComparison:
    """Compare on each device by the same quantity; raise the first error if no device has an answer."""
    if not devices:
        raise InputError(f"hardware: {shown(devices)} given; allowed: at least one device")
    known = [as_device(device) for device in devices]
    labels = [device.label for device in known]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"hardware: {label!r} given twice; allowed: each device once")
    timed = objective is None and any(has_rates(device, workload.dtype) for device in known)
    parts, refused, errors = [], {}, []
    for device in known:
        try:
            parts.append(one(workload, device, objective="time" if timed else objective))
        except IOModelError as error:
            if isinstance(error, InfeasibleError) or (timed and not has_rates(device, workload.dtype)):
                refused[device.label] = str(error)
                errors.append(error)
                continue
            raise
    if not parts:
        raise errors[0]
    return DeviceComparison(workload, tuple(parts), FrozenDict(refused))
