"""Hashes of frozen dataclasses, computed once per instance."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


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
