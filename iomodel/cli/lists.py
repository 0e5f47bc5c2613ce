"""Commands that list algorithms and devices."""

from __future__ import annotations

from typing import Annotated

import typer

from iomodel.cli.options import Json
from iomodel.cli.output import emit
from iomodel.devices.device import list_hardware


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
        typer.Argument(help="A device, or its YAML file; all devices by default.", autocompletion=list_hardware),
    ] = None,
    json: Json = False,
) -> None:
    """Show the figures of a device with their sources, or all devices.

    Example:
      iomodel hardware h100-sxm5
    """
    from iomodel.devices.device import hardware as find
    from iomodel.devices.overview import every_device, overview

    if name is not None:
        emit(find(name), json)
    else:
        emit({device: entry.to_dict() for device, entry in every_device().items()} if json else overview(), json)
