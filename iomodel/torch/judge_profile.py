"""Judgement of the attention in a trace of PyTorch's profiler: measured times beside estimated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from iomodel.algorithms import answering, replacing
from iomodel.common.display import Result, Table, figure, microseconds, trusted
from iomodel.common.keywords import strict
from iomodel.common.results import Record, column, printed
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, IOModelError, shown_name
from iomodel.nests.implementation import TEXTBOOK
from iomodel.placement.implementations import stand_in
from iomodel.studies.estimate import estimate
from iomodel.timing.estimate_result import Estimate
from iomodel.torch.attention_calls import attention_of
from iomodel.torch.profile_trace import ProfiledCalls, read_profile
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Workload

SYMBOL = 60
"""Characters of a kernel's symbol that are printed."""


def _called(call: Attention) -> str:
    """Write the shape of a call."""
    heads = str(call.heads) if call.group == 1 else f"{call.heads}/{call.kv_heads}"
    kind = call.mask if isinstance(call.mask, str) else type(call.mask).__name__.lower()
    return (
        f"{call.direction}, {kind}, {call.dtype}, {call.batch} x {heads} heads, {call.q_len:,} x {call.kv_len:,}, "
        f"d = {call.head_dim}"
    )


@dataclass(frozen=True)
class JudgedAttention(Record):
    """Calls of attention with one shape: the measured time beside the estimated one.

    Attributes
    ----------
    workload : Attention
        The call.
    algorithm, implementation, limited_by : str
        Algorithm and kernels that are timed, and the limiting resource.
    kernel : str
        Symbol of the measured kernel.
    count : int
        Calls in the trace [-].
    measured, predicted, low, high : float
        Median time of a call; estimated time, with the interval in which eight in ten measured times are expected [s].
    error : float
        Predicted over measured, less one [-].
    inside : bool
        Measured time within the interval.
    """

    derived = ("error", "inside")

    workload: Annotated[Any, Workload] = field(metadata=column("call", _called))
    count: int = field(metadata=column(">calls", ","))
    measured: float = field(metadata=column(">measured\n[us]", microseconds))
    predicted: float = field(metadata=column(">estimated\n[us]", microseconds))
    low: float
    high: float
    algorithm: str
    implementation: str = field(metadata=column("kernels"))
    limited_by: str = field(metadata=column("limited by"))
    kernel: str

    @property
    @printed(column(">error\n[%]", lambda error: f"{100 * error:+.0f}"))
    def error(self) -> float:
        """Predicted over measured, less one [-]."""
        return self.predicted / self.measured - 1

    @property
    @printed(column("inside", lambda inside: "yes" if inside else "no"))
    def inside(self) -> bool:
        """Measured time within the interval."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class JudgedProfile(Result, Tabular):
    """Attention in a trace of PyTorch's profiler, judged by estimates of the same calls.

    Attributes
    ----------
    hardware : str
        The device.
    calls : tuple of JudgedAttention
        Calls by their shape, those with the most time first.
    gpu_seconds : float
        Time of all kernels in the trace [s].
    share : float
        Share of the judged calls in it [-].
    inside : bool
        All measured times within their intervals.
    left_out : tuple of str
        Operators without a shape or an estimate, with the reason.
    notes : tuple of str
        Choices of the reader.
    """

    derived = ("share", "inside")

    hardware: str
    calls: tuple[JudgedAttention, ...]
    gpu_seconds: float
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of the judged calls in the time of all kernels [-]."""
        own = sum(call.count * call.measured for call in self.calls)
        return own / self.gpu_seconds if self.gpu_seconds else 0.0

    @property
    def inside(self) -> bool:
        """All measured times within their intervals."""
        return all(call.inside for call in self.calls)

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per shape."""
        return [call.to_dict() for call in self.calls]

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        title = (
            f"Attention of the trace on {self.hardware}: {figure(100 * self.share, 3)} % of "
            f"{figure(1e3 * self.gpu_seconds)} ms of kernels"
        )
        symbols = dict.fromkeys(f"kernel: {shown_name(call.kernel, SYMBOL)}" for call in self.calls)
        table = Table.of(title, JudgedAttention, self.calls)
        return [table, *symbols, *trusted(self.left_out, ()), *(f"note: {line}" for line in self.notes)]


@strict
def judge_profile(file: str | Path, hardware: Hardware | str | None = None) -> JudgedProfile:
    """Judge the attention in a trace of PyTorch's profiler by estimates of the same calls.

    Each call is timed with the kernels that its symbol names, by the fastest schedule that their library has; a kernel
    that is not on file, with the default kernels of the device.

    Parameters
    ----------
    file : str or Path
        What `prof.export_chrome_trace` writes with `torch.profiler.profile(record_shapes=True)`, packed or not.
    hardware : Hardware or str, optional
        The device; by default the first of the trace.

    Raises
    ------
    InputError, UnknownNameError
        The file cannot be read, has no call of attention with shapes and kernels, or names no known device.

    Examples
    --------
    >>> import json, os, tempfile
    >>> shape, kernel = [4, 32, 4096, 128], "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128>>"
    >>> operator = {"External id": 7, "Input Dims": [shape] * 3 + [[]] * 2, "Input type": ["c10::Half"] * 3,
    ...             "Concrete Inputs": ["", "", "", "0.", "False"]}
    >>> events = [
    ...     {"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention", "pid": 1, "tid": 1,
    ...      "ts": 10, "dur": 50, "args": operator},
    ...     {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 30, "dur": 13493.2,
    ...      "args": {"External id": 7}}]
    >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> with open(path, "w") as written:
    ...     json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA GB10"}], "traceEvents": events}, written)
    >>> judged = judge_profile(path)
    >>> judged.hardware, judged.calls[0].implementation, judged.calls[0].count
    ('gb10', 'flash-attention-2', 1)
    """
    profile = read_profile(file)
    if hardware is None and profile.device is None:
        raise InputError("hardware: the trace names no device; allowed: one, such as h100-sxm5")
    device = as_device(hardware if hardware is not None else profile.device)  # type: ignore[arg-type]
    judged, left_out, notes = [], list(profile.left_out), []
    for calls in profile.calls:
        try:
            workload, answer = _estimated(calls, device)
        except IOModelError as error:
            left_out.append(f"{calls.call.operator}, {calls.count} calls: {error}")
            continue
        if calls.implementation is None:
            notes.append(f"{shown_name(calls.kernel, SYMBOL)} is not on file; timed as {answer.implementation}")
        judged.append(
            JudgedAttention(
                workload, calls.count, calls.seconds, answer.seconds, *answer.error, answer.algorithm,
                answer.implementation, answer.limited_by, calls.kernel,
            )
        )  # fmt: skip
    if not judged:
        raise InputError(f"trace: {left_out[0]}")
    return JudgedProfile(device.label, tuple(judged), profile.gpu_seconds, tuple(left_out), tuple(dict.fromkeys(notes)))


def _estimated(calls: ProfiledCalls, device: Hardware) -> tuple[Attention, Estimate]:
    """Time a call with the kernels of the trace."""
    parts = attention_of(calls.call).parts
    workload, _ = parts[0]
    eager = replacing("scaled_dot_product_attention")
    if calls.implementation is None and "math" in calls.call.operator and eager is not None:
        return workload, estimate(eager.name, workload, device)
    answers = list(_answers(workload, device, calls.implementation))
    timed = [each for each in answers if isinstance(each, Estimate)]
    if not timed:
        raise answers[-1] if isinstance(answers[-1], IOModelError) else InputError("no kernel runs the call")
    best = min(timed, key=lambda each: (each.implementation == TEXTBOOK.name, each.seconds))  # a kernel on file first
    return workload, best


def _answers(workload: Attention, device: Hardware, implementation: str | None) -> Iterator[Estimate | IOModelError]:
    """Yield the estimate of each schedule with some kernels, or the reason for which there is none."""
    for algorithm in answering(workload):
        kernels = implementation or stand_in(algorithm.name, workload, device)
        try:
            yield estimate(algorithm.name, workload, device, implementation=kernels)
        except IOModelError as error:
            yield error
