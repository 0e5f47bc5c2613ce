"""Fields of a sweep, with their units and values along a dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from iomodel.algorithms import AlgorithmLike, list_algorithms, name_of
from iomodel.common.validation import as_integer
from iomodel.counting.arrays.calls import SIDES, least_of
from iomodel.counting.arrays.integers import as_integers
from iomodel.counting.options import known_options
from iomodel.devices.device import Hardware, hardware, list_hardware
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import OPTIONS, SHAPES, TILE_NAMES, TILES, Entry
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import known_mask
from iomodel.workloads.varlen import IntArray
from iomodel.workloads.workload_kinds import KINDS

Values = IntArray | tuple[Any, ...]
"""Numbers along a dimension, or names, masks and switches."""

LONGEST = 2**24
"""The most values of one field; a dimension is held in memory."""
OF_KIND = {name: frozenset({*kind.model_fields, *(SIDES if kind is Attention else ())}) for name, kind in KINDS.items()}
"""The fields of a workload of each kind, with the separate widths of a window."""
_SHAPE = tuple(
    dict.fromkeys(entry for name, fields in OF_KIND.items() for entry in SHAPES[name] if entry.name in fields)
)
MEMORY = {"sram_bytes": ("on-chip memory of a thread block", "B"), "sram_elements": ("on-chip memory", "elements")}
"""Budgets that are numbers."""
SOLVER = ("hardware", *MEMORY, "alignment", "min_block_kv", "epsilon")
"""The fields of sweeps that solve for tiles."""
_RECORDED = ("dtype", "mask", "direction", "batch", "heads", "groups")
DEFAULTS = {
    operation: {name: kind.model_fields[name].default for name in _RECORDED if name in kind.model_fields}
    for operation, kind in KINDS.items()
}
"""The defaults of each kind of workload, recorded in the result."""


def numbers() -> dict[str, Entry]:
    """List the fields that are numbers: they enter a formula as symbols, so arrays of them cost little."""
    return {entry.name: entry for entry in (*_SHAPE, *OPTIONS, *TILES)}


def switches(declarations: Iterable[AlgorithmLike] = ()) -> tuple[str, ...]:
    """List the options of algorithms that are no numbers."""
    known = numbers()
    algorithms = [*(name for operation in KINDS for name in list_algorithms(operation)), *declarations]
    return tuple(name for name in known_options(algorithms) if name not in known)


def known_fields(solving: bool, declarations: Iterable[AlgorithmLike] = ()) -> tuple[str, ...]:
    """List the fields of a sweep, those of the call first."""
    known = numbers()
    shape = dict.fromkeys(name for kind in KINDS.values() for name in kind.model_fields if name not in known)
    tiles = () if solving else TILE_NAMES
    counts = [name for name in known if name not in TILE_NAMES and not (solving and name in SIDES)]
    return (*counts, *shape, *tiles, *switches(declarations), *(SOLVER if solving else ()))


def is_number(field: str) -> bool:
    """Check that a field is a count, computed in arrays."""
    return field in numbers() or field in MEMORY or field in ("alignment", "min_block_kv")


def meaning(field: str) -> tuple[str, str] | None:
    """Return the meaning and the unit of a number, or None for a name or a switch."""
    entry = numbers().get(field)
    return (entry.meaning, entry.unit) if entry is not None else MEMORY.get(field)


def read(field: str, argument: Any) -> tuple[Any, Values | None]:
    """Read a field as (constant, None) or (None, values); InputError names the field.

    >>> read("q_len", range(1, 4))
    (None, array([1, 2, 3]))
    """
    if not is_number(field):
        if isinstance(argument, np.ndarray):
            argument = argument.tolist()
        if not isinstance(argument, list | tuple | range):
            return _named(field, argument), None
        return None, tuple(_named(field, value) for value in _filled(field, argument))
    if argument is None or (hasattr(argument, "__index__") and not getattr(argument, "ndim", 0)):
        return (None if argument is None else as_integer(field, argument, least_of(field))), None
    return None, _whole(field, argument)


def _named(field: str, value: Any) -> Any:
    if field == "algorithm" and isinstance(value, Algorithm):
        return name_of(value)
    if field == "hardware" and value is not None and (not isinstance(value, str) or value not in list_hardware()):
        return value if isinstance(value, Hardware) else hardware(value)  # what a file says now
    return known_mask(value) if field == "mask" and value is not None else value


def _filled(field: str, values: Any) -> Any:
    """Check that a value has a positive length that fits in memory."""
    if not len(values):
        raise InputError(f"{field}: no value given; allowed: a value, or a sequence of at least one")
    if len(values) > LONGEST:
        raise InputError(f"{field}: {len(values):,} values given; allowed: up to {LONGEST:,} along a dimension")
    return values


def _whole(field: str, argument: Any) -> IntArray:
    """Return integers along one dimension."""
    if isinstance(argument, str | bytes | Mapping) or not hasattr(argument, "__len__"):
        raise InputError(f"{field}: {shown(argument)} given; allowed: an integer, or a sequence of integers")
    filled = _filled(field, argument)
    array = np.asarray(as_integers(field, np.asarray(filled) if isinstance(filled, range) else filled, least_of(field)))
    if array.ndim != 1:
        raise InputError(f"{field}: an array of shape {array.shape} given; allowed: integers along one dimension")
    return array.astype(np.int64)


def check_names(fields: Mapping[str, Any], solving: bool, declarations: Iterable[AlgorithmLike] = ()) -> None:
    """Raise UnknownNameError unless a sweep takes every field; None is as good as not given."""
    allowed = known_fields(solving, declarations)
    for name, argument in fields.items():
        if name in SOLVER and not solving and argument is not None:
            raise InputError(f"{name}: given without solve; allowed: with solve=True, which finds the tiles")
        if name in TILE_NAMES and solving and argument is not None:
            raise InputError(f"{name}: given with solve; allowed: no tiles, because solve chooses them")
        if name not in (*allowed, *SOLVER, *TILE_NAMES):
            raise UnknownNameError("field of a sweep", name, allowed)
