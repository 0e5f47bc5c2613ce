"""Command that calibrates the local GPU."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from iomodel.cli.numbers import integer
from iomodel.cli.options import Json
from iomodel.cli.output import emit
from iomodel.devices.calibration.experiments import GROUPS
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError, shown

_SECONDS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min)?\s*", re.ASCII)


def _names() -> list[str]:
    return [*GROUPS, *(name for fields in GROUPS.values() for name in fields)]


Output = Annotated[str | None, typer.Option("--output", help="The YAML file to write.", metavar="FILE")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="A device, or its YAML file, for the unmeasured figures (recognised by the driver's name).",
        metavar="NAME|FILE",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
Budget = Annotated[str, typer.Option("--budget", help="Total time, such as 60s or 2min.", metavar="TIME")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help=f"Measure only one of {', '.join(GROUPS)}, or one figure; may be repeated.",
        metavar="NAME",
        autocompletion=_names,
        show_default=False,
    ),
]
Number = Annotated[str, typer.Option("--device", help="Index of the GPU.", metavar="INTEGER")]


def calibrate(
    *,
    output: Output = None,
    force: Force = False,
    base: Base = None,
    budget: Budget = "60s",
    only: Only = None,
    device: Number = "0",
    json: Json = False,
) -> None:
    """Measure the GPU of this machine with PyTorch, and write its hardware file.

    Example:
      iomodel calibrate --output my-gpu.yaml
    """
    from iomodel.devices.calibration.calibrate import calibrate as measure
    from iomodel.devices.calibration.result import writable_file

    number, time = integer("device", device), seconds(budget)
    if output is not None:
        writable_file(output, force=force)
    calibration = measure(number, base=base, budget=time, only=only or (), progress=True)
    if output is not None:
        calibration.write(output, force=force)
    emit(calibration, json)


def seconds(text: str) -> float:
    """Parse a time given in seconds or minutes.

    >>> seconds("2min"), seconds("90")
    (120.0, 90.0)
    """
    match = _SECONDS.fullmatch(text)
    if not match:
        raise InputError(f"budget: {shown(text)} given; allowed: seconds or minutes, such as 60s or 2min")
    return float(match[1]) * (60 if match[2] == "min" else 1)
