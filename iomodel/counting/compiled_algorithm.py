"""Compiled quantities of an algorithm for one kind of workload, evaluated at any number of workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.enumerated import MaskedRows, counted
from iomodel.counting.evaluation.array_engine import narrowed
from iomodel.counting.evaluation.compiled import Compiled, StoredFormulas
from iomodel.counting.evaluation.outputs import output_of
from iomodel.counting.kinds import FormulaKind, check_kind
from iomodel.counting.quantities import ALLOCATIONS, PEAKS, SUMS
from iomodel.counting.store import obtain, record
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import SHAPES
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Mixed, Shape

if TYPE_CHECKING:
    from iomodel.counting.expressions import Expressions


COUNT = "count_"
"""Prefix of the inputs of formulas that stand for counts without a closed form."""
Node = tuple[str, str, Compiled]
"""A count without a closed form: the quantity, the outer axis, and the sizes of both tiles and of the group."""


def enumerated(node: Node, point: Sequence[Any], rows: MaskedRows, widths: Mapping[str, Any] = FrozenDict()) -> Any:
    """Return a count without a closed form at arrays of numbers, counted once for each distinct set of them.

    `widths` are those of a window, as arrays, that replace the sides of the mask.
    """
    quantity, outer, cut = node
    tiles = cut.arrays(*(value if place in cut.read else 1 for place, value in enumerate(point)))
    columns = np.broadcast_arrays(*tiles, rows.q_len, rows.kv_len, rows.page_size, *widths.values())
    points = list(zip(*(column.ravel().tolist() for column in columns), strict=True))
    known = {}
    for at in set(points):
        u, v, group, q_len, kv_len, page_size, *sides = at
        mask = rows.mask.model_copy(update=dict(zip(widths, sides, strict=True))) if sides else rows.mask
        known[at] = counted(quantity, outer, u, v, group, MaskedRows(q_len, kv_len, page_size, mask))
    values = np.empty(len(points), dtype=object)
    values[:] = [known[at] for at in points]
    return narrowed(values.reshape(columns[0].shape))


class Quantities(NamedTuple):
    """The values of all quantities: traffic by tensor, sums, peaks and the allocation of each kernel."""

    reads: Sequence[int]
    writes: Sequence[int]
    sums: Sequence[int]
    peaks: Sequence[int]
    allocated: Sequence[int]
    allocated_bytes: Sequence[int]

    @property
    def by_name(self) -> dict[str, int]:
        """Every quantity by name, without the traffic of single tensors."""
        largest = (max(self.allocated), max(self.allocated_bytes))
        return dict(zip((*SUMS, *PEAKS, *ALLOCATIONS), (*self.sums, *self.peaks, *largest), strict=True))


@record
@dataclass(frozen=True)
class Formulas:
    """A set of compiled formulas in which counts without a closed form are separate inputs."""

    compiled: Compiled
    nodes: tuple[Node, ...]
    numbers: tuple[str, ...]
    tiles: tuple[str, ...]

    def scalars(self, workload: Shape, options: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the exact integers of one call at given tiles."""
        point = (*workload.point, *options, *sizes)
        if not self.nodes:
            return self.compiled.scalars(*point)
        return self.compiled.scalars(*point, *self._counted(workload, point))

    def read(self, point: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of a workload on which the values depend."""
        return tuple(point) if self.nodes else tuple(point[i] for i in self.compiled.read if i < len(point))

    def _counted(self, workload: Shape, point: tuple[int, ...]) -> Iterator[int]:
        assert isinstance(workload, Attention)  # only a mask has counts without a formula
        rows = MaskedRows(workload.q_len, workload.kv_len, workload.page_size or 1, workload.mask)
        for quantity, outer, sizes in self.nodes:
            u, v, group = sizes.scalars(*point)
            yield counted(quantity, outer, u, v, group, rows)

    def over(
        self, workload: Any, options: Sequence[Any], sizes: Sequence[Any], constants: bool = False
    ) -> tuple[Any, ...]:
        """Return the integers at arrays of options and sizes, of one call or of many.

        With `constants`, a formula that no array enters may remain a number.
        """
        point = (*workload.point, *options, *sizes)
        counts: list[Any] = []
        if self.nodes:
            page_size = 1 if workload.page_size is None else workload.page_size
            rows = MaskedRows(workload.q_len, workload.kv_len, page_size, workload.mask)
            counts = [enumerated(node, point, rows) for node in self.nodes]
        return self.compiled.arrays(*point, *counts, constants=constants)

    def arrays(self, workload: Any, options: Sequence[int], sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return the integers at arrays of lengths or tiles; the numbers of the workload may be arrays."""
        return self.compiled.arrays(*workload, *options, *sizes)


@record
@dataclass(frozen=True)
class CompiledQuantities:
    """The compiled formulas of all quantities of one algorithm, with the names of inputs and outputs.

    `dtypes` are the kinds of dtype of the tensors of `reads`, then of `writes`; None for one that changes its dtype.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    dtypes: tuple[str | None, ...]
    tiles: tuple[str, ...]
    numbers: tuple[str, ...]
    kernels: int
    compiled: Formulas
    once: Compiled | None


@dataclass(frozen=True)
class CompiledAlgorithm:
    """The compiled quantities of one (algorithm, kind, options)."""

    algorithm: Algorithm
    kind: FormulaKind
    options: tuple[tuple[str, Any], ...]
    quantities: CompiledQuantities

    def __reduce__(self) -> Any:
        """Pickle the inputs alone: compiled code is looked up, or built, where it is read."""
        return tally, (self.algorithm, self.kind, self.options)

    @cached_property
    def formulas(self) -> Expressions:
        """The quantities as expressions."""
        from iomodel.counting.expressions import formulas

        return formulas(self.algorithm, self.kind, self.options)

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tensors that are read."""
        return self.quantities.reads

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the tensors that are written."""
        return self.quantities.writes

    @property
    def tiles(self) -> tuple[str, ...]:
        """Names of the tiles that the algorithm takes."""
        return self.quantities.tiles

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the options that are inputs of the formulas."""
        return self.quantities.numbers

    @property
    def compiled(self) -> Formulas:
        """The formulas."""
        return self.quantities.compiled

    @cached_property
    def _slices(self) -> list[slice]:
        kernels = self.quantities.kernels
        sizes = (len(self.reads), len(self.writes), len(SUMS), len(PEAKS), kernels, kernels)
        ends = list(accumulate(sizes))
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def outputs_of(self, quantity: str, tensor: str | None = None) -> tuple[tuple[int, ...], str]:
        """Return the outputs of the formulas that make up a quantity, and how they are joined: "+" or "Maximum"."""
        reads, writes, sums, peaks, *allocated = (tuple(range(part.start, part.stop)) for part in self._slices)
        if tensor is not None:
            names, places = (self.reads, reads) if quantity == "reads" else (self.writes, writes)
            return (places[names.index(tensor)],), "+"
        totals = {"hbm_reads": reads, "hbm_writes": writes, "hbm_elements": (*reads, *writes)}
        if quantity in totals:
            return totals[quantity], "+"
        if quantity in ALLOCATIONS:
            return allocated[ALLOCATIONS.index(quantity)], "Maximum"
        return (dict(zip((*SUMS, *PEAKS), (*sums, *peaks), strict=True))[quantity],), "+"

    def output(self, quantity: str, tensor: str | None = None) -> tuple[Compiled, tuple[str, ...]]:
        """Return the formula of one quantity or of the traffic of one tensor, and the names of its inputs."""
        if (quantity, tensor) not in self._outputs:
            shape = SHAPES[self.kind.operation]
            counts = [f"{COUNT}{place}" for place in range(len(self.compiled.nodes))]
            names = [*(entry.name for entry in shape), *self.numbers, *self.tiles, *counts]
            text, places = output_of(self.compiled.compiled.text, *self.outputs_of(quantity, tensor))

            def build() -> Compiled:
                from iomodel.nests.symbols import BY_NAME

                formula = getattr(self.formulas, quantity)
                return Compiled([formula if tensor is None else formula[tensor]], [BY_NAME[names[i]] for i in places])

            formula = StoredFormulas(text, 1, None if counts else build)
            self._outputs[quantity, tensor] = formula, tuple(names[place] for place in places)
        return self._outputs[quantity, tensor]

    @cached_property
    def _outputs(self) -> dict[tuple[str, str | None], tuple[Compiled, tuple[str, ...]]]:
        return {}

    def split(self, values: Sequence[int]) -> Quantities:
        """Split a row of outputs into named quantities."""
        return Quantities(*[values[part] for part in self._slices])

    def at(self, workload: Shape, options: Mapping[str, Any], sizes: Sequence[int]) -> Quantities:
        """Return the quantities of one call."""
        return self.split(self.compiled.scalars(workload, [options[name] for name in self.numbers], sizes))

    def over(self, workload: Mixed, options: Mapping[str, Any], sizes: Sequence[int]) -> Quantities:
        """Return the quantities of a call of many shapes, such as sequences."""
        numbers = [options[name] for name in self.numbers]
        if self.compiled.nodes:
            rows = [self.compiled.scalars(sequence, numbers, sizes) for sequence in workload.sequences]
            columns: list[Any] = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
        else:
            columns = list(self.compiled.arrays(workload.columns, numbers, sizes))
        totals = self.split([total(column) for column in columns])
        highest = self.split([int(column.max()) for column in columns])
        totals = totals._replace(peaks=highest.peaks)
        once = self.quantities.once
        if once is None:
            return totals
        again = len(workload.sequences) - 1  # counted with every distinct shape, though there is one a call
        more = once.scalars(*workload.unit, *numbers, *sizes)
        return Quantities(
            *(
                [total - again * extra for total, extra in zip(column, extras, strict=True)]
                for column, extras in zip(totals, self.split(more), strict=True)
            )
        )


def total(column: Any) -> int:
    """Return the exact sum of an array of counts."""
    if column.dtype == object or column.size * int(np.abs(column).max()) >= 2**63:
        return sum(map(int, column))
    return int(column.sum())


@lru_cache(maxsize=256)
def tally(algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]) -> CompiledAlgorithm:
    """Return the compiled quantities of (algorithm, kind, options that shape a formula)."""
    check_kind(algorithm, kind)

    def build() -> CompiledQuantities:
        from iomodel.counting.compile import compiled_quantities

        return compiled_quantities(algorithm, kind, options)

    return CompiledAlgorithm(algorithm, kind, options, obtain(algorithm.shipped, "quantities", (kind, options), build))
