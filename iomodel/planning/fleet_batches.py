"""Step times at every batch, interpolated linearly between powers of two."""

from __future__ import annotations

from collections.abc import Callable


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
