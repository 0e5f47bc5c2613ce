"""One run of the event loop: its table of steps, decode steps drawn at random, its inputs, and the latencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from iomodel.counting.evaluation.engine_choice import numba_is_there
from iomodel.devices.device import Hardware
from iomodel.planning.service import Service
from iomodel.planning.simulation.arrivals import Requests
from iomodel.planning.simulation.event_loop import Progress, Queue, Scheduler, compiled, plain
from iomodel.planning.simulation.simulation_result import Percentiles
from iomodel.planning.simulation.step_table import FEW, StepTable, chunk_grid, spaced, step_table
from iomodel.planning.speculation import Speculation
from iomodel.planning.steps import PER_OCTAVE, GroupSteps, ReplicaSteps, between

WORTH = 5_000_000
"""Expected steps from which machine code pays, if the extra `fast` is there: it takes seconds to compile."""
OPEN_BATCH = 8
"""Batch by which the steps under open arrivals are guessed, to choose between Python and machine code alone."""


def tabulate(service: Service, device: Hardware, arriving: Requests, scheduler: Scheduler) -> StepTable:
    """Tabulate the steps over the contexts and prompts of all requests."""
    batch, budget, chunked = scheduler.most, scheduler.budget, scheduler.chunked
    prompts, computed = np.unique(arriving.prompt), np.unique(arriving.prompt - cached_tokens(service, arriving))
    shortest, longest, most = int(prompts[0]), int(prompts[-1]), int(computed[-1])
    last = int((arriving.prompt + np.maximum(arriving.output - 1, 1)).max())
    spanned = replace(service, prompt=shortest, output=last - shortest + 1)
    together = min(budget, batch * most) if chunked else max(most, min(budget, batch * most))
    return step_table(GroupSteps(spanned, device), computed, together, batch, budget, chunked, longest)


def cached_tokens(service: Service, arriving: Requests) -> Any:
    """Compute the tokens of each prompt that are cached before its prefill."""
    if arriving.cached is not None:
        return arriving.cached
    lengths, places = np.unique(arriving.prompt, return_inverse=True)
    return np.array([service.cached(int(length)) for length in lengths])[places]


def whole_attention(service: Service, device: Hardware, table: StepTable, arriving: Requests, cached: Any) -> Any:
    """Compute the attention of each prompt in one piece [s], interpolated over its length."""
    if not cached.any():
        return np.interp(arriving.prompt, table.lengths, table.attention)
    steps = GroupSteps(service, device)
    if arriving.cached is not None:
        return _suffix_attention(steps, arriving.prompt - cached, arriving.prompt)
    lengths = np.unique(arriving.prompt)
    knots = lengths if len(lengths) <= FEW else np.array(spaced(int(lengths[0]), int(lengths[-1]), PER_OCTAVE))
    knots = np.minimum(knots, lengths[-1])
    return np.interp(arriving.prompt, knots, [_prefill_attention(steps, int(length)) for length in knots])


def _suffix_attention(steps: ReplicaSteps, queries: Any, keys: Any) -> Any:
    """Compute the attention of the last tokens of prompts [s], interpolated in both."""
    grid = chunk_grid(steps, int(queries.max()), int(keys.max()))
    place = np.clip(np.searchsorted(grid.caches, keys) - 1, 0, max(len(grid.caches) - 2, 0))
    above = np.minimum(place + 1, len(grid.caches) - 1)
    width = np.maximum(grid.caches[above] - grid.caches[place], 1)
    share = (keys - grid.caches[place]) / width
    column = np.clip(np.searchsorted(grid.chunks, queries) - 1, 0, max(len(grid.chunks) - 2, 0))
    right = np.minimum(column + 1, len(grid.chunks) - 1)
    along = (queries - grid.chunks[column]) / np.maximum(grid.chunks[right] - grid.chunks[column], 1)
    low, high = (
        grid.seconds[row, column] + (grid.seconds[row, right] - grid.seconds[row, column]) * along
        for row in (place, above)
    )
    return low + (high - low) * share


def _prefill_attention(steps: ReplicaSteps, prompt: int) -> float:
    cached = steps.service.cached(prompt)
    return float(between(prompt - cached, lambda tokens: (steps.chunk_seconds(tokens, tokens + cached)[1],))[0])


def run(
    service: Service, device: Hardware, arriving: Requests, need: Any, scheduler: Scheduler, seed: int
) -> tuple[Totals, tuple[Any, Any, Any]]:
    """Run the loop: its totals, and TTFT, TPOT and latency of the requests [s]."""
    table = tabulate(service, device, arriving, scheduler)
    decodings = decode_steps(arriving.output, service.speculation, seed)
    cached = cached_tokens(service, arriving)
    queue = Queue(
        arriving.arrival.copy(),
        arriving.prompt - cached,
        cached,
        arriving.output,
        decodings,
        (arriving.output - 1) / np.maximum(decodings, 1),
        need,
        whole_attention(service, device, table, arriving, cached),
    )
    count = len(need)
    progress = Progress(np.full(int(decodings.max()) + 1, -1), np.full(count, -1), np.zeros(count), np.zeros(count))
    columns, loop = table.columns, plain
    if int(decodings.sum()) // min(scheduler.most, scheduler.clients or OPEN_BATCH) >= WORTH and numba_is_there():
        loop = compiled()
    else:
        queue, progress = Queue(*_listed(queue)), Progress(*_listed(progress))
        columns = tuple(_listed(columns))
    totals = loop(queue, scheduler, columns, progress)
    arrival, first, last = (np.asarray(times) for times in (queue.arrival, progress.first, progress.last))
    more = arriving.output > 1
    tpot = (last[more] - first[more]) / (arriving.output[more] - 1)
    return Totals._make((*totals, int(decodings.sum()))), (first - arrival, tpot, last - arrival)


class Totals(NamedTuple):
    """Figures of the engine over a run: times [s], steps, requests decoded in them, and the most at once."""

    seconds: float
    busy_seconds: float
    steps: int
    decode_steps: int
    largest_batch: int
    largest_bytes: int
    decodings: int

    def of_groups(self, groups: int) -> Totals:
        """Return the figures of some groups of ranks that are alike, which step together."""
        return self._replace(largest_batch=groups * self.largest_batch, decodings=groups * self.decodings)


def _listed(arrays: Iterable[Any]) -> Iterator[list[Any]]:
    return (array.tolist() for array in arrays)


def percentiles(times: Any) -> Percentiles:
    """Summarise times; the list may be empty [s]."""
    if not len(times):
        return Percentiles(0.0, 0.0, 0.0, 0.0, 0.0)
    p50, p90, p99 = np.percentile(times, [50, 90, 99])
    return Percentiles(float(times.mean()), float(p50), float(p90), float(p99), float(times.max()))


def decode_steps(output: Any, speculation: Speculation | None, seed: int) -> Any:
    """Draw the decode steps of each request behind its first token [-].

    A step yields a token of the model behind the drafts that it accepts: those before the first that it does not.

    >>> decode_steps(np.array([1, 9, 9]), None, 0).tolist()
    [0, 8, 8]
    >>> decode_steps(np.array([1, 9, 9]), Speculation(tokens=3, acceptance=1.0), 0).tolist()
    [0, 2, 2]
    """
    left = output - 1
    if speculation is None:
        return left
    rng = np.random.default_rng([seed, 2])
    steps = np.zeros_like(left)
    waiting = np.flatnonzero(left)
    left = left[waiting]
    while len(waiting):
        steps[waiting] += 1
        left -= 1 + _accepted(rng, speculation, len(waiting))
        more = left > 0
        waiting, left = waiting[more], left[more]
    return steps


def _accepted(rng: np.random.Generator, speculation: Speculation, count: int) -> Any:
    """Draw the accepted drafts of a step of each of some requests."""
    if speculation.acceptance == 1:
        return np.full(count, speculation.tokens)
    return np.minimum(rng.geometric(1 - speculation.acceptance, count) - 1, speculation.tokens)
