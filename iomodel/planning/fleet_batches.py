"""Step times at every batch from those at powers of two: a straight line between two of them."""

from __future__ import annotations

from collections.abc import Callable


class BatchTimes:
    """The time of a decode step at any batch: it never falls as the batch grows, and never grows faster than the batch.

    It is as computed at powers of two, but for what no engine need put up with: a batch that is faster than a smaller
    one (the smaller one could be padded to it), or slower than twice its half (it could be run in two steps). So the
    load that a replica takes grows with its batch, and to search for a batch is to halve.

    >>> times = BatchTimes(lambda batch: 1.0 + batch)
    >>> times(3), times(64)
    (4.0, 65.0)
    """

    def __init__(self, compute: Callable[[int], float]) -> None:
        self._compute = compute
        self._known: dict[int, float] = {}

    def __call__(self, batch: int) -> float:
        """The time at a batch [s]."""
        low = 1 << (batch.bit_length() - 1)
        below = self._knot(low)
        return below if low == batch else below + (self._knot(2 * low) - below) * ((batch - low) / low)

    def _knot(self, batch: int) -> float:
        if batch not in self._known:
            found = self._compute(batch)
            if batch > 1:
                half = self._knot(batch // 2)
                found = min(max(found, half), 2 * half)
            self._known[batch] = found
        return self._known[batch]
