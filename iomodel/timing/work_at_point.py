"""Work of an algorithm's kernels, folded once (:mod:`iomodel.timing.fold_work`) and evaluated at many points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from iomodel.common.arithmetic import anywhere, larger, smaller
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.store import obtain, record
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED, Execution
from iomodel.timing.kernel_work import KernelWork, MatrixWork, TensorTraffic
from iomodel.workloads.attention import Attention
from iomodel.workloads.workload import Shape


@record
@dataclass(frozen=True)
class FoldedKernel:
    """A kernel whose formulas are compiled: its products by their axes m, n and k, its tensors, its outer loop.

    A `strided` kernel loads and stores single elements, any other those of rows of at most `single_keys` keys.
    A `serpentine` kernel streams its tensors up and down; the blocks of an `ordered` one add to a sum in turn.
    """

    title: str
    products: tuple[tuple[str, str, str], ...]
    tensors: tuple[tuple[str, bool, bool], ...]
    outer: str | None
    masked: bool
    strided: bool = False
    serpentine: bool = False
    single_keys: int = 0
    ordered: bool = False


@record
@dataclass(frozen=True)
class Demands:
    """The compiled work formulas of all kernels of an algorithm."""

    kernels: tuple[FoldedKernel, ...]
    counts: Formulas
    sizes: Formulas
    numbers: tuple[str, ...]
    tiles: tuple[str, ...]

    def at(
        self, workload: Shape, padded: Shape, options: Mapping[str, Any], tiles: Mapping[str, int]
    ) -> tuple[KernelWork, ...]:
        """Evaluate the work of one call, with matrix products over rows as wide as those of `padded`."""
        numbers = [options[name] for name in self.numbers]
        point = [tiles[name] for name in self.tiles]
        counted = iter(self.counts.scalars(workload, numbers, point))
        sized = iter(self.sizes.scalars(padded, numbers, point))
        work = [demand_of(kernel, counted, sized) for kernel in self.kernels]
        return tuple(demand for demand in work if demand.moved)  # a kernel without traffic is not launched

    def over(
        self,
        workload: Any,
        padded: Any,
        options: Mapping[str, Any],
        tiles: Mapping[str, Any],
        constants: bool = False,
        places: Any = None,
    ) -> tuple[KernelWork, ...]:
        """Evaluate the work at arrays of tiles and options, of one call or of many, as floats.

        With `constants`, work that is the same at all points may remain a number. `places` selects points of the
        result, some of them several times.
        """
        numbers = [options[name] for name in self.numbers]
        point = [tiles[name] for name in self.tiles]
        counts = self.counts.over(workload, numbers, point, constants)
        sizes = self.sizes.over(padded, numbers, point, constants)
        if places is not None:
            counts, sizes = (tuple(np.asarray(value)[places] for value in values) for values in (counts, sizes))
        return self._work(counts, sizes)

    def _work(self, counts: Iterable[Any], sizes: Iterable[Any]) -> tuple[KernelWork, ...]:
        counted, sized = iter(as_floats(counts)), iter(as_floats(sizes))
        work = [demand_of(kernel, counted, sized) for kernel in self.kernels]
        return tuple(demand for demand in work if demand.moved)


def as_floats(values: Iterable[Any]) -> list[Any]:
    """Convert arrays of counts to floats; counts beyond 2**53 are rounded."""
    return [value.astype(np.float64) if isinstance(value, np.ndarray) else value for value in values]


def demand_of(kernel: FoldedKernel, counted: Iterator[Any], sized: Iterator[Any]) -> KernelWork:
    """Read the work of a folded kernel from the values of its formulas in compilation order, numbers or arrays."""
    products = tuple(
        MatrixWork(next(counted), axes, (next(sized), next(sized), next(sized))) for axes in kernel.products
    )
    exps, scores, gradients, randoms, staged, atomic, blocks, trips, parts, exps_once, footprint = (
        next(counted) for _ in range(11)
    )
    moved = tuple(
        TensorTraffic(name, requested, smaller(requested, distinct), larger(1, instances), again, along)
        for name, again, along in kernel.tensors
        for requested, distinct, instances in [(next(counted), next(counted), next(counted))]
        if anywhere(requested)
    )
    tile, inner = next(sized), next(sized)
    return KernelWork(
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
        larger(1, parts),
        exps_once,
        footprint,
        strided=kernel.strided,
        serpentine=kernel.serpentine,
        single_keys=kernel.single_keys,
        ordered=kernel.ordered,
    )


@lru_cache(maxsize=256)
def demands(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], execution: Execution
) -> Demands:
    """Return the demands of (algorithm, kind, options that shape its nest), compiled."""

    def build() -> Demands:
        from iomodel.timing.compile_work import compiled_demands

        return compiled_demands(algorithm, kind, options, execution)

    shared = algorithm.execution.get(kind.direction, PIPELINED)
    return obtain(algorithm.shipped if folds_alike(execution, shared) else None, "demands", (kind, options), build)


def folds_alike(execution: Execution, other: Execution) -> bool:
    """Check that the nests of an algorithm fold to the same work under two executions."""
    return execution is other or (execution.serial, execution.spread) == (other.serial, other.spread)


def widened(workload: Attention, head_dim: int, value_dim: int) -> Attention:
    """Widen the rows of a call to those for which the kernel was compiled."""
    if (head_dim, value_dim) == (workload.head_dim, workload.value_dim):
        return workload
    return workload.model_copy(update={"head_dim": head_dim, "value_dim": value_dim})
