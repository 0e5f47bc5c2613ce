"""Bands: pairs of positions that lie between two diagonals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Band:
    """The pairs in which outer position p sees the inner positions p + first .. p + last; None is unbounded.

    The bounds are integers, or expressions in formulas.
    """

    first: Any = None
    last: Any = None

    @classmethod
    def around(cls, diagonal: Any, left: Any, right: Any) -> Band:
        """Return the band with `left` and `right` positions visible beside a diagonal; None is unbounded."""
        return cls(None if left is None else diagonal - left, None if right is None else diagonal + right)

    def transposed(self) -> Band:
        """Return the same pairs with the roles of the two axes exchanged."""
        return Band(None if self.last is None else -self.last, None if self.first is None else -self.first)

    def span(self, first: Any, last: Any, length: int) -> tuple[Any, Any]:
        """Return the range of an inner axis that the outer positions first .. last see, empty if start >= stop.

        Elementwise for arrays. The range has no hole, because each position sees an interval that moves with it.

        >>> start, stop = Band(None, 0).span(4, 7, length=6)
        >>> int(start), int(stop)
        (0, 6)
        """
        start = first * 0 if self.first is None else np.maximum(0, first + self.first)
        stop = last * 0 + length if self.last is None else np.minimum(length, last + self.last + 1)
        return start, stop
