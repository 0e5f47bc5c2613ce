"""Immutable dictionaries: hashable, picklable, ready for JSON."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that cannot change after construction.

    >>> tiles = FrozenDict(block_q=128)
    >>> tiles["block_q"] = 64
    Traceback (most recent call last):
    ...
    TypeError: results are frozen; make a dict of it first
    >>> tiles == {"block_q": 128}, dict(tiles, block_q=64)
    (True, {'block_q': 64})
    """

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("results are frozen; make a dict of it first")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)
