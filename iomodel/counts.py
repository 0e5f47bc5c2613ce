"""Folds over a nest, one function per quantity: traffic, FLOPs, function values, footprint, allocation.

The rule behind every count: a statement covers each axis it has once, and every enclosing loop over another axis
repeats it once a trip. A masked pair of loops covers and repeats what the mask visits (:mod:`iomodel.coverage`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce

from sympy import Add, Expr, Integer, Max, Mul, Poly, ceiling

from iomodel.coverage import View
from iomodel.nest import (
    Accumulate,
    Axis,
    Cut,
    Elementwise,
    Fill,
    Guard,
    Hold,
    Kernel,
    Leaf,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Path,
    Per,
    Statement,
    Store,
    Tensor,
    When,
    loops,
    rebuilt,
    walk,
)
from iomodel.symbols import B, H, H_kv, b_w, e, e_kv, p
from iomodel.tensors import key, query

Weight = Callable[[str], Expr]
Move = Load | Lookup | Store | Fill | Accumulate
READS = (Load, Lookup, Accumulate)
WRITES = (Store, Fill, Accumulate)
SIZES: dict[str, Expr] = {
    "io": e,
    "kv": e_kv,
    "weight": b_w / 32,
    "fp32": Integer(4),
    "int32": Integer(4),
    "int64": Integer(8),
    "bool": Integer(1),
}
HOW_MANY: dict[Per, Expr] = {
    "head": B * H,
    "kv_head": B * H_kv,
    "heads": H,
    "kv_heads": H_kv,
    "batch": B,
    "call": Integer(1),
}


def elements(_dtype: str) -> Expr:
    """Weigh every element alike [elements]."""
    return Integer(1)


def in_bytes(dtype: str) -> Expr:
    """Weigh an element by its size [B]."""
    return SIZES[dtype]


def moves(nest: Nest, view: View, kinds: tuple[type, ...]) -> dict[Tensor, Expr]:
    """HBM accesses of some kinds of statement by tensor, over all batches and heads [elements]."""
    totals: dict[Tensor, dict[Expr, Expr]] = {}
    for statement, path in walk(nest):
        if not isinstance(statement, kinds):
            continue
        assert isinstance(statement, Move)
        moved = view.instances(path) * _moved(statement, path, view)
        terms = totals.setdefault(statement.tensor, {})
        terms[moved] = terms.get(moved, Integer(0)) + view.condition(path)
    return {tensor: Add(*(often * moved for moved, often in terms.items())) for tensor, terms in totals.items()}


def _moved(statement: Move, path: Path, view: View) -> Expr:
    if isinstance(statement, Lookup):
        return view.pages(path)
    axes = statement.axes if isinstance(statement, Accumulate) else statement.tensor.axes
    paged = statement.tensor.paged
    everywhere = view.covered(axes, path, paged)
    if isinstance(statement, Load) and statement.after_first is not None:
        return everywhere - view.covered(axes, view.first_trip(path, statement.after_first), paged)
    return everywhere


def atomics(nest: Nest, view: View) -> Expr:
    """Atomic additions to HBM [elements]; each is one of the reads and one of the writes as well."""
    added = [(s, path) for s, path in walk(nest) if isinstance(s, Accumulate) and s.atomic]
    return Add(*(view.instances(path) * view.condition(path) * _moved(s, path, view) for s, path in added))


def flops(nest: Nest, view: View) -> Expr:
    """FLOPs of the matrix products over the tiles visited, 2 m n k each [FLOP]."""
    return 2 * _sum(nest, view, lambda s: (s.m, s.n, s.k) if isinstance(s, MatMul) else None)


def useful_flops(nest: Nest, view: View) -> Expr:
    """FLOPs of the matrix products over the visible pairs alone [FLOP]."""
    pairs = view.visible_pairs
    total = Integer(0)
    for statement, _ in walk(nest):
        if isinstance(statement, MatMul):
            others = {statement.m, statement.n, statement.k} - {query, key}
            total += pairs * Mul(*(axis.length for axis in others))
    return 2 * B * H * total


def function_values(nest: Nest, view: View, kind: type[Elementwise]) -> Expr:
    """Exponentials, tangents or random numbers [-]."""
    return _sum(nest, view, lambda s: s.axes if isinstance(s, kind) else None)


def _sum(nest: Nest, view: View, axes_of: Callable[[Leaf], Iterable[Axis] | None]) -> Expr:
    found = []
    for statement, path in walk(nest):
        axes = axes_of(statement)
        if axes is not None:
            found.append(view.instances(path) * view.condition(path) * view.covered(axes, path))
    return Add(*found)


def by_condition(nest: Nest, view: View, fold: Callable[[Nest], Expr]) -> Expr:
    """A fold that is no sum over statements, at either value of the condition that the nest depends on."""
    conditions = {block.condition for _, path in walk(nest) for block in path if isinstance(block, When)}
    if not conditions:
        return fold(nest)
    (condition,) = conditions
    holds = view.decided(condition)

    def decided(value: bool) -> Nest:
        def change(statement: Statement) -> Sequence[Statement]:
            if isinstance(statement, When):
                return statement.body if statement.unless != value else ()
            return (statement,)

        return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)

    if holds.is_Integer:
        return fold(decided(bool(holds)))
    either, other = fold(decided(True)), fold(decided(False))
    return either if either == other else holds * either + (1 - holds) * other


def largest(terms: Iterable[Expr]) -> Expr:
    """The maximum, without the terms that another one is never below at positive integers."""
    kept: list[Expr] = []
    for term in dict.fromkeys(part for given in terms for part in Max.make_args(given)):
        if not any(_never_below(other, term) for other in kept):
            kept = [other for other in kept if not _never_below(term, other)] + [term]
    return Max(*kept, evaluate=False)  # sympy would compare every pair again, slowly


@lru_cache(maxsize=4096)
def _never_below(term: Expr, other: Expr) -> bool:
    difference = term - other
    symbols = difference.free_symbols
    if not difference.is_polynomial(*symbols):
        return False
    beyond = difference.subs({symbol: symbol + 1 for symbol in symbols}, simultaneous=True)
    return all(coefficient >= 0 for coefficient in Poly(beyond, *symbols).coeffs()) if symbols else difference >= 0


def footprint(nest: Nest, view: View, weight: Weight = elements) -> Expr:
    """The most that is live on chip at once, buffers at their full tile size [elements, or B by weight]."""
    return by_condition(nest, view, lambda decided: largest(_peak(kernel, view, weight) for kernel in decided))


def _peak(kernel: Kernel, view: View, weight: Weight) -> Expr:
    def inside(block: Kernel | Loop | Cut, path: Path, above: frozenset[Tensor]) -> Expr:
        here, have = (*path, block), set(above)
        own: Expr = Integer(0)  # all of them first: a buffer outlives the loops beside it
        for tensor, dtype, around in buffers(block.body, here):
            if tensor not in have:
                own += weight(dtype) * tile_elements(tensor, around, view)
                have.add(tensor)
        inner = [inside(loop, around, frozenset(have)) for loop, around in _inner_loops(block.body, here)]
        return own + (largest(inner) if inner else 0)

    return inside(kernel, (), frozenset())


def buffers(body: Sequence[object], path: Path) -> Iterator[tuple[Tensor, str, Path]]:
    """The buffers that a body declares, with their widths; a guard opens no scope of its own."""
    for statement in body:
        if isinstance(statement, Load | Hold):
            dtype = statement.dtype if isinstance(statement, Hold) and statement.dtype else statement.tensor.dtype
            yield statement.tensor, dtype, path
        elif isinstance(statement, Guard):
            yield from buffers(statement.body, path)


def _inner_loops(body: Sequence[object], path: Path) -> Iterator[tuple[Loop | Cut, Path]]:
    for statement in body:
        if isinstance(statement, Loop | Cut):
            yield statement, path
        elif isinstance(statement, Guard):
            yield from _inner_loops(statement.body, (*path, statement))


def tile_elements(tensor: Tensor, path: Path, view: View) -> Expr:
    """The size of a buffer: the tile of each axis that a loop around it walks, the whole of any other [elements]."""
    around = loops(path)
    return Mul(*(around[axis].tile if axis in around else view.extent(axis, path) for axis in tensor.axes))


def allocations(nest: Nest, view: View, weight: Weight = elements, per: Iterable[Per] = HOW_MANY) -> list[Expr]:
    """What is allocated in HBM during each kernel [elements, or B by weight], of tensors that there are one `per`.

    Inputs stay from the first kernel to the last, a result from the kernel that first writes it to the end, and what
    a later kernel only reads or keeps is freed after the last that does.
    """
    return [by_condition(nest, view, lambda decided: _allocated(decided, weight, per)[i]) for i in range(len(nest))]  # noqa: B023


def _allocated(nest: Nest, weight: Weight, per: Iterable[Per]) -> list[Expr]:
    touched: dict[Tensor, list[tuple[int, bool]]] = {}
    whole = {tensor.name: tensor for tensor in _in_hbm(nest) if not tensor.inside}
    for number, kernel in enumerate(nest):
        for statement, _ in walk((kernel,)):
            if isinstance(statement, READS + WRITES):
                written = isinstance(statement, WRITES)
                tensor = whole[statement.tensor.name] if _is_view(statement.tensor, whole) else statement.tensor
                touched.setdefault(tensor, []).append((number, written))
        for tensor in kernel.keeps:
            touched.setdefault(tensor, []).append((number, False))
    end = len(nest) - 1
    live: list[list[Expr]] = [[] for _ in nest]
    for tensor, uses in touched.items():
        if tensor.inside or tensor.per not in per:
            continue
        stores = [number for number, stored in uses if stored]
        first = uses[0][0] if uses[0][1] else 0  # what is loaded before it is stored is an input
        last = uses[-1][0] if stores and stores[-1] < uses[-1][0] else end
        lengths = (
            p * ceiling(axis.length / p) if tensor.paged and axis == key else axis.length for axis in tensor.axes
        )
        size = HOW_MANY[tensor.per] * weight(tensor.dtype) * reduce(Mul, lengths, Integer(1))
        for number in range(first, last + 1):
            live[number].append(size)
    return [Add(*sizes) for sizes in live]


def _in_hbm(nest: Nest) -> Iterator[Tensor]:
    for statement, _ in walk(nest):
        if isinstance(statement, READS + WRITES):
            yield statement.tensor
    for kernel in nest:
        yield from kernel.keeps


def _is_view(tensor: Tensor, whole: Mapping[str, Tensor]) -> bool:
    """Whether a tensor is a view of the one that has its name, some of it or in another order."""
    return tensor.inside and tensor.name in whole


def peak_hbm(nest: Nest, view: View = View(), weight: Weight = elements) -> Expr:  # noqa: B008 - frozen
    """The most that is allocated in HBM at once, over the kernels [elements, or B by weight]."""
    return largest(allocations(nest, view, weight))
