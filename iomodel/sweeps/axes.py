"""The dimensions of a sweep: fields with many values, those of one group side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.sweeps.fields import Values
from iomodel.validation import as_integer

POINTS = 2**20
"""Points of a chunk where none are told: 8 MiB a quantity, tens of milliseconds of work, and files are not many."""

Block = tuple[int, ...]
"""Which chunk, along each dimension."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension: its name, and the fields that go along it."""

    name: str
    fields: Mapping[str, Values]

    @property
    def size(self) -> int:
        """Places along the dimension [-]."""
        return len(next(iter(self.fields.values())))

    @property
    def looped(self) -> bool:
        """Whether it holds more than numbers: each place then has a formula of its own."""
        return any(isinstance(values, tuple) for values in self.fields.values())

    def at(self, place: int) -> dict[str, Any]:
        """The fields at one place, as plain values."""
        return {
            name: values[place] if isinstance(values, tuple) else int(values[place])
            for name, values in self.fields.items()
        }


def axes_of(columns: Mapping[str, Values], zipped: Any) -> tuple[Axis, ...]:
    """One dimension for each field, or for each group of `zipped`, in the order in which the fields are given."""
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
            told = ", ".join(f"{field} has {length}" for field, length in lengths.items())
            raise InputError(f"zipped: {told} values; allowed: as many in each")
    axes: dict[str, Axis] = {}
    for field in columns:
        name, members = group_of.get(field, (field, [field]))
        if name in axes and field not in axes[name].fields:
            raise InputError(f"zipped: two dimensions are named {name}; allowed: a name for each")
        axes.setdefault(name, Axis(name, {member: columns[member] for member in members}))
    return tuple(axes.values())


def _groups(zipped: Any) -> list[tuple[str, list[str]]]:
    """The groups with their names: of the first field where none is told."""
    rows = list(zipped.items()) if isinstance(zipped, Mapping) else None
    if rows is None and isinstance(zipped, Iterable) and not isinstance(zipped, str):
        try:
            rows = [(None, members) for members in zipped]
        except Exception:  # it does not give what it holds
            rows = None
    if rows is None:
        raise InputError(f"zipped: {shown(zipped)} given; allowed: groups of fields, as [('q_len', 'kv_len')]")
    found = []
    for name, members in rows:
        fields = list(members) if isinstance(members, Sequence) and not isinstance(members, str) else []
        if not fields or not all(isinstance(field, str) for field in fields):
            raise InputError(f"zipped: {shown(members)} given; allowed: groups of fields, as [('q_len', 'kv_len')]")
        found.append((fields[0] if name is None else str(name), fields))
    return found


def chunks_of(axes: Sequence[Axis], chunk: Any) -> tuple[int, ...]:
    """How many places of each dimension a chunk has: the last dimensions whole, the first cut into even parts.

    >>> import numpy as np
    >>> chunks_of([Axis("q_len", {"q_len": np.arange(30)}), Axis("heads", {"heads": np.arange(40)})], 500)
    (10, 40)
    """
    if isinstance(chunk, Mapping):
        sizes = {axis.name: axis.size for axis in axes}
        for name in chunk:
            if name not in sizes:
                raise UnknownNameError("chunk", name, sizes)
        told = {name: as_integer(f"chunk.{name}", size) for name, size in chunk.items()}
        return tuple(min(told.get(name, size), size) for name, size in sizes.items())
    room = POINTS if chunk is None else as_integer("chunk", chunk)
    found = []
    for axis in reversed(axes):
        parts = ceil(axis.size / max(1, room))
        found.append(ceil(axis.size / parts))
        room //= found[-1]
    return tuple(reversed(found))


def blocks_of(shape: Sequence[int], chunks: Sequence[int]) -> Iterable[Block]:
    """Every chunk in order, without a list of them."""
    return product(*(range(ceil(size / step)) for size, step in zip(shape, chunks, strict=True)))


def slices_of(shape: Sequence[int], chunks: Sequence[int], block: Block) -> tuple[slice, ...]:
    """The places that a chunk holds along each dimension."""
    rows = zip(shape, chunks, block, strict=True)
    return tuple(slice(i * step, min(size, (i + 1) * step)) for size, step, i in rows)
