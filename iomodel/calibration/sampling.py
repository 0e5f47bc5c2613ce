"""How often an experiment is run: warm-up, repeats of several calls, the median and the spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from iomodel.calibration.device import Run

REPEAT = 0.002
"""How long a repeat is meant to take, far above the clock's grain [s]."""
WARM = 0.05
"""How long the device is kept busy first, so that its clocks have risen [s]."""
LEAST, MOST = 3, 30
"""Repeats, if time is short and if there is plenty [-]."""
QUEUE = 500
"""Launches that may wait at once; a full queue (1024 on NVIDIA's) would hold the host up [-]."""


@dataclass(frozen=True)
class Sample:
    """Times of one call [s], of repeats of `calls` calls each."""

    times: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """The time in the middle [s]."""
        ordered, half = sorted(self.times), len(self.times) // 2
        return (ordered[half] + ordered[-1 - half]) / 2


def sample(run: Run, left: Callable[[], float], kernels: int = 1) -> Sample:
    """Time one call, in about `left()` seconds of the host; the least number of repeats is always done.

    `run` runs so many calls and says how long they took, `left` says what is left of the time [s]; a call launches
    about so many `kernels`.

    >>> sample(lambda calls: calls * 0.001, lambda: 1.0)
    Sample(times=(0.001, ...), calls=2)
    """
    timed(run, 1)  # compiles, loads libraries
    most = max(1, QUEUE // kernels)
    each = timed(run, 1)
    warmed, share = 0.0, left() / 4
    for _ in range(MOST):
        if warmed >= min(WARM, share) or left() <= 0:
            break
        took = timed(run, calls := _calls(each, most))
        warmed, each = warmed + took, took / calls
    calls = _calls(each, most)
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and left() > 0):
        times.append(timed(run, calls) / calls)
    return Sample(tuple(times), calls)


def _calls(each: float, most: int) -> int:
    return min(most, max(1, math.ceil(REPEAT / each)))


def timed(run: Run, calls: int) -> float:
    """What a run took; a clock that gives no time is a failure [s]."""
    took = run(calls)
    if not (math.isfinite(took) and took > 0):
        raise ArithmeticError(f"the clock gave {took} s for {calls} calls")
    return took
