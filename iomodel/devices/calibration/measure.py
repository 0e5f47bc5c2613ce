"""Measurement of all experiments within a time budget, with the reasons of those that failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from iomodel.devices.calibration.base import base_of, unmeasured
from iomodel.devices.calibration.device import CalibrationDevice
from iomodel.devices.calibration.experiments import Experiment, ExperimentSizes, chosen
from iomodel.devices.calibration.figures import Figure, figure_of
from iomodel.devices.calibration.list import experiments
from iomodel.devices.calibration.sampling import sample
from iomodel.devices.device import Hardware, from_data

Report = Callable[[int, int, str], None]
"""Called before each experiment with the number done, the total, and the name of the next."""
METHOD = "warm-up, then repeats between events on the device while the host is ahead; median, least and largest"


@dataclass(frozen=True)
class Measurements:
    """Results of the experiments of one calibration, before they become a hardware file."""

    figures: tuple[Figure, ...]
    failed: tuple[tuple[str, str], ...]
    plain: dict[str, object]
    base: str | None
    date: str
    seconds: float


def measure(
    device: CalibrationDevice,
    base: str | os.PathLike[str] | Hardware | None,
    budget: float,
    only: Iterable[str],
    sizes: ExperimentSizes | None = None,
    report: Report = lambda *_: None,
) -> Measurements:
    """Run the chosen experiments; invalid arguments raise before the first one."""
    start, facts = device.now(), device.facts
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = chosen(experiments(facts, sizes), only)
    base_device = base_of(base, facts)
    plain = unmeasured(base_device, facts)
    from_data(plain, f"calibration of {facts.name}")  # fail now rather than after the measurements
    figures: list[Figure] = []
    failed: list[tuple[str, str]] = []
    for place, experiment in enumerate(wanted):
        report(place, len(wanted), experiment.name)
        left = budget - (device.now() - start)
        reason = experiment.left_out or (None if left > 0 else "left out, the budget is spent")
        if reason is None:
            try:
                figures.append(_one(device, experiment, left / (len(wanted) - place)))
            except Exception as error:  # from torch, the driver or a compiler; the other experiments continue
                reason = _reason(error)
        if reason is not None:
            failed.append((experiment.name, reason))
    report(len(wanted), len(wanted), "")
    name = None if base_device is None else base_device.id or base_device.name
    return Measurements(tuple(figures), tuple(failed), plain, name, date, device.now() - start)


def _one(device: CalibrationDevice, experiment: Experiment, share: float) -> Figure:
    end = device.now() + share
    with device.load(experiment) as run:
        return figure_of(experiment, sample(run, lambda: end - device.now(), experiment.kernels))


def _reason(error: Exception) -> str:
    """Format an error in one line of at most 200 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return "".join(c for c in text if c.isprintable())[:200].strip(" :")
