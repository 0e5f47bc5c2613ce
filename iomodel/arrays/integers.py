"""Arguments that may be one integer or an array of them: checked, broadcast, and taken at an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iomodel.errors import InputError, shown
from iomodel.validation import LARGEST, as_integer, index

MOST_AXES = 32
"""Axes that NumPy broadcasts."""
LONG = 2**20
"""Elements from which an array may be looked through when it is used, part by part, in place of before."""


def as_integers(name: str, value: Any, least: int = 1, late: bool = False) -> Any:
    """An int, or an array of integers from `least` to LARGEST; InputError with the name and the first index.

    With `late`, the answer is used later: it is a copy, but for an array of LONG elements or more, of which the range
    is left to whoever uses it too.

    >>> as_integers("q_len", [1, 2, 0])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: q_len: 0 given, at index (2,); allowed: integers from 1 to 1000000000000000000
    """
    if not isinstance(value, list | tuple) and not hasattr(value, "__array__"):
        return as_integer(name, value, least)
    array = _array(name, value, least)
    if not array.ndim:
        return as_integer(name, array.item(), least)
    if array.size and not (late and array.size >= LONG and array.dtype == np.int64):
        check_range(name, array, int(array.min()), int(array.max()), least)
    if array.dtype != np.int64:  # a narrower type would wrap, or refuse to meet a larger number
        return array.astype(np.int64)
    return array.copy() if late and array.size < LONG else array


def _array(name: str, value: Any, least: int) -> Any:
    try:
        array = np.asarray(value)
    except Exception:  # ragged; nested too deep; an __array__ that fails
        raise InputError(f"{name}: {shown(value)} given; {allowed(least)}, or an array of them") from None
    if array.ndim > MOST_AXES:
        raise InputError(f"{name}: an array of {array.ndim} axes given; allowed: up to {MOST_AXES}")
    listed = isinstance(value, list | tuple) and array.dtype != object
    elements = np.asarray(value, dtype=object) if listed else array
    if elements.dtype == object:
        whole = all(isinstance(index(one), int) and not isinstance(one, bool | np.bool_) for one in elements.flat)
        if array.dtype == object and whole and array.size:
            check_range(name, array, min(array.flat), max(array.flat), least)  # before they are narrowed
    else:
        whole = array.dtype.kind in "iu" and not isinstance(value, np.ma.MaskedArray)
    if array.size and not whole:
        raise InputError(f"{name}: {shown(value)} given; {allowed(least)}, or an array of them")
    if array.dtype.kind not in "iuO":  # empty, or a list of integers of which NumPy made floats
        return elements.reshape(array.shape)
    return array


def allowed(least: int = 1) -> str:
    """What an element may be."""
    return f"allowed: integers from {least} to {LARGEST}"


def check_range(name: str, array: Any, low: int, high: int, least: int = 1, start: tuple[int, ...] = ()) -> None:
    """InputError with the first index unless all elements are in range; the array begins at `start`."""
    if low >= least and high <= LARGEST:
        return
    where = tuple(map(int, np.argwhere((array < least) | (array > LARGEST))[0]))
    place = tuple(map(sum, zip(where, start, strict=True))) if start else where
    raise InputError(f"{name}: {shown(int(array[where]))} given, at index {place}; {allowed(least)}")


def common_shape(given: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape that all arguments broadcast to; InputError names those that do not."""
    for name, value in given.items():
        if np.ndim(value) > MOST_AXES:
            raise InputError(f"{name}: an array of {np.ndim(value)} axes given; allowed: up to {MOST_AXES}")
    try:
        return np.broadcast_shapes(*(np.shape(value) for value in given.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in given.items() if np.ndim(value))
        raise InputError(
            f"{shapes}: these shapes do not broadcast; allowed: equal lengths or 1, axis by axis"
        ) from None


def at_place(value: Any, place: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The value that an argument has at an index of the common shape."""
    return np.broadcast_to(value, shape)[place].item() if isinstance(value, np.ndarray) else value
