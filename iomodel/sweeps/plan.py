"""The plan of a sweep: what is asked of which points, checked before anything is computed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

from iomodel.errors import InputError, shown
from iomodel.sweeps.axes import Axis, Block, axes_of, blocks_of, chunks_of, slices_of
from iomodel.sweeps.fields import Values, check_names, read


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that the answer depends on.

    Attributes
    ----------
    constants : mapping of field to value
        The fields that are the same everywhere, the algorithm among them.
    axes : tuple of Axis
        The dimensions, in the order in which their fields were given.
    variables : tuple of str
        The quantities, `reads_K` and the like by the name of the tensor.
    chunks : tuple of int
        Places of each dimension in a chunk.
    solving : bool
        Whether the tiles are found, within a budget that is one of the fields.
    """

    constants: Mapping[str, Any]
    axes: tuple[Axis, ...]
    variables: tuple[str, ...]
    chunks: tuple[int, ...]
    solving: bool = False

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Places along each dimension."""
        return tuple(axis.size for axis in self.axes)

    @property
    def points(self) -> int:
        """How many calls are asked about [-]."""
        return prod(self.shape)

    @property
    def block_count(self) -> int:
        """How many chunks there are [-]."""
        return prod(ceil(size / step) for size, step in zip(self.shape, self.chunks, strict=True))

    def blocks(self) -> Iterable[Block]:
        """The chunks, in order."""
        return blocks_of(self.shape, self.chunks)

    def slices(self, block: Block) -> tuple[slice, ...]:
        """The places of a chunk along each dimension."""
        return slices_of(self.shape, self.chunks, block)

    def combinations(self, slices: Sequence[slice] | None = None) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Each way to choose what is no number, within some places: an index of a chunk, and the fields there.

        The index is a number where a dimension is looped over and all of it elsewhere.
        """
        within = slices if slices is not None else [slice(0, size) for size in self.shape]
        places = [
            range(part.start, part.stop) if axis.looped else (None,)
            for axis, part in zip(self.axes, within, strict=True)
        ]
        for chosen in product(*places):
            fields = dict(self.constants)
            for axis, place in zip(self.axes, chosen, strict=True):
                fields |= {} if place is None else axis.at(place)
            index = [slice(None) if i is None else i - part.start for i, part in zip(chosen, within, strict=True)]
            yield tuple(index), fields

    @cached_property
    def numeric(self) -> tuple[Axis, ...]:
        """The dimensions along which there are numbers alone."""
        return tuple(axis for axis in self.axes if not axis.looped)

    @cached_property
    def text(self) -> str:
        """The plan as JSON, long lists of numbers by their digest: two plans with one text have one answer."""
        axes = [
            {"name": axis.name, "fields": {field: _told(values) for field, values in axis.fields.items()}}
            for axis in self.axes
        ]
        constants = {field: plain(value) for field, value in sorted(self.constants.items())}
        told = {"iomodel": package_version(), "constants": constants, "dimensions": axes, "chunks": self.chunks}
        return json.dumps({**told, "variables": self.variables, "solve": self.solving})


def read_plan(
    algorithm: Any, quantities: Any, zipped: Any, chunk: Any, solving: bool, fields: Mapping[str, Any]
) -> Plan:
    """What the arguments of a sweep ask for, fields and dimensions checked; the variables as they were named."""
    check_names(fields, solving)
    if algorithm is None:
        raise InputError("algorithm: None given; allowed: a name, or a list of names")
    constants: dict[str, Any] = {}
    columns: dict[str, Values] = {}
    for name, given in {"algorithm": algorithm, **fields}.items():
        constant, values = read(name, given)
        if values is not None:
            columns[name] = values
        elif constant is not None:
            constants[name] = constant
    axes = axes_of(columns, zipped)
    return Plan(constants, axes, _named(quantities), chunks_of(axes, chunk), solving)


def _named(quantities: Any) -> tuple[str, ...]:
    given = [quantities] if isinstance(quantities, str) else quantities
    names = list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"quantities: {shown(quantities)} given; allowed: names, such as ['hbm_bytes', 'flops']")
    return tuple(dict.fromkeys(names))


def plain(value: Any) -> Any:
    """A field as JSON has it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.item() if isinstance(value, np.generic) else value


def _told(values: Values) -> Any:
    if isinstance(values, tuple):
        return [plain(value) for value in values]
    if len(values) <= 64:
        return values.tolist()
    return {"count": len(values), "sha256": sha256(values.astype("<i8").tobytes()).hexdigest()}


def package_version() -> str:
    """The version that computes, as results and stores tell it."""
    try:
        return version("iomodel")
    except PackageNotFoundError:
        return "unknown"
