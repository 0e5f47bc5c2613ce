"""Interval of the measured times that an estimate stands for, from rows of calibration in the same place.

A place is an architecture, a direction and a regime. Each has the half-width that holds eight in ten of its rows, on a
logarithmic scale, times 1.4 because new rows err more than those in sight; a place with few rows takes that of its
architecture and regime, else the larger of its architecture's, or that of all, and its regime's.
`python benchmarks/accuracy.py --intervals` computes the table from the rows that may choose parameters alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iomodel.devices.device import Hardware
from iomodel.workloads.window import Window

SHORT = 1e-4
"""Longest time of a call whose launches and first loads may decide [s]."""
NARROW = ("fp8", "int8", "fp4")
"""Types whose attention is a regime of its own, called fp8."""
ANY = "all"
HALF_WIDTHS: dict[tuple[str, str, str], float] = {
    ("CDNA", "all", "all"): 0.265,
    ("CDNA", "all", "long"): 0.285,
    ("CDNA", "all", "short"): 0.432,
    ("CDNA", "backward", "long"): 0.265,
    ("CDNA", "forward", "long"): 0.316,
    ("CDNA", "forward", "short"): 0.432,
    ("all", "all", "all"): 0.189,
    ("all", "all", "fp8"): 0.146,
    ("all", "all", "long"): 0.171,
    ("all", "all", "short"): 0.302,
    ("sm_10x", "all", "all"): 0.133,
    ("sm_10x", "all", "fp8"): 0.137,
    ("sm_10x", "all", "long"): 0.116,
    ("sm_10x", "all", "short"): 0.265,
    ("sm_10x", "all", "window"): 0.472,
    ("sm_10x", "backward", "fp8"): 0.274,
    ("sm_10x", "backward", "long"): 0.082,
    ("sm_10x", "backward", "window"): 0.487,
    ("sm_10x", "forward", "fp8"): 0.097,
    ("sm_10x", "forward", "long"): 0.127,
    ("sm_10x", "forward", "window"): 0.199,
    ("sm_12x", "all", "all"): 0.31,
    ("sm_12x", "all", "long"): 0.155,
    ("sm_12x", "decode", "long"): 0.145,
    ("sm_8x", "all", "all"): 0.191,
    ("sm_8x", "all", "long"): 0.174,
    ("sm_9x", "all", "all"): 0.191,
    ("sm_9x", "all", "long"): 0.171,
    ("sm_9x", "all", "short"): 0.302,
    ("sm_9x", "backward", "long"): 0.188,
    ("sm_9x", "backward", "short"): 0.465,
    ("sm_9x", "both", "long"): 0.051,
    ("sm_9x", "decode", "long"): 0.144,
    ("sm_9x", "decode", "short"): 0.405,
    ("sm_9x", "forward", "long"): 0.171,
    ("sm_9x", "forward", "short"): 0.212,
}
"""Half-widths of the intervals by architecture, direction and regime [-]."""


class Place(NamedTuple):
    """Architecture, direction and regime of a call, as `HALF_WIDTHS` names them."""

    architecture: str
    direction: str
    regime: str

    @property
    def wider(self) -> tuple[Place, ...]:
        """The place, that of its architecture and regime, of its architecture, of its regime, and of all."""
        architecture, _, regime = self
        own = self, Place(architecture, ANY, regime)
        return tuple(
            dict.fromkeys((*own, Place(architecture, ANY, ANY), Place(ANY, ANY, regime), Place(ANY, ANY, ANY)))
        )

    @property
    def half_width(self) -> float:
        """Half-width of the interval: its ends are the time over and times one more [-]."""
        near = self, Place(self.architecture, ANY, self.regime)
        known = next((HALF_WIDTHS[place] for place in near if place in HALF_WIDTHS), None)
        if known is not None:
            return known
        every = HALF_WIDTHS[ANY, ANY, ANY]
        own = HALF_WIDTHS.get((self.architecture, ANY, ANY), every)
        return max(own, HALF_WIDTHS.get((ANY, ANY, self.regime), own))


def place_of(device: Hardware, call: Any, seconds: float, decoding: bool | None = None) -> Place:
    """Return the place of a call that takes so long; one query of each sequence is decoding."""
    direction = getattr(call, "direction", ANY)
    if direction == "forward" and (decoding if decoding is not None else getattr(call, "q_len", None) == 1):
        direction = "decode"
    regime = "short" if seconds < SHORT else "long"
    if direction != ANY and call.dtype in NARROW:
        regime = "fp8"
    elif isinstance(getattr(call, "mask", None), Window):
        regime = "window"
    return Place(architecture_of(device), direction, regime)


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
