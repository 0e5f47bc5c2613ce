"""Formulas of the work of a kernel on each resource, folded from its nest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from sympy import Add, Expr, Integer, Mul

from iomodel.counting.coverage import HOW_MANY, View
from iomodel.counting.folds import READS, WRITES, atomics, footprint, in_bytes, moves
from iomodel.nests.execution import Execution
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    Exp,
    Guard,
    Hold,
    Kernel,
    Load,
    Loop,
    MatMul,
    Path,
    Pointwise,
    Random,
    Statement,
    Tanh,
    Tensor,
    loops,
    walk,
)
from iomodel.nests.tensors import key, query, value
from iomodel.timing.kernel_work import SCORES
from iomodel.timing.work_at_point import FoldedKernel

ONE = Integer(1)


def fold(kernel: Kernel, view: View, execution: Execution) -> tuple[FoldedKernel, list[Expr], list[Expr]]:
    """Fold a kernel into its structure, and the formulas of its counts and tile sizes in reading order."""
    leaves = list(walk((kernel,)))

    def runs(path: Path) -> Expr:
        return view.instances(path) * view.condition(path) * view.covered((), path)

    def loads(load: Load, path: Path) -> Expr:
        each = view.at_trips(load, (), path) - view.kept(load.tensor.axes, path, loads=True)
        return view.instances(path) * view.condition(path) * each

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
                if isinstance(leaf, kinds) and isinstance(leaf, Pointwise) and only <= {a.name for a in leaf.axes}
                if where(path)
            )
        )

    grid = _grid(kernel, execution)

    def once(path: Path) -> bool:
        """Check that a block executes a path once: the only enclosing loops run over blocks."""
        return bool(grid) and not {block for block in path if isinstance(block, Loop | Cut)} - set(grid)

    multiplied = [(leaf, path, _unrolled(path)) for leaf, path in leaves if isinstance(leaf, MatMul)]
    counts: list[Expr] = []
    sizes: list[Expr] = []
    for leaf, path, many in multiplied:
        counts.append(runs(path if many is None else path[:-1]))
        sides = [extent(axis, path if many is None else path[:-1]) for axis in (leaf.m, leaf.n, leaf.k)]
        stacked = many is not None and many not in (leaf.m, leaf.n, leaf.k)
        sizes += [sides[0] * view.extent(many, path) if many is not None and stacked else sides[0], *sides[1:]]
    gradients = [(leaf, path) for leaf, path, _ in multiplied if leaf.k == value and {leaf.m, leaf.n} == {query, key}]
    staged = [
        loads(leaf, path) * in_bytes(leaf.tensor.dtype) * view.buffer(leaf.tensor, path)
        for leaf, path in leaves
        if isinstance(leaf, Load) and multiplied and not once(path)
    ]
    around = [path if many is None else path[:-1] for _, path, many in multiplied]
    bodies = {id(path[-1]): runs(path) for path in around}
    shared = [loop for loop in grid if isinstance(loop, Loop) and loop.axis in execution.spread]
    counts += [
        values((Exp, Tanh)),
        values(Exp, SCORES),
        Add(*(runs(path) * extent(leaf.m, path) * extent(leaf.n, path) for leaf, path in gradients)),
        values(Random),
        Add(*staged),
        4 * atomics((kernel,), view, ordered=True),
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
    cut = any(isinstance(block, Cut) for block in grid)  # its blocks belong to many calls, so the shares are unknown
    walked = [loop for loop in grid if isinstance(loop, Loop) and loop.axis in (query, key) and multiplied]
    outer = None if cut or not walked else walked[0]
    inner = _masked_inside(outer) if outer is not None else None
    sizes += [outer.tile if outer is not None else ONE, inner.tile if inner is not None else ONE]
    serial = frozenset(axis.name for axis in execution.serial)
    folded = FoldedKernel(
        kernel.title,
        tuple((leaf.m.name, leaf.n.name, leaf.k.name) for leaf, _, _ in multiplied),
        tuple((tensor.name, bool(serial), outer is not None and outer.axis in tensor.axes) for tensor, _ in tensors),
        outer.axis.name if outer is not None and inner is not None else None,
        inner is not None,
        kernel.strided,
        inner is not None and inner.serpentine,
        kernel.single_keys,
        any(isinstance(leaf, Accumulate) and not leaf.atomic for leaf, _ in leaves),
    )
    return folded, counts, sizes


def _unrolled(path: Path) -> Axis | None:
    """Return the axis of a loop of nothing but products of tiles on chip, which are issued at once as one product.

    The rows of the products are stacked: a loop over heads that share keys, say, multiplies the rows of all heads.
    """
    loop = path[-1]
    if not isinstance(loop, Loop) or loop.masked or loop.axis.of is not None or loop.tile != ONE:
        return None
    return loop.axis if all(isinstance(statement, MatMul) for statement in loop.body) else None


def _tensors(kernel: Kernel, view: View) -> list[tuple[Tensor, Expr]]:
    """List the requests per tensor, reads separate from writes [elements]."""
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
    """List the loops and pieces whose trips are thread blocks: outermost ones up to the first buffer, `spread` ones."""
    grid: list[Loop | Cut] = []
    body: Sequence[Statement] = kernel.body
    while True:
        statements = list(_flat(body))
        inner = [statement for statement in statements if isinstance(statement, Loop | Cut)]
        if any(isinstance(statement, Load | Hold) for statement in statements) or not inner:
            break
        loop = next((candidate for candidate in inner if _multiplies(candidate)), inner[-1])
        if isinstance(loop, Loop) and (loop.masked or loop.axis in execution.serial):
            break
        grid.append(loop)
        body = loop.body
    paths = [path for _, path in walk((kernel,))]
    around = {loop: outer for path in paths for outer, loop in pairwise(path) if isinstance(loop, Loop)}
    free = [
        loop
        for loop, outer in around.items()
        if loop.axis in execution.spread and (loop.axis.of or _apart(loop, outer))
    ]
    return grid + [loop for loop in free if loop not in grid]


def _apart(loop: Loop, outer: Kernel | Loop | Cut | Guard) -> bool:
    """Check that the trips of a loop share no result: the body around it only loads."""
    return all(statement == loop or isinstance(statement, Load) for statement in _flat(outer.body))


def _masked_inside(loop: Loop) -> Loop | None:
    inside = (block for _, path in walk((Kernel("", (loop,)),)) for block in path[2:])
    return next((block for block in inside if isinstance(block, Loop) and block.masked), None)
