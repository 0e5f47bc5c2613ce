"""What a sweep may go over: every field, its unit, and its values along a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iomodel.algorithms import list_algorithms
from iomodel.arrays.calls import SIDES, least_of
from iomodel.arrays.integers import as_integers
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.expressions import known_options
from iomodel.hardware import Hardware, hardware, list_hardware
from iomodel.symbols import OPTIONS, TILES, WORKLOAD, Entry
from iomodel.validation import as_integer
from iomodel.workload import Attention, IntArray, known_mask

Values = IntArray | tuple[Any, ...]
"""Numbers along a dimension, or names, masks and switches."""

LONGEST = 2**24
"""The most values of one field: a dimension is held whole."""
TILE_NAMES = tuple(entry.name for entry in TILES)
NUMBER_OPTIONS = tuple(entry.name for entry in OPTIONS)
_SHAPE = tuple(entry for entry in WORKLOAD if entry.name in Attention.model_fields or entry.name in SIDES)
NUMBERS: Mapping[str, Entry] = {entry.name: entry for entry in (*_SHAPE, *OPTIONS, *TILES)}
"""The fields that are numbers: they enter a formula as symbols, so arrays of them cost little."""
MEMORY = {"sram_bytes": ("on-chip memory of a thread block", "B"), "sram_elements": ("on-chip memory", "elements")}
"""Budgets that are numbers."""
SOLVER = ("hardware", *MEMORY, "alignment", "min_block_kv", "epsilon")
"""What only a sweep that solves takes."""
DEFAULTS = {name: Attention.model_fields[name].default for name in ("dtype", "mask", "direction", "batch", "heads")}
"""What a call is unless it is told, and a result says."""


def switches() -> tuple[str, ...]:
    """The options of algorithms that are no numbers."""
    return tuple(name for name in known_options(list_algorithms()) if name not in NUMBERS)


def known_fields(solving: bool) -> tuple[str, ...]:
    """Every field that a sweep takes, the calls' first."""
    shape = [name for name in Attention.model_fields if name not in NUMBERS]
    tiles = () if solving else TILE_NAMES
    numbers = [name for name in NUMBERS if name not in TILE_NAMES and not (solving and name in SIDES)]
    return (*numbers, *shape, *tiles, *switches(), *(SOLVER if solving else ()))


def is_number(field: str) -> bool:
    """Whether a field is a count, of which arrays are computed at once."""
    return field in NUMBERS or field in MEMORY or field in ("alignment", "min_block_kv")


def meaning(field: str) -> tuple[str, str] | None:
    """What a number means and its unit, or None for a name or a switch."""
    entry = NUMBERS.get(field)
    return (entry.meaning, entry.unit) if entry is not None else MEMORY.get(field)


def read(field: str, given: Any) -> tuple[Any, Values | None]:
    """A field as (constant, None) or (None, values); InputError with the field's name.

    >>> read("q_len", range(1, 4))
    (None, array([1, 2, 3]))
    """
    if not is_number(field):
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if not isinstance(given, list | tuple | range):
            return _named(field, given), None
        return None, tuple(_named(field, value) for value in _filled(field, given))
    if given is None or (hasattr(given, "__index__") and not getattr(given, "ndim", 0)):
        return (None if given is None else as_integer(field, given, least_of(field))), None
    return None, _whole(field, given)


def _named(field: str, value: Any) -> Any:
    if field == "hardware" and value is not None and (not isinstance(value, str) or value not in list_hardware()):
        return value if isinstance(value, Hardware) else hardware(value)  # what a file says now
    return known_mask(value) if field == "mask" and value is not None else value


def _filled(field: str, given: Any) -> Any:
    """What has a length, if that is from 1 up and can be held."""
    if not len(given):
        raise InputError(f"{field}: no value given; allowed: a value, or a sequence of at least one")
    if len(given) > LONGEST:
        raise InputError(f"{field}: {len(given):,} values given; allowed: up to {LONGEST:,} along a dimension")
    return given


def _whole(field: str, given: Any) -> IntArray:
    """Integers along one dimension."""
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__len__"):
        raise InputError(f"{field}: {shown(given)} given; allowed: an integer, or a sequence of integers")
    filled = _filled(field, given)
    array = np.asarray(as_integers(field, np.asarray(filled) if isinstance(filled, range) else filled, least_of(field)))
    if array.ndim != 1:
        raise InputError(f"{field}: an array of shape {array.shape} given; allowed: integers along one dimension")
    return array.astype(np.int64)


def check_names(fields: Mapping[str, Any], solving: bool) -> None:
    """Raise UnknownNameError unless a sweep takes every field; None is as good as not given."""
    allowed = known_fields(solving)
    for name, given in fields.items():
        if name in SOLVER and not solving and given is not None:
            raise InputError(f"{name}: given without solve; allowed: with solve=True, which finds the tiles")
        if name in TILE_NAMES and solving and given is not None:
            raise InputError(f"{name}: given with solve; allowed: without, for the tiles are what is found")
        if name not in (*allowed, *SOLVER, *TILE_NAMES):
            raise UnknownNameError("field of a sweep", name, allowed)
