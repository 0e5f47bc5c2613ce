"""A context that counts the traffic of every PyTorch operator that runs inside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, as_mapping, finite
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.torch.accounting import Accounting, Rule
from iomodel.torch.operator_call import OperatorCall, checked_calls, kept_at_end, read_calls, write_calls
from iomodel.torch.program_bound import ProgramBound, bound, storages
from iomodel.torch.program_gap import ProgramGap
from iomodel.torch.report import TrafficReport


def traffic(
    calls: Iterable[OperatorCall],
    hardware: Hardware | str | None = None,
    *,
    tiles: Mapping[str, int] | None = None,
    attention: str | None = None,
    operators: Mapping[str, Rule] | None = None,
    host: float | None = None,
    warm: bool = False,
) -> TrafficReport:
    """Count the bytes and FLOPs of recorded calls of operators; PyTorch is not needed.

    Parameters
    ----------
    calls : iterable of OperatorCall
        The calls, in order.
    hardware, tiles, attention, operators, host, warm :
        As for :class:`TrafficMode`.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown device, algorithm or tile; a call that is none; a device without a figure.

    Examples
    --------
    >>> from iomodel.torch import OperatorCall, TensorArgument
    >>> x, w, y = (TensorArgument(shape, "bfloat16", 2) for shape in ((64, 32), (32, 16), (64, 16)))
    >>> report = traffic([OperatorCall("aten.mm", {"self": x, "mat2": w}, (y,))])
    >>> report.requested_bytes, report.flops
    (7168, 65536)
    """
    return _accounting(hardware, tiles, attention, operators, host, warm).report(checked_calls(calls))


def bound_or_gap(
    stream: str | os.PathLike[str], hardware: Hardware | str, seconds: float | None, warm: bool
) -> ProgramBound | ProgramGap:
    """Bound the program of a saved stream from below, or hold a measured time [s] against the bound."""
    calls = read_calls(stream)
    if seconds is None:
        return bound(calls, hardware, warm)
    storages(calls)  # refuses calls that were not recorded before any is priced
    return traffic(calls, hardware, warm=warm).gap(seconds, warm)


class TrafficMode:
    """Count the traffic of every operator that PyTorch runs inside a ``with`` block.

    Tensors may be on the CPU or on the meta device, where nothing is computed and no memory is taken. Backward passes
    inside the block count too. Matrix products are linear layers (`gemm`), `scaled_dot_product_attention` and
    `flex_attention` are one attention algorithm, and every other operator reads each of its tensors once and writes
    each of its results once. Where attention runs as separate operators, these are counted.

    Parameters
    ----------
    hardware : Hardware or str, optional
        A device. Products and attention then take the tiles that are fastest there, as in :func:`iomodel.step`, and
        every operator has a time. Without a device each operand makes one ideal pass.
    tiles : mapping of str to int, optional
        Tiles in place of these: ``{"block_m": 128, "block_n": 128, "block_k": 64}`` for products, ``{"block_q": 128,
        "block_kv": 64}`` for attention [rows].
    attention : str, optional
        The algorithm of fused attention, one of :func:`iomodel.list_algorithms`; by default flash2, and on a device
        the fastest of flash3, split_kv and flash2 where no gradient is needed.
    operators : mapping of str to function, optional
        Rules for operators of your own: a function that takes an :class:`OperatorCall` and returns the name of an
        algorithm and a workload.
    host : float, optional
        Time of the host to launch one kernel [s]; the report's `elapsed` is then the time of the program, which waits
        for its host where operators are short.
    warm : bool
        True for a program that is repeated, as in a benchmark: the last cache holds what the run before left there, and
        writes back only what later results do not overwrite.

    Attributes
    ----------
    calls : tuple of OperatorCall
        The calls so far.

    Raises
    ------
    InputError
        PyTorch is not installed (on entry); a wrong argument.
    UnknownNameError
        An unknown device, algorithm or tile.

    Examples
    --------
    >>> mode = TrafficMode(attention="flash2")
    >>> mode.report().requested_bytes  # nothing ran yet
    0
    """

    def __init__(
        self,
        hardware: Hardware | str | None = None,
        *,
        tiles: Mapping[str, int] | None = None,
        attention: str | None = None,
        operators: Mapping[str, Rule] | None = None,
        host: float | None = None,
        warm: bool = False,
    ) -> None:
        self._accounting = _accounting(hardware, tiles, attention, operators, host, warm)
        self._calls: list[OperatorCall] = []
        self._recorder: Any = None
        self._storages: Any = None

    @property
    def calls(self) -> tuple[OperatorCall, ...]:
        """The calls so far, in order."""
        return tuple(self._calls)

    def report(self) -> TrafficReport:
        """Count the calls so far."""
        return self._accounting.report(self._calls)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calls so far to a file that :func:`read_calls` reads."""
        write_calls(self._calls, path)

    def __enter__(self) -> Self:
        if self._recorder is not None:
            raise InputError("TrafficMode: entered twice; allowed: one block at a time")
        try:
            import torch  # noqa: F401
        except (ImportError, OSError) as error:
            reason = "not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
            raise InputError(f"torch: {reason}; TrafficMode needs it: pip install 'iomodel[torch]'") from None
        from iomodel.torch.recorder import Recorder, Storages

        if self._storages is None:
            self._storages = Storages()
        self._recorder = Recorder(self._calls.append, self._storages)
        self._recorder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recorder, self._recorder = self._recorder, None
        recorder.__exit__(kind, error, traceback)
        alive = self._storages.alive()
        self._calls[:] = [kept_at_end(call, alive) for call in self._calls]


def _accounting(hardware: Any, tiles: Any, attention: Any, operators: Any, host: Any, warm: Any) -> Accounting:
    """Validate the choices."""
    if not isinstance(warm, bool):
        raise InputError(f"warm: {shown(warm)} given; allowed: True or False")
    sizes = as_mapping("tiles", {} if tiles is None else tiles, "{'block_m': 128, 'block_n': 128, 'block_k': 64}")
    for name, size in sizes.items():
        if name not in {*TILE_NAMES, *LAUNCH_NAMES}:
            raise UnknownNameError("tiles", name, sorted(TILE_NAMES))
        sizes[name] = as_integer(name, size)
    rules = as_mapping("operators", {} if operators is None else operators, "{'engine.add_norm': rule}")
    for name, rule in rules.items():
        if not callable(rule):
            raise InputError(f"operators: {shown(rule)} given for {name}; allowed: a function of an OperatorCall")
    return Accounting(
        hardware=None if hardware is None else as_device(hardware),
        tiles=FrozenDict(sizes),
        attention=None if attention is None else find_algorithm(attention).name,
        operators=FrozenDict(rules),
        host=_host(host),
        warm=warm,
    )


def _host(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if not finite(seconds) or seconds < 0:
        raise InputError(f"host: {shown(seconds)} given; allowed: the host's time of a launch in seconds, such as 2e-5")
    return float(seconds)
