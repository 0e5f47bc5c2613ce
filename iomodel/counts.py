"""Folds over a nest, one function per quantity: traffic, FLOPs, exponentials, footprint, allocation.

The rule behind every count: a statement covers each axis it has once, and every enclosing loop over another axis
repeats it once a trip. A masked pair of loops covers and repeats what the mask visits (:mod:`iomodel.masks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sympy import Add, Expr, Integer, Max, Mul

from iomodel.masks import FULL, Band, MaskKind, Tiled, visible_pairs, visits
from iomodel.nest import Axis, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Nest, Path, Store, Tensor, loops, walk
from iomodel.symbols import B, G, H, H_kv, e
from iomodel.tensors import key, query

Weight = Callable[[str], Expr]


def elements(_dtype: str) -> Expr:
    """Weigh every element alike [elements]."""
    return Integer(1)


def in_bytes(dtype: str) -> Expr:
    """Weigh an element by its size [B]."""
    return e if dtype == "io" else Integer(4)


@dataclass(frozen=True)
class View:
    """How a nest of one head is read: under which mask, and with the rows of a GQA group packed or not."""

    mask: MaskKind = FULL
    packed: bool = False

    @property
    def instances(self) -> Expr:
        """How often the nest runs: once a query head, or once a key/value head when packed [-]."""
        return B * (H_kv if self.packed else H)

    def tiled(self, axis: Axis, tile: Expr) -> Tiled:
        """The axis cut into tiles; packed queries have one row for each head of the group."""
        group = G if self.packed and axis == query else Integer(1)
        return Tiled(axis.length, tile, group)

    def rows(self, axis: Axis) -> Expr:
        """The whole extent of an axis [rows]."""
        return self.tiled(axis, Integer(1)).rows

    def band(self, outer: Axis, inner: Axis) -> Band:
        """What a position of `outer` sees of `inner`; masks bind queries and keys only."""
        if (outer, inner) == (query, key):
            return self.mask.query_to_key()
        if (outer, inner) == (key, query):
            return self.mask.query_to_key().transposed()
        return Band()

    def covered(self, axes: Iterable[Axis], path: Path) -> Expr:
        """Elements over `axes` that a statement touches in one run of the nest [elements]."""
        axes, around = set(axes), loops(path)
        factors, done = self._masked(axes, path)
        for axis, loop in around.items():
            if axis not in done:
                factors.append(self.rows(axis) if axis in axes else self.tiled(axis, loop.tile).trips)
        factors += [self.rows(axis) for axis in sorted(axes - around.keys(), key=lambda axis: axis.name)]
        return Mul(*factors)

    def _masked(self, axes: set[Axis], path: Path) -> tuple[list[Expr], set[Axis]]:
        """The factor of a masked pair of loops, or of the guards, and the axes they account for."""
        guards: dict[Axis, Expr] = {}
        for i, block in enumerate(path):
            if isinstance(block, Loop) and block.masked:
                inner = self.tiled(block.axis, block.tile)
            elif isinstance(block, Live):
                inner = self.tiled(block.axis, Integer(1))  # what is live does not depend on the inner tile
            else:
                continue
            enclosing = loops(path[:i])
            outer_axis = next((axis for axis in enclosing if self.band(axis, block.axis) != Band()), None)
            if outer_axis is None:
                continue
            outer = self.tiled(outer_axis, enclosing[outer_axis].tile)
            seen = visits(outer, inner, self.band(outer_axis, block.axis))
            if isinstance(block, Live):
                guards[outer_axis] = seen.live_outer_rows if outer_axis in axes else seen.live_outer_tiles
                continue
            factor = {  # a visited pair is live on both sides, so no guard binds further
                (True, True): seen.area,
                (True, False): seen.outer_rows,
                (False, True): seen.inner_rows,
                (False, False): seen.pairs,
            }[outer_axis in axes, block.axis in axes]
            return [factor], {outer_axis, block.axis}
        return list(guards.values()), set(guards)


def moves(nest: Nest, view: View, kind: type[Load] | type[Store]) -> dict[Tensor, Expr]:
    """HBM accesses of one kind by tensor, over all batches and heads [elements]."""
    totals: dict[Tensor, Expr] = {}
    for statement, path in walk(nest):
        if isinstance(statement, kind):
            tensor = statement.tensor
            moved = view.instances * view.covered(tensor.axes, path)
            totals[tensor] = totals.get(tensor, Integer(0)) + moved
    return totals


def flops(nest: Nest, view: View) -> Expr:
    """FLOPs of the matrix products over the tiles visited, 2 m n k each [FLOP]."""
    found = [view.covered((s.m, s.n, s.k), path) for s, path in walk(nest) if isinstance(s, MatMul)]
    return 2 * view.instances * Add(*found)


def useful_flops(nest: Nest, view: View) -> Expr:
    """FLOPs of the matrix products over the visible pairs alone [FLOP]."""
    pairs = visible_pairs(view.mask.query_to_key(), Tiled(query.length), Tiled(key.length))
    total = Integer(0)
    for statement, _ in walk(nest):
        if isinstance(statement, MatMul):
            others = {statement.m, statement.n, statement.k} - {query, key}
            total += pairs * Mul(*(axis.length for axis in others))
    return 2 * B * H * total


def exps(nest: Nest, view: View) -> Expr:
    """Exponentials [-]."""
    found = [view.covered(s.axes, path) for s, path in walk(nest) if isinstance(s, Exp)]
    return view.instances * Add(*found)


def footprint(nest: Nest, view: View, weight: Weight = elements) -> Expr:
    """The most that is live on chip at once, buffers at their full tile size [elements, or B by weight]."""

    def buffers(body: Sequence[object], path: Path, have: set[Tensor]) -> Expr:
        """Buffers of a body, noted in `have`; a guard opens no scope of its own."""
        own: Expr = Integer(0)
        for statement in body:
            if isinstance(statement, Load | Hold) and statement.tensor not in have:
                dtype = statement.dtype if isinstance(statement, Hold) and statement.dtype else statement.tensor.dtype
                own += weight(dtype) * _tile_elements(statement.tensor, path, view)
                have.add(statement.tensor)
            elif isinstance(statement, Live):
                own += buffers(statement.body, path, have)
        return own

    def inner_loops(body: Sequence[object], path: Path) -> Iterator[tuple[Loop, Path]]:
        for statement in body:
            if isinstance(statement, Loop):
                yield statement, path
            elif isinstance(statement, Live):
                yield from inner_loops(statement.body, (*path, statement))

    def peak(block: Kernel | Loop, path: Path, above: frozenset[Tensor]) -> Expr:
        here, have = (*path, block), set(above)
        own = buffers(block.body, here, have)  # all of them first: a buffer outlives the loops beside it
        inner = [peak(loop, around, frozenset(have)) for loop, around in inner_loops(block.body, here)]
        return own + (Max(*inner) if inner else 0)

    return Max(*(peak(kernel, (), frozenset()) for kernel in nest))


def _tile_elements(tensor: Tensor, path: Path, view: View) -> Expr:
    around = loops(path)
    return Mul(*(around[axis].tile if axis in around else view.rows(axis) for axis in tensor.axes))


def peak_hbm(nest: Nest, weight: Weight = elements) -> Expr:
    """The most that is allocated in HBM at once, over the kernels [elements, or B by weight].

    Inputs stay from the first kernel to the last, a result from the kernel that first writes it to the end, and what
    a later kernel only reads is freed after the last that does.
    """
    touched: dict[Tensor, list[tuple[int, bool]]] = {}
    for number, kernel in enumerate(nest):
        for statement, _ in walk((kernel,)):
            if isinstance(statement, Load | Store):
                touched.setdefault(statement.tensor, []).append((number, isinstance(statement, Store)))
    end = len(nest) - 1
    live: list[list[Expr]] = [[] for _ in nest]
    for tensor, uses in touched.items():
        stores = [number for number, stored in uses if stored]
        first = uses[0][0] if uses[0][1] else 0  # what is loaded before it is stored is an input
        last = uses[-1][0] if stores and stores[-1] < uses[-1][0] else end
        heads = H if query in tensor.axes else H_kv
        size = B * heads * weight(tensor.dtype) * Mul(*(axis.length for axis in tensor.axes))
        for number in range(first, last + 1):
            live[number].append(size)
    return Max(*(Add(*sizes) for sizes in live))
