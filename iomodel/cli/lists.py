"""Commands that list algorithms and devices."""

from __future__ import annotations

from typing import Annotated

import typer

from iomodel.cli.options import Json
from iomodel.cli.output import emit
from iomodel.devices.device import list_hardware
from iomodel.errors import family


def algorithms(*, json: Json = False) -> None:
    """List the algorithms with their directions, options and sources.

    Example:
      iomodel algorithms --json
    """
    from iomodel.cli.algorithm_table import every_algorithm, overview

    emit(every_algorithm() if json else overview(), json)


def hardware(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A device, its YAML file, or the first word of its name; all devices by default.",
            autocompletion=list_hardware,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the figures of a device with their sources, or list devices: all, or those of a family, such as h100.

    Example:
      iomodel hardware h100-sxm5
    """
    from iomodel.devices.device import hardware as find
    from iomodel.devices.overview import every_device, overview

    names = None if name is None else family_of(name, _real(name))
    if name is not None and not names:
        emit(find(name), json)
    elif json:
        emit({device: entry.to_dict() for device, entry in every_device(names).items()}, json)
    else:
        emit(overview(names))


def _real(name: str) -> list[str]:
    """List the devices that a name may mean: the simulated ones only where the name says so."""
    return [device for device in list_hardware() if "sim" in name.lower() or not device.startswith("sim-")]


def family_of(name: str, names: list[str]) -> list[str]:
    """Select the names of the family that a word of a command line names; none for a full name or a file."""
    exact = name.lower() in names or not name.replace("-", "").replace(".", "").isalnum()
    return [] if exact else family(name, names)
