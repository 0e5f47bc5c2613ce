"""Every one-step edit of a nest: a statement dropped, doubled, moved or turned into another, a guard or buffer gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, get_args

from sympy import Expr, Integer, Mul, Poly, expand

from iomodel.nests.language import (
    Accumulate,
    Compound,
    Cut,
    DType,
    Exp,
    Fill,
    Guard,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Path,
    Per,
    Pointwise,
    Scores,
    Sink,
    Statement,
    Store,
    Tensor,
    When,
    loops,
)
from iomodel.nests.symbols import e
from iomodel.nests.tensors import grouped

Body = tuple[Statement, ...]
Place = tuple[int, ...]  # from the nest to a block: its index in each body on the way
Buffers = dict[Tensor, tuple[str, tuple[Expr | None, ...]]]
IN, OUT = Load | Lookup, Store | Fill | Accumulate
MOVED = Load | Lookup | Store | Fill | Accumulate | Pointwise


@dataclass(frozen=True)
class Edit:
    """A nest that differs from the declared one by a single step, and which step it was."""

    kind: str
    step: str
    nest: Nest

    def __str__(self) -> str:
        return f"{self.kind}: {self.step}"


def edits(nest: Nest) -> Iterator[Edit]:
    """All edits of a nest; what would change nothing by nature is left out, with the reason beside it."""
    for number, kernel in enumerate(nest):
        for per in get_args(Per)[:2]:  # a kernel that runs once a call walks no axis of a head
            if kernel.per not in (per, "call") and not alone(kernel):
                yield Edit(
                    f"once a {per}", str(kernel.title), (*nest[:number], replace(kernel, per=per), *nest[number + 1 :])
                )
        for tensor in kernel.keeps:
            fewer = tuple(other for other in kernel.keeps if other != tensor)
            yield Edit(
                "no longer kept",
                f"{tensor.name} in {kernel.title}",
                (*nest[:number], replace(kernel, keeps=fewer), *nest[number + 1 :]),
            )
    for place, path, body in bodies(nest):
        for i, statement in enumerate(body):
            step = in_block if isinstance(statement, Compound) else in_leaf
            for kind, changed in step(nest, place, path, body, i):
                yield Edit(kind, f"{describe(statement)} in {' > '.join(map(describe, path))}", changed)


def alone(kernel: Kernel) -> bool:
    """Whether all of a kernel is of heads that share no keys: then there are as many of one kind as of the other."""
    return all(isinstance(block, When) and block.unless and block.condition == grouped for block in kernel.body)


def in_block(nest: Nest, place: Place, path: Path, body: Body, i: int) -> Iterator[tuple[str, Nest]]:
    """Edits of a guard or a loop."""
    block = body[i]

    def instead(*changed: Statement) -> Nest:
        return with_body(nest, place, lambda _: (*body[:i], *changed, *body[i + 1 :]))

    match block:
        case Live(axis=axis, body=inner):
            yield "turned round", instead(Idle(axis, inner))
            if not restated(block):
                yield "opened", instead(*inner)
        case Idle(axis=axis, body=inner):
            yield "turned round", instead(Live(axis, inner))
            yield "opened", instead(*inner)
        case When(unless=unless, body=inner):
            yield "turned round", instead(replace(block, unless=not unless))
            yield "opened", instead(*inner)
        case Loop(masked=True, body=inner):
            yield "unmasked", instead(replace(block, masked=False))
            moved = [{*leaf.tensor.axes} for leaf in inner if isinstance(leaf, Load)]
            if any(block.axis in axes and not axes & {*loops(path)} for axes in moved):  # others move at every turn
                yield "up and down", instead(replace(block, serpentine=not block.serpentine))
        case Cut(pieces=pieces):
            for at, piece in enumerate(pieces):
                others = (pieces[:at], pieces[at + 1 :])
                yield "a piece more", instead(replace(block, pieces=(*pieces, replace(piece, times=Integer(1)))))
                if len(pieces) > 1:
                    yield "a piece less", instead(replace(block, pieces=(*others[0], *others[1])))
                for mask in {"full", "causal"} - {piece.mask} if any(map(bounded, block.body)) else ():
                    changed = (*others[0], replace(piece, mask=mask), *others[1])  # type: ignore[arg-type]
                    yield f"under the mask {mask}", instead(replace(block, pieces=changed))


def bounded(statement: Statement) -> bool:
    """Whether a mask bounds anything in a statement."""
    if not isinstance(statement, Compound):
        return False
    guards = isinstance(statement, Live | Idle) or (isinstance(statement, Loop) and statement.masked)
    return guards or any(map(bounded, statement.body))


def restated(block: Live) -> bool:
    """Whether all in a guard is in masked loops over its axis, which visit what is live and nothing else."""
    return all(isinstance(inner, Loop) and inner.masked and inner.axis == block.axis for inner in block.body)


def in_leaf(nest: Nest, place: Place, path: Path, body: Body, i: int) -> Iterator[tuple[str, Nest]]:
    """Edits of a leaf."""
    leaf, rest = body[i], (*body[:i], *body[i + 1 :])

    def instead(*changed: Statement) -> Nest:
        return with_body(nest, place, lambda _: (*body[:i], *changed, *body[i + 1 :]))

    if isinstance(leaf, MatMul | MOVED):
        yield "dropped", instead()
        yield "doubled", instead(leaf, leaf)
    if isinstance(leaf, Hold):
        # Doubling is left out: a tensor has one buffer, so a second Hold of it declares what is there already.
        other: DType = "io" if (leaf.dtype or leaf.tensor.dtype) in ("fp32", "int32") else "fp32"  # of another width
        for kind, changed in (("dropped", instead()), ("of another width", instead(replace(leaf, dtype=other)))):
            if not overshadowed(nest, changed, place):
                yield kind, changed
    match leaf:
        case Load(tensor=tensor):
            yield "flipped", instead(Store(tensor))
            if leaf.after_first is not None or leaf.only_first is not None:
                yield "at every trip", instead(replace(leaf, after_first=None, only_first=None))
        case Store(tensor=tensor):
            yield "flipped", instead(Load(tensor))
            if leaf.only_first is not None:
                yield "at every trip", instead(replace(leaf, only_first=None))
        case Fill(tensor=tensor):
            yield "flipped", instead(Load(tensor))
        case Accumulate(tensor=tensor, held=held):
            yield "flipped", instead(Load(tensor))
            yield "stored", instead(Store(tensor, held=held))
            yield "no more atomic" if leaf.atomic else "atomic", instead(replace(leaf, atomic=not leaf.atomic))
            if set(leaf.within) & set(tensor.axes):
                yield "to every slab", instead(replace(leaf, within=()))
    if isinstance(leaf, MOVED) and not isinstance(leaf, Exp):
        for j, sibling in enumerate(rest):
            if isinstance(sibling, Compound) and not same_either_way(leaf, sibling):
                sunk = sibling.with_body(beside(sibling.body, leaf))
                changed = (*rest[:j], sunk, *rest[j + 1 :])
                yield f"sunk into {describe(sibling)}", with_body(nest, place, lambda _, changed=changed: changed)
        if len(place) > 1 and not same_either_way(leaf, path[-1]):

            def hoist(outer: Body) -> Body:
                at, block = place[-1], outer[place[-1]]
                assert isinstance(block, Compound)
                return (*outer[:at], *beside([block.with_body(rest)], leaf), *outer[at + 1 :])

            yield "hoisted", with_body(nest, place[:-1], hoist)


def same_either_way(leaf: Any, block: Any) -> bool:
    """Whether a leaf counts alike inside a block and beside it."""
    if isinstance(block, Loop) and not block.masked:
        # Constants to all tiles of an axis one by one, or random numbers for them, are those of the whole axis.
        axes = (
            leaf.axes
            if isinstance(leaf, Pointwise) and not isinstance(leaf, Scores | Sink)
            else leaf.tensor.axes
            if isinstance(leaf, Fill)
            else ()
        )
        return block.axis in axes
    return False


def beside(body: Sequence[Statement], leaf: Any) -> Body:
    """The statement before a body if it loads, after it if it stores."""
    return (*body, leaf) if isinstance(leaf, OUT) else (leaf, *body)


def bodies(nest: Nest) -> Iterator[tuple[Place, Path, Body]]:
    """Every body, with where it is and the blocks around it."""

    def inside(block: Any, place: Place, path: Path) -> Iterator[tuple[Place, Path, Body]]:
        here = (*path, block)
        yield place, here, block.body
        for i, statement in enumerate(block.body):
            if isinstance(statement, Compound):
                yield from inside(statement, (*place, i), here)

    for number, kernel in enumerate(nest):
        yield from inside(kernel, (number,), ())


def with_body(nest: Nest, place: Place, change: Callable[[Body], Body]) -> Nest:
    """The nest with one body changed."""

    def rebuild(block: Any, down: Place) -> Any:
        if not down:
            return block.with_body(change(block.body))
        at = down[0]
        return block.with_body((*block.body[:at], rebuild(block.body[at], down[1:]), *block.body[at + 1 :]))

    number = place[0]
    return (*nest[:number], rebuild(nest[number], place[1:]), *nest[number + 1 :])


def overshadowed(nest: Nest, changed: Nest, place: Place) -> bool:
    """Whether what a body holds is below what some other body holds, at any size, whether it is changed or not.

    The footprint is a maximum over the bodies, so no buffer of this one is then in a peak. The first loop of
    FlashAttention, which only stores constants, never decides it, nor does a kernel that goes over single rows after
    one that holds tiles of the same tensors.
    """
    under = [path for whole in (nest, changed) for where, path, _ in bodies(whole) if where[: len(place)] == place]
    others = [path for where, path, _ in bodies(nest) if where[: len(place)] != place]

    def hidden(path: Path) -> bool:
        here, ifs = sizes(path), conditions(path)
        return any(conditions(other) <= ifs and all(map(never_below, sizes(other), here)) for other in others)

    return all(map(hidden, under))


@lru_cache(maxsize=4096)
def conditions(path: Path) -> set[tuple[Expr, bool]]:
    """What must hold for a body to be there at all."""
    return {(block.condition, block.unless) for block in path if isinstance(block, When)}


@lru_cache(maxsize=4096)
def sizes(path: Path) -> list[Expr]:
    """What is held around a statement, in elements and in bytes at each size of an element."""
    elements = size = Integer(0)
    first = next((dict(block.pieces[0].sizes) for block in path if isinstance(block, Cut)), {})
    for tensor, (width, tiles) in live(path).items():
        part = Mul(
            *(
                axis.length.xreplace(first) if tile is None else tile
                for axis, tile in zip(tensor.axes, tiles, strict=True)
            )
        )
        elements += part
        size += part * {"fp32": Integer(4), "bool": Integer(1)}.get(width, e)
    return [elements, *(size.xreplace({e: Integer(width)}) for width in (1, 2, 4))]


@cache
def never_below(term: Expr, other: Expr) -> bool:
    """Whether a polynomial is never below another at positive integers: no coefficient is negative counted from 1."""
    difference = expand(term - other)
    if not difference.is_polynomial(*difference.free_symbols):
        return False
    symbols = sorted(difference.free_symbols, key=str)
    moved = Poly(difference.xreplace({symbol: symbol + 1 for symbol in symbols}), *(symbols or [e]))  # a constant in e
    return all(coefficient >= 0 for coefficient in moved.coeffs())


def live(path: Path) -> Buffers:
    """The buffers around a statement, each with its width and the tile of its axes (None is the whole axis)."""
    found: Buffers = {}
    for i, block in enumerate(path):
        around = loops(path[: i + 1])
        for leaf in scope(block):
            if isinstance(leaf, Load | Hold) and leaf.tensor not in found:
                width = (leaf.dtype if isinstance(leaf, Hold) else None) or leaf.tensor.dtype
                tiles = tuple(around[axis].tile if axis in around else None for axis in leaf.tensor.axes)
                found[leaf.tensor] = width, tiles
    return found


def scope(block: Any) -> Iterator[Statement]:
    """The statements of a body, those behind a guard included: it opens no scope of its own."""
    for statement in block.body:
        if isinstance(statement, Guard):
            yield from scope(statement)
        else:
            yield statement


def describe(statement: Any) -> str:
    """A statement in a few words."""
    kind = type(statement).__name__
    match statement:
        case Kernel():
            return str(statement.title)
        case When():
            return f"When({'not ' if statement.unless else ''}{statement.condition})"
        case Cut():
            return f"Cut({len(statement.pieces)})"
        case Loop() | Live() | Idle():
            return f"{kind}({statement.axis.name})"
        case MatMul():
            return f"MatMul({statement.m.name}, {statement.n.name}, {statement.k.name})"
        case Pointwise():
            return f"{kind}({', '.join(axis.name for axis in statement.axes)})"
    return f"{kind}({statement.tensor.name})"
