"""Sums over the events of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.common import labels
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.quantities import QUANTITIES
from iomodel.studies.trace.events import READING, WRITING, Event
from iomodel.studies.trace.rates import TraceRates
from iomodel.studies.trace.text import readable, share_of, timed


@dataclass(frozen=True)
class TraceSummary(Result):
    """Totals and peak levels of a trace; times are sequential, without overlap.

    Attributes
    ----------
    events : int
        The number of events [-].
    reads, writes, read_bytes, written_bytes : mapping of tensor name to int
        HBM accesses [elements] and traffic [B].
    atomics : int
        Atomic additions to HBM [elements].
    flops, exps, tanhs, randoms : int
        Matrix FLOPs [FLOP] and function values [-].
    peak_sram, peak_hbm : int
        The peak levels [B].
    hbm_time, compute_time : float or None
        Traffic over the device's bandwidth, FLOPs over its peak, in `unit`; None if unknown.
    visited_tiles : int
        Pairs of a tile of queries and a tile of keys that are multiplied; 0 but for attention [-].
    """

    derived = ("hbm_elements", "hbm_bytes", "hbm_time", "compute_time", "hbm_share", "unit", "device")

    events: int
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    read_bytes: Mapping[str, int]
    written_bytes: Mapping[str, int]
    atomics: int
    flops: int
    exps: int
    tanhs: int
    randoms: int
    peak_sram: int
    peak_hbm: int
    rates: TraceRates
    visited_tiles: int = 0

    @property
    def hbm_elements(self) -> int:
        """HBM accesses, reads and writes [elements]."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def hbm_bytes(self) -> int:
        """Traffic [B]."""
        return sum(self.read_bytes.values()) + sum(self.written_bytes.values())

    @property
    def hbm_time(self) -> float | None:
        """Traffic over the bandwidth of the device, in `unit`."""
        return self.rates.hbm_time(self.hbm_bytes)

    @property
    def compute_time(self) -> float | None:
        """FLOPs over the peak of the device, in `unit`; exponentials take no time here."""
        return self.rates.compute_time(self.flops)

    @property
    def unit(self) -> str:
        """The unit of the times: clk, or s if the device has no clock."""
        return self.rates.unit

    @property
    def device(self) -> str:
        """The name of the device; empty without a device."""
        return self.rates.device

    @property
    def hbm_share(self) -> float | None:
        """The share of HBM in the time [-]."""
        memory, compute = self.hbm_time, self.compute_time
        return None if memory is None or compute is None or not memory + compute else memory / (memory + compute)

    def _quantities(self) -> list[tuple[str, str, str]]:
        """List the name, value and unit of each quantity that occurs."""
        sides = {"reads": (self.reads, self.read_bytes), "writes": (self.writes, self.written_bytes)}
        moved = [
            (f"{side} {name}", n, sizes[name])
            for side, (elements, sizes) in sides.items()
            for name, n in elements.items()
        ]
        rows = [(label, f"{n:,}", f"elements, {readable(size)}") for label, n, size in moved]
        rows.append((labels.REQUESTS, f"{self.hbm_bytes:,}", f"B, {self.hbm_elements:,} elements"))
        counts = [(QUANTITIES[name], getattr(self, name)) for name in ("atomics", "flops", "exps", "tanhs", "randoms")]
        rows += [(entry.label, f"{n:,}", entry.unit) for entry, n in counts if n]
        rows += [("visited tiles of queries and keys", f"{self.visited_tiles:,}", "-")] if self.visited_tiles else []
        rows.append(("greatest SRAM level", f"{self.peak_sram:,}", f"B{share_of(self.peak_sram, self.rates.sram)}"))
        rows.append(("greatest HBM allocation", f"{self.peak_hbm:,}", "B"))
        times = [("time on HBM", self.hbm_time), ("time on products", self.compute_time)]
        rows += [(label, timed(time, self.unit), self.unit) for label, time in times if time is not None]
        if self.hbm_share is not None:
            rows.append(("share of time on HBM", f"{100 * self.hbm_share:.1f}", "%"))
        return rows

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        return [Table(f"{self.events:,} events", ("quantity", ">value", "unit"), self._quantities())]


@dataclass
class EventTotals:
    """The sums over the events of one run of a program."""

    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    visited: set[tuple[Any, ...]] = field(default_factory=set)
    peak_sram: int = 0
    peak_hbm: int = 0

    def add(self, events: Iterable[Event]) -> EventTotals:
        """Count the events of one run of a program."""
        count = self.sums
        for event in events:
            op, tensor, n = event[3], event[4], event[6]
            count["events", ""] += 1
            if event[8]:
                count[op, ""] += event[8]
                sides = tuple(sorted(side for side in event[5] if side[0] in ("query", "key")))
                if op == "MatMul" and len(sides) == 2:
                    self.visited.add(sides)
            elif n:
                if op in READING:
                    count["reads", tensor] += n
                    count["read_bytes", tensor] += event[7]
                if op in WRITING:
                    count["writes", tensor] += n
                    count["written_bytes", tensor] += event[7]
                if event[13]:
                    count["atomics", ""] += n
            self.peak_sram = max(self.peak_sram, event[9])
            self.peak_hbm = max(self.peak_hbm, event[10])
        return self


def summed(totals: Iterable[tuple[EventTotals, int]], rates: TraceRates) -> TraceSummary:
    """Sum the totals of several programs, each with its number of runs."""
    tallies = [(tally, times) for tally, times in totals if times]
    total: Counter[tuple[str, str]] = Counter()
    for tally, times in tallies:
        for key, n in tally.sums.items():
            total[key] += n * times
    by_tensor = {
        side: FrozenDict({name: n for (kind, name), n in total.items() if kind == side})
        for side in ("reads", "writes", "read_bytes", "written_bytes")
    }
    return TraceSummary(
        events=total["events", ""],
        **by_tensor,
        atomics=total["atomics", ""],
        flops=total["MatMul", ""],
        exps=total["Exp", ""],
        tanhs=total["Tanh", ""],
        randoms=total["Random", ""],
        peak_sram=max((tally.peak_sram for tally, _ in tallies), default=0),
        peak_hbm=max((tally.peak_hbm for tally, _ in tallies), default=0),
        rates=rates,
        visited_tiles=sum(len(tally.visited) * times for tally, times in tallies),
    )
