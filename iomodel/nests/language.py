"""Language for the declaration of algorithms: loop nests that move tiles between HBM and SRAM.

The grammar::

    algorithm ::= [Kernel(title, [statement ...], per="head",       kernels run in sequence, once per query head,
                          keeps=(), strided=False,                  a key/value head ("kv_head"), a head of Q and K
                          single_keys=0) ...]                       ("key_head"), a sequence ("batch") or a "call";
                                                                    `keeps`: tensors that stay in HBM, for a later pass;
                                                                    `strided`: its tensors differ in layout, so that it
                                                                    moves single elements; `single_keys`: it does so for
                                                                    rows of at most so many keys
    statement ::= Loop(axis, tile, [statement ...], masked=False,   over the tiles of an axis; `masked`: only over
                       serpentine=False)                            those that the tile of the enclosing loop sees,
                                                                    by its `sight` of the mask; `serpentine`: backwards
                                                                    at every second tile of the enclosing loop, with the
                                                                    tile at the turn kept on chip
                | Cut([Piece(times, sizes, mask) ...],              on each piece of the call as on a separate call:
                      [statement ...])                              `times` times, with these sizes for symbols
                | Live(axis, [statement ...])                       only if the enclosing tile sees any of `axis`; of a
                                                                    partition that a loop walks: only if the part
                                                                    holds a position
                | Idle(axis, [statement ...])                       only if it sees none of it
                | When(condition, [statement ...], unless=False)    only if an expression is 1, not 0; or the reverse
                | Load(tensor, after_first=None, only_first=None)   HBM -> SRAM, the current tile; not at the first
                                                                    trip of the masked loop over `after_first`, or only
                                                                    there. With the axis of the loop around it: the
                                                                    first visit of a tile of the masked loop
                | Store(tensor, held=None, only_first=None)         SRAM -> HBM, from the buffer of `held`
                | Fill(tensor)                                      a constant -> HBM, from no buffer
                | Accumulate(tensor, held, atomic=True, within=())  HBM += SRAM; one position of each axis of `within`
                | Lookup(tensor)                                    HBM -> an address, without a buffer
                | Hold(tensor, dtype=None)                          a buffer on chip for the current tile
                | MatMul(axis, axis, axis)                          2 m n k FLOPs on the current tile
                | Exp | Tanh | Random (axis, ...)                   one function value per element of the current tile
                | Scores | Drop | Sink (axis, ...)                  a place where a feature of the call may be added
                                                                    (:mod:`iomodel.nests.features`)

A statement covers the current tile of every axis that an enclosing loop walks, and all of any other axis. A tile is
clipped at the end of its axis, except along the axes of `padded`; a `clipped` load is also clipped after the last
position that the enclosing tile sees.
A buffer (of `Load` or `Hold`) lives as long as the loop body that declares it. A loop over an axis that is a
partition of another (`Axis.of`) divides the tiles of that axis among its trips. Counts follow by folding over the
nest (:mod:`iomodel.counting.folds`). The language is independent of machines, numbers, and masks, except for the masks
of pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from iomodel.common.cache import cached_hash
from iomodel.nests.axis import Axis as Axis  # noqa: PLC0414 - part of the language
from iomodel.nests.axis import DType as DType  # noqa: PLC0414 - part of the language
from iomodel.nests.axis import Per as Per  # noqa: PLC0414 - part of the language
from iomodel.nests.axis import Tensor as Tensor  # noqa: PLC0414 - part of the language

if TYPE_CHECKING:
    from sympy import Expr, Symbol


class Brief:
    """Base of the statements, which shows no field at its default."""

    def __repr__(self) -> str:
        shown = (
            f"{part.name}={value!r}"
            for part in fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, part.name)) != part.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"


@cached_hash
@dataclass(frozen=True, repr=False)
class Load(Brief):
    """Move the current tile from HBM into a buffer; not at the first trip of the masked loop over `after_first`.

    With `only_first`, only at the first trip. If the axis is that of the loop around the masked loop, the trips are
    those of a tile of the masked loop: the first one is that of the first outer tile that visits it.
    Along the axes of `padded` the tile is moved whole, the last one too: rows beyond the end are memory that exists,
    or, if it `wraps`, the first rows again. A `clipped` load moves the tile of a masked loop up to the last position
    that the enclosing tile sees.
    """

    tensor: Tensor
    after_first: Axis | None = None
    padded: tuple[Axis, ...] = ()
    wraps: bool = False
    clipped: bool = False
    only_first: Axis | None = None


@cached_hash
@dataclass(frozen=True)
class Lookup:
    """Read the table entries that locate the current tile; an address is not held in a buffer."""

    tensor: Tensor


@cached_hash
@dataclass(frozen=True, repr=False)
class Store(Brief):
    """Move the current tile to HBM, from its buffer or that of `held`; whole along `padded`, and as `Load` does."""

    tensor: Tensor
    held: Tensor | None = None
    padded: tuple[Axis, ...] = ()
    only_first: Axis | None = None


@cached_hash
@dataclass(frozen=True, repr=False)
class Fill(Brief):
    """Write a constant to the current tile in HBM, without a buffer; whole along the axes of `padded`."""

    tensor: Tensor
    padded: tuple[Axis, ...] = ()


@cached_hash
@dataclass(frozen=True)
class Accumulate:
    """Add the buffer of `held` to the current tile in HBM, at one position of each axis of `within`."""

    tensor: Tensor
    held: Tensor
    atomic: bool = True
    within: tuple[Axis, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Covered axes of the tensor."""
        return tuple(axis for axis in self.tensor.axes if axis not in self.within)


