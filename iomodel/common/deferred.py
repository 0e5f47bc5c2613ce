"""Dataclasses with fields that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self


def nothing() -> None:
    """Return None, the default of a field that is computed when it is first read."""


class Deferred:
    """A dataclass, some fields of which may be computed when they are first read.

    Such a field has no default on the class; a default factory is allowed. Equality, `repr`, plain data, copies and
    pickles read every field. Two threads that read a field at once may both compute it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square(Deferred):
    ...     side: int
    ...     area: int
    >>> square = Square.deferring({"area": lambda square: square.side**2}, side=3)
    >>> "area" in vars(square), square.area, square == Square(3, 9)
    (False, 9, True)
    """

    @classmethod
    def deferring(cls, later: Mapping[str, Callable[[Any], Any]], **known: Any) -> Self:
        """Make an instance of the known fields, and of functions of the instance that compute the others."""
        made = object.__new__(cls)
        made.__dict__.update(known, _later=later)
        return made

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            compute = self.__dict__.get("_later", {}).get(name)
            if compute is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = self.__dict__[name] = compute(self)
            return value

    def __getstate__(self) -> dict[str, Any]:
        kind: Any = type(self)
        return {field.name: getattr(self, field.name) for field in fields(kind)}
