"""A bounded cache of an instance, or of objects compared by identity, where `functools.lru_cache` does not do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Results by key, at most `size` of them; the oldest is dropped first.

    Threads may share a cache: of several that compute a result at once, all get the one that is stored first.

    >>> squares = BoundedCache[int](size=2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (2, 3, 4)], len(squares)
    ([4, 9, 16], 2)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._results: dict[Hashable, Value] = {}
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the result of a key, computed on first use."""
        try:
            return self._results[key]
        except KeyError:
            pass
        result = compute()
        with self._lock:
            while len(self._results) >= self.size and key not in self._results:
                del self._results[next(iter(self._results))]
            return self._results.setdefault(key, result)

    def __len__(self) -> int:
        return len(self._results)
