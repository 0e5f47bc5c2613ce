"""A schedule run tile by tile on a simulated memory: every event, and what they add up to."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import exact_algorithms
from iomodel.cost import check_requirements, tally_for, tile_sizes
from iomodel.errors import InputError, shown
from iomodel.expressions import kind_of, structural
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.hardware import hardware as find_hardware
from iomodel.show import Shown
from iomodel.solve import solve
from iomodel.symbols import LAUNCH
from iomodel.tracing.count import events_by_kernel
from iomodel.tracing.events import CSV_FIELDS, Event, csv_row
from iomodel.tracing.rates import Rates, rates_of
from iomodel.tracing.run import Run
from iomodel.tracing.summary import TraceSummary
from iomodel.tracing.text import event_table, named
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, as_attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_EVENTS = 1_000_000
"""Events that a trace may have unless more are asked for; some seconds' worth."""
SHOWN = 20
"""Events that a trace prints."""


@dataclass(frozen=True)
class Trace(Shown):
    """A schedule, event by event. The events are not kept but made anew whenever they are asked for.

    Attributes
    ----------
    algorithm, workload, tiles, options :
        What is run.
    heads : int
        How many of the batch x heads query heads are traced, from the first on; all of them do the same [-].
    count : int
        Events of these heads [-].
    rates : Rates
        The device: bytes and FLOPs in a clock, on-chip memory.
    """

    algorithm: str
    workload: Attention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    heads: int
    count: int
    rates: Rates

    @property
    def events(self) -> Iterator[Event]:
        """Every event in order: kernel after kernel, in each one head after the other."""
        return self._run.events(self.heads)

    @property
    def summary(self) -> TraceSummary:
        """What the events add up to."""
        return self._run.summary(self.heads)

    @property
    def whole(self) -> TraceSummary:
        """The same over all batches and heads of the call, as :func:`iomodel.cost` counts it."""
        return self._run.summary(self._run.heads)

    @property
    def _run(self) -> Run:
        return _remembered(self.algorithm, self.workload, self.tiles, self.options, self.rates)

    def to_dict(self, events: int | None = None) -> dict[str, Any]:
        """Everything as plain data, ready for JSON; of the events only the first, if told how many."""
        most = None if events is None else as_integer("events", events, least=0)
        return {
            "algorithm": self.algorithm,
            "workload": self.workload.to_dict(),
            "tiles": dict(self.tiles),
            "options": dict(self.options),
            "heads": self.heads,
            "count": self.count,
            "rates": dict(self.rates.__dict__),
            "summary": self.summary.to_dict(),
            "whole": self.whole.to_dict(),
            "events": [event.to_dict() for event in islice(self.events, most)],
        }

    def to_csv(self, path: str | PathLike[str], *, overwrite: bool = True) -> None:
        """Write every event as a row of a file; InputError where that cannot be."""
        try:
            with Path(path).open("w" if overwrite else "x", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(CSV_FIELDS)
                writer.writerows(map(csv_row, self.events))
        except OSError as error:
            raise InputError(
                f"csv: {shown(str(path))} cannot be written ({error.strerror}); allowed: the name of a new file"
            ) from None
        except Exception:  # no path at all, or one that no file can have
            raise InputError(f"csv: {shown(path)} given; allowed: the name of a new file") from None

    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = True) -> Figure:
        """Draw what is on chip over time, and the tiles of the score matrix in the order of their visits.

        Parameters
        ----------
        path : path-like, optional
            A file to be written, .png or .svg.
        overwrite : bool
            Whether a file that is there may be replaced.

        Raises
        ------
        InputError
            Another kind of file, or one that cannot be written; matplotlib is not installed.
        """
        from iomodel.tracing.plot import drawn

        return drawn(self, path, overwrite)

    def shown(self, most: int = SHOWN) -> Any:
        """Return a table of the first events, then one of their sums, for the terminal."""
        from rich.console import Group

        most = as_integer("most", most, least=0)
        on = f" on {self.rates.device}" if self.rates.device else ""
        first = f", the first {most:,}" if most < self.count else ""
        of = f"{self.count:,} events of {self.heads:,} of {self._run.heads:,} heads"
        title = f"{self.algorithm}{on}, {named(self.tiles)}: {of}{first}"
        return Group(event_table(title, islice(self.events, most), self.rates), "", self.summary.__rich__())

    def __rich__(self) -> Any:
        """Return the first events and the sums for the terminal."""
        return self.shown()


