"""One run of the event loop: its table of steps, its inputs as lists or arrays, and the latencies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from iomodel.counting.evaluation.engine_choice import numba_is_there
from iomodel.devices.device import Hardware
from iomodel.planning.service import Service
from iomodel.planning.simulation.loop import compiled, plain
from iomodel.planning.simulation.requests import Requests
from iomodel.planning.simulation.result import Percentiles
from iomodel.planning.simulation.table import FEW, PER_OCTAVE, StepTable, spaced, step_table
from iomodel.planning.steps import ReplicaSteps

WORTH = 5_000_000
"""Expected steps from which machine code pays, if the extra `fast` is there: it takes seconds to compile."""
OPEN_BATCH = 8
"""Batch by which the steps under open arrivals are guessed, to choose between Python and machine code alone."""


def tabulate(
    service: Service, device: Hardware, arriving: Requests, batch: int, budget: int, chunked: bool
) -> StepTable:
    """Tabulate the steps over the contexts and prompts of all requests."""
    prompts, computed = np.unique(arriving.prompt), np.unique(arriving.prompt - cached_tokens(service, arriving))
    shortest, longest, most = int(prompts[0]), int(prompts[-1]), int(computed[-1])
    last = int((arriving.prompt + np.maximum(arriving.output - 1, 1)).max())
    spanned = replace(service, prompt=shortest, output=last - shortest + 1)
    together = min(budget, batch * most) if chunked else max(most, min(budget, batch * most))
    return step_table(ReplicaSteps(spanned, device), computed, together, batch, budget, chunked, longest)


def cached_tokens(service: Service, arriving: Requests) -> Any:
    """Compute the tokens of each prompt that are cached before its prefill."""
    lengths, places = np.unique(arriving.prompt, return_inverse=True)
    return np.array([service.cached(int(length)) for length in lengths])[places]


def whole_attention(service: Service, device: Hardware, table: StepTable, arriving: Requests, cached: Any) -> Any:
    """Compute the attention of each prompt in one piece [s], interpolated over its length."""
    if not cached.any():
        return np.interp(arriving.prompt, table.lengths, table.attention)
    steps = ReplicaSteps(service, device)
    lengths = np.unique(arriving.prompt)
    knots = lengths if len(lengths) <= FEW else np.array(spaced(int(lengths[0]), int(lengths[-1]), PER_OCTAVE))
    knots = np.minimum(knots, lengths[-1])
    return np.interp(arriving.prompt, knots, [_prefill_attention(steps, int(length)) for length in knots])


def _prefill_attention(steps: ReplicaSteps, prompt: int) -> float:
    return steps.chunk_seconds(prompt - steps.service.cached(prompt), prompt)[1]


def run(
    service: Service,
    device: Hardware,
    table: StepTable,
    arriving: Requests,
    need: Any,
    room: int,
    batch: int,
    budget: int,
    chunked: bool,
    host: float,
    decodings: Any,
) -> tuple[Any, tuple[Any, Any, Any]]:
    """Run the loop: its totals, and TTFT, TPOT and latency of the requests [s]."""
    count = len(need)
    cached = cached_tokens(service, arriving)
    whole = whole_attention(service, device, table, arriving, cached)
    gain = (arriving.output - 1) / np.maximum(decodings, 1)
    lengths: list[Any] = [arriving.prompt - cached, cached, arriving.output, decodings, gain]
    arrays: list[Any] = [arriving.arrival.copy(), *lengths, need, whole]
    limits = (arriving.concurrency or 0, room, batch, budget, service.tokens_at_once, chunked, host)
    tables: list[Any] = [
        table.contexts,
        table.decode.ravel(),
        table.decode_attention.ravel(),
        table.lengths,
        table.other,
    ]
    tables += [table.rows, table.chunks, table.caches, table.chunk_attention.ravel()]
    ends = np.full(int(decodings.max()) + 1, -1)
    state: list[Any] = [ends, np.full(count, -1), np.zeros(count), np.zeros(count)]
    expected = int(decodings.sum()) // min(batch, arriving.concurrency or OPEN_BATCH)
    if expected >= WORTH and numba_is_there():
        totals = compiled()(*arrays, *limits, *tables, *state)
    else:
        arrays, tables, state = ([array.tolist() for array in some] for some in (arrays, tables, state))
        totals = plain(*arrays, *limits, *tables, *state)
    arrival, first, last = (np.asarray(array) for array in (arrays[0], state[2], state[3]))
    more = arriving.output > 1
    tpot = (last[more] - first[more]) / (arriving.output[more] - 1)
    return totals, (first - arrival, tpot, last - arrival)


def percentiles(times: Any) -> Percentiles:
    """Summarise times; the list may be empty [s]."""
    if not len(times):
        return Percentiles(0.0, 0.0, 0.0, 0.0, 0.0)
    p50, p90, p99 = np.percentile(times, [50, 90, 99])
    return Percentiles(float(times.mean()), float(p50), float(p90), float(p99), float(times.max()))
