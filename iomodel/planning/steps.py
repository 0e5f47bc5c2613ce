"""Steps of a replica: prefill, and decode steps with growing context, each computed once.

A length or a batch of a plan stands for those near it: prompts vary, and engines pad batches. Kernels timed alone have
steps of up to 40 % where the rows of a product pass a multiple of its tile (from 256 to 264 rows on A100 and H100;
github.com/microsoft/vidur at 7d47513, data/profiling/compute), at places that differ between products and libraries.
Plans therefore interpolate between lengths that fill tiles, four for each factor of two, and between batches that are
powers of two, as simulations do. :func:`iomodel.step` times one step as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import log2
from typing import Any, NamedTuple

import numpy as np

from iomodel.common.cache import BoundedCache
from iomodel.devices.device import Hardware
from iomodel.models.spec import ModelSpec
from iomodel.planning.engines import step_host
from iomodel.planning.service import Service
from iomodel.planning.step.divided_cache import attended_seconds
from iomodel.planning.step.step import Logits, StepTime, step
from iomodel.planning.weights import stage_layers

POINTS = 3
"""Contexts at which a decode step is computed, for longer outputs."""
CUTS = 32
"""Most cuts in the contexts of an output."""
GROWN = 4
"""Growth of a context after which steps are computed anew [-]."""
TIMED = BoundedCache[tuple[ModelSpec, Hardware, StepTime]](8192)
"""Steps of all replicas; comparing the figures of models and devices is slower than a look-up by identity."""


def sampled(first: int, last: int, points: int = POINTS) -> list[int]:
    """List all of first .. last if they are few, else evenly spaced points including both ends.

    >>> sampled(1, 3), sampled(2049, 2303)
    ([1, 2, 3], [2049, 2176, 2303])
    """
    if last - first < points:
        return list(range(first, last + 1))
    return [first + (last - first) * index // (points - 1) for index in range(points)]


def mean(first: int, last: int, value: Callable[[int], float], points: int = POINTS) -> float:
    """Average a value over first .. last: exact if they are few, else by the trapezoid rule.

    >>> mean(1, 101, lambda context: 2.0 * context)
    102.0
    """
    places = sampled(first, last, points)
    values = [value(place) for place in places]
    if len(places) == last - first + 1:
        return sum(values) / len(values)
    parts = zip(places, places[1:], values, values[1:], strict=False)
    return sum((high - low) * (a + b) / 2 for low, high, a, b in parts) / (last - first)


def mean_between(spans: Sequence[tuple[int, int]], value: Callable[[int], float]) -> float:
    """Average a value over consecutive spans, each sampled separately.

    >>> mean_between([(1, 101), (102, 102)], lambda context: 2.0 * min(context, 101))
    102.98...
    """
    lengths = [last - first + 1 for first, last in spans]
    means = [mean(first, last, value) for first, last in spans]
    return sum(length * span_mean for length, span_mean in zip(lengths, means, strict=True)) / sum(lengths)


PER_OCTAVE = 4
"""Lengths of prefills that are computed for each factor of two."""


LENGTHS = np.array(sorted({int(2 ** (power / PER_OCTAVE)) for power in range(62 * PER_OCTAVE)}))
"""These lengths [tokens]."""


def around(tokens: Any) -> tuple[Any, Any]:
    """Return the lengths at and after numbers of tokens that prefills are computed for; arrays for an array.

    >>> around(2048), around(1000)
    ((2048, 2048), (861, 1024))
    """
    place = np.searchsorted(LENGTHS, tokens)
    low, high = LENGTHS[place - (LENGTHS[place] != tokens)], LENGTHS[place]
    return (low, high) if isinstance(tokens, np.ndarray) else (int(low), int(high))


def powers(batch: Any) -> tuple[Any, Any]:
    """Return the powers of two at and after batches; arrays for an array.

    >>> powers(64), powers(100)
    ((64, 64), (64, 128))
    """
    if isinstance(batch, np.ndarray):
        low = np.exp2(np.frexp(batch)[1] - 1).astype(np.int64)
        return low, np.where(low == batch, low, 2 * low)
    least = 1 << (int(batch).bit_length() - 1)
    return least, least if least == batch else 2 * least


Knots = Callable[[Any], tuple[Any, Any]]
"""Numbers at and after others, such as :func:`powers` and :func:`around`."""


def between(tokens: Any, timed: Callable[[int], tuple[float, ...]]) -> tuple[Any, ...]:
    """Interpolate times between the lengths around numbers of tokens; they never fall [s].

    >>> between(96, lambda length: (2.0 * length,)), between(np.array([96, 64]), lambda length: (2.0 * length,))
    ((192.0,), (array([192., 128.]),))
    """
    low, high = around(tokens)
    if isinstance(tokens, np.ndarray):
        share = (tokens - low) / np.maximum(1, high - low)
        lengths, places = np.unique([low, high], return_inverse=True)
        below, above = np.array([timed(int(length)) for length in lengths]).T[:, places.reshape(2, -1)].swapaxes(0, 1)
        return tuple(below + np.maximum(0.0, above - below) * share)
    if low == high:
        return timed(low)
    share = (tokens - low) / (high - low)
    return tuple(first + max(0.0, last - first) * share for first, last in zip(timed(low), timed(high), strict=True))


class Prefill(NamedTuple):
    """Times of a prefill, of its longest stage and of its attention, drafts and host apart [s], and its kernels [-]."""

    seconds: Any
    stage: Any
    attention: Any
    kernels: Any


class ReplicaSteps:
    """The steps of one replica for one load; :class:`iomodel.planning.load_steps.LoadSteps` has those for many."""

    def __init__(self, service: Service, device: Hardware) -> None:
        self.service, self.device = service, device
        self.draft = None if service.draft is None else ReplicaSteps(service.draft, device)
        self._prefills: dict[int, Prefill] = {}

    @property
    def cached(self) -> int:
        """Tokens of a prompt of the service that are cached before its prefill [-]."""
        return self.service.cached(self.service.prompt)

    @property
    def computed(self) -> Any:
        """Tokens of a prompt of the service that its prefill computes [-]."""
        return self.service.prompt - self.cached

    @property
    def output(self) -> Any:
        """Tokens of an output of the service [-]."""
        return self.service.output

    @property
    def decodes(self) -> Any:
        """Decode steps of a request of the service [-]."""
        return self.output - 1

    @property
    def groups(self) -> int:
        """Data-parallel groups of ranks with separate requests [-]."""
        return self.service.layout.data_parallel

    @property
    def host_seconds(self) -> float:
        """Time of the host between steps, in which the device waits [s]."""
        return step_host(self.service.engine, self.device)

    def prefill(self, prompt: int | None = None, batch: int = 1) -> StepTime:
        """Time the prefill of prompts, by default one of the service, with logits for their last tokens only.

        Tokens in the prefix cache are keys that are not computed again.
        """
        keys = prompt or self.service.prompt
        return self.chunk(keys - self.service.cached(keys), keys, batch)

    def prefill_seconds(self, batch: int = 1) -> tuple[Any, Any]:
        """Compute the time of prefills of the service and of their longest stage [s], between lengths that fill tiles.

        Tokens in the prefix cache are keys of each length. The device waits for its host once.
        """
        prefill = self.prefilled(batch)
        return prefill.seconds + self.host_seconds, prefill.stage + self.host_seconds

    def prefilled(self, batch: int = 1) -> Prefill:
        """Compute prefills of the service once for each batch, between lengths that fill tiles."""
        if batch not in self._prefills:
            self._prefills[batch] = self._prefilled(batch)
        return self._prefills[batch]

    def _prefilled(self, batch: int) -> Prefill:

        def timed(tokens: int) -> tuple[float, ...]:
            step = self.chunk(tokens, tokens + self.cached, batch)
            return step.seconds, step.stage_seconds, step.attention_seconds, step.kernels

        return Prefill(*between(self.computed, timed))

    def products_seconds(self, rows: Any, batch: int) -> Any:
        """Compute the time of all but attention and the output layer in steps with new tokens [s].

        It is interpolated between lengths that fill tiles.
        """

        def timed(tokens: int) -> tuple[float, ...]:
            step = self.chunk(tokens, tokens, batch)
            return (step.seconds - step.attention_seconds - step.output_seconds,)

        return between(rows, timed)[0]

    def first_token_seconds(self) -> Any:
        """Compute the time of a prefill of the service [s], that of its drafts and of loads from other memories too."""
        return self.load_seconds() + self.alone_seconds() + self.drafted_seconds()

    def alone_seconds(self) -> Any:
        """Compute the time of a prefill of the service in steps of as many tokens as its engine takes in one [s]."""
        service = self.service
        if service.engine is None and service.step_tokens is None:
            return self.prefill_seconds()[0]
        most = service.limits(self.device)[0]
        return between(self.computed, lambda tokens: (self._in_steps(tokens, most),))[0]

    def _in_steps(self, tokens: int, most: int) -> float:
        """Compute the time of a prefill in steps of `most` tokens; whole ones are interpolated between some [s]."""
        whole, rest = divmod(tokens, most)
        places = [place for place in (1, 2, 4, 16) if place < whole] + [whole] * (whole > 0)
        times = [self.chunk(most, self.cached + place * most).seconds for place in places]
        took = float(np.interp(np.arange(1, whole + 1), places, times).sum()) if whole else 0.0
        if rest:
            took += self.chunk(rest, self.cached + tokens).seconds
        return took + (whole + bool(rest)) * self.host_seconds

    def drafted_seconds(self) -> Any:
        """Compute the time in which the model that computes drafts, if there is one, prefills a prompt [s]."""
        return 0.0 if self.draft is None else self.draft.prefilled().seconds

    def load_seconds(self) -> float:
        """Compute the time to load what a prompt finds cached in the memory of the host and on disk [s].

        Devices load their shards at once, so that the fullest stage counts.
        """
        cache, service = self.service.prefix_cache, self.service
        if cache is None or not (cache.host_rate or cache.disk_rate):
            return 0.0
        device, host, disk = cache.tiers(service.prompt, service.page_size)
        stages = [Counter(layers) for layers in stage_layers(service.model, service.layout)]

        def longest(before: int, tokens: int, rate: float) -> float:
            return max(service.requests.behind(counted, before, tokens) for counted in stages) / rate

        return longest(device, host, cache.host_bandwidth) + longest(device + host, disk, cache.disk_bandwidth)

    def chunk(self, queries: int, keys: int, batch: int = 1) -> StepTime:
        """Time the prefill of a chunk of a prompt, with `keys` visible to its last token."""
        return self._step(batch, queries, keys)

    def chunk_seconds(self, queries: int, keys: int, batch: int = 1) -> tuple[float, float]:
        """Compute the time of a chunk and the part that depends on its keys [s], drafts included."""
        timed = [steps.chunk(queries, keys, batch) for steps in (self, self.draft) if steps is not None]
        return sum(each.seconds for each in timed), sum(attended_seconds(each) for each in timed)

    def output_seconds(self, rows: int, context: int = 1) -> float:
        """Compute the time of the output layer and its norm, for one token of each of some sequences [s].

        It is the same at any context; that of a step which is computed anyway costs nothing.
        """
        return self._step(rows, 1, context).output_seconds

    def occupied(self) -> Any:
        """Compute the time that a prefill keeps the replica [s]: its longest stage over all groups of ranks.

        A prompt occupies one data-parallel group; each of the others takes another prompt meanwhile.
        """
        return (self.prefill_seconds()[1] + self.drafted_seconds()) / self.groups

    def at_batches(self, batch: Any, timed: Callable[[ReplicaSteps, int], Any], knots: Knots = powers) -> Any:
        """Interpolate times between knots around a batch, by default powers of two; they never fall [s]."""
        low, high = knots(batch)
        below = timed(self, low)
        if low == high:
            return below
        return below + max(0.0, timed(self, high) - below) * (batch - low) / (high - low)

    def decode(self, batch: int, context: int) -> StepTime:
        """Time one step for each request of a batch with `context` visible keys, including the new one.

        A pipeline divides the batch into one part per stage, so a step is that of one part. With speculation the step
        verifies the drafts behind the new token.
        """
        return self._verified(batch, context, self.service.tokens_at_once - 1)

    def _verified(self, batch: int, context: int, more: int) -> StepTime:
        cache = self.service.prefix_cache
        shared = self.service.shared_tokens if cache is not None and cache.cascade else 0
        part = -(-batch // self.service.layout.pipeline_parallel)
        logits: Logits = "all" if more else "last"
        return self._step(part, 1 + more, self._within(context, more), logits, shared)

    def _within(self, context: int, more: int) -> int:
        """Return the keys of a step that verifies drafts; all tokens of a step are in one chunk."""
        layers = self.service.model.counted if more else ()
        chunks = [layer.attention.chunk for layer in layers if layer.attention is not None]
        return min([context + more, *(-(-context // chunk) * chunk for chunk in chunks if chunk)])

    def decode_seconds(self, batch: Any) -> Any:
        """Compute the mean time between tokens of a request, over the output [s]; see :meth:`decode_step_seconds`.

        With speculation it is the time of a step over its expected tokens; the host is included.
        """
        each = 1.0 if self.service.speculation is None else self.service.speculation.tokens_per_step
        return self.at_batches(batch, lambda steps, size: steps.mean_decode(size, each)) + self.host_seconds / each

    def mean_decode(self, batch: int, each: float) -> Any:
        """Average the decode steps of a batch over the output, each for some tokens [s]."""
        return mean_between(self.bends(), lambda context: self.decode_step_seconds(batch, context) / each)

    def beside(self, batch: int) -> Any:
        """Compute attention and the output layer of a decode step of a batch in the middle of the output [s]."""
        middle = sum(self.service.contexts) // 2
        return self.decode(batch, middle).attention_seconds + self.output_seconds(batch, middle)

    def decode_step_seconds(self, batch: int, context: int) -> float:
        """Compute the time between decode steps of a request [s], that of drafts too.

        In a pipeline this is the latency of one part of the batch, or the time of all parts in the longest stage.
        """
        stages = self.service.layout.pipeline_parallel
        timed = self.decode(batch, context)
        took = max(timed.seconds, timed.stage_seconds * stages)
        if self.service.speculation is None:
            return took
        alone = self._verified(batch, context, 0)  # more queries never take less
        return max(took, alone.seconds, alone.stage_seconds * stages) + self.draft_step_seconds(batch, context)

    def draft_step_seconds(self, batch: int, context: int) -> float:
        """Compute the time of all draft tokens of a step for each request [s]."""
        if self.draft is None:
            return 0.0
        own, drafts = self.service.layout, self.draft.service.layout
        groups = own.data_parallel // drafts.data_parallel  # each computes its own drafts
        one = self.draft.decode(-(-batch // (groups * own.pipeline_parallel)), context).seconds
        return (self.service.tokens_at_once - 1) * one

    def bends(self) -> list[tuple[int, int]]:
        """Split the contexts of the output where steps do not grow evenly.

        A window is full, a chunk begins, or contexts have grown so far that a short one filled no tile of keys.
        """
        first, last = self.service.contexts
        cuts = {first * GROWN**power for power in range(1, 1 + int(log2(last / first) / log2(GROWN)))}
        ends = sorted(cut for cut in cuts | self.full(first, last) if first <= cut < last)[:CUTS]
        return list(zip([first, *(end + 1 for end in ends)], [*ends, last], strict=True))

    def full(self, first: int, last: int) -> set[int]:
        """List contexts that fill a window, a chunk or the choice of an indexer; chunks from `first` to `last`."""
        cuts: set[int] = set()
        for layer in self.service.model.counted:
            if layer.attention is None:
                continue
            window, chunk = layer.attention.window, layer.attention.chunk
            kept = layer.attention.indexer
            cuts |= {kept.topk} if kept is not None else set()
            cuts |= {window} if window else set()
            cuts |= set(range(-(-first // chunk) * chunk, last, chunk)) if chunk else set()
        return cuts

    def _step(self, batch: int, q_len: int, kv_len: int, logits: Logits = "last", shared_keys: int = 0) -> StepTime:
        service, model, device = self.service, self.service.model, self.device
        asked: dict[str, Any] = {
            **service.types,
            "batch": batch,
            "q_len": q_len,
            "kv_len": kv_len,
            "layout": service.layout,
            "lora": service.lora,
            "engine": None if service.engine is None else service.engine.asked,
            "moe_backend": service.moe_backend,
            "logits": logits,
            "shared_keys": shared_keys,
        }
        # The entry keeps the model and the device alive, so that no other objects take their ids.
        key = id(model), id(device), *asked.items()
        return TIMED.get(key, lambda: (model, device, step(model, device, **asked)))[2]


class GroupSteps(ReplicaSteps):
    """The steps of data-parallel groups of ranks that are alike; numbers of sequences are those of one group."""

    def draft_step_seconds(self, batch: int, context: int) -> float:
        """Compute the time of all draft tokens of a step for each request of a group [s]."""
        return super().draft_step_seconds(batch * self.groups, context)

    def _step(self, batch: int, q_len: int, kv_len: int, logits: Logits = "last", shared_keys: int = 0) -> StepTime:
        return super()._step(batch * self.groups, q_len, kv_len, logits, shared_keys)


class BatchTimes:
    """Time of a decode step at any batch; non-decreasing in the batch, and at most proportional to it.

    At powers of two the time is the computed one, clamped to the range that an engine can reach: a batch is never
    faster than a smaller one (which could be padded to it), and never slower than twice its half (it could run in two
    steps). The load that a replica takes therefore grows with its batch, and a batch can be found by bisection.

    >>> times = BatchTimes(lambda batch: 1.0 + batch)
    >>> times(3), times(64)
    (4.0, 65.0)
    """

    def __init__(self, compute: Callable[[int], float]) -> None:
        self._compute = compute
        self._known: dict[int, float] = {}

    def __call__(self, batch: int) -> float:
        """Return the time at a batch [s]."""
        low = 1 << (batch.bit_length() - 1)
        below = self._knot(low)
        return below if low == batch else below + (self._knot(2 * low) - below) * ((batch - low) / low)

    def _knot(self, batch: int) -> float:
        if batch not in self._known:
            seconds = self._compute(batch)
            if batch > 1:
                half = self._knot(batch // 2)
                seconds = min(max(seconds, half), 2 * half)
            self._known[batch] = seconds
        return self._known[batch]
