"""Timing of an experiment by repeats, and measured figures with their form in a hardware file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.common.results import Record
from iomodel.common.units import UnitKind
from iomodel.devices.calibration.experiments import Experiment, Run
from iomodel.devices.device_fields import Measured

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


SOURCE = "iomodel calibrate"
"""The source of measured figures, followed by the date."""


@dataclass(frozen=True)
class Figure(Record):
    """One measured figure.

    Parameters
    ----------
    name, field : name of the figure, and its field of `measured`.
    value, unit : the median of the repeats [unit].
    spread : least and largest of the repeats [unit].
    repeats, calls : number of repeats, and of calls per repeat [-].
    method : method of measurement.
    call : sizes of an attention call.
    rate : useful FLOPs of an attention call over its time [FLOP/s].
    """

    unless_none = ("call", "rate")

    name: str
    field: str
    value: float
    unit: str
    spread: tuple[float, float]
    repeats: int
    calls: int
    method: str
    call: Mapping[str, Any] | None = None
    rate: float | None = None

    def quantity(self, date: str) -> dict[str, Any]:
        """Convert the figure to an entry of a hardware file."""
        note = f"{self.method}; median of {self.repeats} repeats of {self.calls} call{'s' * (self.calls > 1)}"
        source = f"{SOURCE} {date}"
        spread = list(self.spread)
        return {"value": self.value, "unit": self.unit, "source": source, "note": note, "spread": spread}

    def shown(self) -> tuple[str, str, str, str]:
        """Format name, value, spread and rate for a table."""
        show = UnitKind(self.unit, 0, 0).show
        value, least, most = (show(float(f"{x:.4g}")) for x in (self.value, *self.spread))
        rate = "" if self.rate is None else UnitKind("FLOP/s", 0, 0).show(float(f"{self.rate:.4g}"))
        return self.name, value, f"{least} to {most}", rate


def figure_of(experiment: Experiment, sampled: Sample) -> Figure:
    """Derive the figure from the times of an experiment; raise InputError if it is implausible."""
    ends = sorted(map(experiment.value, (min(sampled.times), max(sampled.times))))
    typical, flops = sampled.median, experiment.flops
    figure = Figure(
        experiment.name,
        experiment.field,
        experiment.value(typical),
        experiment.unit,
        (ends[0], ends[1]),
        len(sampled.times),
        sampled.calls,
        experiment.method,
        experiment.parameters if flops else None,
        float(f"{flops / typical:.6g}") if flops else None,
    )
    Measured(**fields([figure], ""))
    return figure


def fields(figures: Iterable[Figure], date: str) -> dict[str, Any]:
    """Arrange the figures as fields of `measured`: a list of attention calls, and the best rate of each direction."""
    data: dict[str, Any] = {}
    calls = []
    for figure in figures:
        if figure.call is None:
            data[figure.field] = figure.quantity(date)
            continue
        calls.append({**_sizes(figure.call), "kernel": "torch flash", "time": figure.quantity(date)})
        best = data.get(figure.field)
        if figure.rate and (best is None or figure.rate > best["value"]):
            data[figure.field] = _best(figure, date)
    return {**data, "attention": calls} if calls else data


def _best(figure: Figure, date: str) -> dict[str, Any]:
    """Convert the rate of an attention call to a separate figure."""
    flops = (figure.rate or 0) * figure.value
    ends = sorted(float(f"{flops / seconds:.6g}") for seconds in figure.spread)
    value = min(max(figure.rate or 0, ends[0]), ends[1])  # rounding may have moved it beyond an end
    quantity = {**figure.quantity(date), "value": value, "unit": "FLOP/s", "spread": ends}
    return {**quantity, "note": f"Best of the calls: {figure.name}; {quantity['note']}"}


def _sizes(call: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: call[name] for name in ("direction", "mask", "dtype", "batch", "heads", "head_dim")}
    return {**same, "kv_heads": call["heads"], "q_len": call["length"], "kv_len": call["length"]}
