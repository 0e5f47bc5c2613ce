"""Requests to simulate: arrivals, prompts and outputs, drawn at random, or from arrays or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown
from iomodel.planning.checked_numbers import as_real, as_share
from iomodel.planning.service_options import RequestOptions
from iomodel.planning.simulation.trace_files import (
    COLUMNS,
    LATEST,
    MOST_ROWS,
    MOST_TOKENS,
    Blocks,
    TraceFile,
    read_file,
    refused,
)

DEFAULT_REQUESTS = 1000


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests in the order of their arrival.

    Attributes
    ----------
    arrival : array of float
        Arrivals, from the first request of a trace or the start of the simulation [s]; zeros in a closed loop.
    prompt, output : array of int
        Tokens of each prompt and output.
    rows : array of int or None
        Row of the trace that each request has its lengths from, counted from 1; None without a trace.
    concurrency, load : int and float, or None
        Clients of a closed loop [-]; rate of Poisson arrivals [1/s].
    blocks : Blocks or None
        Hash ids of the prompts, where a trace that is replayed has them.
    cached : array of int or None
        Tokens of each prompt that are cached before its prefill, by the hash ids; None without them.
    notes : tuple of str
        Assumptions of the reader of the trace.
    """

    arrival: Any
    prompt: Any
    output: Any
    rows: Any
    concurrency: int | None
    load: float | None
    blocks: Blocks | None = None
    cached: Any = None
    notes: tuple[str, ...] = ()

    def of_group(self, groups: int) -> Requests:
        """Return the requests of the first of some groups that take turns; clients of a closed loop are divided."""
        if groups == 1:
            return self
        own = slice(None, None, groups)
        return replace(
            self,
            arrival=self.arrival[own],
            prompt=self.prompt[own],
            output=self.output[own],
            rows=None if self.rows is None else self.rows[own],
            concurrency=None if self.concurrency is None else -(-self.concurrency // groups),
            blocks=None if self.blocks is None else self.blocks.of_turns(groups),
        )

    def where(self, place: int) -> str:
        """Name a request: its row in the trace, or the arguments."""
        return "prompt + output" if self.rows is None else f"trace, row {self.rows[place]}"


def as_requests(**given: Unpack[RequestOptions]) -> Requests:
    """Validate the arguments for arrivals and lengths, and draw random ones.

    Raises
    ------
    InputError
        An argument is missing or out of range, two contradict each other, or the trace is malformed.
    """
    prompt, output, trace = (given.get(name) for name in ("prompt", "output", "arrivals"))
    concurrency, load, spread, requests = (given.get(name) for name in ("concurrency", "load", "lengths", "requests"))
    clients = None if concurrency is None else as_integer("concurrency", concurrency)
    rate = None if load is None else as_real("load", load)
    if clients is not None and rate is not None:
        raise InputError(f"load: {rate:g} given with concurrency = {clients}; allowed: one of them")
    start = as_integer("seed", given.get("seed", 0), least=0)
    faster = as_real("scale", given.get("scale", 1.0))
    drawn = clients is not None or rate is not None
    count = None if requests is None else _count(requests)
    if faster != 1 and (trace is None or drawn):
        raise InputError(f"scale: {faster:g} given; allowed: with the arrivals of a trace, without load or concurrency")
    blocks: Blocks | None = None
    notes: tuple[str, ...] = ()
    if trace is None:
        if prompt is None or output is None:
            field = "prompt" if prompt is None else "output"
            raise InputError(f"{field}: none given; allowed: a number of tokens, or a trace with a column {field}")
        if not drawn and count is None:
            raise InputError(
                "concurrency: none given; allowed: one of concurrency, load and trace, or requests alone, which are "
                "all there at the start"
            )
        clients = count if clients is None and rate is None else clients
        lengths = [_tokens("prompt", prompt), _tokens("output", output)]
        count = count or DEFAULT_REQUESTS
        arrival, rows = None, None
        prompts, outputs = _spread(lengths, count, spread, start)
    else:
        for field, value in (("prompt", prompt), ("output", output), ("lengths", spread)):
            if value is not None:
                raise InputError(f"{field}: given with a trace, which has a column {field}; allowed: one of them")
        read = read_trace(trace, timed=not drawn, most=None if drawn else count)
        prompts, outputs, rows = read.columns["prompt"], read.columns["output"], read.rows
        arrival, notes = read.columns.get("arrival", np.zeros(0)), read.notes
        if drawn:
            chosen = np.random.default_rng([start, 1]).integers(0, len(rows), count or DEFAULT_REQUESTS)
            prompts, outputs, rows = prompts[chosen], outputs[chosen], rows[chosen]
        else:
            if count is not None and count > len(rows) + read.dropped:
                raise InputError(f"requests: {count:,} given; allowed: up to {len(rows):,}, the rows of the trace")
            arrival, blocks = arrival / faster, read.blocks
    if rate is not None:
        arrival = np.random.default_rng([start, 0]).exponential(1 / rate, len(prompts)).cumsum()
    elif clients is not None:
        arrival = np.zeros(len(prompts))
    return Requests(arrival, prompts, outputs, rows, clients, rate, blocks, notes=notes)


def _spread(most: list[int], count: int, shares: object, seed: int) -> list[Any]:
    """Draw the tokens of prompts and outputs evenly between two shares of the most; all are the most without shares."""
    if shares is None:
        return [np.full(count, tokens) for tokens in most]
    if isinstance(shares, str | bytes) or not isinstance(shares, Sequence) or len(shares) != 2:
        raise InputError(f"lengths: {shown(shares)} given; allowed: two shares, such as (0.8, 1.0)")
    low, high = (as_share("lengths", share) for share in shares)
    if low > high:
        raise InputError(f"lengths: {shown(shares)} given; allowed: the lower share first, such as (0.8, 1.0)")
    rng = np.random.default_rng([seed, 3])
    ends = [(max(1, int(low * tokens)), max(1, int(high * tokens))) for tokens in most]
    return [rng.integers(least, largest + 1, count) for least, largest in ends]


def _count(requests: object) -> int:
    count = as_integer("requests", requests)
    if count > MOST_ROWS:
        raise InputError(f"requests: {count:,} given; allowed: an integer from 1 to {MOST_ROWS:,}")
    return count


def _tokens(field: str, value: object) -> int:
    tokens = as_integer(field, value)
    if tokens > MOST_TOKENS:
        raise InputError(f"{field}: {tokens:,} given; allowed: at most {MOST_TOKENS:,} tokens")
    return tokens


def read_trace(trace: object, *, timed: bool, most: int | None = None) -> TraceFile:
    """Read arrivals [s], prompts and outputs [tokens] as arrays.

    Parameters
    ----------
    trace : str, Path or mapping of sequences
        A file with columns of these names or their synonyms (:func:`.trace_files.read_file`), or the columns
        ``arrival``, ``prompt`` and ``output``.
    timed : bool
        Read the column of arrivals too; they are counted from the first on.
    most : int, optional
        Rows that are read; all by default.

    Raises
    ------
    InputError
        The file cannot be read, or a column is missing or malformed; the message names row and column.
    """
    names = COLUMNS if timed else COLUMNS[1:]
    if isinstance(trace, str | Path):
        read = read_file(trace, timed=timed, most=most)
    elif isinstance(trace, Mapping):
        read = _of_mapping(trace, names, most)
    else:
        raise InputError(
            f"trace: {shown(trace)} given; allowed: a file of requests, or a mapping with columns {', '.join(names)}"
        )
    columns = read.columns
    checked = {name: _whole(name, columns[name], read.rows) for name in COLUMNS[1:]}
    if timed:
        checked["arrival"] = _times(columns["arrival"], read.rows)
    return replace(read, columns=checked)


def _of_mapping(trace: Mapping[Any, Any], names: tuple[str, ...], most: int | None) -> TraceFile:
    columns = {name: _sequence(trace, name) for name in names}
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"trace: columns of {sizes} rows given; allowed: columns of equal length")
    return TraceFile(
        {name: column[:most] for name, column in columns.items()}, np.arange(1, sizes["prompt"] + 1)[:most]
    )


