"""Calibration of the local GPU into a hardware file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from iomodel.common.deprecation import warn_renamed
from iomodel.common.keywords import refuse_unknown
from iomodel.common.validation import finite
from iomodel.devices.calibration.base import base_of, unmeasured
from iomodel.devices.calibration.experiments import CalibrationDevice, Experiment, ExperimentSizes, chosen, experiments
from iomodel.devices.calibration.measured_figures import Figure, figure_of, sample
from iomodel.devices.calibration.result import Calibration, Measurements, assembled
from iomodel.devices.device import Hardware, from_data
from iomodel.errors import InputError, shown

Report = Callable[[int, int, str], None]
"""Called before each experiment with the number done, the total, and the name of the next."""
LONGEST = 86400
"""The largest budget [s]."""


def calibrate(
    device: int = 0,
    *,
    base: str | os.PathLike[str] | Hardware | None = None,
    time_budget: float = 60.0,
    only: Sequence[str] | Set[str] = (),
    progress: bool = False,
    **old: Any,
) -> Calibration:
    """Measure a GPU of this machine with PyTorch: HBM, L2, matrix products, exponentials, launches, attention.

    Parameters
    ----------
    device : int
        Index of the GPU in torch.
    base : str, os.PathLike or Hardware, optional
        The device that supplies the unmeasured figures. By default the shipped device with the driver's name;
        if there is none, the limits reported by the driver.
    time_budget : float
        Total time [s]. Experiments that have not started by then are skipped; a running one is finished.
    only : names
        Groups (``hbm``, ``l2``, ``gemm``, ``exp``, ``launch``, ``attention``) or figures, such as ``gemm_bf16``.
    progress : bool
        Draw a progress bar on stderr, if it is a terminal.
    **old
        `time_budget` by its old name, `budget`.

    Raises
    ------
    InputError, UnknownNameError, SpecError
        torch or the GPU is missing; every experiment failed; an argument is not allowed.

    Examples
    --------
    >>> import iomodel
    >>> iomodel.devices.calibrate(only=["hbn"])
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownNameError: only: 'hbn' is unknown; did you mean 'hbm'? allowed: hbm, l2, gemm, ...
    """
    if "budget" in old:
        warn_renamed("devices.calibrate(budget=)", "time_budget=")
        time_budget = old.pop("budget")
    refuse_unknown("calibrate", old, ("device", "base", "time_budget", "only", "progress"))
    if not isinstance(progress, bool):
        raise InputError(f"progress: {shown(progress)} given; allowed: True or False")
    names = [only] if isinstance(only, str) else only
    if not isinstance(names, Sequence | Set) or not all(isinstance(name, str) for name in names):
        raise InputError(f"only: {shown(only)} given; allowed: names of experiments, such as ['hbm']")
    chosen((), names)
    check_budget(time_budget)
    from iomodel.devices.calibration.torch import torch_device

    with _bar(progress) as report:
        return calibrated(torch_device(device), base=base, budget=time_budget, only=names, report=report)


def calibrated(
    device: CalibrationDevice,
    *,
    base: str | os.PathLike[str] | Hardware | None = None,
    budget: float = 60.0,
    only: Sequence[str] | Set[str] = (),
    sizes: ExperimentSizes | None = None,
    report: Report = lambda *_: None,
) -> Calibration:
    """Calibrate any device that can run experiments."""
    measurements = measure(device, base, check_budget(budget), only, sizes, report)
    if not measurements.figures:
        name, reason = measurements.failed[0]
        raise InputError(f"device: nothing could be measured on {device.facts.name}; {name}: {reason}")
    return assembled(device.facts, measurements)


def check_budget(budget: object) -> float:
    """Validate a budget as a number of seconds, or raise InputError."""
    if not finite(budget) or not 0 < budget <= LONGEST:
        raise InputError(
            f"time_budget: {shown(budget)} given; allowed: seconds, above 0 and up to {LONGEST}, such as 60"
        )
    return float(budget)


@contextmanager
def _bar(wanted: bool) -> Iterator[Report]:
    """Show a progress bar on stderr, if it is a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("calibrate", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name or "done")


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
