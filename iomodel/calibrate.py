"""Measures the GPU that is there, and writes a hardware file of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from iomodel.calibration.device import Device
from iomodel.calibration.experiments import Sizes, chosen
from iomodel.calibration.measure import Report, measure
from iomodel.calibration.result import Calibration, assembled
from iomodel.errors import InputError, shown
from iomodel.hardware import Hardware
from iomodel.validation import finite

LONGEST = 86400
"""The largest budget [s]."""


def calibrate(
    device: int = 0,
    *,
    base: str | os.PathLike[str] | Hardware | None = None,
    budget: float = 60.0,
    only: Iterable[str] = (),
    progress: bool = False,
) -> Calibration:
    """Measure a GPU of this machine with PyTorch: HBM, L2, matrix products, exponentials, launches, attention.

    Parameters
    ----------
    device : int
        The number of the GPU, as torch counts.
    base : str, os.PathLike or Hardware, optional
        The device whose other figures the result takes over; without it the one that the driver's name stands for,
        and where there is none what the driver says of limits.
    budget : float
        Time for everything [s]; what is left then is left out. An experiment that has begun is ended.
    only : names
        Groups (``hbm``, ``l2``, ``gemm``, ``exp``, ``launch``, ``attention``) or figures, such as ``gemm_bf16``.
    progress : bool
        Draw a progress bar on stderr, if that is a terminal.

    Raises
    ------
    InputError, UnknownNameError, SpecError
        No torch, no GPU, nothing could be measured; an argument that is not allowed.

    Examples
    --------
    >>> import iomodel
    >>> iomodel.calibrate(only=["hbn"])
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownNameError: only: 'hbn' is unknown; did you mean 'hbm'? allowed: hbm, l2, gemm, ...
    """
    if not isinstance(progress, bool):
        raise InputError(f"progress: {shown(progress)} given; allowed: True or False")
    if not isinstance(only, Iterable):
        raise InputError(f"only: {shown(only)} given; allowed: names of experiments, such as ['hbm']")
    names = [only] if isinstance(only, str) else list(only)
    chosen((), names)
    check_budget(budget)
    from iomodel.calibration.torch import torch_device

    with _bar(progress) as report:
        return calibrated(torch_device(device), base=base, budget=budget, only=names, report=report)


def calibrated(
    device: Device,
    *,
    base: str | os.PathLike[str] | Hardware | None = None,
    budget: float = 60.0,
    only: Iterable[str] = (),
    sizes: Sizes | None = None,
    report: Report = lambda *_: None,
) -> Calibration:
    """Calibrate whatever runs experiments."""
    found = measure(device, base, check_budget(budget), only, sizes, report)
    if not found.figures:
        name, reason = found.failed[0]
        raise InputError(f"device: nothing could be measured on {device.facts.name}; {name}: {reason}")
    return assembled(device.facts, found)


def check_budget(budget: object) -> float:
    """The budget as a number of seconds, or InputError."""
    if not finite(budget) or not 0 < budget <= LONGEST:
        raise InputError(f"budget: {shown(budget)} given; allowed: seconds, above 0 and up to {LONGEST}, such as 60")
    return float(budget)


@contextmanager
def _bar(wanted: bool) -> Iterator[Report]:
    """A progress bar on stderr, or nothing where that is no terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("calibrate", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name or "done")