def _sequence(trace: Mapping[Any, Any], name: str) -> Any:
    """Return a column as an array of numbers of one axis."""
    if name not in trace:
        raise InputError(f"trace: column {name} not given; allowed: a sequence of numbers for {name}")
    values = trace[name]
    if isinstance(values, str | bytes | Mapping | set) or not hasattr(values, "__len__"):
        raise InputError(f"trace: {shown(values)} given as column {name}; allowed: a sequence of numbers")
    if len(values) > MOST_ROWS:
        raise InputError(f"trace: {len(values):,} rows given; allowed: 1 to {MOST_ROWS:,}")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError, RecursionError):
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError(f"trace: {shown(values)} given as column {name}; allowed: a sequence of numbers")
    if array.size and array.dtype.kind not in "iuf":
        entries = list(values)
        row = next((row for row, entry in enumerate(entries) if isinstance(entry, bool) or not _is_number(entry)), 0)
        raise refused(row + 1, name, entries[row])
    return array


def _is_number(entry: Any) -> bool:
    size: Any = abs(entry) if isinstance(entry, int | float | np.integer | np.floating) else np.inf
    return bool(size <= LATEST)


def _times(column: Any, rows: Any) -> Any:
    """Check that times are finite, at least 0 and never decrease, and count them from the first."""
    times = np.asarray(column, dtype=float)
    _check(column, "arrival", np.isfinite(times) & (times >= 0) & (times <= LATEST), rows)
    falls = np.diff(times) < 0
    if falls.any():
        place = int(falls.argmax()) + 1
        raise InputError(
            f"trace: row {rows[place]}, column arrival: {times[place]:g} given after {times[place - 1]:g}; allowed: "
            "times that never decrease"
        )
    return times - times[0]


def _whole(name: str, column: Any, rows: Any) -> Any:
    """Check that a column holds whole numbers of tokens."""
    if not 0 < len(column) <= MOST_ROWS:
        raise InputError(f"trace: {len(column):,} rows given; allowed: 1 to {MOST_ROWS:,}")
    numbers = np.asarray(column, dtype=float)
    whole = numbers == np.floor(numbers)
    _check(column, name, np.isfinite(numbers) & (numbers >= 1) & (numbers <= MOST_TOKENS) & whole, rows)
    return numbers.astype(np.int64)


def _check(column: Any, name: str, allowed: Any, rows: Any) -> None:
    """Refuse the first row that is not allowed."""
    if not allowed.all():
        place = int(allowed.argmin())
        raise refused(int(rows[place]), name, column[place])
