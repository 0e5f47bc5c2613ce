"""The steps that a replica takes: a prefill, and decode steps whose context grows; each computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iomodel.decoder.layout import Layout
from iomodel.decoder.step import StepTime, step
from iomodel.hardware import Hardware
from iomodel.planning.service import Service

POINTS = 3
"""Contexts at which a decode step is computed, where the output is longer than that."""
CUTS = 32
"""Places where the contexts of an output are cut at most."""


def sampled(first: int, last: int, points: int = POINTS) -> list[int]:
    """All of first .. last where they are few, else so many of them, evenly spaced, with both ends.

    >>> sampled(1, 3), sampled(2049, 2303)
    ([1, 2, 3], [2049, 2176, 2303])
    """
    if last - first < points:
        return list(range(first, last + 1))
    return [first + (last - first) * place // (points - 1) for place in range(points)]


def mean(first: int, last: int, value: Callable[[int], float], points: int = POINTS) -> float:
    """The mean of a value over first .. last: exact where they are few, else by the trapezoid rule.

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
    """The mean over spans that follow one another, each by itself.

    >>> mean_between([(1, 101), (102, 102)], lambda context: 2.0 * min(context, 101))
    102.98...
    """
    lengths = [last - first + 1 for first, last in spans]
    means = [mean(first, last, value) for first, last in spans]
    return sum(length * each for length, each in zip(lengths, means, strict=True)) / sum(lengths)


class Steps:
    """The steps of one replica."""

    def __init__(self, service: Service, device: Hardware) -> None:
        self.service, self.device = service, device

    def prefill(self) -> StepTime:
        """One prompt by itself; only of its last token the logits are computed."""
        prompt = self.service.prompt
        return self._step(1, prompt, prompt)

    def occupied(self) -> float:
        """The time until the replica can start another prefill [s]: its longest stage, shared by all groups of ranks.

        A prompt keeps one data-parallel group busy; each of the others takes one of its own meanwhile.
        """
        return self.prefill().stage_seconds / self.service.layout.data_parallel

    def decode(self, batch: int, context: int) -> StepTime:
        """One token of each request of a batch that sees `context` keys, itself among them.

        A pipeline works on as many parts of the batch as it has stages, so a step is that of one part.
        """
        return self._step(-(-batch // self.service.layout.pipeline_parallel), 1, context)

    def decode_seconds(self, batch: int) -> float:
        """The mean time from a token of a request to its next, over the output [s].

        In a pipeline it is the latency of a part of the batch, or the time that all parts take in the longest stage.
        """

        def seconds(context: int) -> float:
            found = self.decode(batch, context)
            return max(found.seconds, found.stage_seconds * self.service.layout.pipeline_parallel)

        return mean_between(self._bends(), seconds)

    def _bends(self) -> list[tuple[int, int]]:
        """The contexts of the output, cut where a window is full or a chunk begins: between, steps grow evenly."""
        first, last = self.service.contexts
        cuts: set[int] = set()
        for layer in self.service.model.counted:
            window, chunk = layer.attention.window, layer.attention.chunk
            cuts |= {window} if window else set()
            cuts |= set(range(-(-first // chunk) * chunk, last, chunk)) if chunk else set()
        ends = sorted(cut for cut in cuts if first <= cut < last)[:CUTS]
        return list(zip([first, *(end + 1 for end in ends)], [*ends, last], strict=True))

    def _step(self, batch: int, q_len: int, kv_len: int) -> StepTime:
        service = self.service
        types = tuple(service.types.items())
        return _timed(_Same(service.model), _Same(self.device), batch, q_len, kv_len, service.layout, types)


@dataclass(frozen=True, eq=False)
class _Same:
    """A model or a device by identity: to compare their numbers takes longer than a look-up should."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=8192)
def _timed(
    model: _Same, device: _Same, batch: int, q_len: int, kv_len: int, layout: Layout, types: tuple[tuple[str, Any], ...]
) -> StepTime:
    return step(model.value, device.value, batch=batch, q_len=q_len, kv_len=kv_len, layout=layout, **dict(types))
