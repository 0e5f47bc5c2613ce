"""Answers for several devices, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iomodel.cli.output import emit
from iomodel.cli.signature import several
from iomodel.common.display import Table, figure, sizes_text
from iomodel.devices.device import list_hardware
from iomodel.errors import IOModelError

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


def compare_devices(devices: list[str], answer: Callable[[str], Any], as_json: bool) -> None:
    """Print the answer for each device, a row each; a refusal is a row too, unless every device is refused."""
    answers: dict[str, Any] = {}
    for device in devices:
        try:
            answers[device] = answer(device)
        except IOModelError as error:
            answers[device] = error
    refused = [error for error in answers.values() if isinstance(error, IOModelError)]
    if len(refused) == len(answers):
        raise refused[0]
    if as_json:
        emit(
            {"devices": {device: _plain(found) for device, found in answers.items()}},
            as_json=True,
            kind="devices-compared",
        )
        return
    rows = [_row(device, found) for device, found in answers.items()]
    timed = [row[-1] for row in rows if isinstance(row[-1], float)]
    columns = ("device", "algorithm", "tiles", "limited by", ">time [us]", ">relative")
    lines = [
        (*row[:-1], *((figure(row[-1] * 1e6), f"{row[-1] / min(timed):.2f}") if row[-1] else ("", ""))) for row in rows
    ]
    emit(Table("devices side by side", columns, lines))


def _plain(found: Any) -> Mapping[str, Any]:
    if isinstance(found, IOModelError):
        return {"error": {"code": found.code, "message": str(found)}}
    plain: Mapping[str, Any] = found.to_dict()
    return plain


def _row(device: str, found: Any) -> tuple[Any, ...]:
    """Return device, algorithm, tiles, limit and time of an answer."""
    if isinstance(found, IOModelError):
        return device, "", "", str(found), None
    return device, found.algorithm, sizes_text(found.tiles), _limit(found), _seconds(found)


def _seconds(entry: Any) -> float | None:
    """Return the time of an answer; None where nothing is timed."""
    return entry.seconds if getattr(entry, "timed", True) else None


def _limit(entry: Any) -> str:
    certificate = getattr(entry, "certificate", None)
    return str(entry.bound if certificate is None else certificate.binding)
