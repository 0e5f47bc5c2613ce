"""Requests to simulate: their arrivals, prompts and outputs, from a trace or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.common.validation import as_integer
from iomodel.errors import InputError
from iomodel.planning.numbers import as_real
from iomodel.planning.simulation.trace import MOST_ROWS, MOST_TOKENS, read_trace

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
    prompt: object, output: object, trace: object, concurrency: object, load: object, requests: object, seed: object
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
        prompts, outputs = (np.full(count, tokens) for tokens in lengths)
    else:
        for field, value in (("prompt", prompt), ("output", output)):
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
