"""Results of arrays of calls: their elements, one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import prod
from typing import Generic, TypeVar

import numpy as np

from iomodel.common.validation import index as in_digits
from iomodel.errors import InputError, shown

E = TypeVar("E")


class Elements(Generic[E]):
    """A result of an array of calls, whose element at an index is the result of that call alone."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The broadcast shape of all arguments."""

    @abstractmethod
    def element(self, place: tuple[int, ...]) -> E:
        """Return the result at one place."""

    @property
    def size(self) -> int:
        """Number of calls [-]."""
        return prod(self.shape)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[E]:
        """Go through all elements, the last axis fastest."""
        return map(self.element, np.ndindex(self.shape))

    def __getitem__(self, index: int | tuple[int, ...]) -> E:
        """Return the result of one call; negative indices count from the end."""
        return self.element(place_of(index if isinstance(index, tuple) else (index,), self.shape))


def place_of(index: tuple[object, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check an index of an array of this shape, and count from the start; raise InputError for any other."""
    whole = [in_digits(i) for i in index]
    known = [i if isinstance(i, int) and not isinstance(i, bool) else None for i in whole]
    if len(known) == len(shape):
        place = [i + n if i is not None and i < 0 else i for i, n in zip(known, shape, strict=True)]
        if all(i is not None and 0 <= i < n for i, n in zip(place, shape, strict=True)):
            return tuple(i for i in place if i is not None)
    raise InputError(f"index: {shown(index)} given; allowed: one index for each axis of {shape}")
