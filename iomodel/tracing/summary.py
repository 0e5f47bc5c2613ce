"""What the events of a trace add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iomodel.frozen import FrozenDict
from iomodel.show import Shown, table
from iomodel.tracing.events import READING, WRITING, Event
from iomodel.tracing.rates import Rates
from iomodel.tracing.text import readable, share_of, timed


@dataclass(frozen=True)
class TraceSummary(Shown):
    """Totals and greatest levels; times add up one after the other, nothing overlaps.

    Attributes
    ----------
    events : int
        How many there are [-].
    reads, writes, read_bytes, written_bytes : mapping of tensor name to int
        HBM accesses [elements] and traffic [B].
    atomics : int
        Atomic additions to HBM [elements].
    flops, exps, tanhs, randoms : int
        Matrix FLOPs [FLOP] and function values [-].
    peak_sram, peak_hbm : int
        The greatest levels [B].
    hbm_time, compute_time : float or None
        Traffic over the device's bandwidth, FLOPs over its peak, in `unit`; None where unknown.
    """

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
    rates: Rates

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
        """FLOPs over the peak of the device, in `unit`; function values take no time here."""
        return self.rates.compute_time(self.flops)

    @property
    def unit(self) -> str:
        """Of the times: clk, or s where the device has no clock."""
        return self.rates.unit

    @property
    def hbm_share(self) -> float | None:
        """The share of the time that goes to HBM [-]."""
        memory, compute = self.hbm_time, self.compute_time
        return None if memory is None or compute is None or not memory + compute else memory / (memory + compute)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        plain = {name: dict(v) if isinstance(v, Mapping) else v for name, v in self.__dict__.items() if name != "rates"}
        more = ("hbm_elements", "hbm_bytes", "hbm_time", "compute_time", "hbm_share", "unit")
        return {**plain, **{name: getattr(self, name) for name in more}, "device": self.rates.device}

    def rows(self) -> list[tuple[str, str, str]]:
        """Quantity, value and unit of what there is."""
        sides = {"reads": (self.reads, self.read_bytes), "writes": (self.writes, self.written_bytes)}
        moved = [
            (f"{side} {name}", n, sizes[name]) for side, (found, sizes) in sides.items() for name, n in found.items()
        ]
        found = [(label, f"{n:,}", f"elements, {readable(size)}") for label, n, size in moved]
        found.append(("HBM traffic", f"{self.hbm_bytes:,}", f"B, {self.hbm_elements:,} elements"))
        counts = [("of which atomic adds", self.atomics, "elements"), ("FLOPs", self.flops, "FLOP")]
        counts += [("exponentials", self.exps, "-"), ("hyperbolic tangents", self.tanhs, "-")]
        counts += [("random numbers", self.randoms, "-")]
        found += [(label, f"{n:,}", unit) for label, n, unit in counts if n]
        found.append(("greatest SRAM level", f"{self.peak_sram:,}", f"B{share_of(self.peak_sram, self.rates.sram)}"))
        found.append(("greatest HBM allocation", f"{self.peak_hbm:,}", "B"))
        times = [("time on HBM", self.hbm_time), ("time on products", self.compute_time)]
        found += [(label, timed(time, self.unit), self.unit) for label, time in times if time is not None]
        if self.hbm_share is not None:
            found.append(("share of time on HBM", f"{100 * self.hbm_share:.1f}", "%"))
        return found

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        return table(f"{self.events:,} events", ("quantity", ">value", "unit"), self.rows())


@dataclass
class EventTotals:
    """Sums of events, which a number of equal runs repeats."""

    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
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


def summed(totals: Iterable[tuple[EventTotals, int]], rates: Rates) -> TraceSummary:
    """The sums of several programs, each of which ran a number of times."""
    found = [(tally, times) for tally, times in totals if times]
    total: Counter[tuple[str, str]] = Counter()
    for tally, times in found:
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
        peak_sram=max((tally.peak_sram for tally, _ in found), default=0),
        peak_hbm=max((tally.peak_hbm for tally, _ in found), default=0),
        rates=rates,
    )
