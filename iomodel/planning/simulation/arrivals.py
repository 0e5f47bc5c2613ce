"""Requests to simulate: arrivals, prompts and outputs, drawn at random, or from arrays or a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, shown
from iomodel.planning.checked_numbers import as_real, as_share

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
    """

    arrival: Any
    prompt: Any
    output: Any
    rows: Any
    concurrency: int | None
    load: float | None

    def where(self, place: int) -> str:
        """Name a request: its row in the trace, or the arguments."""
        return "prompt + output" if self.rows is None else f"trace, row {self.rows[place]}"


def as_requests(
    prompt: object,
    output: object,
    trace: object,
    concurrency: object,
    load: object,
    requests: object,
    seed: object,
    spread: object = None,
) -> Requests:
    """Validate the arguments for arrivals and lengths, and draw random ones.

    Raises
    ------
    InputError
        An argument is missing or out of range, two contradict each other, or the trace is malformed.
    """
    clients = None if concurrency is None else as_integer("concurrency", concurrency)
    rate = None if load is None else as_real("load", load)
    if clients is not None and rate is not None:
        raise InputError(f"load: {rate:g} given with concurrency = {clients}; allowed: one of them")
    start = as_integer("seed", seed, least=0)
    drawn = clients is not None or rate is not None
    count = None if requests is None else _count(requests)
    if trace is None:
        if prompt is None or output is None:
            field = "prompt" if prompt is None else "output"
            raise InputError(f"{field}: none given; allowed: a number of tokens, or a trace with a column {field}")
        if not drawn:
            raise InputError("concurrency: none given; allowed: one of concurrency, load and trace")
        lengths = [_tokens("prompt", prompt), _tokens("output", output)]
        count = count or DEFAULT_REQUESTS
        arrival, rows = None, None
        prompts, outputs = _spread(lengths, count, spread, start)
    else:
        for field, value in (("prompt", prompt), ("output", output), ("lengths", spread)):
            if value is not None:
                raise InputError(f"{field}: given with a trace, which has a column {field}; allowed: one of them")
        arrival, prompts, outputs = read_trace(trace, timed=not drawn)
        rows = np.arange(1, len(prompts) + 1)
        if drawn:
            count = count or DEFAULT_REQUESTS
            rows = np.random.default_rng([start, 1]).integers(1, len(prompts) + 1, count)
        elif count is not None:
            if count > len(rows):
                raise InputError(f"requests: {count:,} given; allowed: up to {len(rows):,}, the rows of the trace")
            rows, arrival = rows[:count], arrival[:count]
        prompts, outputs = prompts[rows - 1], outputs[rows - 1]
    if rate is not None:
        arrival = np.random.default_rng([start, 0]).exponential(1 / rate, len(prompts)).cumsum()
    elif clients is not None:
        arrival = np.zeros(len(prompts))
    return Requests(arrival, prompts, outputs, rows, clients, rate)


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


COLUMNS = ("arrival", "prompt", "output")
MOST_ROWS = 10_000_000
"""Most requests of a simulation."""
MOST_TOKENS = 1 << 24
"""Longest prompt or output [tokens]."""
LATEST = 1e12
"""Latest arrival [s]."""


def read_trace(trace: object, *, timed: bool) -> tuple[Any, Any, Any]:
    """Read arrivals [s], prompts and outputs [tokens] as arrays.

    Parameters
    ----------
    trace : str, Path or mapping of sequences
        A CSV file whose header names the columns ``arrival``, ``prompt`` and ``output``, or these columns.
    timed : bool
        Read the column of arrivals too; they are returned from the first on.

    Raises
    ------
    InputError
        The file cannot be read, or a column is missing or malformed; the message names row and column.
    """
    names = COLUMNS if timed else COLUMNS[1:]
    if isinstance(trace, str | Path):
        columns = _columns_of_file(trace, names)
    elif isinstance(trace, Mapping):
        columns = {name: _sequence(trace, name) for name in names}
    else:
        raise InputError(
            f"trace: {shown(trace)} given; allowed: a CSV file, or a mapping with columns {', '.join(names)}"
        )
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"trace: columns of {sizes} rows given; allowed: columns of equal length")
    if not 0 < sizes["prompt"] <= MOST_ROWS:
        raise InputError(f"trace: {sizes['prompt']:,} rows given; allowed: 1 to {MOST_ROWS:,}")
    prompt, output = (_whole(name, columns[name]) for name in COLUMNS[1:])
    return (_times(columns["arrival"]) if timed else None), prompt, output


def _columns_of_file(path: str | Path, names: tuple[str, ...]) -> dict[str, list[Any]]:
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            header = [cell.strip() for cell in next(lines, [])]
            places = [_place(header, name) for name in names]
            columns: dict[str, list[Any]] = {name: [] for name in names}
            for row, line in enumerate(lines, 1):
                if row > MOST_ROWS:
                    break
                for name, place in zip(names, places, strict=True):
                    columns[name].append(_number(line[place] if place < len(line) else "", name, row))
    except (OSError, UnicodeError, csv.Error, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise InputError(f"trace: {shown(str(path))} cannot be read ({reason}); allowed: a CSV file") from None
    return columns


def _place(header: list[str], name: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    problem = "twice" if name in header else "not"
    raise InputError(f"trace: column {name} {problem} in the header {shown(','.join(header))}; allowed: once")


def _number(cell: str, name: str, row: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise _refused(row, name, cell) from None


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
        raise _refused(row + 1, name, entries[row])
    return array


def _is_number(entry: Any) -> bool:
    size: Any = abs(entry) if isinstance(entry, int | float | np.integer | np.floating) else np.inf
    return bool(size <= LATEST)


def _times(column: Any) -> Any:
    """Check that times are finite, at least 0 and never decrease, and count them from the first."""
    times = np.asarray(column, dtype=float)
    _check(column, "arrival", np.isfinite(times) & (times >= 0) & (times <= LATEST))
    falls = np.diff(times) < 0
    if falls.any():
        row = int(falls.argmax()) + 1
        raise InputError(
            f"trace: row {row + 1}, column arrival: {times[row]:g} given after {times[row - 1]:g}; allowed: times that "
            "never decrease"
        )
    return times - times[0]


def _whole(name: str, column: Any) -> Any:
    """Check that a column holds whole numbers of tokens."""
    numbers = np.asarray(column, dtype=float)
    whole = numbers == np.floor(numbers)
    _check(column, name, np.isfinite(numbers) & (numbers >= 1) & (numbers <= MOST_TOKENS) & whole)
    return numbers.astype(np.int64)


def _check(column: Any, name: str, allowed: Any) -> None:
    """Refuse the first row that is not allowed."""
    if not allowed.all():
        row = int(allowed.argmin())
        raise _refused(row + 1, name, column[row])


def _refused(row: int, name: str, value: Any) -> InputError:
    allowed = f"a time from 0 to {LATEST:g} s" if name == "arrival" else f"an integer from 1 to {MOST_TOKENS:,}"
    text = f"{value:g}" if _is_number(value) else shown(value.item() if isinstance(value, np.generic) else value)
    return InputError(f"trace: row {row}, column {name}: {text} given; allowed: {allowed}")
