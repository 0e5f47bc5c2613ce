"""Dimensions of a sweep: fields with several values, or groups of fields that vary together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.studies.sweeps.fields import Values

POINTS = 2**20
"""Default points of a chunk: 8 MiB per quantity, tens of milliseconds of work, and few files."""

Block = tuple[int, ...]
"""The index of a chunk along each dimension."""


@dataclass(frozen=True, eq=False)
class Dimension:
    """A dimension with its name and the fields that vary along it."""

    name: str
    fields: Mapping[str, Values]

    @property
    def size(self) -> int:
        """Places along the dimension [-]."""
        return len(next(iter(self.fields.values())))

    @property
    def looped(self) -> bool:
        """True if the dimension has values other than numbers, so that each has a separate formula."""
        return any(isinstance(values, tuple) for values in self.fields.values())

    def at(self, place: int) -> dict[str, Any]:
        """Return the fields at one place as plain values."""
        return {
            name: values[place] if isinstance(values, tuple) else int(values[place])
            for name, values in self.fields.items()
        }


def axes_of(columns: Mapping[str, Values], zipped: Any) -> tuple[Dimension, ...]:
    """Build a dimension per field, or per group of `zipped`, in the order of the fields."""
    group_of: dict[str, tuple[str, list[str]]] = {}
    for name, members in _groups(zipped):
        for field in members:
            if field not in columns:
                raise InputError(
                    f"zipped: {shown(field)} has no sequence of values; allowed: {', '.join(columns) or 'none given'}"
                )
            if field in group_of:
                raise InputError(f"zipped: {field} is in two groups; allowed: one group for each field")
            group_of[field] = (name, members)
        lengths = {field: len(columns[field]) for field in members}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{field} has {length}" for field, length in lengths.items())
            raise InputError(f"zipped: {counts} values; allowed: as many in each")
    axes: dict[str, Dimension] = {}
    for field in columns:
        name, members = group_of.get(field, (field, [field]))
        if name in axes and field not in axes[name].fields:
            raise InputError(f"zipped: two dimensions are named {name}; allowed: a name for each")
        axes.setdefault(name, Dimension(name, {member: columns[member] for member in members}))
    return tuple(axes.values())


def _groups(zipped: Any) -> list[tuple[str, list[str]]]:
    """Return the groups with their names, by default the name of the first field."""
    if not isinstance(zipped, Mapping | Sequence | Set) or isinstance(zipped, str):
        raise InputError(f"zipped: {shown(zipped)} given; allowed: groups of fields, as [('q_len', 'kv_len')]")
    rows = zipped.items() if isinstance(zipped, Mapping) else ((None, members) for members in zipped)
    groups = []
    for name, members in rows:
        named = isinstance(members, Sequence) and not isinstance(members, str) and len(members)
        if not named or not all(isinstance(field, str) for field in members):
            raise InputError(f"zipped: {shown(members)} given; allowed: groups of fields, as [('q_len', 'kv_len')]")
        fields = list(members)
        groups.append((fields[0] if name is None else str(name), fields))
    return groups


def chunks_of(axes: Sequence[Dimension], chunk: Any) -> tuple[int, ...]:
    """Compute the size of a chunk along each dimension: the last dimensions complete, the first split evenly.

    >>> import numpy as np
    >>> chunks_of([Dimension("q_len", {"q_len": np.arange(30)}), Dimension("heads", {"heads": np.arange(40)})], 500)
    (10, 40)
    """
    if isinstance(chunk, Mapping):
        sizes = {axis.name: axis.size for axis in axes}
        for name in chunk:
            if name not in sizes:
                raise UnknownNameError("chunk", name, sizes)
        limits = {name: as_integer(f"chunk.{name}", size) for name, size in chunk.items()}
        return tuple(min(limits.get(name, size), size) for name, size in sizes.items())
    room = POINTS if chunk is None else as_integer("chunk", chunk)
    lengths = []
    for axis in reversed(axes):
        parts = ceil(axis.size / max(1, room))
        lengths.append(ceil(axis.size / parts))
        room //= lengths[-1]
    return tuple(reversed(lengths))


def blocks_of(shape: Sequence[int], chunks: Sequence[int]) -> Iterable[Block]:
    """Iterate over the chunks in order."""
    return product(*(range(ceil(size / step)) for size, step in zip(shape, chunks, strict=True)))


def slices_of(shape: Sequence[int], chunks: Sequence[int], block: Block) -> tuple[slice, ...]:
    """Return the places of a chunk along each dimension."""
    rows = zip(shape, chunks, block, strict=True)
    return tuple(slice(i * step, min(size, (i + 1) * step)) for size, step, i in rows)
