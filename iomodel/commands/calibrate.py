"""The command that measures the GPU of this machine."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from iomodel.calibration.experiments import GROUPS
from iomodel.commands.numbers import integer
from iomodel.commands.options import Json
from iomodel.commands.output import emit
from iomodel.errors import InputError, shown
from iomodel.hardware import list_hardware

_SECONDS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min)?\s*", re.ASCII)


def _names() -> list[str]:
    return [*GROUPS, *(name for fields in GROUPS.values() for name in fields)]


Output = Annotated[str | None, typer.Option("--output", help="The YAML file to write.", metavar="FILE")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="A device, or its YAML file, for what is not measured (recognised by its name).",
        metavar="NAME|FILE",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
Budget = Annotated[str, typer.Option("--budget", help="Time for everything, such as 60s or 2min.", metavar="TIME")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help=f"Only this: {', '.join(GROUPS)}, or one figure; may be repeated.",
        metavar="NAME",
        autocompletion=_names,
        show_default=False,
    ),
]
Number = Annotated[str, typer.Option("--device", help="The number of the GPU.", metavar="INTEGER")]


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
    """Measure the GPU of this machine with PyTorch, and write a hardware file of it.

    Example:
      iomodel calibrate --output my-gpu.yaml
    """
    from iomodel.calibrate import calibrate as measure
    from iomodel.calibration.write import writable

    number, time = integer("device", device), seconds(budget)
    if output is not None:
        writable(output, force=force)
    found = measure(number, base=base, budget=time, only=only or (), progress=True)
    if output is not None:
        found.write(output, force=force)
    emit(found, json)


def seconds(text: str) -> float:
    """A time as it is typed.

    >>> seconds("2min"), seconds("90")
    (120.0, 90.0)
    """
    match = _SECONDS.fullmatch(text)
    if not match:
        raise InputError(f"budget: {shown(text)} given; allowed: seconds or minutes, such as 60s or 2min")
    return float(match[1]) * (60 if match[2] == "min" else 1)
