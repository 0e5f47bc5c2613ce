"""Interval of the measured times that an estimate stands for, from rows of calibration in the same place.

A place is an architecture, a direction and a regime. Each has the half-width that holds eight in ten of its rows, on a
logarithmic scale, times 1.4 because new rows err more than those in sight; a place with few rows takes that of its
architecture and regime, of its architecture, or of all.
`python benchmarks/accuracy.py --intervals` computes the table from the rows that may choose parameters alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iomodel.devices.device import Hardware
from iomodel.workloads.window import Window

SHORT = 1e-4
"""Longest time of a call whose launches and first loads may decide [s]."""
ANY = "all"
HALF_WIDTHS: dict[tuple[str, str, str], float] = {
    ("CDNA", "all", "all"): 0.57,
    ("CDNA", "all", "long"): 0.426,
    ("all", "all", "all"): 0.229,
    ("sm_10x", "all", "all"): 0.598,
    ("sm_10x", "all", "long"): 0.213,
    ("sm_10x", "all", "window"): 0.858,
    ("sm_10x", "backward", "long"): 0.258,
    ("sm_10x", "backward", "window"): 0.858,
    ("sm_10x", "forward", "long"): 0.175,
    ("sm_12x", "all", "all"): 0.288,
    ("sm_12x", "all", "long"): 0.125,
    ("sm_12x", "decode", "long"): 0.125,
    ("sm_8x", "all", "all"): 0.164,
    ("sm_8x", "all", "long"): 0.164,
    ("sm_9x", "all", "all"): 0.209,
    ("sm_9x", "all", "long"): 0.177,
    ("sm_9x", "all", "short"): 0.295,
    ("sm_9x", "backward", "long"): 0.289,
    ("sm_9x", "backward", "short"): 0.856,
    ("sm_9x", "both", "long"): 0.051,
    ("sm_9x", "decode", "long"): 0.24,
    ("sm_9x", "decode", "short"): 0.342,
    ("sm_9x", "forward", "long"): 0.156,
    ("sm_9x", "forward", "short"): 0.242,
}
"""Half-widths of the intervals by architecture, direction and regime [-]."""


class Place(NamedTuple):
    """Architecture, direction and regime of a call, as `HALF_WIDTHS` names them."""

    architecture: str
    direction: str
    regime: str

    @property
    def wider(self) -> tuple[Place, ...]:
        """The place and those around it, the smallest first."""
        architecture, _, regime = self
        around = (self, Place(architecture, ANY, regime), Place(architecture, ANY, ANY), Place(ANY, ANY, ANY))
        return tuple(dict.fromkeys(around))

    @property
    def half_width(self) -> float:
        """Half-width of the interval: its ends are the time over and times one more [-]."""
        return next(HALF_WIDTHS[place] for place in self.wider if place in HALF_WIDTHS)


def place_of(device: Hardware, call: Any, seconds: float, decoding: bool | None = None) -> Place:
    """Return the place of a call that takes so long; one query of each sequence is decoding."""
    direction = getattr(call, "direction", ANY)
    if direction == "forward" and (decoding if decoding is not None else getattr(call, "q_len", None) == 1):
        direction = "decode"
    window = isinstance(getattr(call, "mask", None), Window)
    return Place(architecture_of(device), direction, "window" if window else "short" if seconds < SHORT else "long")


def architecture_of(device: Hardware) -> str:
    """Return the architecture of a device that places are named by: the major compute capability, CDNA, or any."""
    if device.compute_capability is not None:
        return f"sm_{device.compute_capability.split('.')[0]}x"
    return "CDNA" if (device.architecture or "").startswith("gfx9") else ANY


def interval(device: Hardware, call: Any, seconds: Any, decoding: bool | None = None) -> tuple[Any, Any]:
    """Return the ends of the interval about a time, or about an array of times of calls of one kind [s].

    A simulated device takes its times exactly: both ends are the time.
    """
    if device.simulated:
        return seconds, seconds
    if isinstance(seconds, np.ndarray):
        short, long = (1 + place_of(device, call, at, decoding).half_width for at in (0.0, SHORT))
        width: Any = np.where(seconds < SHORT, short, long)
    else:
        width = 1 + place_of(device, call, seconds, decoding).half_width
    return seconds / width, seconds * width
