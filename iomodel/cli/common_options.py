"""Options of commands of every kind, which build none of those of calls and algorithms."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.cli.signature import option, several
from iomodel.devices.device import list_hardware

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel="Output")]
DEVICE = option("hardware", "A device, or its YAML file (required).", "Device", "NAME|FILE", list_hardware)
DEVICES = several(
    "hardware",
    "A device, or its YAML file; if repeated, the devices are compared.",
    "Device",
    "NAME|FILE",
    list_hardware,
)


def devices_of(arguments: dict[str, Any]) -> list[str]:
    """Return the devices of a command line, and leave the only one among its arguments."""
    devices = list(arguments["hardware"] or ())
    arguments["hardware"] = devices[0] if len(devices) == 1 else None
    return devices
