"""The nest of a kernel folded once more: formulas of what it asks of each resource (:mod:`iomodel.demand`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Integer, Mul

from iomodel.counts import HOW_MANY, READS, WRITES, atomics, footprint, in_bytes, moves, tile_elements
from iomodel.coverage import View
from iomodel.demand import SCORES
from iomodel.execution import Execution
from iomodel.nest import (
    Axis,
    Cut,
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
from iomodel.tensors import key, query, value

ONE = Integer(1)


@dataclass(frozen=True)
class Folded:
    """The formulas of one kernel, in the order in which they are compiled."""

    title: str
    products: tuple[MatMul, ...]
    tensors: tuple[tuple[str, bool], ...]
    outer: str | None
    masked: bool


def fold(kernel: Kernel, view: View, execution: Execution) -> tuple[Folded, list[Expr], list[Expr]]:
    """What a kernel is made of, with the formulas of its counts and of its tile sizes in the order of reading."""
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

    def trips(blocks: Sequence[Loop | Cut]) -> Expr:
        return view.covered((), (kernel, *blocks))

    def values(
        kinds: type | tuple[type, ...], only: frozenset[str] = frozenset(), where: Callable[[Path], bool] = bool
    ) -> Expr:
        return Add(
            *(
                runs(path) * Mul(*(extent(axis, path) for axis in leaf.axes))
                for leaf, path in leaves
                if isinstance(leaf, kinds) and isinstance(leaf, Elementwise) and only <= {a.name for a in leaf.axes}
                if where(path)
            )
        )

    grid = _grid(kernel, execution)

    def once(path: Path) -> bool:
        """Whether a block does it once: no loop around it but those that deal out blocks."""
        return bool(grid) and not {block for block in path if isinstance(block, Loop | Cut)} - set(grid)

    multiplied = [(leaf, path) for leaf, path in leaves if isinstance(leaf, MatMul)]
    counts: list[Expr] = []
    sizes: list[Expr] = []
    for leaf, path in multiplied:
        counts.append(runs(path))
        sizes += [extent(axis, path) for axis in (leaf.m, leaf.n, leaf.k)]
    gradients = [(leaf, path) for leaf, path in multiplied if leaf.k == value and {leaf.m, leaf.n} == {query, key}]
    staged = [
        loads(leaf, path) * in_bytes(leaf.tensor.dtype) * tile_elements(leaf.tensor, path, view)
        for leaf, path in leaves
        if isinstance(leaf, Load) and multiplied and not once(path)
    ]
    bodies = {id(path[-1]): runs(path) for _, path in multiplied}
    shared = [loop for loop in grid if isinstance(loop, Loop) and loop.axis in execution.spread]
    counts += [
        values((Exp, Tanh)),
        values(Exp, SCORES),
        Add(*(runs(path) * extent(leaf.m, path) * extent(leaf.n, path) for leaf, path in gradients)),
        values(Random),
        Add(*staged),
        4 * atomics((kernel,), view),
        view.instances((kernel,)) * trips(grid),
        Add(*bodies.values()),
        trips(shared),
        values((Exp, Tanh), where=once) if multiplied else Integer(0),
        footprint((kernel,), view, in_bytes),
    ]
    tensors = _tensors(kernel, view)
    for tensor, requested in tensors:
        many = HOW_MANY[tensor.per]
        width = in_bytes(tensor.dtype)
        counts += [width * requested, width * many * Mul(*(axis.length for axis in tensor.axes)), many]
    cut = any(isinstance(block, Cut) for block in grid)  # its blocks are those of many calls: which share is not known
    walked = [loop for loop in grid if isinstance(loop, Loop) and loop.axis in (query, key) and multiplied]
    outer = None if cut or not walked else walked[0]
    inner = _masked_inside(outer) if outer is not None else None
    sizes += [outer.tile if outer is not None else ONE, inner.tile if inner is not None else ONE]
    serial = frozenset(axis.name for axis in execution.serial)
    folded = Folded(
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


def _multiplies(loop: Loop | Cut) -> bool:
    return any(isinstance(leaf, MatMul) for leaf, _ in walk((Kernel("", loop.body),)))


def _grid(kernel: Kernel, execution: Execution) -> list[Loop | Cut]:
    """The loops and pieces whose trips are thread blocks: the outermost to the first buffer, and those declared so."""
    found: list[Loop | Cut] = []
    body: Sequence[Statement] = kernel.body
    while True:
        statements = list(_flat(body))
        inner = [statement for statement in statements if isinstance(statement, Loop | Cut)]
        if any(isinstance(statement, Load | Hold) for statement in statements) or not inner:
            break
        loop = next((one for one in inner if _multiplies(one)), inner[-1])
        if isinstance(loop, Loop) and (loop.masked or loop.axis in execution.serial):
            break
        found.append(loop)
        body = loop.body
    blocks = {block for _, path in walk((kernel,)) for block in path if isinstance(block, Loop)}
    return found + [loop for loop in blocks if loop.axis in execution.spread and loop not in found]


def _masked_inside(loop: Loop) -> Loop | None:
    inside = (block for _, path in walk((Kernel("", (loop,)),)) for block in path[2:])
    return next((block for block in inside if isinstance(block, Loop) and block.masked), None)
