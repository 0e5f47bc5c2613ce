"""Calibration of the local GPU into a hardware file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager

from iomodel.common.validation import finite
from iomodel.devices.calibration.device import CalibrationDevice
from iomodel.devices.calibration.experiments import ExperimentSizes, chosen
from iomodel.devices.calibration.measure import Report, measure
from iomodel.devices.calibration.result import Calibration, assembled
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown

LONGEST = 86400
"""The largest budget [s]."""


def calibrate(
    device: int = 0,
    *,
    base: str | os.PathLike[str] | Hardware | None = None,
    budget: float = 60.0,
    only: Sequence[str] | Set[str] = (),
    progress: bool = False,
) -> Calibration:
    """Measure a GPU of this machine with PyTorch: HBM, L2, matrix products, exponentials, launches, attention.

    Parameters
    ----------
    device : int
        Index of the GPU in torch.
    base : str, os.PathLike or Hardware, optional
        The device that supplies the unmeasured figures. By default the shipped device with the driver's name;
        if there is none, the limits reported by the driver.
    budget : float
        Total time [s]. Experiments that have not started by then are skipped; a running one is finished.
    only : names
        Groups (``hbm``, ``l2``, ``gemm``, ``exp``, ``launch``, ``attention``) or figures, such as ``gemm_bf16``.
    progress : bool
        Draw a progress bar on stderr, if it is a terminal.

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
    if not isinstance(progress, bool):
        raise InputError(f"progress: {shown(progress)} given; allowed: True or False")
    names = [only] if isinstance(only, str) else only
    if not isinstance(names, Sequence | Set) or not all(isinstance(name, str) for name in names):
        raise InputError(f"only: {shown(only)} given; allowed: names of experiments, such as ['hbm']")
    chosen((), names)
    check_budget(budget)
    from iomodel.devices.calibration.torch import torch_device

    with _bar(progress) as report:
        return calibrated(torch_device(device), base=base, budget=budget, only=names, report=report)


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
        raise InputError(f"budget: {shown(budget)} given; allowed: seconds, above 0 and up to {LONGEST}, such as 60")
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
