"""Plans of sweeps: the points and quantities, checked before the computation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import name_of
from iomodel.common.headers import package_version
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.mask_kind import CAUSAL, FULL
from iomodel.errors import InputError, shown
from iomodel.nests.algorithm import Algorithm, DeclaredName
from iomodel.studies.sweeps.axes import Block, Dimension, axes_of, blocks_of, chunks_of, slices_of
from iomodel.studies.sweeps.engine import engine_digest
from iomodel.studies.sweeps.fields import Values, check_names, read
from iomodel.workloads.workload_kinds import KINDS


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """The complete input of a sweep.

    Attributes
    ----------
    constants : mapping of field to value
        The fields with one value, such as a single algorithm.
    axes : tuple of Dimension
        The dimensions, in the order in which their fields were given.
    variables : tuple of str
        The quantities, `reads_K` and the like by the name of the tensor.
    chunks : tuple of int
        The size of a chunk along each dimension.
    solving : bool
        True if tiles are solved for, within a budget that is one of the fields.
    """

    constants: Mapping[str, Any]
    axes: tuple[Dimension, ...]
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

    @cached_property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms of the sweep, in order."""
        varied = [axis.fields["algorithm"] for axis in self.axes if "algorithm" in axis.fields]
        names = varied[0] if varied else [self.constants["algorithm"]]
        return tuple({name_of(name): name for name in names}.values())

    @cached_property
    def operation(self) -> str:
        """The kind of workload, the same for all algorithms."""
        kinds = {name: find_algorithm(name).answers for name in self.algorithms}
        for name, kind in kinds.items():
            if kind not in KINDS:
                raise InputError(f"algorithm: {name} given, for {kind}; allowed: one for {' or '.join(KINDS)}")
            if kind != kinds[self.algorithms[0]]:
                raise InputError(
                    f"algorithm: {self.algorithms[0]} given, for {kinds[self.algorithms[0]]}, and {name}, for {kind}; "
                    "allowed: algorithms of one kind of workload"
                )
        return kinds[self.algorithms[0]]

    @property
    def points(self) -> int:
        """Number of calls [-]."""
        return prod(self.shape)

    @property
    def block_count(self) -> int:
        """Number of chunks [-]."""
        return prod(ceil(size / step) for size, step in zip(self.shape, self.chunks, strict=True))

    def blocks(self) -> Iterable[Block]:
        """Iterate over the chunks, in order."""
        return blocks_of(self.shape, self.chunks)

    def slices(self, block: Block) -> tuple[slice, ...]:
        """Return the places of a chunk along each dimension."""
        return slices_of(self.shape, self.chunks, block)

    def combinations(self, slices: Sequence[slice] | None = None) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Yield each combination of the values that are no numbers, as an index of a chunk and the fields there.

        The index is a number along a looped dimension and a full slice along any other.
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
    def numeric(self) -> tuple[Dimension, ...]:
        """The dimensions with numbers alone."""
        return tuple(axis for axis in self.axes if not axis.looped)

    @cached_property
    def engine(self) -> str:
        """The digest of the modules that compute the sweep; a worker receives that of the process that asks."""
        return engine_digest()

    @cached_property
    def text(self) -> str:
        """The plan as JSON, long lists of numbers by their digest: plans with equal text have equal results."""
        axes = [
            {"name": axis.name, "fields": {field: _told(values) for field, values in axis.fields.items()}}
            for axis in self.axes
        ]
        constants = {field: plain(value) for field, value in sorted(self.constants.items())}
        data: dict[str, Any] = {"iomodel": package_version(), "engine": self.engine}
        declared = {name: find_algorithm(name) for name in self.algorithms}  # the engine has the shipped ones
        data["formulas"] = {name: _digest(algorithm) for name, algorithm in declared.items() if not algorithm.shipped}
        data |= {"constants": constants, "dimensions": axes, "chunks": self.chunks}
        return json.dumps({**data, "variables": self.variables, "solve": self.solving})

    @cached_property
    def digest(self) -> str:
        """The digest of the plan, with which each chunk of a store is signed."""
        return sha256(self.text.encode()).hexdigest()


def read_plan(
    algorithm: Any, quantities: Any, zipped: Any, chunk: Any, solving: bool, fields: Mapping[str, Any]
) -> SweepPlan:
    """Build the plan of a sweep from its arguments, with validated fields and dimensions."""
    given_algorithms = algorithm if isinstance(algorithm, list | tuple) else [algorithm]
    check_names(
        fields, solving, [declaration for declaration in given_algorithms if isinstance(declaration, Algorithm)]
    )
    if algorithm is None:
        raise InputError("algorithm: None given; allowed: a name, or a list of names")
    constants: dict[str, Any] = {}
    columns: dict[str, Values] = {}
    for name, argument in {"algorithm": algorithm, **fields}.items():
        constant, values = read(name, argument)
        if values is not None:
            columns[name] = values
        elif constant is not None:
            constants[name] = constant
    axes = axes_of(columns, zipped)
    return SweepPlan(constants, axes, _named(quantities), chunks_of(axes, chunk), solving)


def _named(quantities: Any) -> tuple[str, ...]:
    names = [quantities] if isinstance(quantities, str) else quantities
    if not isinstance(names, Sequence | Set) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"quantities: {shown(quantities)} given; allowed: names, such as ['hbm_bytes', 'flops']")
    return tuple(dict.fromkeys(names))


def plain(value: Any) -> Any:
    """Return a field as plain data."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, DeclaredName):
        return {"name": str(value), "sha256": _digest(value.declaration)}
    return value.item() if isinstance(value, np.generic) else value


def _digest(algorithm: Algorithm) -> str:
    """Return the digest of the nests of a declaration, which changes with the declaration."""
    options = {**algorithm.options, **algorithm.common}
    kinds = [FormulaKind(mask, direction) for mask in (FULL, CAUSAL) for direction in algorithm.directions]
    nests = [declared(algorithm, kind, options) for kind in kinds]
    return sha256(repr((nests, algorithm.options)).encode()).hexdigest()


def _told(values: Values) -> Any:
    if isinstance(values, tuple):
        return [plain(value) for value in values]
    if len(values) <= 64:
        return values.tolist()
    return {"count": len(values), "sha256": sha256(values.astype("<i8").tobytes()).hexdigest()}
