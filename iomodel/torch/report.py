"""Traffic of a piece of a PyTorch program, by operator and by module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from iomodel.common import labels
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.torch.operator_call import OperatorCall

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from iomodel.torch.program_bound import ProgramBound
    from iomodel.torch.program_gap import ProgramGap

DEPTH = 3
"""Levels of modules in the printed table, the root included."""


@dataclass(frozen=True)
class OperatorTraffic(Record):
    """Equal operators of one module, with their traffic.

    Attributes
    ----------
    module, operator : str
        The module that ran them, empty outside all modules; the operator.
    algorithm : str
        The declared algorithm that counts the operator; empty for one that reads and writes each tensor once.
    backward : bool
        True for operators of a backward pass.
    times : int
        Calls [-].
    requested_bytes, flops : int
        Bytes that the thread blocks ask for [B]; FLOPs of matrix products, of actual rows and visible pairs [FLOP];
        both of all calls.
    tiles : mapping of str to int
        Tiles of the algorithm, the largest where none were chosen.
    seconds : float or None
        Time on the device, if one is given [s].
    hbm_bytes : int
        DRAM traffic [B]: on a device that behind the time, else each tensor once for each pass over it.
    vector_flops : int
        Operations of scans, transforms, pooling and sorts, beside the FLOPs of products [FLOP].
    at_least : str
        What the counts leave out, so that FLOPs or seconds are at least those; empty where they are whole.
    """

    module: str
    operator: str
    algorithm: str
    backward: bool
    times: int
    requested_bytes: int
    flops: int
    tiles: Mapping[str, int] = FrozenDict()
    seconds: float | None = None
    hbm_bytes: int = 0
    vector_flops: int = 0
    at_least: str = ""

    def of_module(self, module: str) -> OperatorTraffic:
        """Return the same traffic as that of another module."""
        twin = object.__new__(OperatorTraffic)
        twin.__dict__.update(self.__dict__, module=module)
        return twin

    @property
    def group(self) -> tuple[Any, ...]:
        """Everything that tells operators apart."""
        return self.module, self.operator, self.algorithm, self.backward, tuple(self.tiles.items())


@dataclass(frozen=True)
class TrafficReport(Result, Tabular):
    """Traffic and FLOPs of all operators that ran.

    Attributes
    ----------
    operators : tuple of OperatorTraffic
        The operators in the order of their first call, equal ones of a module together.
    hardware : Hardware or None
        The device, if one was given.
    notes : tuple of str
        What the counts leave out.
    elapsed : float or None
        Time of the program with the host's time of each operator, if that was given [s].
    requested_bytes, hbm_bytes, flops, vector_flops : int
        Sums over all operators [B], [FLOP].
    seconds : float or None
        Sum of the times of all operators, one after the other [s].
    flops_at_least, seconds_at_least : bool
        True if an operator has products that are not counted, or not timed: the figures are then at least those.
    intensity : float
        FLOPs over requested bytes [FLOP/B].
    """

    derived = (
        "requested_bytes", "hbm_bytes", "flops", "vector_flops", "seconds", "flops_at_least", "seconds_at_least",
        "intensity",
    )  # fmt: skip

    operators: tuple[OperatorTraffic, ...]
    hardware: Hardware | None = None
    notes: tuple[str, ...] = ()
    elapsed: float | None = None
    calls: ClassVar[tuple[OperatorCall, ...]] = ()
    """The calls behind a report that was just counted; they are no part of its data."""

    def of_calls(self, calls: Iterable[OperatorCall]) -> Self:
        """Attach the calls, which the bound needs."""
        object.__setattr__(self, "calls", tuple(calls))
        return self

    def bound(self, warm: bool = False) -> ProgramBound:
        """Bound the time of the program from below, whatever its kernels; see :func:`iomodel.torch.bound`.

        Raises
        ------
        InputError
            No device was given, or the report was read back without its calls.
        """
        from iomodel.torch.program_bound import bound

        return bound(self.calls, self._device(), warm)

    def gap(self, seconds: float | Mapping[str, float], warm: bool = False) -> ProgramGap:
        """Hold a measured time [s] against the bound; a mapping has the times by operator.

        Raises
        ------
        InputError
            No device was given, the report was read back without its calls, or a time is no number above 0.
        """
        from iomodel.torch.program_gap import gap

        return gap(self.calls, self, self._device(), seconds, warm)

    def _device(self) -> Hardware:
        if self.hardware is None:
            raise InputError("hardware: not given; allowed: a device, as in TrafficMode(hardware='h100-sxm5')")
        if self.operators and not self.calls:
            raise InputError("calls: not in a report that was read back; allowed: traffic(read_calls(path), hardware)")
        return self.hardware

    @property
    def requested_bytes(self) -> int:
        """Bytes that the thread blocks of all operators ask for [B]."""
        return sum(each.requested_bytes for each in self.operators)

    @property
    def hbm_bytes(self) -> int:
        """DRAM traffic of all operators [B]."""
        return sum(each.hbm_bytes for each in self.operators)

    @property
    def vector_flops(self) -> int:
        """Operations of all scans, transforms, pooling and sorts [FLOP]."""
        return sum(each.vector_flops for each in self.operators)

    @property
    def flops_at_least(self) -> bool:
        """True if some products are not counted."""
        return any("flops" in each.at_least for each in self.operators)

    @property
    def seconds_at_least(self) -> bool:
        """True if some products are not timed."""
        return any(each.at_least for each in self.operators)

    @property
    def flops(self) -> int:
        """FLOPs of all matrix products [FLOP]."""
        return sum(each.flops for each in self.operators)

    @property
    def seconds(self) -> float | None:
        """Time of all operators one after the other [s]; None without a device."""
        return None if self.hardware is None else sum(each.seconds or 0.0 for each in self.operators)

    @property
    def intensity(self) -> float:
        """FLOPs over requested bytes [FLOP/B]; 0 without traffic."""
        return self.flops / self.requested_bytes if self.requested_bytes else 0.0

    def by_operator(self) -> Mapping[str, OperatorTraffic]:
        """Sum the operators of one name and pass over all modules, the largest traffic first."""
        return self._summed(lambda each: [each.operator + (" (backward)" if each.backward else "")])

    def by_module(self) -> Mapping[str, OperatorTraffic]:
        """Sum the operators of each module with those of the modules inside it; "" is everything."""
        return self._summed(lambda each: _enclosing(each.module))

    def _summed(self, keys: Callable[[OperatorTraffic], Iterable[str]]) -> Mapping[str, OperatorTraffic]:
        groups: dict[str, list[OperatorTraffic]] = {}
        for each in self.operators:
            for key in keys(each):
                groups.setdefault(key, []).append(each)
        sums = {key: _sum(key, members) for key, members in groups.items()}
        return FrozenDict(dict(sorted(sums.items(), key=lambda entry: -entry[1].requested_bytes)))

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per operator."""
        return [{name: value for name, value in each.to_dict().items() if name != "tiles"} for each in self.operators]

    def roofline(self) -> Figure:
        """Draw the operators with FLOPs under the roofs of the device, at their DRAM traffic.

        Raises
        ------
        InputError
            No device was given, no operator has FLOPs, or matplotlib is missing.
        """
        from iomodel.plots import Point, roofline

        if self.hardware is None:
            raise InputError("hardware: not given; allowed: a device, as in TrafficMode(hardware='h100-sxm5')")
        points = [
            Point(name, each.flops / each.hbm_bytes, each.flops / each.seconds)
            for name, each in self.by_operator().items()
            if each.flops and each.seconds and each.hbm_bytes
        ]
        if not points:
            raise InputError("operators: none with FLOPs given; allowed: a matrix product or attention")
        return roofline(points, self.hardware)

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal: modules, then operators."""
        timed = self.hardware is not None
        counted = ("", ">calls", f">{labels.REQUESTS} [MB]", ">GFLOP", f">{labels.USEFUL_OVER_REQUESTS} [FLOP/B]")
        columns = (*counted, *((">time [us]",) if timed else ()))
        modules = sorted(
            ((name, each) for name, each in self.by_module().items() if name.count(".") < DEPTH), key=lambda e: e[0]
        )
        names = [("  " * (name.count(".") + bool(name)) + (name.rpartition(".")[2] or "all"), e) for name, e in modules]
        where = f" on {self.hardware.name}" if self.hardware is not None else ""
        return [
            Table(f"traffic by module{where}", ("module", *columns[1:]), [_row(n, e, timed) for n, e in names]),
            Table(
                "traffic by operator",
                ("operator", *columns[1:]),
                [_row(name, each, timed) for name, each in self.by_operator().items()],
            ),
            *self.notes,
        ]


def _enclosing(module: str) -> Iterator[str]:
    """List the module, those around it, and ""."""
    yield ""
    parts = module.split(".") if module else []
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])


def _sum(key: str, members: list[OperatorTraffic]) -> OperatorTraffic:
    timed = [each for each in members if each.seconds is not None]
    return OperatorTraffic(
        module=key,
        operator=members[0].operator if len({each.operator for each in members}) == 1 else "",
        algorithm=members[0].algorithm if len({each.algorithm for each in members}) == 1 else "",
        backward=all(each.backward for each in members),
        times=sum(each.times for each in members),
        requested_bytes=sum(each.requested_bytes for each in members),
        flops=sum(each.flops for each in members),
        seconds=sum(each.seconds or 0.0 for each in timed) if timed else None,
        hbm_bytes=sum(each.hbm_bytes for each in members),
        vector_flops=sum(each.vector_flops for each in members),
        at_least=next((each.at_least for each in members if each.at_least), ""),
    )


def _row(name: str, each: OperatorTraffic, timed: bool) -> tuple[str, ...]:
    intensity = each.flops / each.requested_bytes if each.requested_bytes else 0.0
    cells = (f"{each.times:,}", f"{each.requested_bytes / 1e6:,.3f}", f"{each.flops / 1e9:,.3f}", f"{intensity:,.1f}")
    return (name, *cells, *((f"{(each.seconds or 0) * 1e6:,.1f}",) if timed else ()))
