"""Comparison of the time model with the timed attention calls in a device's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from iomodel.algorithms import AlgorithmLike, answering, name_of
from iomodel.common.deprecation import warn_renamed
from iomodel.common.display import Result, Table, microseconds
from iomodel.common.keywords import strict
from iomodel.common.results import Record, column, printed
from iomodel.common.tabular import Tabular
from iomodel.common.yaml_files import spelled_alike
from iomodel.devices.device import Hardware, as_device, list_hardware
from iomodel.devices.device_fields import AttentionCall
from iomodel.errors import InputError, IOModelError, SpecError
from iomodel.studies.estimate import estimate
from iomodel.timing.parameters import DEFAULT, Parameters
from iomodel.workloads.attention import Attention


def _called(call: AttentionCall) -> str:
    return f"{call.direction}, {call.mask}, d = {call.head_dim}, {call.q_len:,} tokens"


@dataclass(frozen=True)
class JudgedCall(Record):
    """A timed call with its estimate."""

    derived = ("error",)

    call: AttentionCall = field(metadata=column("call", _called))
    measured: float = field(metadata=column(">measured\n[us]", microseconds))
    predicted: float = field(metadata=column(">estimated\n[us]", microseconds))

    @property
    @printed(column(">error\n[%]", lambda error: f"{100 * error:+.0f}"))
    def error(self) -> float:
        """Predicted over measured, less one [-]."""
        return self.predicted / self.measured - 1

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, the sizes of the call beside its time."""
        return {**self.call.model_dump(mode="json", exclude={"time"}), **super().to_dict()}


@dataclass(frozen=True)
class Judgement(Result, Tabular):
    """Errors of the time model on a device.

    Attributes
    ----------
    hardware : Hardware
        The device.
    calls : tuple of JudgedCall
        The timed calls in its file.
    left_out : tuple of str
        The calls without an estimate, with the reason.
    """

    derived = ("median_error", "worst_error")

    algorithm: str
    hardware: Hardware
    calls: tuple[JudgedCall, ...]
    left_out: tuple[str, ...]

    @property
    def median_error(self) -> float:
        """The median of the absolute errors [-]."""
        return median(abs(call.error) for call in self.calls)

    @property
    def worst_error(self) -> float:
        """The largest of the absolute errors [-]."""
        return max(abs(call.error) for call in self.calls)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per timed call."""
        return [{n: v for n, v in call.to_dict().items() if n != "call"} for call in self.calls]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        title = (
            f"{self.algorithm} on {self.hardware.name}: median error {100 * self.median_error:.0f} %, "
            f"worst {100 * self.worst_error:.0f} %"
        )
        table = Table.of(title, JudgedCall, self.calls)
        return [table.with_rows((text, "", "", "") for text in self.left_out)]


def _is_device(name: str) -> bool:
    """Check that a text names a device or its file, not an algorithm."""
    return bool(spelled_alike(name, list_hardware())) or name.endswith((".yaml", ".yml"))


@strict
def judge(
    algorithm: AlgorithmLike | None = None, hardware: Hardware | str | None = None, *, parameters: Parameters = DEFAULT
) -> Judgement:
    """Evaluate the time model against the attention calls timed in a device's file (:func:`iomodel.devices.calibrate`).

    Parameters
    ----------
    algorithm : str or Algorithm, optional
        The assumed algorithm of the timed kernels, at the default tiles of :func:`iomodel.estimate`; by default the one
        of most devices and calls, flash2.
    hardware : Hardware or str
        A device whose file has ``measured.attention``.
    parameters : Parameters
        The assumptions of the model beside the figures of the device.

    Raises
    ------
    SpecError
        The file has no timed call.
    InputError
        The model has no estimate for any of the calls.

    Examples
    --------
    >>> judge("flash2", "h100-sxm5")
    Traceback (most recent call last):
    ...
    iomodel.errors.SpecError: measured.attention: h100-sxm5 has no timed call; write one with 'iomodel calibrate'
    """
    first: Any = algorithm
    if isinstance(first, Hardware) or (isinstance(first, str) and (hardware is None or _is_device(first))):
        warn_renamed("devices.judge(hardware, algorithm)", "iomodel.devices.judge(algorithm, hardware)")
        second: Any = hardware
        algorithm, hardware = second, first
    if hardware is None:
        raise InputError("hardware: not given; allowed: a device whose file has timed calls")
    device = as_device(hardware)
    timed: Sequence[AttentionCall] = device.measured.attention
    if not timed:
        raise SpecError(
            f"measured.attention: {device.id or device.name} has no timed call; write one with 'iomodel calibrate'"
        )
    if algorithm is None:
        algorithm = answering(Attention(q_len=1, head_dim=1))[-1]
    judged, left_out = [], []
    for call in timed:
        fields = call.model_dump(exclude={"time", "kernel"})
        try:
            predicted = estimate(algorithm, Attention(**fields), device, parameters=parameters).seconds
        except IOModelError as error:
            left_out.append(f"{call.direction}, {call.mask}, d = {call.head_dim}: {error}")
            continue
        judged.append(JudgedCall(call, float(call.time.value), predicted))
    if not judged:
        raise InputError(f"algorithm: {name_of(algorithm)!r} given; it has a time for none of the calls: {left_out[0]}")
    return Judgement(name_of(algorithm), device, tuple(judged), tuple(left_out))
