"""Caches of an instance, a device or a hash, where `functools.lru_cache` does not do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import wraps
from threading import Lock
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
MOST = 1024
"""Number of cached results per function of a device; the oldest is dropped first."""


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


def cached_hash(kind: type[T]) -> type[T]:
    """Compute the hash of each instance of a frozen dataclass once.

    An instance is pickled by its fields alone, because the hash of a string differs between processes.

    >>> from dataclasses import dataclass
    >>> @cached_hash
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: int
    >>> hash(Point(1)) == hash(Point(1)), vars(Point(1))
    (True, {'x': 1})
    """
    compute = kind.__hash__

    def hashed(self: Any) -> int:
        value: int | None = self.__dict__.get("_hash")
        if value is None:
            value = self.__dict__["_hash"] = compute(self)
        return value

    def state(self: Any) -> dict[str, Any]:
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    kind.__hash__ = hashed  # type: ignore[method-assign]
    kind.__getstate__ = state  # type: ignore[method-assign]
    return kind


def per_device(function: F) -> F:
    """Memoize `function(device, *more)` by the identity of the device, whose figures are slow to hash, and `more`.

    >>> from iomodel.devices.device import Hardware, hardware
    >>> @per_device
    ... def name(device: Hardware) -> str:
    ...     print("looked up")
    ...     return device.name
    >>> gpu = hardware("t4")
    >>> name(gpu), name(gpu)
    looked up
    ('NVIDIA T4', 'NVIDIA T4')
    """
    results = BoundedCache[tuple[object, Any]](MOST)

    @wraps(function)
    def cached(device: object, *more: Any) -> Any:
        # The entry keeps the device alive, so that no other object takes its id.
        return results.get((id(device), *more), lambda: (device, function(device, *more)))[1]

    return cast(F, cached)
