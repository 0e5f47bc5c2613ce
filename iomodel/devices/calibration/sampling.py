"""Repeated timing of an experiment: warm-up, repeats of several calls, median and spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from iomodel.devices.calibration.device import Run

REPEAT = 0.002
"""Target duration of a repeat, far above the clock's resolution [s]."""
WARM = 0.05
"""Duration of the warm-up, which lets the device reach its clocks [s]."""
LEAST, MOST = 3, 30
"""Fewest and most repeats [-]."""
QUEUE = 500
"""Launches in the queue at once; a full queue (1024 on NVIDIA) would block the host [-]."""


@dataclass(frozen=True)
class Sample:
    """Times of one call [s], one per repeat of `calls` calls."""

    times: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """Median time [s]."""
        ordered, half = sorted(self.times), len(self.times) // 2
        return (ordered[half] + ordered[-1 - half]) / 2


def sample(run: Run, left: Callable[[], float], kernels: int = 1) -> Sample:
    """Time one call within about `left()` seconds of the host, with at least the minimum number of repeats.

    `run` executes a number of calls and returns their time [s], `left` returns the remaining time [s]; a call
    launches about `kernels` kernels.

    >>> sample(lambda calls: calls * 0.001, lambda: 1.0)
    Sample(times=(0.001, ...), calls=2)
    """
    timed(run, 1)  # compiles, loads libraries
    most = max(1, QUEUE // kernels)
    per_call = timed(run, 1)
    warmed, share = 0.0, left() / 4
    for _ in range(MOST):
        if warmed >= min(WARM, share) or left() <= 0:
            break
        took = timed(run, calls := _calls(per_call, most))
        warmed, per_call = warmed + took, took / calls
    calls = _calls(per_call, most)
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and left() > 0):
        times.append(timed(run, calls) / calls)
    return Sample(tuple(times), calls)


def _calls(per_call: float, most: int) -> int:
    return min(most, max(1, math.ceil(REPEAT / per_call)))


def timed(run: Run, calls: int) -> float:
    """Time a run [s]; raise if the clock returns no usable time."""
    took = run(calls)
    if not (math.isfinite(took) and took > 0):
        raise ArithmeticError(f"the clock gave {took} s for {calls} calls")
    return took