@dataclass(frozen=True)
class Hold:
    """Keep a buffer on chip, in `dtype` if different from that of the tensor."""

    tensor: Tensor
    dtype: DType | None = None


@dataclass(frozen=True)
class MatMul:
    """Multiply the current tiles, m x k by k x n."""

    m: Axis
    n: Axis
    k: Axis


@dataclass(frozen=True, init=False)
class Pointwise:
    """An operation on each element of the current tile over `axes`."""

    axes: tuple[Axis, ...]

    def __init__(self, *axes: Axis) -> None:
        object.__setattr__(self, "axes", axes)


class Exp(Pointwise):
    """Take an exponential."""


class Tanh(Pointwise):
    """Take a hyperbolic tangent."""


class Random(Pointwise):
    """Draw a random number."""


class Scores(Pointwise):
    """A tile of S is complete except for the features of the call."""


class Drop(Pointwise):
    """Apply dropout to P or its gradient, if the call has it."""


class Sink(Pointwise):
    """Add the attention sink to the softmax denominator, if the call has one; one exponential per element of `axes`."""


@dataclass(frozen=True, repr=False)
class Compound(Brief):
    """A sequence of statements; the base of everything with a body."""

    def with_body(self, body: Sequence[Statement]) -> Any:
        """Copy the block with another body."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, body=tuple(body))
        for cached in ("_hash", "alone"):
            copy.__dict__.pop(cached, None)
        return copy

    @cached_property
    def alone(self) -> Any:
        """The block without its body."""
        return self.with_body(())

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))  # type: ignore[attr-defined]


@cached_hash
@dataclass(frozen=True)
class Sight:
    """The mask as a masked loop or a guard applies it, where that is not exactly.

    Without `left`, nothing is skipped at the left side of a window. With `query_tile`, the rows that pad the last tile
    of so many query rows see keys as queries after the last one would.
    """

    left: bool = True
    query_tile: Expr | None = None


EXACT = Sight()


@cached_hash
@dataclass(frozen=True, repr=False)
class Loop(Compound):
    """Walk the tiles of an axis.

    A `serpentine` loop walks backwards at the tiles 1, 3, 5, ... of the loop around it. Where a walk begins with the
    tile that ended the walk before, the loads of its body that depend on no other tile find it on chip and move
    nothing.
    """

    axis: Axis
    tile: Expr
    body: Sequence[Statement]
    masked: bool = False
    sight: Sight = EXACT
    serpentine: bool = False


@cached_hash
@dataclass(frozen=True)
class Piece:
    """A part of the call processed as a separate call, and its number of repetitions; -1 subtracts one.

    `sizes` are its lengths in place of those of the entire call, as expressions over the entire call; `mask` is its
    mask, with "window" for a causal window of W_l keys to the left.
    """

    times: Expr
    sizes: Mapping[Symbol, Expr]
    mask: Literal["full", "causal", "window"] = "full"

    def __hash__(self) -> int:
        return hash((self.times, frozenset(self.sizes.items()), self.mask))


@cached_hash
@dataclass(frozen=True, repr=False)
class Cut(Compound):
    """Run the body on every piece; buffers are as large as the first piece needs, so the largest comes first."""

    pieces: Sequence[Piece]
    body: Sequence[Statement]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", tuple(self.pieces))
        super().__post_init__()


@cached_hash
@dataclass(frozen=True, repr=False)
class Live(Compound):
    """Run the body only if the tile of the enclosing loop sees some of `axis`.

    Of a partition that a loop walks, only in the parts that hold a position.
    """

    axis: Axis
    body: Sequence[Statement]
    sight: Sight = EXACT


@cached_hash
@dataclass(frozen=True, repr=False)
class Idle(Compound):
    """Run the body only if the tile of the enclosing loop sees nothing of `axis`."""

    axis: Axis
    body: Sequence[Statement]
    sight: Sight = EXACT


@cached_hash
@dataclass(frozen=True, repr=False)
class When(Compound):
    """Run the body only if the condition, which is 0 or 1, is 1; `unless` inverts it."""

    condition: Expr
    body: Sequence[Statement]
    unless: bool = False

    @property
    def holds(self) -> Expr:
        """1 if the body runs, 0 otherwise."""
        return 1 - self.condition if self.unless else self.condition


@cached_hash
@dataclass(frozen=True, repr=False)
class Kernel(Compound):
    """One launch, which begins and ends with nothing on chip.

    Tensors in `keeps` stay in HBM until its end, moved or not, because a later pass reads them. A `strided` kernel
    loads and stores single elements, because its tensors differ in layout or are broadcast; that takes time. Other
    kernels do so for rows of at most `single_keys` keys. An `unpacked` kernel takes one query head at a time in a call
    with packed rows, as the backward pass of a call in both directions does.
    """

    title: str
    body: Sequence[Statement]
    per: Per = "head"
    keeps: tuple[Tensor, ...] = ()
    strided: bool = False
    single_keys: int = 0
    unpacked: bool = False


Leaf = Load | Lookup | Store | Fill | Accumulate | Hold | MatMul | Pointwise
Guard = Live | Idle | When
Statement = Leaf | Loop | Cut | Guard
Nest = tuple[Kernel, ...]
Path = tuple[Kernel | Loop | Cut | Guard, ...]


def walk(nest: Nest) -> Iterator[tuple[Leaf, Path]]:
    """Iterate over the leaves of a nest with their enclosing blocks, outermost first, in program order."""

    def inside(block: Kernel | Loop | Cut | Guard, path: Path) -> Iterator[tuple[Leaf, Path]]:
        here = (*path, block)
        for statement in block.body:
            if isinstance(statement, Compound):
                yield from inside(statement, here)
            else:
                yield statement, here

    for kernel in nest:
        yield from inside(kernel, ())


def loops(path: Path) -> dict[Axis, Loop]:
    """Map each axis to the loop over it around a statement."""
    return {block.axis: block for block in path if isinstance(block, Loop)}


def outline(path: Path) -> Path:
    """Return the blocks without their bodies, so that paths compare by what is around a statement alone."""
    return tuple(block.alone for block in path)


def held(path: Path) -> set[Tensor]:
    """Collect the tensors with a buffer in the bodies around a statement."""
    return {statement.tensor for block in path for statement in same_body(block) if isinstance(statement, Load | Hold)}


def same_body(block: Kernel | Loop | Cut | Guard) -> Iterator[Leaf | Loop | Cut]:
    """Iterate over the statements of a body, including those behind guards, which open no scope."""
    for statement in block.body:
        if isinstance(statement, Guard):
            yield from same_body(statement)
        else:
            yield statement


def rebuilt(body: Sequence[Statement], change: Callable[[Any], Iterable[Statement]]) -> tuple[Statement, ...]:
    """Replace each statement of a body by the results of `change`, from the inside out."""
    statements: list[Statement] = []
    for statement in body:
        inner = statement.with_body(rebuilt(statement.body, change)) if isinstance(statement, Compound) else statement
        statements.extend(change(inner))
    return tuple(statements)


def everywhere(nest: Nest, change: Callable[[Any], Iterable[Statement]]) -> Nest:
    """Replace every statement of a nest, from the inside out, by those that `change` returns for it."""
    return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)


def retiled(nest: Nest, tiles: Mapping[Expr, Expr]) -> Nest:
    """Substitute tiles of a nest."""

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Loop | Live | Idle) and statement.sight.query_tile is not None:
            sight = replace(statement.sight, query_tile=statement.sight.query_tile.subs(tiles))
            statement = replace(statement, sight=sight)
        if isinstance(statement, Loop):
            return (replace(statement, tile=statement.tile.subs(tiles)),)
        return (statement,)

    return everywhere(nest, change)
