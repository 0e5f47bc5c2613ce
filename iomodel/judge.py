"""The time model against the attention calls that a device's own file has timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from iomodel.check import as_device
from iomodel.errors import InputError, IOModelError, SpecError
from iomodel.estimate import estimate
from iomodel.hardware import Hardware
from iomodel.hardware_fields import AttentionCall
from iomodel.parameters import DEFAULT, Parameters
from iomodel.show import Shown, table
from iomodel.workload import Attention


@dataclass(frozen=True)
class JudgedCall:
    """One timed call beside its estimate."""

    call: AttentionCall
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one [-]."""
        return self.predicted / self.measured - 1

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        sizes = self.call.model_dump(mode="json", exclude={"time"})
        return {**sizes, "measured": self.measured, "predicted": self.predicted, "error": self.error}


@dataclass(frozen=True)
class Judgement(Shown):
    """How far the time model is off on a device.

    Attributes
    ----------
    hardware : Hardware
        The device.
    calls : tuple of JudgedCall
        Each call that its file has timed.
    left_out : tuple of str
        Calls that the model has no time for, with the reason.
    """

    algorithm: str
    hardware: Hardware
    calls: tuple[JudgedCall, ...]
    left_out: tuple[str, ...]

    @property
    def median_error(self) -> float:
        """The median of the absolute errors [-]."""
        return median(abs(one.error) for one in self.calls)

    @property
    def worst_error(self) -> float:
        """The largest of the absolute errors [-]."""
        return max(abs(one.error) for one in self.calls)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "hardware": self.hardware.id or self.hardware.name,
            "median_error": self.median_error,
            "worst_error": self.worst_error,
            "calls": [one.to_dict() for one in self.calls],
            "left_out": list(self.left_out),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        columns = ("call", ">measured\n[us]", ">estimated\n[us]", ">error\n[%]")
        rows = [
            (
                f"{one.call.direction}, {one.call.mask}, d = {one.call.head_dim}, {one.call.q_len:,} tokens",
                f"{one.measured * 1e6:,.1f}",
                f"{one.predicted * 1e6:,.1f}",
                f"{100 * one.error:+.0f}",
            )
            for one in self.calls
        ]
        rows += [(text, "", "", "") for text in self.left_out]
        title = (
            f"{self.algorithm} on {self.hardware.name}: median error {100 * self.median_error:.0f} %, "
            f"worst {100 * self.worst_error:.0f} %"
        )
        return table(title, columns, rows)


def judge(hardware: Hardware | str, algorithm: str = "flash2", parameters: Parameters = DEFAULT) -> Judgement:
    """Hold the time model against the attention calls that a device's file has timed (:func:`iomodel.calibrate`).

    Parameters
    ----------
    hardware : Hardware or str
        A device whose file has ``measured.attention``.
    algorithm : str
        What the kernels that were timed are taken for; at its fastest tiles.
    parameters : Parameters
        What the model assumes beside the device's figures.

    Raises
    ------
    SpecError
        The file has no timed call.
    InputError
        The model has a time for none of them.

    Examples
    --------
    >>> judge("h100-sxm5")
    Traceback (most recent call last):
    ...
    iomodel.errors.SpecError: measured.attention: h100-sxm5 has no timed call; write one with 'iomodel calibrate'
    """
    device = as_device(hardware)
    timed: Sequence[AttentionCall] = device.measured.attention
    if not timed:
        raise SpecError(
            f"measured.attention: {device.id or device.name} has no timed call; write one with 'iomodel calibrate'"
        )
    found, left_out = [], []
    for call in timed:
        fields = call.model_dump(exclude={"time", "kernel"})
        try:
            predicted = estimate(algorithm, Attention(**fields), device, parameters=parameters).seconds
        except IOModelError as error:
            left_out.append(f"{call.direction}, {call.mask}, d = {call.head_dim}: {error}")
            continue
        found.append(JudgedCall(call, float(call.time.value), predicted))
    if not found:
        raise InputError(f"algorithm: {algorithm!r} given; it has a time for none of the calls: {left_out[0]}")
    return Judgement(algorithm, device, tuple(found), tuple(left_out))
