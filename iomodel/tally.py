"""All quantities of an algorithm compiled once for a kind of workload, and evaluated at many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr, Integer, Symbol

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.compiled import Compiled
from iomodel.counted import counted
from iomodel.counts import in_bytes
from iomodel.coverage import View
from iomodel.expressions import Expressions, Kind, check_kind, declared, formulas
from iomodel.masks import Count
from iomodel.nest import Nest, Per
from iomodel.symbols import BY_NAME, OPTIONS, WORKLOAD
from iomodel.workload import Attention, VarlenAttention

SUMS = ("hbm_bytes", "atomics", "flops", "useful_flops", "exps", "tanhs", "randoms")
"""Quantities that add up over sequences."""
PEAKS = ("footprint", "footprint_bytes")
"""Quantities of which the largest counts: one thread block at a time has the chip."""
ONCE: tuple[Per, ...] = ("call", "heads", "kv_heads")
"""What there is one of however many sequences a call has."""


class Values(NamedTuple):
    """Numbers for every quantity: sums by name of tensor or quantity, peaks, allocation of each kernel."""

    reads: Sequence[int]
    writes: Sequence[int]
    sums: Sequence[int]
    peaks: Sequence[int]
    allocated: Sequence[int]
    allocated_bytes: Sequence[int]


@dataclass(frozen=True)
class Formulas:
    """Compiled formulas whose counts without a formula (:class:`~iomodel.masks.Count`) are inputs of their own."""

    compiled: Compiled
    nodes: tuple[tuple[str, str, Compiled], ...]
    numbers: tuple[str, ...]
    tiles: tuple[str, ...]

    def scalars(self, workload: Attention, options: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
        """The exact integers of one call at given tiles."""
        point = (*workload.point, *options, *sizes)
        if not self.nodes:
            return self.compiled.scalars(*point)
        return self.compiled.scalars(*point, *self._counted(workload, point))

    def _counted(self, workload: Attention, point: tuple[int, ...]) -> Iterator[int]:
        for quantity, outer, sizes in self.nodes:
            u, v, group = sizes.scalars(*point)
            yield counted(quantity, outer, u, v, group, workload)

    def arrays(self, workload: Any, options: Sequence[int], sizes: Sequence[Any]) -> tuple[Any, ...]:
        """The same at arrays of lengths or of tiles; the numbers of the workload may be arrays."""
        return self.compiled.arrays(*workload, *options, *sizes)


def compile_formulas(outputs: Sequence[Expr], numbers: Sequence[str], tiles: Sequence[str]) -> Formulas:
    """Formulas over (workload, numbers, tiles), compiled."""
    inputs = [entry.symbol for entry in WORKLOAD] + [BY_NAME[name] for name in (*numbers, *tiles)]
    found: set[Count] = set().union(*(formula.atoms(Count) for formula in outputs))
    nodes = sorted(found, key=str)
    names = {node: Symbol(f"count_{i}", integer=True, nonnegative=True) for i, node in enumerate(nodes)}
    outputs = [formula.xreplace(names) for formula in outputs] if names else list(outputs)
    parts = []
    for node in nodes:
        quantity, outer, *sizes = node.args
        parts.append((str(quantity), str(outer), Compiled(sizes, inputs)))
    return Formulas(Compiled(outputs, [*inputs, *names.values()]), tuple(parts), tuple(numbers), tuple(tiles))


@dataclass(frozen=True)
class Tally:
    """The compiled quantities of (algorithm, kind, options), and the names of inputs and outputs."""

    formulas: Expressions
    tiles: tuple[str, ...]
    numbers: tuple[str, ...]
    kernels: int
    compiled: Formulas
    once: Compiled | None

    @cached_property
    def _slices(self) -> list[slice]:
        sizes = (len(self.formulas.reads), len(self.formulas.writes), len(SUMS), len(PEAKS), self.kernels, self.kernels)
        ends = list(accumulate(sizes))
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def split(self, values: Sequence[int]) -> Values:
        """A row of outputs by what they are."""
        return Values(*[values[part] for part in self._slices])

    def at(self, workload: Attention, options: Mapping[str, Any], sizes: Sequence[int]) -> Values:
        """The quantities of one call."""
        return self.split(self.compiled.scalars(workload, [options[name] for name in self.numbers], sizes))

    def over(self, workload: VarlenAttention, options: Mapping[str, Any], sizes: Sequence[int]) -> Values:
        """The quantities of a call of many sequences."""
        numbers = [options[name] for name in self.numbers]
        if self.compiled.nodes:
            rows = [self.compiled.scalars(sequence, numbers, sizes) for sequence in workload.sequences]
            columns: list[Any] = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
        else:
            q_lens, kv_lens, times = workload.counted
            point = workload.at(times, q_lens, kv_lens).values()
            columns = list(self.compiled.arrays(point, numbers, sizes))
        totals = self.split([total(column) for column in columns])
        highest = self.split([int(column.max()) for column in columns])
        totals = totals._replace(peaks=highest.peaks)
        if self.once is None:
            return totals
        again = len(workload.counted[0]) - 1  # counted with every pair of lengths, though there is one a call
        more = self.once.scalars(*workload.at(1, 1, 1).values(), *numbers, *sizes)
        return Values(
            *(
                [total - again * extra for total, extra in zip(column, extras, strict=True)]
                for column, extras in zip(totals, self.split(more), strict=True)
            )
        )


def total(column: Any) -> int:
    """The exact sum of an array of counts."""
    if column.dtype == object or column.size * int(np.abs(column).max()) >= 2**63:
        return sum(map(int, column))
    return int(column.sum())


@lru_cache(maxsize=256)
def tally(algorithm: str, kind: Kind, options: tuple[tuple[str, Any], ...]) -> Tally:
    """Compile all quantities for (algorithm, kind, options that shape a formula) once."""
    declaration = find_algorithm(algorithm)
    check_kind(declaration, kind)
    found, chosen = formulas(algorithm, kind, options), dict(options)
    nest, view = declared(declaration, kind, chosen), View(kind.mask, chosen["packed"])
    numbers = tuple(entry.name for entry in OPTIONS if entry.name in declaration.takes(kind.direction))

    sums = [getattr(found, name) for name in (*SUMS, *PEAKS)]
    every = [*found.reads.values(), *found.writes.values(), *sums, *_allocations(nest, view)]
    compiled = compile_formulas(every, numbers, found.tiles)
    inputs = compiled.compiled.inputs[: len(compiled.compiled.inputs) - len(compiled.nodes)]
    return Tally(found, found.tiles, numbers, len(nest), compiled, _once(found, nest, view, inputs))


def _allocations(nest: Nest, view: View, per: Sequence[Per] = tuple(counts.HOW_MANY)) -> list[Expr]:
    return [size for weight in (counts.elements, in_bytes) for size in counts.allocations(nest, view, weight, per)]


def _once(found: Expressions, nest: Nest, view: View, inputs: Sequence[Symbol]) -> Compiled | None:
    """The part of the outputs that does not repeat with the sequences of a call; None if there is no such part."""
    calls = tuple(kernel for kernel in nest if kernel.per == "call")
    moved = [
        {t.name: m for t, m in counts.moves(calls, view, kinds).items()} for kinds in (counts.READS, counts.WRITES)
    ]
    widths = {
        t.name: in_bytes(t.dtype) for kinds in (counts.READS, counts.WRITES) for t in counts.moves(calls, view, kinds)
    }
    traffic = Add(*(widths[name] * count for side in moved for name, count in side.items()))
    outputs = [
        side.get(name, Integer(0))
        for side, names in zip(moved, (found.reads, found.writes), strict=True)
        for name in names
    ]
    outputs += [traffic, *[Integer(0)] * (len(SUMS) - 1 + len(PEAKS)), *_allocations(nest, view, ONCE)]
    return Compiled(outputs, inputs) if any(output != 0 for output in outputs) else None
