"""Every one-step edit of a nest: a move dropped, doubled, flipped, sunk or hoisted, a buffer gone or resized."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr

from iomodel.nest import (
    Block,
    DType,
    Exp,
    Hold,
    Kernel,
    Leaf,
    Live,
    Load,
    Loop,
    MatMul,
    Nest,
    Statement,
    Store,
    Tensor,
    loops,
)

Body = tuple[Statement, ...]
Path = tuple[Kernel | Loop | Live, ...]
Place = tuple[int, ...]  # from the nest to a block: its index in each body on the way
Buffers = dict[Tensor, tuple[str, tuple[Expr | None, ...]]]


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
    for place, path, body in bodies(nest):
        for i, leaf in enumerate(body):
            if isinstance(leaf, Block):
                continue
            for kind, changed in one_step(nest, place, path, body, i):
                yield Edit(kind, f"{describe(leaf)} in {' > '.join(map(describe, path))}", changed)


def one_step(nest: Nest, place: Place, path: Path, body: Body, i: int) -> Iterator[tuple[str, Nest]]:
    leaf, rest = body[i], (*body[:i], *body[i + 1 :])

    def here(changed: Body) -> Nest:
        return with_body(nest, place, lambda _: changed)

    match leaf:
        case Load() | Store() | MatMul() | Exp():
            yield "dropped", here(rest)
            yield "doubled", here((*body[:i], leaf, *body[i:]))
        case Hold() if not overshadowed(place, path, nest):
            # Doubling is left out: a tensor has one buffer, so a second Hold of it declares what is there already.
            yield "dropped", here(rest)
            other: DType = "io" if (leaf.dtype or leaf.tensor.dtype) == "fp32" else "fp32"
            yield "of another width", here((*body[:i], replace(leaf, dtype=other), *body[i + 1 :]))
    if isinstance(leaf, Load | Store):
        flipped = Store(leaf.tensor) if isinstance(leaf, Load) else Load(leaf.tensor)
        yield "flipped", here((*body[:i], flipped, *body[i + 1 :]))
        for j, sibling in enumerate(rest):
            if isinstance(sibling, Block):
                sunk = sibling.with_body(beside(sibling.body, leaf))
                yield f"sunk into {describe(sibling)}", here((*rest[:j], sunk, *rest[j + 1 :]))
        if len(place) > 1:

            def hoist(outer: Body) -> Body:
                at, block = place[-1], outer[place[-1]]
                assert isinstance(block, Block)
                return (*outer[:at], *beside([block.with_body(rest)], leaf), *outer[at + 1 :])

            yield "hoisted", with_body(nest, place[:-1], hoist)


def beside(body: Sequence[Statement], leaf: Leaf) -> Body:
    """The statement before a body if it loads, after it if it stores."""
    return (leaf, *body) if isinstance(leaf, Load) else (*body, leaf)


def bodies(nest: Nest) -> Iterator[tuple[Place, Path, Body]]:
    """Every body, with where it is and the blocks around it."""

    def inside(block: Any, place: Place, path: Path) -> Iterator[tuple[Place, Path, Body]]:
        here = (*path, block)
        yield place, here, block.body
        for i, statement in enumerate(block.body):
            if isinstance(statement, Block):
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


def overshadowed(place: Place, path: Path, nest: Nest) -> bool:
    """Whether another body always holds all that is live here, and more: no buffer of this body is then in a peak.

    The footprint is a maximum over the bodies. The first loop of FlashAttention, which only stores constants,
    never decides it, nor does the softmax of standard attention where a product holds the same S and its operands.
    """
    here = live(path)
    others = (live(other) for where, other, _ in bodies(nest) if where[: len(place)] != place)
    return any(here.items() < other.items() for other in others)


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


def scope(block: Kernel | Loop | Live) -> Iterator[Statement]:
    """The statements of a body, those behind a guard included: it opens no scope of its own."""
    for statement in block.body:
        if isinstance(statement, Live):
            yield from scope(statement)
        else:
            yield statement


def describe(statement: Any) -> str:
    """A statement in a few words."""
    match statement:
        case Kernel():
            return str(statement.title)
        case Loop() | Live():
            return f"{type(statement).__name__}({statement.axis.name})"
        case MatMul():
            return f"MatMul({statement.m.name}, {statement.n.name}, {statement.k.name})"
        case Exp():
            return f"Exp({', '.join(axis.name for axis in statement.axes)})"
    return f"{type(statement).__name__}({statement.tensor.name})"
