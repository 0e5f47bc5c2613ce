"""Runs the experiments one after another within a budget of time, and keeps what each gave or why it failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from iomodel.calibration.base import base_of, unmeasured
from iomodel.calibration.device import Device
from iomodel.calibration.experiments import Experiment, Sizes, chosen
from iomodel.calibration.figures import Figure, figure_of
from iomodel.calibration.list import experiments
from iomodel.calibration.sampling import sample
from iomodel.hardware import Hardware, from_data

Report = Callable[[int, int, str], None]
"""Told before each experiment: how many are done, of how many, and which comes."""
METHOD = "warm-up, then repeats between events on the device while the host is ahead; median, least and largest"


@dataclass(frozen=True)
class Outcome:
    """What a calibration found, before it is a hardware file."""

    figures: tuple[Figure, ...]
    failed: tuple[tuple[str, str], ...]
    plain: dict[str, object]
    base: str | None
    date: str
    seconds: float


def measure(
    device: Device,
    base: str | os.PathLike[str] | Hardware | None,
    budget: float,
    only: Iterable[str],
    sizes: Sizes | None = None,
    report: Report = lambda *_: None,
) -> Outcome:
    """Run the experiments chosen; whatever is wrong with the arguments is told before the first one."""
    start, facts = device.now(), device.facts
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = chosen(experiments(facts, sizes), only)
    found = base_of(base, facts)
    plain = unmeasured(found, facts)
    from_data(plain, f"calibration of {facts.name}")  # refused now rather than after the measurements
    figures: list[Figure] = []
    failed: list[tuple[str, str]] = []
    for place, experiment in enumerate(wanted):
        report(place, len(wanted), experiment.name)
        left = budget - (device.now() - start)
        reason = experiment.left_out or (None if left > 0 else "left out, the budget is spent")
        if reason is None:
            try:
                figures.append(_one(device, experiment, left / (len(wanted) - place)))
            except Exception as error:  # of torch, of the driver, of a compiler: the others go on
                reason = _reason(error)
        if reason is not None:
            failed.append((experiment.name, reason))
    report(len(wanted), len(wanted), "")
    name = None if found is None else found.id or found.name
    return Outcome(tuple(figures), tuple(failed), plain, name, date, device.now() - start)


def _one(device: Device, experiment: Experiment, share: float) -> Figure:
    end = device.now() + share
    with device.load(experiment) as run:
        return figure_of(experiment, sample(run, lambda: end - device.now(), experiment.kernels))


def _reason(error: Exception) -> str:
    """An error in one line of at most 200 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return "".join(c for c in text if c.isprintable())[:200].strip(" :")
