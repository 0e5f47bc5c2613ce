"""Event loop of one serving engine with continuous batching, one iteration per step of the engine.

The loop uses plain numbers and sequences alone, so that the same source runs as Python and as machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

Jit = Callable[[Callable[..., Any]], Any]


class Queue(NamedTuple):
    """Requests in the order of their arrival, as lists or arrays.

    `arrival` is written where the loop is closed [s]; `prompt` are the tokens to prefill and `cached` those before
    them; `decodings` are the steps behind the first token, each of which yields `gain` tokens; `need` is the memory
    [B], `whole` the attention of the prompt in one piece [s].
    """

    arrival: Any
    prompt: Any
    cached: Any
    output: Any
    decodings: Any
    gain: Any
    need: Any
    whole: Any


class Scheduler(NamedTuple):
    """Limits of an engine, and how it fills a step.

    `clients` of a closed loop, 0 where arrivals are given; `room` is the memory for all requests [B], `most` their
    number in the engine; a step has at most `budget` tokens, `each` of a decoding request, drafts included, and takes
    `host` seconds on the host. With `chunked`, prompts are divided and share steps with decoding requests.
    """

    clients: int
    room: int
    most: int
    budget: int
    each: int
    chunked: bool
    host: float


class Progress(NamedTuple):
    """Output of the loop, as lists or arrays.

    `ends` has for each decode step, modulo more than the most decodings, the first request that ends with it; `after`
    for each request the next that ends with the same step, -1 for none; `first` and `last` are the times of its first
    and its last token [s].
    """

    ends: Any
    after: Any
    first: Any
    last: Any


def interpolate(knots: Any, values: Any, start: int, x: float) -> float:
    """Interpolate linearly between knots; the values begin at index `start`, and the ends are continued.

    >>> interpolate([1, 2, 4], [10.0, 20.0, 60.0], 0, 3)
    40.0
    """
    low, high = 0, len(knots) - 1
    if high == 0:
        return values[start]  # type: ignore[no-any-return]
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= x:
            low = middle
        else:
            high = middle
    share = (x - knots[low]) / (knots[high] - knots[low])
    return values[start + low] + (values[start + high] - values[start + low]) * share  # type: ignore[no-any-return]


def build(jit: Jit) -> Any:
    """Build the loop with its helpers passed through `jit`."""
    at = jit(interpolate)

    def chunk_attention(sizes: Any, caches: Any, values: Any, queries: int, keys: int) -> float:
        """Compute the attention of a chunk: the values at both caches around `keys`, interpolated in the queries."""
        width, low, high = len(sizes), 0, len(caches) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if caches[middle] <= keys:
                low = middle
            else:
                high = middle
        below = at(sizes, values, low * width, queries)
        if high == low:
            return below  # type: ignore[no-any-return]
        share = (keys - caches[low]) / (caches[high] - caches[low])
        return below + (at(sizes, values, high * width, queries) - below) * share  # type: ignore[no-any-return]

    chunk_at = jit(chunk_attention)

    def serve(queue: Queue, scheduler: Scheduler, table: Any, progress: Progress) -> Any:
        arrival, prompt, cached, output, decodings, gain, need, whole = queue
        clients, room, most, budget, each, chunked, host = scheduler
        contexts, decode, decode_attention, lengths, other, rows, chunks, caches, chunk_values = table
        ends, after, first, last = progress
        count, ring, width = len(prompt), len(ends), len(contexts)
        now = busy = context = growth = 0.0  # tokens of the running requests in the cache, and those of a decode step
        steps = decodes = turn = done = running = used = largest = peak = 0
        arrived = min(clients, count)
        admitted = ready = 0  # requests before `admitted` hold memory, those before `ready` have their first token
        filled, partial = 0, False  # tokens of the prompt `admitted - 1`, if only a part of it is in the cache
        while done < count:
            while clients == 0 and arrived < count and arrival[arrived] <= now:
                arrived += 1
            allowed = max(budget - running * each, 0) if chunked else budget
            tokens, sequences, attention = 0, 0, 0.0
            if partial and allowed > 0:
                size = prompt[admitted - 1]
                tokens = min(size - filled, allowed)
                filled += tokens
                sequences = 1
                attention = chunk_at(chunks, caches, chunk_values, tokens, cached[admitted - 1] + filled)
                partial = filled < size
            while (
                not partial
                and admitted < arrived
                and running + admitted - ready < most
                and used + need[admitted] <= room
            ):
                size = prompt[admitted]
                full = tokens >= allowed if chunked else tokens > 0 and tokens + size > allowed
                if full:
                    break
                piece = min(size, allowed - tokens) if chunked else size
                used += need[admitted]
                tokens += piece
                sequences += 1
                if piece == size:
                    attention += whole[admitted]
                else:
                    attention += chunk_at(chunks, caches, chunk_values, piece, cached[admitted] + piece)
                    filled, partial = piece, True
                admitted += 1
            peak = max(peak, used)
            decoding = running > 0 and (chunked or tokens == 0)
            if tokens:
                beside = running * each if chunked else 0
                took = at(lengths, other, 0, tokens + beside) + attention + rows[sequences + beside]
                if beside:
                    took += at(contexts, decode_attention, running * width, context / running)
            elif running:
                took = at(contexts, decode, running * width, context / running)
            else:
                now = arrival[arrived]
                continue
            took += host
            now += took
            busy += took
            steps += 1
            if decoding:
                decodes += 1
                turn = (turn + 1) % ring
                context += growth
                request = ends[turn]
                ends[turn] = -1
                while request >= 0:
                    last[request] = now
                    used -= need[request]
                    context -= cached[request] + prompt[request] + output[request]
                    growth -= gain[request]
                    running -= 1
                    done += 1
                    if clients and arrived < count:
                        arrival[arrived] = now
                        arrived += 1
                    request = after[request]
                if running == 0:
                    context = growth = 0.0  # nothing is left of rounding
            if tokens:
                for request in range(ready, admitted - 1 if partial else admitted):
                    first[request] = now
                    if output[request] == 1:
                        last[request] = now
                        used -= need[request]
                        done += 1
                        if clients and arrived < count:
                            arrival[arrived] = now
                            arrived += 1
                    else:
                        running += 1
                        context += cached[request] + prompt[request] + 1
                        growth += gain[request]
                        place = (turn + decodings[request]) % ring
                        after[request] = ends[place]
                        ends[place] = request
                ready = admitted - 1 if partial else admitted
                largest = max(largest, running)
        return now, busy, steps, decodes, largest, peak

    return jit(serve)


def _unchanged(function: Callable[..., Any]) -> Any:
    return function


plain = build(_unchanged)
"""The loop as Python; its sequences are lists."""


@lru_cache(maxsize=1)
def compiled() -> Any:
    """Build the loop as machine code; its sequences are arrays. Needs the extra `fast`."""
    from iomodel.counting.evaluation.numba_runner import compiled_function

    return build(compiled_function)
