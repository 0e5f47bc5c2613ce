"""The language in which an algorithm is declared: a loop nest that moves tiles between HBM and SRAM.

The whole grammar::

    algorithm ::= [Kernel(title, [statement ...]) ...]            kernels run one after the other
    statement ::= Loop(axis, tile, [statement ...], masked=False) over the tiles of an axis; `masked`: only over
                                                                  those that the tile of the enclosing loop sees
                | Live(axis, [statement ...])                     only if the enclosing tile sees any of `axis`
                | Load(tensor)                                    HBM -> SRAM, the current tile
                | Store(tensor, held=None)                        SRAM -> HBM, from the buffer of `held`
                | Hold(tensor, dtype=None)                        a buffer on chip for the current tile
                | MatMul(axis, axis, axis)                        2 m n k FLOPs on the current tile
                | Exp(axis, ...)                                  one exponential an element of the current tile

What a statement covers: the current tile of every axis that an enclosing loop walks, all of any other axis.
A buffer (of `Load` or `Hold`) lives as long as the loop body that declares it. Counts follow by folding over
the nest (:mod:`iomodel.counts`); nothing here knows a mask, a machine or a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sympy import Expr

from iomodel.errors import IOModelError

DType = Literal["io", "fp32"]
"""Width of an element: the workload's dtype, or 4 bytes."""


@dataclass(frozen=True)
class Axis:
    """A dimension of the problem; the name is its identity, so that queries and keys never collide."""

    name: str
    length: Expr


@dataclass(frozen=True)
class Tensor:
    """A tensor of one head, over its axes."""

    name: str
    axes: tuple[Axis, ...]
    dtype: DType = "io"


@dataclass(frozen=True)
class Load:
    """Move the current tile from HBM into a buffer."""

    tensor: Tensor


@dataclass(frozen=True)
class Store:
    """Move the current tile to HBM, from its own buffer or from that of `held`."""

    tensor: Tensor
    held: Tensor | None = None


@dataclass(frozen=True)
class Hold:
    """Keep a buffer on chip, in `dtype` if that is not the tensor's own."""

    tensor: Tensor
    dtype: DType | None = None


@dataclass(frozen=True)
class MatMul:
    """Multiply the current tiles, m x k by k x n."""

    m: Axis
    n: Axis
    k: Axis


@dataclass(frozen=True, init=False)
class Exp:
    """Take one exponential for each element of the current tile over `axes`."""

    axes: tuple[Axis, ...]

    def __init__(self, *axes: Axis) -> None:
        object.__setattr__(self, "axes", axes)


@dataclass(frozen=True)
class Block:
    """Statements in a row; the base of everything that has a body."""

    def with_body(self, body: Sequence[Statement]) -> Any:
        """The same block around another body."""
        return type(self)(**{**self.__dict__, "body": body})


@dataclass(frozen=True)
class Loop(Block):
    """Walk the tiles of an axis."""

    axis: Axis
    tile: Expr
    body: Sequence[Statement]
    masked: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))


@dataclass(frozen=True)
class Live(Block):
    """Run the body only where the tile of the enclosing loop sees some of `axis`."""

    axis: Axis
    body: Sequence[Statement]

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))


@dataclass(frozen=True)
class Kernel(Block):
    """One launch; it begins and ends with nothing on chip."""

    title: str
    body: Sequence[Statement]

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))


Leaf = Load | Store | Hold | MatMul | Exp
Statement = Leaf | Loop | Live
Nest = tuple[Kernel, ...]
Path = tuple[Kernel | Loop | Live, ...]


def walk(nest: Nest) -> Iterator[tuple[Leaf, Path]]:
    """Every leaf of a nest with the blocks around it, outermost first, in program order."""

    def inside(block: Kernel | Loop | Live, path: Path) -> Iterator[tuple[Leaf, Path]]:
        here = (*path, block)
        for statement in block.body:
            if isinstance(statement, Block):
                yield from inside(statement, here)
            else:
                yield statement, here

    for kernel in nest:
        yield from inside(kernel, ())


def loops(path: Path) -> dict[Axis, Loop]:
    """The loops around a statement, by axis."""
    return {block.axis: block for block in path if isinstance(block, Loop)}


class DeclarationError(IOModelError):
    """A nest breaks a rule of the language."""


def check(nest: Nest) -> None:
    """Raise DeclarationError where a nest walks an axis twice, masks outside a pair, or stores what is not there.

    >>> from iomodel.symbols import B_r
    >>> from iomodel.tensors import O, query
    >>> check((Kernel("bad", [Loop(query, B_r, [Store(O)])]),))
    Traceback (most recent call last):
    ...
    iomodel.nest.DeclarationError: bad: O is stored where no buffer holds it
    """
    for statement, path in walk(nest):
        kernel = path[0]
        assert isinstance(kernel, Kernel)
        walked = [block.axis for block in path if isinstance(block, Loop)]
        if len(set(walked)) < len(walked):
            raise DeclarationError(f"{kernel.title}: one loop over an axis lies inside another over the same axis")
        for i, block in enumerate(path):
            bound = isinstance(block, Live) or (isinstance(block, Loop) and block.masked)
            if bound and not loops(path[:i]):
                raise DeclarationError(f"{kernel.title}: a mask needs an enclosing loop whose tiles do the seeing")
        if sum(isinstance(block, Loop) and block.masked for block in path) > 1:
            raise DeclarationError(f"{kernel.title}: one masked loop lies inside another")
        if isinstance(statement, Store) and (statement.held or statement.tensor) not in held(path):
            raise DeclarationError(f"{kernel.title}: {statement.tensor.name} is stored where no buffer holds it")


def held(path: Path) -> set[Tensor]:
    """The tensors that have a buffer in the bodies around a statement."""
    return {statement.tensor for block in path for statement in _same_body(block) if isinstance(statement, Load | Hold)}


def _same_body(block: Kernel | Loop | Live) -> Iterator[Leaf | Loop]:
    """The statements of a body, those behind a Live guard included: a guard opens no scope of its own."""
    for statement in block.body:
        if isinstance(statement, Live):
            yield from _same_body(statement)
        else:
            yield statement


@dataclass(frozen=True)
class Published:
    """A closed form printed in a paper, typed by hand: total HBM elements of one head, mask "full"."""

    elements: Expr
    cite: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Algorithm:
    """A named algorithm: how to declare its nest, where it is from, which bounds may speak of it.

    `declare` takes the options by keyword and returns the nest. `classes` names the classes of
    :mod:`iomodel.bounds` that it belongs to. `tiled_by` names the option that giving tiles switches on, for an
    algorithm that also has a form without tiles.
    """

    name: str
    title: str
    cite: str
    declare: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    tiled_by: str | None = None
    published: tuple[Published, ...] = ()

    def nest(self, **options: Any) -> Nest:
        """The declaration under these options, checked."""
        nest: Nest = tuple(self.declare(**{**self.options, **options}))
        check(nest)
        return nest
