"""A nest of a linear layer folded once: exact counts as compiled formulas, and what a clock needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sympy import Add, Expr, Symbol, ceiling

from iomodel import counts
from iomodel.compiled import Compiled
from iomodel.counts import in_bytes
from iomodel.coverage import View
from iomodel.demand import Demand
from iomodel.demand_fold import Folded, fold
from iomodel.demands import demand_of
from iomodel.execution import PIPELINED
from iomodel.linear.nest import SHAPE, SIZES, TILES, Form, gemm
from iomodel.linear.pointwise import SHAPE as ROWS
from iomodel.linear.pointwise import pointwise
from iomodel.nest import Exp, Nest, Tensor

VIEW = View()


@dataclass(frozen=True)
class Moves:
    """What a layer moves and computes, exactly: elements by tensor, and bytes [elements], [B], [FLOP], [-]."""

    reads: Mapping[str, int]
    writes: Mapping[str, int]
    hbm_bytes: int
    flops: int
    exps: int
    footprint: int
    footprint_bytes: int


@dataclass(frozen=True)
class Tabulated:
    """The formulas of a nest, compiled; a point is the values of `inputs` in their order."""

    inputs: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    kernels: tuple[Folded, ...]
    exact: Compiled
    counts: Compiled
    sizes: Compiled

    def moves(self, point: Sequence[int]) -> Moves:
        """The exact counts at a point."""
        found = iter(self.exact.scalars(*point))
        reads = {name: next(found) for name in self.reads}
        writes = {name: next(found) for name in self.writes}
        return Moves(reads, writes, *found)

    def demands(self, point: Sequence[int]) -> tuple[Demand, ...]:
        """What each kernel asks of a device at a point."""
        counted, sized = iter(self.counts.scalars(*point)), iter(self.sizes.scalars(*point))
        return tuple(demand_of(kernel, counted, sized) for kernel in self.kernels)


def formulas(nest: Nest) -> dict[str, Expr]:
    """The exact quantities of a nest by name, tensors apart."""
    moved = _moved(nest)
    return {
        "hbm_bytes": Add(*(in_bytes(t.dtype) * count for side in moved for t, count in side.items())),
        "flops": counts.flops(nest, VIEW),
        "exps": counts.function_values(nest, VIEW, Exp),
        "footprint": counts.footprint(nest, VIEW),
        "footprint_bytes": counts.footprint(nest, VIEW, in_bytes),
    }


def traffic(nest: Nest) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """HBM reads and writes of a nest by tensor [elements]."""
    reads, writes = ({t.name: count for t, count in side.items()} for side in _moved(nest))
    return reads, writes


def _moved(nest: Nest) -> list[dict[Tensor, Expr]]:
    return [counts.moves(nest, VIEW, kinds) for kinds in (counts.READS, counts.WRITES)]


def _tabulated(nest: Nest, inputs: Mapping[str, Symbol]) -> Tabulated:
    reads, writes = traffic(nest)
    symbols = tuple(inputs.values())
    counted: list[Expr] = []
    sized: list[Expr] = []
    kernels = []
    for kernel in nest:
        folded, of_counts, of_sizes = fold(kernel, VIEW, PIPELINED)
        kernels.append(folded)
        counted += of_counts
        sized += of_sizes
    every = [*reads.values(), *writes.values(), *formulas(nest).values()]
    return Tabulated(
        tuple(inputs),
        tuple(reads),
        tuple(writes),
        tuple(kernels),
        Compiled([_whole(formula) for formula in every], symbols),
        Compiled([_whole(formula) for formula in counted], symbols),
        Compiled([_whole(formula) for formula in sized], symbols),
    )


def _whole(formula: Expr) -> Expr:
    """Bytes of elements that have no whole number of them (int4) are rounded up in the sum."""
    return ceiling(formula) if SIZES["weight_size"] in formula.free_symbols else formula


@lru_cache(maxsize=64)
def folded_gemm(form: Form) -> Tabulated:
    """The formulas of a linear layer, over its shape, element sizes and tiles."""
    return _tabulated(gemm(form), {**SHAPE, **SIZES, **TILES})


@lru_cache(maxsize=64)
def folded_pointwise(name: str) -> Tabulated:
    """The formulas of an elementwise kernel, over its shape and element sizes."""
    return _tabulated(pointwise(name), {**ROWS, **SIZES})
