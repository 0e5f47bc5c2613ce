"""Checks, broadcasting and indexing of arguments that are an integer or an array of integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iomodel.common.quantities import quantity
from iomodel.common.validation import LARGEST, as_integer, index
from iomodel.errors import InputError, shown

MOST_AXES = 32
"""Most axes of an array that NumPy broadcasts."""
LONG = 2**19
"""Least elements of an array whose check may wait until its use, part by part."""


def as_integers(name: str, value: Any, least: int = 1, late: bool = False) -> Any:
    """Return an int or an array of integers from `least` to LARGEST; raise InputError with the name and first index.

    With `late`, the result is used later and is a copy. An array of LONG elements or more is not copied, and its
    range is left unchecked for the caller.

    >>> as_integers("q_len", [1, 2, 0])
    Traceback (most recent call last):
    ...
    iomodel.errors.InputError: q_len: 0 given, at index (2,); allowed: integers from 1 to 10^18
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


def _read(name: str, value: Any) -> Any:
    """Return a list without texts such as "8k" in it, which become the integers that they stand for."""
    if isinstance(value, list | tuple):
        return [_read(name, item) if isinstance(item, list | tuple | str) else item for item in value]
    return quantity(name, value) if isinstance(value, str) else value


def _array(name: str, value: Any, least: int) -> Any:
    try:
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = np.asarray(value := _read(name, value))
    except ValueError:  # ragged; nested too deep
        raise InputError(f"{name}: {shown(value)} given; {allowed(least)}, or an array of them") from None
    if array.ndim > MOST_AXES:
        raise InputError(f"{name}: an array of {array.ndim} axes given; allowed: up to {MOST_AXES}")
    listed = isinstance(value, list | tuple) and array.dtype != object
    elements = np.asarray(value, dtype=object) if listed else array
    if elements.dtype == object:
        integral = all(
            isinstance(index(element), int) and not isinstance(element, bool | np.bool_) for element in elements.flat
        )
        if array.dtype == object and integral and array.size:
            check_range(name, array, min(array.flat), max(array.flat), least)  # before the conversion to int64
    else:
        integral = array.dtype.kind in "iu" and not isinstance(value, np.ma.MaskedArray)
    if array.size and not integral:
        raise InputError(f"{name}: {shown(value)} given; {allowed(least)}, or an array of them")
    if array.dtype.kind not in "iuO":  # empty, or a list of integers of which NumPy made floats
        return elements.reshape(array.shape)
    return array


def allowed(least: int = 1) -> str:
    """Describe the allowed values of an element."""
    return f"allowed: integers from {least} to 10^18"


def check_range(name: str, array: Any, low: int, high: int, least: int = 1, start: tuple[int, ...] = ()) -> None:
    """Raise InputError with the first index out of range; the array begins at `start` of a larger one."""
    if low >= least and high <= LARGEST:
        return
    where = tuple(map(int, np.argwhere((array < least) | (array > LARGEST))[0]))
    place = tuple(map(sum, zip(where, start, strict=True))) if start else where
    raise InputError(f"{name}: {shown(int(array[where]))} given, at index {place}; {allowed(least)}")


def common_shape(arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the broadcast shape of all arguments; raise InputError with their shapes if there is none."""
    for name, value in arguments.items():
        if np.ndim(value) > MOST_AXES:
            raise InputError(f"{name}: an array of {np.ndim(value)} axes given; allowed: up to {MOST_AXES}")
    try:
        return np.broadcast_shapes(*(np.shape(value) for value in arguments.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in arguments.items() if np.ndim(value))
        raise InputError(
            f"{shapes}: these shapes do not broadcast; allowed: equal lengths or 1, axis by axis"
        ) from None


def at_place(value: Any, place: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the value of an argument at an index of the common shape."""
    return np.broadcast_to(value, shape)[place].item() if isinstance(value, np.ndarray) else value


def frozen(values: Any, shape: tuple[int, ...]) -> Any:
    """Return values in a shape, as an array that cannot be changed."""
    shaped = values.reshape(shape)
    shaped.setflags(write=False)
    return shaped
