"""What was measured: figures, those that failed, and the hardware file they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.calibration.experiments import Experiment
from iomodel.calibration.sampling import Sample
from iomodel.hardware_fields import Measured
from iomodel.units import Kind

SOURCE = "iomodel calibrate"
"""The source of what was measured, followed by the date."""


@dataclass(frozen=True)
class Figure:
    """One figure, measured.

    Parameters
    ----------
    name, field : what it is; the field of `measured` it belongs to.
    value, unit : the median of the repeats [unit].
    spread : least and largest of the repeats [unit].
    repeats, calls : how many repeats, of how many calls each [-].
    method : how it was measured.
    call : of an attention call, its sizes.
    rate : of an attention call, useful FLOPs over its time [FLOP/s].
    """

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

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain data."""
        found = {**vars(self), "spread": list(self.spread), "call": dict(self.call) if self.call else None}
        return {name: value for name, value in found.items() if value is not None}

    def quantity(self, date: str) -> dict[str, Any]:
        """The figure as a hardware file has it."""
        note = f"{self.method}; median of {self.repeats} repeats of {self.calls} call{'s' * (self.calls > 1)}"
        source = f"{SOURCE} {date}"
        spread = list(self.spread)
        return {"value": self.value, "unit": self.unit, "source": source, "note": note, "spread": spread}

    def shown(self) -> tuple[str, str, str, str]:
        """Name, value, spread and rate, for people."""
        show = Kind(self.unit, 0, 0).show
        value, least, most = (show(float(f"{x:.4g}")) for x in (self.value, *self.spread))
        rate = "" if self.rate is None else Kind("FLOP/s", 0, 0).show(float(f"{self.rate:.4g}"))
        return self.name, value, f"{least} to {most}", rate


def figure_of(experiment: Experiment, found: Sample) -> Figure:
    """The figure that follows from the times of an experiment; InputError if it is absurd."""
    ends = sorted(map(experiment.value, (min(found.times), max(found.times))))
    typical, flops = found.median, experiment.flops
    made = Figure(
        experiment.name,
        experiment.field,
        experiment.value(typical),
        experiment.unit,
        (ends[0], ends[1]),
        len(found.times),
        found.calls,
        experiment.method,
        experiment.parameters if flops else None,
        float(f"{flops / typical:.6g}") if flops else None,
    )
    Measured(**fields([made], ""))
    return made


def fields(figures: Iterable[Figure], date: str) -> dict[str, Any]:
    """The figures as fields of `measured`: attention calls in a list, and the best rate of each direction."""
    found: dict[str, Any] = {}
    calls = []
    for figure in figures:
        if figure.call is None:
            found[figure.field] = figure.quantity(date)
            continue
        calls.append({**_sizes(figure.call), "kernel": "torch flash", "time": figure.quantity(date)})
        best = found.get(figure.field)
        if figure.rate and (best is None or figure.rate > best["value"]):
            found[figure.field] = _best(figure, date)
    return {**found, "attention": calls} if calls else found


def _best(figure: Figure, date: str) -> dict[str, Any]:
    """The rate of an attention call, as a figure of its own."""
    flops = (figure.rate or 0) * figure.value
    ends = sorted(float(f"{flops / seconds:.6g}") for seconds in figure.spread)
    value = min(max(figure.rate or 0, ends[0]), ends[1])  # rounding may have moved it beyond an end
    quantity = {**figure.quantity(date), "value": value, "unit": "FLOP/s", "spread": ends}
    return {**quantity, "note": f"Best of the calls: {figure.name}; {quantity['note']}"}


def _sizes(call: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: call[name] for name in ("direction", "mask", "dtype", "batch", "heads", "head_dim")}
    return {**same, "kv_heads": call["heads"], "q_len": call["length"], "kv_len": call["length"]}
