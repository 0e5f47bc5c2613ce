"""Folds over a nest, one function per quantity: traffic, FLOPs, function values, footprint, allocation.

The rule behind every count: a statement covers each of its own axes once, and every enclosing loop over another axis
repeats the statement once per trip. A masked pair of loops covers and repeats the tiles that the mask visits
(:mod:`iomodel.counting.coverage`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from sympy import Add, Expr, Integer, Max, Mul, ceiling, sift

from iomodel.counting.coverage import HOW_MANY, View
from iomodel.counting.mask_kind import FULL
from iomodel.counting.quantities import FIXED_SIZES
from iomodel.counting.terms import never_below, parts_of
from iomodel.nests.floor_sum_node import is_whole
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    Exp,
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
    Pointwise,
    Random,
    Statement,
    Store,
    Tanh,
    Tensor,
    When,
    loops,
    rebuilt,
    walk,
)
from iomodel.nests.symbols import B, H, b_kv, b_w, e, e_out
from iomodel.nests.tensors import key, query

Weight = Callable[[str], Expr]
Move = Load | Lookup | Store | Fill | Accumulate
READS = (Load, Lookup, Accumulate)
WRITES = (Store, Fill, Accumulate)
SIZES: dict[str, Expr] = {
    "io": e,
    "kv": b_kv / 32,
    "weight": b_w / 32,
    "out": e_out,
    **{dtype: Integer(size) for dtype, size in FIXED_SIZES.items()},
}


def elements(_dtype: str) -> Expr:
    """Weigh every element alike [elements]."""
    return Integer(1)


def in_bytes(dtype: str) -> Expr:
    """Weigh an element by its size [B]."""
    return SIZES[dtype]


def whole(size: Expr) -> Expr:
    """Round a total up to whole bytes where elements may be narrower than a byte, as int4 is [B]."""
    if not parts_of(size) & {b_kv, b_w}:
        return size
    terms = sift(Add.make_args(size), is_whole)
    narrow = Add(*terms[False])  # sympy would compare each total with 0, 1 and 2 first, slowly
    return Add(*terms[True], ceiling(narrow, evaluate=False)) if narrow else size


@lru_cache(maxsize=64)
def moves(nest: Nest, view: View, kinds: tuple[type, ...]) -> Mapping[Tensor, Expr]:
    """Count the HBM accesses of some kinds of statement by tensor, over all batches and heads [elements]."""
    totals: dict[Tensor, dict[Expr, Expr]] = {}
    for statement, path in walk(nest):
        if not isinstance(statement, kinds):
            continue
        assert isinstance(statement, Move)
        own = view.of(path)
        moved = own.instances(path) * _moved(statement, path, own)
        terms = totals.setdefault(statement.tensor, {})
        terms[moved] = terms.get(moved, Integer(0)) + own.condition(path)
    return {tensor: Add(*(runs * moved for moved, runs in terms.items())) for tensor, terms in totals.items()}


def _moved(statement: Move, path: Path, view: View) -> Expr:
    if isinstance(statement, Lookup):
        return view.pages(path)
    axes = statement.axes if isinstance(statement, Accumulate) else statement.tensor.axes
    paged, clipped = statement.tensor.paged, isinstance(statement, Load) and statement.clipped
    whole = padded_tiles(statement, path)  # moved once a visit, the last one too
    axes = tuple(axis for axis in axes if axis not in whole)
    everywhere = view.at_trips(statement, axes, path, paged, clipped)
    if isinstance(statement, Load):
        everywhere -= view.kept(axes, path, paged, whole=whole)
    return Mul(*whole.values(), everywhere)


def padded_tiles(statement: Leaf, path: Path) -> dict[Axis, Expr]:
    """Map the axes whose tiles a statement moves whole to these tiles."""
    around = loops(path)
    return {axis: around[axis].tile for axis in getattr(statement, "padded", ()) if axis in around}


def hbm_bytes(nest: Nest, view: View) -> Expr:
    """Sum the reads and writes of all tensors, each at its own width [B]."""
    sides = (moves(nest, view, READS), moves(nest, view, WRITES))
    return whole(Add(*(in_bytes(tensor.dtype) * moved for side in sides for tensor, moved in side.items())))


def atomics(nest: Nest, view: View, ordered: bool = False) -> Expr:
    """Count the atomic additions to HBM, each of which is also one read and one write [elements].

    If `ordered`, additions in a fixed order count too.
    """
    added = [(s, path) for s, path in walk(nest) if isinstance(s, Accumulate) and (s.atomic or ordered)]
    seen = ((s, path, view.of(path)) for s, path in added)
    return Add(*(own.instances(path) * own.condition(path) * _moved(s, path, own) for s, path, own in seen))


def flops(nest: Nest, view: View) -> Expr:
    """Count the FLOPs of the matrix products over the visited tiles, 2 m n k each [FLOP]."""
    return 2 * _sum(nest, view, lambda s: (s.m, s.n, s.k) if isinstance(s, MatMul) else None)


def useful_flops(nest: Nest, view: View) -> Expr:
    """Count the FLOPs of the matrix products over the visible pairs alone [FLOP]."""
    pairs = view.visible_pairs
    total = Integer(0)
    for statement, _ in walk(nest):
        if isinstance(statement, MatMul):
            others = {statement.m, statement.n, statement.k} - {query, key}
            total += pairs * Mul(*(axis.length for axis in others))
    return 2 * B * H * total


def function_values(nest: Nest, view: View, kind: type[Pointwise]) -> Expr:
    """Count the values of one kind of elementwise function: exponentials, tangents or random numbers [-]."""
    return _sum(nest, view, lambda s: s.axes if isinstance(s, kind) else None)


def exps(nest: Nest, view: View) -> Expr:
    """Count the exponentials [-]."""
    return function_values(nest, view, Exp)


def tanhs(nest: Nest, view: View) -> Expr:
    """Count the hyperbolic tangents [-]."""
    return function_values(nest, view, Tanh)


def randoms(nest: Nest, view: View) -> Expr:
    """Count the random numbers [-]."""
    return function_values(nest, view, Random)


def _sum(nest: Nest, view: View, axes_of: Callable[[Leaf], Iterable[Axis] | None]) -> Expr:
    terms = []
    for statement, path in walk(nest):
        axes = axes_of(statement)
        if axes is not None:
            own = view.of(path)
            terms.append(own.instances(path) * own.condition(path) * own.covered(axes, path))
    return Add(*terms)


def by_condition(nest: Nest, view: View, fold: Callable[[Nest], Sequence[Expr]]) -> list[Expr]:
    """Evaluate folds that are no sums over statements, such as maxima, at each value of the condition of a nest."""
    condition = _condition(nest)
    if condition is None:
        return list(fold(nest))
    holds = view.of(nest[-1:]).decided(condition)
    if holds.is_Integer:
        return list(fold(decided(nest, bool(holds))))
    pairs = zip(fold(decided(nest, True)), fold(decided(nest, False)), strict=True)
    return [either if either == other else holds * either + (1 - holds) * other for either, other in pairs]


@lru_cache(maxsize=256)
def _condition(nest: Nest) -> Expr | None:
    """Return the one condition of a nest, None if there is none."""
    conditions = {block.condition for _, path in walk(nest) for block in path if isinstance(block, When)}
    if not conditions:
        return None
    (condition,) = conditions
    return condition


@lru_cache(maxsize=256)
def decided(nest: Nest, value: bool) -> Nest:
    """Keep the statements that run at a value of the condition, without the blocks of the condition."""

    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, When):
            return statement.body if statement.unless != value else ()
        return (statement,)

    return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)


def largest(terms: Iterable[Expr]) -> Expr:
    """Return the maximum without the terms that another term dominates at all positive integers."""
    kept: list[Expr] = []
    for term in dict.fromkeys(part for argument in terms for part in Max.make_args(argument)):
        if not any(_never_below(other, term) for other in kept):
            kept = [other for other in kept if not _never_below(term, other)] + [term]
    return Max(*kept, evaluate=False)  # sympy would compare every pair again, slowly


def _never_below(term: Expr, other: Expr) -> bool:
    return never_below(term, other, of_symbols=True)


def footprint(nest: Nest, view: View, weight: Weight = elements) -> Expr:
    """Return the peak of live on-chip buffers, each at its full tile size [elements, or B by weight]."""
    return _footprint(nest, replace(view, mask=FULL), weight)


@lru_cache(maxsize=256)  # a mask changes no tile
def _footprint(nest: Nest, view: View, weight: Weight) -> Expr:
    (peak,) = by_condition(nest, view, lambda kernels: [largest(_peak(kernel, view, weight) for kernel in kernels)])
    return peak


def footprint_elements(nest: Nest, view: View) -> Expr:
    """Return the footprint with all elements weighed alike [elements]."""
    return footprint(nest, view)


def footprint_bytes(nest: Nest, view: View) -> Expr:
    """Return the footprint with each element at its own width [B]."""
    return whole(footprint(nest, view, in_bytes))


def _peak(kernel: Kernel, view: View, weight: Weight) -> Expr:
    def inside(block: Kernel | Loop | Cut, path: Path, above: frozenset[Tensor]) -> Expr:
        here, have = (*path, block), set(above)
        own: Expr = Integer(0)  # all buffers of the body first: a buffer outlives the loops beside it
        for tensor, dtype, around in buffers(block.body, here):
            if tensor not in have:
                own += weight(dtype) * view.buffer(tensor, around)
                have.add(tensor)
        inner = [inside(loop, around, frozenset(have)) for loop, around in _inner_loops(block.body, here)]
        return own + (largest(inner) if inner else 0)

    view = view.of((kernel,))
    return inside(kernel, (), frozenset())


def buffers(body: Sequence[object], path: Path) -> Iterator[tuple[Tensor, str, Path]]:
    """Yield the buffers that a body declares, with their dtypes and paths; a guard opens no scope of its own."""
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


def allocations(nest: Nest, view: View, weight: Weight = elements, per: Iterable[Per] = HOW_MANY) -> list[Expr]:
    """Compute the HBM allocation during each kernel [elements, or B by weight], of tensors `per` these instances.

    An input stays from the first kernel to the last, a result from the kernel that first writes it to the last.
    An intermediate tensor is freed after the last kernel that reads or keeps it.
    """
    return list(_allocations(nest, replace(view, mask=FULL), weight, tuple(per)))


@lru_cache(maxsize=256)  # a mask changes no tensor
def _allocations(nest: Nest, view: View, weight: Weight, per: tuple[Per, ...]) -> list[Expr]:
    stored = {statement.tensor for statement, _ in walk(nest) if isinstance(statement, WRITES)}
    return by_condition(nest, view, lambda kernels: _allocated(kernels, stored, view, weight, per))


def _allocated(nest: Nest, stored: set[Tensor], view: View, weight: Weight, per: tuple[Per, ...]) -> list[Expr]:
    touched: dict[Tensor, list[tuple[int, bool]]] = {}
    padded: dict[Tensor, list[Expr]] = {}
    whole = {tensor.name: tensor for tensor in _in_hbm(nest) if not tensor.inside}
    for number, kernel in enumerate(nest):
        own = view.of((kernel,))
        for statement, path in walk((kernel,)):
            if isinstance(statement, READS + WRITES):
                written = isinstance(statement, WRITES)
                tensor = whole[statement.tensor.name] if _is_view(statement.tensor, whole) else statement.tensor
                touched.setdefault(tensor, []).append((number, written))
                ends = {
                    axis: own.tiled(axis, tile).trips * tile for axis, tile in padded_tiles(statement, path).items()
                }
                if ends and not getattr(statement, "wraps", False):
                    padded.setdefault(tensor, []).append(own.stored(tensor, ends))
        for tensor in kernel.keeps:
            if tensor in touched or tensor not in stored:  # a result of another condition does not exist
                touched.setdefault(tensor, []).append((number, False))
    end = len(nest) - 1
    live: list[list[Expr]] = [[] for _ in nest]
    for tensor, uses in touched.items():
        if tensor.inside or tensor.per not in per:
            continue
        stores = [number for number, written in uses if written]
        first = uses[0][0] if uses[0][1] else 0  # a tensor loaded before any store is an input
        last = uses[-1][0] if stores and stores[-1] < uses[-1][0] else end
        size = weight(tensor.dtype) * largest([view.stored(tensor), *padded.get(tensor, ())])
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
    # A view has the name of a whole tensor: a part of it, or the same elements in another order.
    return tensor.inside and tensor.name in whole


def peak_hbm(nest: Nest, view: View = View(), weight: Weight = elements) -> Expr:  # noqa: B008 - frozen
    """Return the largest HBM allocation of any kernel [elements, or B by weight]."""
    return _peak_hbm(nest, replace(view, mask=FULL), weight)


@lru_cache(maxsize=256)
def _peak_hbm(nest: Nest, view: View, weight: Weight) -> Expr:
    return largest(allocations(nest, view, weight))


def _uses(nest: Nest) -> Mapping[Tensor, list[bool]]:
    """List the accesses to each whole tensor in order, True for a store."""
    uses: dict[Tensor, list[bool]] = {}
    whole = {tensor.name: tensor for tensor in _in_hbm(nest) if not tensor.inside}
    for statement, _ in walk(nest):
        if isinstance(statement, READS + WRITES) and not _is_view(statement.tensor, whole):
            uses.setdefault(statement.tensor, []).append(isinstance(statement, WRITES))
    return uses


def inputs(nest: Nest, view: View, weight: Weight = elements) -> Mapping[Tensor, Expr]:
    """Measure each tensor that is loaded before any store [elements, or B by weight]."""
    return {
        tensor: weight(tensor.dtype) * view.stored(tensor) for tensor, stored in _uses(nest).items() if not stored[0]
    }


def compulsory(nest: Nest, view: View, weight: Weight = elements) -> Expr:
    """Count each tensor once if loaded before any store, and once if stored last [elements, or B by weight]."""
    uses = _uses(nest)
    sizes = {tensor: weight(tensor.dtype) * view.stored(tensor) for tensor in uses}
    return Add(*(sizes[tensor] * (int(not stored[0]) + int(stored[-1])) for tensor, stored in uses.items()))


def peak_hbm_elements(nest: Nest, view: View) -> Expr:
    """Return the largest HBM allocation with all elements weighed alike [elements]."""
    return peak_hbm(nest, view)


def peak_hbm_bytes(nest: Nest, view: View) -> Expr:
    """Return the largest HBM allocation with each element at its own width [B]."""
    return whole(peak_hbm(nest, view, in_bytes))
