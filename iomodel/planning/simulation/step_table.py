"""Step times of a replica, tabulated for a range of batches, contexts and prompts.

A step is the sum of its attention, its output layer, and everything else, which depends on the tokens alone. Decode
steps are computed at powers of two of the batch, as for a fleet, at the largest one, and at contexts in between;
prefills at the lengths between which a plan interpolates, four per octave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iomodel.errors import InputError
from iomodel.planning.step.divided_cache import attended_seconds
from iomodel.planning.steps import PER_OCTAVE, BatchTimes, ReplicaSteps, around, between, sampled

FEW = 64
"""Most distinct prompts that are computed exactly."""


@dataclass(frozen=True)
class StepTable:
    """Step times [s] by batch, context and tokens.

    Attributes
    ----------
    contexts : array of int, shape (C,)
        Contexts of decode steps [tokens].
    decode, decode_attention : array of float, shape (B + 1, C)
        Decode steps of 0 .. B requests, and the part of their attention and drafts [s].
    lengths, other, attention : array, shape (T,)
        Tokens of a step; its time without attention and output layer; attention of one prompt of this length [s].
    rows : array of float, shape (R + 1,)
        The output layer for 0 .. R tokens [s].
    chunks, caches : array of int, shapes (Q,) and (K,)
        Sizes of chunks, and of the caches with them [tokens].
    chunk_attention : array of float, shape (K, Q)
        Attention of a chunk, by cache and chunk [s].
    """

    contexts: Any
    decode: Any
    decode_attention: Any
    lengths: Any
    other: Any
    attention: Any
    rows: Any
    chunks: Any
    caches: Any
    chunk_attention: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        """Arrays of one axis in the order in which the loop reads them."""
        decode, part, grid = (values.ravel() for values in (self.decode, self.decode_attention, self.chunk_attention))
        return self.contexts, decode, part, self.lengths, self.other, self.rows, self.chunks, self.caches, grid


def step_table(
    steps: ReplicaSteps, prompts: Any, longest: int, batch: int, budget: int, chunked: bool, keys: int | None = None
) -> StepTable:
    """Compute the table.

    Parameters
    ----------
    steps : ReplicaSteps
        Steps of the replica; its service spans the contexts of all requests.
    prompts : array of int
        Distinct numbers of tokens of prompts that are computed, in ascending order [tokens].
    longest : int
        Most tokens of prompts in a step [tokens].
    batch : int
        Most requests in the engine [-].
    budget : int
        Tokens of a step [tokens].
    chunked : bool
        Tabulate chunks of prompts too.
    keys : int, optional
        Longest prompt, cached tokens included; by default the longest of `prompts` [tokens].
    """
    contexts = _contexts(steps)
    decode = np.empty((batch + 1, len(contexts)))
    part = np.zeros_like(decode)
    for place, context in enumerate(contexts):
        decode[:, place] = _by_batch(lambda n, c=context: steps.decode_step_seconds(n, c), batch)  # type: ignore[misc]
        if chunked:
            part[:, place] = _by_batch(lambda n, c=context: _beside(steps, n, c), batch)  # type: ignore[misc]
    each_token = steps.service.tokens_at_once
    rows = _by_batch(steps.output_seconds, batch * each_token)
    least = 1 if chunked else around(int(prompts[0]))[0]
    piece = int(prompts[-1])
    knots: dict[int, tuple[float, float]] = {}
    own = prompts.tolist() if len(prompts) <= FEW else []
    for tokens in [*own, *spaced(least, longest + batch * each_token * chunked, PER_OCTAVE)]:
        sequences = -(-tokens // piece)  # a step longer than the longest prompt has several
        each = -(-tokens // sequences)
        seconds, attention_seconds = between(
            each,
            lambda size, count=sequences: steps.chunk_seconds(size, size, count),  # type: ignore[misc]
        )
        output = float(rows[1]) if sequences == 1 else steps.output_seconds(sequences)
        knots[sequences * each] = seconds - attention_seconds - output, attention_seconds
    other, attention = np.array([knots[tokens] for tokens in sorted(knots)]).T
    grid = chunk_grid(steps, min(budget, piece), keys or piece) if chunked else NO_CHUNKS
    return StepTable(
        contexts=np.array(contexts),
        decode=decode,
        decode_attention=part,
        lengths=np.array(sorted(knots)),
        other=other.copy(),
        attention=attention.copy(),
        rows=rows,
        chunks=grid.chunks,
        caches=grid.caches,
        chunk_attention=grid.seconds,
    )


class ChunkGrid(NamedTuple):
    """Attention of chunks [s], by cache and chunk [tokens]."""

    chunks: Any
    caches: Any
    seconds: Any


NO_CHUNKS = ChunkGrid(np.array([1]), np.array([1]), np.zeros((1, 1)))


def chunk_grid(steps: ReplicaSteps, queries: int, keys: int) -> ChunkGrid:
    """Compute the attention of chunks of up to `queries` tokens, with caches of up to `keys`."""
    chunks, caches = ([*spaced(1, end - 1, 1)[:-1], end] for end in (queries, keys))
    grid = [[_chunk(steps, size, cache) for size in chunks] for cache in caches]
    return ChunkGrid(np.array(chunks), np.array(caches), np.array(grid))


def _beside(steps: ReplicaSteps, batch: int, context: int) -> float:
    """Compute what the decode step of a batch adds to the products that it shares with prompts [s]."""
    return attended_seconds(steps.decode(batch, context)) + steps.draft_step_seconds(batch, context)


def _by_batch(compute: Callable[[int], float], batch: int) -> Any:
    """Compute the times of batches up to the largest one, which is computed itself: a plan has its time."""
    times = BatchTimes(compute)
    low = 1 << (batch.bit_length() - 1)
    column = [0.0, *(times(size) for size in range(1, low + 1))]
    full = min(max(compute(batch), column[low]), 2 * column[low]) if batch > low else column[low]
    return np.array([*column, *np.linspace(column[low], full, batch - low + 1)[1:]])


def _contexts(steps: ReplicaSteps) -> list[int]:
    """List contexts: those of a plan, powers of two, and those at which a window fills or a chunk begins."""
    first, last = steps.service.contexts
    knots = {edge for span in steps.bends() for edge in span} | set(sampled(first, last))
    return sorted(knots | {1 << power for power in range(first.bit_length(), last.bit_length())})


def spaced(least: int, most: int, per_octave: int) -> list[int]:
    """List lengths from `least` to the first beyond `most`, evenly spaced in their logarithm."""
    knots, power = {least}, 0
    while max(knots) <= most:
        power += 1
        knots |= {max(least, int(2 ** (power / per_octave)))}
    return sorted(knots)


def _chunk(steps: ReplicaSteps, queries: int, keys: int) -> float:
    """Compute the attention of a chunk [s]; a cache smaller than the chunk counts as the chunk itself."""
    try:
        return steps.chunk_seconds(queries, max(queries, keys))[1]
    except InputError as error:
        raise InputError(f"policy: 'chunked' given, but {error}; allowed: prefill-first") from None
