"""Interval of the measured times that an estimate stands for, from rows of calibration in the same place.

A place is an architecture, a direction and a regime. Each has the half-width that holds eight in ten of its rows, on a
logarithmic scale; a place with few rows takes that of its architecture and direction, of its architecture, or of all.
`python benchmarks/accuracy.py --intervals` computes the table from the rows that may choose parameters alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iomodel.common.arithmetic import pick
from iomodel.devices.device import Hardware
from iomodel.workloads.window import Window

SHORT = 1e-4
"""Longest time of a call whose launches and first loads may decide [s]."""
ANY = "all"
HALF_WIDTHS: dict[tuple[str, str, str], float] = {}
"""Half-widths of the intervals by architecture, direction and regime [-]."""


class Place(NamedTuple):
    """Architecture, direction and regime of a call, as `HALF_WIDTHS` names them."""

    architecture: str
    direction: str
    regime: str

    @property
    def wider(self) -> tuple[Place, ...]:
        """The place and those around it, the smallest first."""
        architecture, direction, _ = self
        around = (self, Place(architecture, direction, ANY), Place(architecture, ANY, ANY), Place(ANY, ANY, ANY))
        return tuple(dict.fromkeys(around))

    @property
    def half_width(self) -> float:
        """Half-width of the interval: its ends are the time over and times one more [-]."""
        return next(HALF_WIDTHS[place] for place in self.wider if place in HALF_WIDTHS)


def place_of(device: Hardware, call: Any, short: bool) -> Place:
    """Return the place of a call; one query of each sequence is decoding."""
    mask = getattr(call, "mask", None)
    one_query = getattr(call, "q_len", None) == 1
    direction = "decode" if one_query and call.direction == "forward" else getattr(call, "direction", ANY)
    regime = "window" if isinstance(mask, Window) else "short" if short else "long"
    return Place(architecture_of(device), direction, regime)


def architecture_of(device: Hardware) -> str:
    """Return the architecture of a device that places are named by: the major compute capability, CDNA, or any."""
    if device.compute_capability is not None:
        return f"sm_{device.compute_capability.split('.')[0]}x"
    return "CDNA" if (device.architecture or "").startswith("gfx9") else ANY


def interval(device: Hardware, call: Any, seconds: Any) -> tuple[Any, Any]:
    """Return the ends of the interval about a time, or about an array of the times of calls of one kind [s]."""
    widths = [1 + place_of(device, call, short).half_width for short in (True, False)]
    width = pick(np.less(seconds, SHORT), *widths) if isinstance(seconds, np.ndarray) else widths[seconds >= SHORT]
    return seconds / width, seconds * width
