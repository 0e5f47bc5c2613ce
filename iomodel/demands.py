"""The demands of an algorithm: its nests folded once (:mod:`iomodel.demand_fold`), and evaluated often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Expr

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.coverage import View
from iomodel.demand import Demand, Moved, Product
from iomodel.demand_fold import Folded, fold
from iomodel.execution import Execution
from iomodel.expressions import Kind, declared
from iomodel.symbols import OPTIONS, TILES
from iomodel.tally import Formulas, compile_formulas
from iomodel.workload import Attention


@dataclass(frozen=True)
class Demands:
    """The demands of all kernels of an algorithm, compiled."""

    kernels: tuple[Folded, ...]
    counts: Formulas
    sizes: Formulas
    numbers: tuple[str, ...]
    tiles: tuple[str, ...]

    def at(
        self, workload: Attention, padded: Attention, options: Mapping[str, Any], tiles: Mapping[str, int]
    ) -> tuple[Demand, ...]:
        """The demands of one call; matrix products over rows as wide as those of `padded`."""
        numbers = [options[name] for name in self.numbers]
        point = [tiles[name] for name in self.tiles]
        counted = iter(self.counts.scalars(workload, numbers, point))
        sized = iter(self.sizes.scalars(padded, numbers, point))
        found = [demand_of(kernel, counted, sized) for kernel in self.kernels]
        return tuple(demand for demand in found if demand.moved)  # a kernel that moves nothing is not launched


def demand_of(kernel: Folded, counted: Iterator[int], sized: Iterator[int]) -> Demand:
    """The demand of a folded kernel, from the numbers of its formulas in the order in which they were compiled."""
    products = tuple(
        Product(next(counted), (p.m.name, p.n.name, p.k.name), (next(sized), next(sized), next(sized)))
        for p in kernel.products
    )
    exps, scores, gradients, randoms, staged, atomic, blocks, trips, parts, exps_once, footprint = (
        next(counted) for _ in range(11)
    )
    moved = tuple(
        Moved(name, requested, min(requested, distinct), max(1, instances), again)
        for name, again in kernel.tensors
        for requested, distinct, instances in [(next(counted), next(counted), next(counted))]
        if requested
    )
    tile, inner = next(sized), next(sized)
    return Demand(
        kernel.title,
        products,
        exps,
        scores,
        gradients,
        randoms,
        staged,
        atomic,
        moved,
        blocks,
        trips,
        None if kernel.outer is None else (kernel.outer, tile),
        inner if kernel.masked else None,
        max(1, parts),
        exps_once,
        footprint,
    )


@lru_cache(maxsize=256)
def demands(name: str, kind: Kind, options: tuple[tuple[str, Any], ...], execution: Execution) -> Demands:
    """Fold the nest of (algorithm, kind, options that shape it), once."""
    chosen, found = dict(options), find_algorithm(name)
    view = View(kind.mask, chosen["packed"])
    counted: list[Expr] = []
    sized: list[Expr] = []
    kernels = []
    for kernel in declared(found, kind, chosen):
        folded, counts, sizes = fold(kernel, view, execution)
        if not all(count == 0 for count in counts):
            kernels.append(folded)
            counted += counts
            sized += sizes
    used = set().union(*(expr.free_symbols for expr in (*counted, *sized)))
    tiles = tuple(entry.name for entry in TILES if entry.symbol in used)
    numbers = tuple(entry.name for entry in OPTIONS if entry.name in found.takes(kind.direction))
    return Demands(
        tuple(kernels),
        compile_formulas(counted, numbers, tiles),
        compile_formulas(sized, numbers, tiles),
        numbers,
        tiles,
    )


def widened(workload: Attention, head_dim: int, value_dim: int) -> Attention:
    """The call with rows as wide as the kernel was compiled for."""
    if (head_dim, value_dim) == (workload.head_dim, workload.value_dim):
        return workload
    return workload.model_copy(update={"head_dim": head_dim, "value_dim": value_dim})
