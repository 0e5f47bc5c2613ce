"""What each kernel of an algorithm asks of each resource of a GPU, folded from its nest once and evaluated often.

Beside the exact counts (:mod:`iomodel.counts`) this takes what a clock needs: full tiles where the matrix instructions
pad a ragged one, thread blocks, trips of the innermost loop, bytes by tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Integer, Mul

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counts import HOW_MANY, READS, WRITES, atomics, in_bytes, moves, tile_elements
from iomodel.coverage import View
from iomodel.execution import Execution
from iomodel.expressions import Kind, declared
from iomodel.nest import (
    Axis,
    Elementwise,
    Exp,
    Guard,
    Hold,
    Kernel,
    Load,
    Loop,
    MatMul,
    Path,
    Random,
    Statement,
    Tanh,
    Tensor,
    loops,
    walk,
)
from iomodel.plan import Formulas, compile_formulas
from iomodel.symbols import OPTIONS, TILES
from iomodel.tensors import key, query, value
from iomodel.workload import Attention

ONE = Integer(1)
SCORES = frozenset({query.name, key.name})


@dataclass(frozen=True)
class Product:
    """A matrix product on a tile: how often, its axes m, n, k and their extents in full tiles [rows]."""

    runs: int
    axes: tuple[str, str, str]
    extents: tuple[int, int, int]

    @property
    def flops(self) -> int:
        """FLOPs with every tile full [FLOP]."""
        m, n, k = self.extents
        return 2 * m * n * k * self.runs


@dataclass(frozen=True)
class Moved:
    """The reads or the writes of a tensor in one kernel: bytes asked for, bytes that it has, how many there are of it.

    `again` says that one block goes over it several times.
    """

    name: str
    requested: int
    distinct: int
    instances: int
    again: bool


@dataclass(frozen=True)
class Demand:
    """What one kernel asks for, over all batches and heads.

    Attributes
    ----------
    products : tuple of Product
        Matrix products.
    exps, scores, gradients, randoms : int
        Special-function results; scores that a softmax goes over, those whose gradient is taken; random numbers [-].
    staged : int
        Bytes loaded to shared memory beside matrix products [B].
    atomic_bytes : int
        Bytes added atomically [B].
    moved : tuple of Moved
        Traffic by tensor.
    blocks : int
        Thread blocks [-].
    trips : int
        Trips of innermost loops that multiply [-].
    outer, inner : tuple of (axis, tile) or None
        The loop that blocks share out and the masked one inside it.
    parts : int
        Blocks that share an outer tile.
    sequences : tuple of (Demand, Attention)
        The parts of a launch over sequences of different lengths.
    """

    title: str
    products: tuple[Product, ...]
    exps: int
    scores: int
    gradients: int
    randoms: int
    staged: int
    atomic_bytes: int
    moved: tuple[Moved, ...]
    blocks: int
    trips: int
    outer: tuple[str, int] | None
    inner: int | None
    parts: int
    sequences: tuple[tuple[Demand, Attention], ...] = ()

    @property
    def requested_bytes(self) -> int:
        """What the thread blocks ask of the memory system [B]."""
        return sum(moved.requested for moved in self.moved)

    @property
    def distinct_bytes(self) -> int:
        """Each byte that the kernel touches counted once [B]."""
        return sum(moved.distinct for moved in self.moved)


@dataclass(frozen=True)
class _Folded:
    """The formulas of one kernel, in the order in which they are compiled."""

    title: str
    products: tuple[MatMul, ...]
    tensors: tuple[tuple[str, bool], ...]
    outer: str | None
    masked: bool


@dataclass(frozen=True)
class Demands:
    """The demands of all kernels of an algorithm, compiled."""

    kernels: tuple[_Folded, ...]
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
        found = [_demand(kernel, counted, sized) for kernel in self.kernels]
        return tuple(demand for demand in found if demand.moved)  # a kernel that moves nothing is not launched


def _demand(kernel: _Folded, counted: Iterator[int], sized: Iterator[int]) -> Demand:
    products = tuple(
        Product(next(counted), (p.m.name, p.n.name, p.k.name), (next(sized), next(sized), next(sized)))
        for p in kernel.products
    )
    exps, scores, gradients, randoms, staged, atomic, blocks, trips, parts = (next(counted) for _ in range(9))
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
        folded, counts, sizes = _fold(kernel, view, execution)
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


def _fold(kernel: Kernel, view: View, execution: Execution) -> tuple[_Folded, list[Expr], list[Expr]]:
    leaves = list(walk((kernel,)))

    def runs(path: Path) -> Expr:
        return view.instances(path) * view.condition(path) * view.covered((), path)

    def loads(load: Load, path: Path) -> Expr:
        if load.after_first is None:
            return runs(path)
        first = view.covered((), view.first_trip(path, load.after_first))
        return runs(path) - view.instances(path) * view.condition(path) * first

    def extent(axis: Axis, path: Path) -> Expr:
        around = loops(path)
        return around[axis].tile if axis in around else view.extent(axis, path)

    def values(kinds: type | tuple[type, ...], only: frozenset[str] = frozenset()) -> Expr:
        return Add(
            *(
                runs(path) * Mul(*(extent(axis, path) for axis in leaf.axes))
                for leaf, path in leaves
                if isinstance(leaf, kinds) and isinstance(leaf, Elementwise) and only <= {a.name for a in leaf.axes}
            )
        )

    multiplied = [(leaf, path) for leaf, path in leaves if isinstance(leaf, MatMul)]
    counts: list[Expr] = []
    sizes: list[Expr] = []
    for leaf, path in multiplied:
        counts.append(runs(path))
        sizes += [extent(axis, path) for axis in (leaf.m, leaf.n, leaf.k)]
    gradients = [(leaf, path) for leaf, path in multiplied if leaf.k == value and {leaf.m, leaf.n} == {query, key}]
    grid = _grid(kernel, execution)
    staged = [
        loads(leaf, path) * in_bytes(leaf.tensor.dtype) * tile_elements(leaf.tensor, path, view)
        for leaf, path in leaves
        if isinstance(leaf, Load) and multiplied
    ]
    bodies = {id(path[-1]): runs(path) for _, path in multiplied}
    trips = [view.tiled(loop.axis, loop.tile).trips for loop in grid]
    shared = [view.tiled(loop.axis, loop.tile).trips for loop in grid if loop.axis in execution.spread]
    counts += [
        values((Exp, Tanh)),
        values(Exp, SCORES),
        Add(*(runs(path) * extent(leaf.m, path) * extent(leaf.n, path) for leaf, path in gradients)),
        values(Random),
        Add(*staged),
        4 * atomics((kernel,), view),
        view.instances((kernel,)) * Mul(*trips),
        Add(*bodies.values()),
        Mul(*shared),
    ]
    tensors = _tensors(kernel, view)
    for tensor, requested in tensors:
        many = HOW_MANY[tensor.per]
        width = in_bytes(tensor.dtype)
        counts += [width * requested, width * many * Mul(*(axis.length for axis in tensor.axes)), many]
    outer = next((loop for loop in grid if loop.axis in (query, key) and multiplied), None)
    inner = _masked_inside(outer) if outer is not None else None
    sizes += [outer.tile if outer is not None else ONE, inner.tile if inner is not None else ONE]
    serial = frozenset(axis.name for axis in execution.serial)
    folded = _Folded(
        kernel.title,
        tuple(leaf for leaf, _ in multiplied),
        tuple((tensor.name, bool(serial)) for tensor, _ in tensors),
        outer.axis.name if outer is not None and inner is not None else None,
        inner is not None,
    )
    return folded, counts, sizes


def _tensors(kernel: Kernel, view: View) -> list[tuple[Tensor, Expr]]:
    """What is asked for of each tensor, reads apart from writes [elements]."""
    return [pair for kinds in (READS, WRITES) for pair in moves((kernel,), view, kinds).items()]


def _flat(body: Sequence[Statement]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Guard):
            yield from _flat(statement.body)
        else:
            yield statement


def _multiplies(loop: Loop) -> bool:
    return any(isinstance(leaf, MatMul) for leaf, _ in walk((Kernel("", loop.body),)))


def _grid(kernel: Kernel, execution: Execution) -> list[Loop]:
    """The loops whose trips are thread blocks: the outermost ones down to the first buffer, and those declared so."""
    found: list[Loop] = []
    body: Sequence[Statement] = kernel.body
    while True:
        statements = list(_flat(body))
        inner = [statement for statement in statements if isinstance(statement, Loop)]
        if any(isinstance(statement, Load | Hold) for statement in statements) or not inner:
            break
        loop = next((one for one in inner if _multiplies(one)), inner[-1])
        if loop.masked or loop.axis in execution.serial:
            break
        found.append(loop)
        body = loop.body
    blocks = {block for _, path in walk((kernel,)) for block in path if isinstance(block, Loop)}
    return found + [loop for loop in blocks if loop.axis in execution.spread and loop not in found]


def _masked_inside(loop: Loop) -> Loop | None:
    inside = (block for _, path in walk((Kernel("", (loop,)),)) for block in path[2:])
    return next((block for block in inside if isinstance(block, Loop) and block.masked), None)


def widened(workload: Attention, head_dim: int, value_dim: int) -> Attention:
    """The call with rows as wide as the kernel was compiled for."""
    if (head_dim, value_dim) == (workload.head_dim, workload.value_dim):
        return workload
    return workload.model_copy(update={"head_dim": head_dim, "value_dim": value_dim})
