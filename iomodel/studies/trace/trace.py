"""Traces of a schedule on a simulated memory, tile by tile."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.deprecation import warn_renamed
from iomodel.common.display import Result, Table, group
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.output_files import in_one_step
from iomodel.common.results import check_keys, decoded_fields
from iomodel.common.tabular import Tabular
from iomodel.common.validation import as_integer
from iomodel.counting.choice import split_choice
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import TEXTBOOK
from iomodel.solving.answer import answer
from iomodel.solving.question import Question
from iomodel.studies.trace.count import events_by_kernel
from iomodel.studies.trace.events import CSV_FIELDS, Event, csv_row
from iomodel.studies.trace.rates import TraceRates, rates_of
from iomodel.studies.trace.summary import TraceSummary
from iomodel.studies.trace.text import event_table, named
from iomodel.studies.trace.trace_run import TraceRun
from iomodel.workloads.attention import as_attention
from iomodel.workloads.workload import Shape, Workload, as_workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_EVENTS = 1_000_000
"""The default limit on the events of a trace; these take some seconds."""
SHOWN = 20
"""The number of events that a trace prints."""


@dataclass(frozen=True)
class Trace(Result, Tabular):
    """A schedule as a sequence of events, which are regenerated on every iteration instead of stored.

    Attributes
    ----------
    algorithm, workload, tiles, options :
        The traced call.
    heads : int
        The number of traced query heads, of batch x heads, from the first on; all of them do the same [-].
    count : int
        The number of events of these heads [-].
    rates : TraceRates
        The rates of the device: bytes and FLOPs per clock, and its on-chip memory.
    """

    algorithm: str
    workload: Annotated[Any, Workload]
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    heads: int
    count: int
    rates: TraceRates

    @property
    def events(self) -> Iterator[Event]:
        """All events in order, by kernel and then by head."""
        return self._run.events(self.heads)

    @property
    def summary(self) -> TraceSummary:
        """The sums over the events."""
        return self._run.summary(self.heads)

    @property
    def whole(self) -> TraceSummary:
        """The sums over all batches and heads of the call, as counted by :func:`iomodel.cost`."""
        return self._run.summary(self._run.heads)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each tensor in HBM, of one head, whole even where only parts move [elements]."""
        return dict(self._run.sizes)

    @property
    def _run(self) -> TraceRun:
        return _remembered(find_algorithm(self.algorithm), self.workload, self.tiles, self.options, self.rates)

    def to_dict(self, events: int | None = None) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON, with the first `events` events or all of them."""
        most = None if events is None else as_integer("events", events, least=0)
        return {
            **super().to_dict(),
            "summary": self.summary.to_dict(),
            "whole": self.whole.to_dict(),
            "events": [event.to_dict() for event in islice(self.events, most)],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trace:
        """Trace the call of plain data again; its events and sums are not read.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        check_keys(data, [field.name for field in fields(cls)] + ["summary", "whole", "events"])
        known = decoded_fields(cls, data)
        again = {name: known[name] for name in ("algorithm", "workload", "tiles")}
        result = trace(**again, traced_heads=known["heads"], **known["options"], most_events=known["count"])
        return replace(result, rates=known["rates"])

    def to_csv(self, path: str | PathLike[str], *, overwrite: bool = True) -> None:
        """Write every event as a row of a CSV file; InputError if the file cannot be written."""
        try:
            with (
                in_one_step(Path(path), overwrite=overwrite) as hidden,
                hidden.open("w", encoding="utf-8", newline="") as file,
            ):
                writer = csv.writer(file)
                writer.writerow(CSV_FIELDS)
                writer.writerows(map(csv_row, self.events))
        except OSError as error:
            raise InputError(
                f"csv: {shown(str(path))} cannot be written ({error.strerror}); allowed: the name of a new file"
            ) from None
        except (TypeError, ValueError):  # no path, or a path that no file can have
            raise InputError(f"csv: {shown(path)} given; allowed: the name of a new file") from None

    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = True) -> Figure:
        """Draw the on-chip data over time, and the tiles of the score matrix in the order of their visits.

        Parameters
        ----------
        path : path-like, optional
            The file to write, .png, .svg, .pdf or .pgf.
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        InputError
            The file is of another kind or cannot be written; matplotlib is not installed.
        """
        from iomodel.plots.trace_plot import drawn

        as_attention(self.workload)  # the picture is of the score matrix
        return drawn(self, path, overwrite)

    def shown(self, most: int = SHOWN) -> Any:
        """Return a table of the first events, then one of their sums, for the terminal."""
        return group(self._tables(most))

    def _tables(self, most: int) -> list[Table | str]:
        most = as_integer("most", most, least=0)
        on = f" on {self.rates.device}" if self.rates.device else ""
        first = f", the first {most:,}" if most < self.count else ""
        of = f"{self.count:,} events of {self.heads:,} of {self._run.heads:,} heads"
        title = f"{self.algorithm}{on}, {named(self.tiles)}: {of}{first}"
        return [event_table(title, islice(self.events, most), self.rates), "", *self.summary.tables()]

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per event, the tile as text."""
        return [dict(zip(CSV_FIELDS, csv_row(event), strict=True)) for event in self.events]

    def tables(self) -> list[Table | str]:
        """Return the first events and the sums."""
        return self._tables(SHOWN)


_remembered = lru_cache(maxsize=16)(TraceRun)


@strict
def trace(
    algorithm: AlgorithmLike,
    workload: Workload,
    hardware: Hardware | str | None = None,
    tiles: Mapping[str, Any] | None = None,
    *,
    traced_heads: int | str = 1,
    most_events: int = MOST_EVENTS,
    **options: Any,
) -> Trace:
    """Trace an algorithm tile by tile on a simulated memory.

    Every statement of the declaration becomes an event on each of its tiles, with the level of both memories after it
    and its time. Events are sequential: no load overlaps a product. A single head has the whole device, and
    exponentials take no time.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or Linear
        The call; weights of a linear layer are whole bytes wide.
    hardware : Hardware or str, optional
        A device, for times and for the share of its on-chip memory; its best tiles are the default.
    tiles : mapping of tile name to int, optional
        As for :func:`iomodel.cost`; they need not fit the device. Standard attention has no tiles and makes ideal
        passes, unless ``tiled=True``.
    traced_heads : int or "all"
        The number of traced query heads, of batch x heads, from the first on [-].
    most_events : int
        The highest allowed number of events [-].
    **options
        Options of the algorithm, and ``packed=True``; tiles by name (``block_q=128``).

    Raises
    ------
    UnknownNameError, InputError
        As for `cost` and `solve`; neither tiles nor hardware; more events than allowed.
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
    if "heads" in options:
        warn_renamed("trace(heads=)", "traced_heads=")
        traced_heads = options.pop("heads")
    call = _traced(workload)
    tiles, options = split_choice(algorithm, tiles, options)
    asked = Question.ask(algorithm, call, hardware, options=options)
    device = asked.hardware
    tile_mapping = tiles or {}
    if tiles is None and asked.untiled.tiles:
        if device is None:
            raise InputError("tiles: none given; allowed: tiles, or a hardware whose best tiles are traced")
        tile_mapping = dict(answer(asked.by(TEXTBOOK)).tiles)
    bound = asked.bound if tile_mapping.keys() - LAUNCH_NAMES else asked.untiled
    sizes = bound.sizes(tile_mapping)
    rates = rates_of(device, call.dtype)
    run = _remembered(bound.algorithm, call, FrozenDict(sizes), FrozenDict(bound.options), rates)
    number = _heads(traced_heads, run.heads)
    counts = events_by_kernel(bound.compiled, bound.kind, bound.structure, call, bound.options, tuple(sizes.values()))
    count = sum(n * run.times(program.per, number) for n, program in zip(counts, run.programs, strict=True))
    if count > (most := as_integer("most_events", most_events)):
        raise InputError(
            f"most_events: {most:,} given; allowed: from {count:,} up, the events of this trace; "
            "fewer heads, a shorter call or larger tiles have fewer"
        )
    return Trace(name_of(algorithm), call, run.tiles, run.options, number, count, rates)


def _traced(workload: Workload) -> Shape:
    """Return the workload if it has one shape and elements of whole bytes, or raise InputError."""
    call = as_workload(workload)
    if not isinstance(call, Shape):
        raise InputError(
            f"workload: {shown(workload)} given; allowed: one of a single shape, as an Attention or an MLP"
        )
    for field, dtype in (("weight_size", "weight_dtype"), ("kv_size", "kv_dtype")):
        if call.numbers.get(field, 32) % 32:
            raise InputError(
                f"{dtype}: {getattr(call, dtype, None)} given; allowed in a trace: types of whole bytes, such as fp8"
            )
    return call


def _heads(argument: object, every: int) -> int:
    if isinstance(argument, str) and argument == "all":
        return every
    number = as_integer("traced_heads", argument) if not isinstance(argument, str) else 0
    if not 1 <= number <= every:
        raise InputError(f"traced_heads: {shown(argument)} given; allowed: 1 to {every:,}, or 'all'")
    return number