_remembered = lru_cache(maxsize=16)(Run)


def trace(
    algorithm: str,
    workload: Attention,
    hardware: Hardware | str | None = None,
    tiles: Mapping[str, int] | None = None,
    *,
    heads: int | str = 1,
    most_events: int = MOST_EVENTS,
    **options: Any,
) -> Trace:
    """Run an algorithm tile by tile on a simulated memory.

    Every statement of the declaration becomes an event on each tile that it is run for, with the level of both memories
    after it and the time that it takes. Events follow each other: no load overlaps a product. One head has the whole
    device to itself, and function values take no time.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention
        The attention call.
    hardware : Hardware or str, optional
        A device, for times and for the share of its on-chip memory; without tiles, its best ones are traced.
    tiles : mapping of tile name to int, optional
        As for :func:`iomodel.cost`; they need not fit the device. Standard attention goes without, in ideal
        passes, unless told ``tiled=True``.
    heads : int or "all"
        How many of the batch x heads query heads are traced, from the first on [-].
    most_events : int
        Longer traces are refused [-].
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError
        Whatever `cost` and `solve` refuse; neither tiles nor hardware; more events than allowed.
    InfeasibleError
        No tile fits the device.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=256, head_dim=64)
    >>> t = iomodel.trace("flash2", w, "sim-a100", tiles={"block_q": 64, "block_kv": 64})
    >>> [event.where for event in t.events if event.op == "Load"][:3]
    ['Q[0:64, 0:64]', 'K[0:64, 0:64]', 'V[0:64, 0:64]']
    >>> t.summary.reads["K"] == iomodel.cost("flash2", w, t.tiles).reads["K"]
    True
    """
    call = as_attention(workload)
    device = find_hardware(hardware) if isinstance(hardware, str) else hardware
    if not isinstance(device, Hardware | None):
        raise InputError(f"hardware: {shown(hardware)} given; allowed: an iomodel.Hardware or the name of one")
    if find_algorithm(algorithm).approximates:
        exact = ", ".join(exact_algorithms())
        raise InputError(f"algorithm: {algorithm} given; allowed: {exact}, for what approximates is not traced")
    given = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    if tiles is None and tally_for(algorithm, call, options, tiled=False)[0].tiles:
        if device is None:
            raise InputError("tiles: none given; allowed: tiles, or a hardware whose best tiles are traced")
        given = dict(solve(algorithm, call, device, **options).tiles)
    tally, complete = tally_for(algorithm, call, options, tiled=bool(given.keys() - {entry.name for entry in LAUNCH}))
    sizes = tile_sizes(algorithm, tally.tiles, given)
    check_requirements(find_algorithm(algorithm), call, complete, sizes)
    rates = rates_of(device, call.dtype)
    run = _remembered(algorithm, call, FrozenDict(sizes), FrozenDict(complete), rates)
    number = _heads(heads, run.heads)
    counts = events_by_kernel(tally, kind_of(call), structural(complete), call, complete, tuple(sizes.values()))
    count = sum(n * run.times(program.per, number) for n, program in zip(counts, run.programs, strict=True))
    if count > (most := as_integer("most_events", most_events)):
        raise InputError(
            f"most_events: {most:,} given; allowed: from {count:,} up, the events of this trace; "
            "fewer heads, a shorter call or larger tiles have fewer"
        )
    return Trace(algorithm, call, run.tiles, run.options, number, count, rates)


def _heads(given: object, every: int) -> int:
    if isinstance(given, str) and given == "all":
        return every
    number = as_integer("heads", given) if not isinstance(given, str) else 0
    if not 1 <= number <= every:
        raise InputError(f"heads: {shown(given)} given; allowed: 1 to {every:,}, or 'all'")
    return number
