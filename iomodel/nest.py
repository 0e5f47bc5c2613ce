"""The language in which an algorithm is declared: a loop nest that moves tiles between HBM and SRAM.

The whole grammar::

    algorithm ::= [Kernel(title, [statement ...], per="head",       kernels run one after the other, once a query head,
                          keeps=()) ...]                            a key/value head ("kv_head"), a sequence ("batch")
                                                                    or a "call"; `keeps`: tensors that stay in HBM,
                                                                    for a later pass
    statement ::= Loop(axis, tile, [statement ...], masked=False)   over the tiles of an axis; `masked`: only over
                                                                    those that the tile of the enclosing loop sees
                | Cut([Piece(times, sizes, mask) ...],              on each piece of the call as on a call of its own:
                      [statement ...])                              so many times, with these sizes for symbols
                | Live(axis, [statement ...])                       only if the enclosing tile sees any of `axis`
                | Idle(axis, [statement ...])                       only if it sees none of it
                | When(condition, [statement ...], unless=False)    only if an expression is 1, not 0; or the reverse
                | Load(tensor, after_first=None)                    HBM -> SRAM, the current tile; not at the first
                                                                    trip of the masked loop over `after_first`
                | Store(tensor, held=None)                          SRAM -> HBM, from the buffer of `held`
                | Fill(tensor)                                      a constant -> HBM, from no buffer
                | Accumulate(tensor, held, atomic=True, within=())  HBM += SRAM; one position of each axis of `within`
                | Lookup(tensor)                                    HBM -> an address, without a buffer
                | Hold(tensor, dtype=None)                          a buffer on chip for the current tile
                | MatMul(axis, axis, axis)                          2 m n k FLOPs on the current tile
                | Exp | Tanh | Random (axis, ...)                   one function value an element of the current tile
                | Scores | Drop | Sink (axis, ...)                  where a feature of the call joins in, if it has it
                                                                    (:mod:`iomodel.features`)

What a statement covers: the current tile of every axis that an enclosing loop walks, all of any other axis.
A buffer (of `Load` or `Hold`) lives as long as the loop body that declares it. A loop over an axis that is a
partition of another (`Axis.of`) shares the tiles of that axis out among its trips. Counts follow by folding over
the nest (:mod:`iomodel.counts`); nothing here knows a machine or a number, and a mask only where a piece has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any, Literal

from sympy import Expr, Min, Symbol, floor

from iomodel.errors import IOModelError

DType = Literal["io", "kv", "weight", "fp32", "int32", "int64", "bool"]
"""Width of an element: the workload's dtype, that of the K/V cache, of weights, 4 bytes, 4 bytes, 8 bytes, 1 byte."""

Per = Literal["head", "kv_head", "heads", "kv_heads", "batch", "call"]
"""How many there are: B H, B H_kv, H, H_kv, B, 1."""


@dataclass(frozen=True)
class Axis:
    """A dimension of the problem; the name is its identity, so that queries and keys never collide.

    A partition deals the positions of another axis, `of`, out in `length` chunks of `chunk` positions; the last
    chunks may be short or empty.
    """

    name: str
    length: Expr
    of: Axis | None = None
    chunk: Expr | None = None


@dataclass(frozen=True)
class Tensor:
    """A tensor over its axes; there is one `per` query head, key/value head, and so on.

    A `paged` tensor lies in whole pages along its key axis; one that is `inside` another, or a view of the one of the
    same name, is not allocated.
    """

    name: str
    axes: tuple[Axis, ...]
    dtype: DType = "io"
    per: Per = "head"
    paged: bool = False
    inside: bool = False


@dataclass(frozen=True)
class Load:
    """Move the current tile from HBM into a buffer; not at the first trip of the masked loop over `after_first`."""

    tensor: Tensor
    after_first: Axis | None = None


@dataclass(frozen=True)
class Lookup:
    """Read the entries that say where the current tile lies; an address is not held in a buffer."""

    tensor: Tensor


@dataclass(frozen=True)
class Store:
    """Move the current tile to HBM, from its own buffer or from that of `held`."""

    tensor: Tensor
    held: Tensor | None = None


@dataclass(frozen=True)
class Fill:
    """Write a constant to the current tile in HBM; no buffer holds it."""

    tensor: Tensor


@dataclass(frozen=True)
class Accumulate:
    """Add the buffer of `held` to the current tile in HBM, at one position of each axis of `within`."""

    tensor: Tensor
    held: Tensor
    atomic: bool = True
    within: tuple[Axis, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is covered of the tensor."""
        return tuple(axis for axis in self.tensor.axes if axis not in self.within)


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
class Elementwise:
    """Something done to each element of the current tile over `axes`."""

    axes: tuple[Axis, ...]

    def __init__(self, *axes: Axis) -> None:
        object.__setattr__(self, "axes", axes)


class Exp(Elementwise):
    """Take an exponential."""


class Tanh(Elementwise):
    """Take a hyperbolic tangent."""


class Random(Elementwise):
    """Draw a random number."""


class Scores(Elementwise):
    """A tile of S is complete but for what the call adds to it."""


class Drop(Elementwise):
    """Dropout of P, or of its gradient, if the call has it."""


class Sink(Elementwise):
    """The attention sink joins the softmax denominator, if the call has one; an exponential an element over `axes`."""


@dataclass(frozen=True)
class Block:
    """Statements in a row; the base of everything that has a body."""

    def with_body(self, body: Sequence[Statement]) -> Any:
        """The same block around another body."""
        return type(self)(**{**self.__dict__, "body": body})

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Loop(Block):
    """Walk the tiles of an axis."""

    axis: Axis
    tile: Expr
    body: Sequence[Statement]
    masked: bool = False


@dataclass(frozen=True)
class Piece:
    """A part of the call that is worked on as a call of its own, and how many there are like it, -1 to take one away.

    `sizes` are the lengths that it has in place of those of the whole call, as expressions over the whole call;
    `mask` is the mask within it, "window" a causal one of W_l keys to the left.
    """

    times: Expr
    sizes: Mapping[Symbol, Expr]
    mask: Literal["full", "causal", "window"] = "full"

    def __hash__(self) -> int:
        return hash((self.times, frozenset(self.sizes.items()), self.mask))


@dataclass(frozen=True)
class Cut(Block):
    """Run the body on every piece; buffers are as large as the first piece needs, so the largest comes first."""

    pieces: Sequence[Piece]
    body: Sequence[Statement]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", tuple(self.pieces))
        super().__post_init__()


@dataclass(frozen=True)
class Live(Block):
    """Run the body only where the tile of the enclosing loop sees some of `axis`."""

    axis: Axis
    body: Sequence[Statement]


@dataclass(frozen=True)
class Idle(Block):
    """Run the body only where the tile of the enclosing loop sees nothing of `axis`."""

    axis: Axis
    body: Sequence[Statement]


@dataclass(frozen=True)
class When(Block):
    """Run the body only if the condition, which is 0 or 1, is 1; `unless` turns it round."""

    condition: Expr
    body: Sequence[Statement]
    unless: bool = False

    @property
    def holds(self) -> Expr:
        """1 where the body runs, 0 where it does not."""
        return 1 - self.condition if self.unless else self.condition


@dataclass(frozen=True)
class Kernel(Block):
    """One launch; it begins and ends with nothing on chip.

    What it `keeps` stays in HBM until it is over, whether it moves it or not: a later pass reads it.
    """

    title: str
    body: Sequence[Statement]
    per: Per = "head"
    keeps: tuple[Tensor, ...] = ()


Leaf = Load | Lookup | Store | Fill | Accumulate | Hold | MatMul | Elementwise
Guard = Live | Idle | When
Statement = Leaf | Loop | Cut | Guard
Nest = tuple[Kernel, ...]
Path = tuple[Kernel | Loop | Cut | Guard, ...]


def walk(nest: Nest) -> Iterator[tuple[Leaf, Path]]:
    """Every leaf of a nest with the blocks around it, outermost first, in program order."""

    def inside(block: Kernel | Loop | Cut | Guard, path: Path) -> Iterator[tuple[Leaf, Path]]:
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
            bound = isinstance(block, Live | Idle) or (isinstance(block, Loop) and block.masked)
            if bound and not loops(path[:i]):
                raise DeclarationError(f"{kernel.title}: a mask needs an enclosing loop whose tiles do the seeing")
            if isinstance(block, Cut):
                _check_cut(kernel, block, path[:i])
        if sum(isinstance(block, Loop) and block.masked for block in path) > 1:
            raise DeclarationError(f"{kernel.title}: one masked loop lies inside another")
        if isinstance(statement, Load) and statement.after_first not in (None, *_masked(path)):
            raise DeclarationError(f"{kernel.title}: {statement.tensor.name} waits for a first trip of no masked loop")
        if (
            isinstance(statement, Load)
            and statement.after_first
            and any(map(_guards, _within(statement.after_first, path)))
        ):
            raise DeclarationError(f"{kernel.title}: {statement.tensor.name} waits for a first trip behind a guard")
        if isinstance(statement, Load) and statement.after_first in statement.tensor.axes:
            raise DeclarationError(
                f"{kernel.title}: {statement.tensor.name} has another tile at every trip that it waits for"
            )
        if isinstance(statement, Store | Accumulate) and (statement.held or statement.tensor) not in held(path):
            raise DeclarationError(f"{kernel.title}: {statement.tensor.name} is stored where no buffer holds it")


def _check_cut(kernel: Kernel, cut: Cut, around: Path) -> None:
    """Raise where what lies around a cut knows the sizes that its pieces change: it would be counted with theirs."""
    changed = {symbol for piece in cut.pieces for symbol in piece.sizes}
    walked = set().union(*(loop.axis.length.free_symbols | loop.tile.free_symbols for loop in loops(around).values()))
    if any(isinstance(block, Cut | Live | Idle) for block in around) or _masked(around):
        raise DeclarationError(f"{kernel.title}: a cut lies inside another, a guard or a masked loop")
    if changed & walked:
        names = ", ".join(sorted(map(str, changed & walked)))
        raise DeclarationError(f"{kernel.title}: a cut changes {names}, which a loop around it walks")


def _masked(path: Path) -> list[Axis]:
    return [block.axis for block in path if isinstance(block, Loop) and block.masked]


def _within(axis: Axis, path: Path) -> Path:
    """The blocks inside the loop over an axis."""
    return path[1 + next(i for i, block in enumerate(path) if isinstance(block, Loop) and block.axis == axis) :]


def _guards(block: Kernel | Loop | Cut | Guard) -> bool:
    return isinstance(block, Live | Idle)


def held(path: Path) -> set[Tensor]:
    """The tensors that have a buffer in the bodies around a statement."""
    return {statement.tensor for block in path for statement in _same_body(block) if isinstance(statement, Load | Hold)}


def _same_body(block: Kernel | Loop | Cut | Guard) -> Iterator[Leaf | Loop | Cut]:
    """The statements of a body, those behind a guard included: a guard opens no scope of its own."""
    for statement in block.body:
        if isinstance(statement, Guard):
            yield from _same_body(statement)
        else:
            yield statement


def rebuilt(body: Sequence[Statement], change: Callable[[Any], Iterable[Statement]]) -> tuple[Statement, ...]:
    """A body with each statement replaced by those that `change` makes of it, from the inside out."""
    made: list[Statement] = []
    for statement in body:
        inner = statement.with_body(rebuilt(statement.body, change)) if isinstance(statement, Block) else statement
        made.extend(change(inner))
    return tuple(made)


def retiled(nest: Nest, tiles: Mapping[Expr, Expr]) -> Nest:
    """The same nest with some tiles called otherwise."""

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Loop):
            return (replace(statement, tile=statement.tile.subs(tiles)),)
        return (statement,)

    return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)


@dataclass(frozen=True)
class Published:
    """A closed form printed in a paper, typed by hand: total HBM elements of one head, mask "full"."""

    elements: Expr
    cite: str
    options: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "forward"


@dataclass(frozen=True)
class Requirement:
    """What must hold between the numbers of a call, options and tiles included: `holds` is not negative.

    The error names `field` and says what is `allowed`, a text with the names of numbers in braces; `most`, where there
    is one, is the largest value that the field may have. It is required where the mask and the switches are as in
    `given`.
    """

    field: str
    holds: Expr
    allowed: str
    most: Expr | None = None
    given: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def at_most(cls, symbol: Symbol, field: str, most: Expr, allowed: str, **given: Any) -> Requirement:
        """The option of that symbol has a largest value."""
        return cls(field, most - symbol, allowed, most, tuple(given.items()))

    @classmethod
    def same(cls, field: str, one: Expr, other: Expr, allowed: str, **given: Any) -> Requirement:
        """Two numbers are equal."""
        return cls(field, Min(one - other, other - one), allowed, given=tuple(given.items()))

    @classmethod
    def multiple(cls, field: str, number: Expr, of: Expr, allowed: str, **given: Any) -> Requirement:
        """A number is a multiple of another."""
        return cls(field, of * floor(number / of) - number, allowed, given=tuple(given.items()))


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A named algorithm: how to declare its nests, where it is from, which bounds may speak of it.

    `declare` and `backward` take those of the options that they name, by keyword, and return the nest of a direction;
    None where the algorithm has no such direction. One that names `causal` is told whether the mask is the causal one.
    `saved` are the options that the forward pass needs for a backward pass to follow. `classes` names the classes of
    :mod:`iomodel.bounds` that the forward nest belongs to. `without` names the features of a call
    (:mod:`iomodel.features`) that a direction does not have. `tiled_by` names the option that giving tiles switches on,
    for an algorithm that also has a form without tiles. `requires` is what must hold between its numbers.

    `approximates` says what an algorithm computes in place of attention, nothing for one that is exact. Such a one
    takes none of the features, no packed rows, one sequence length a call, and only the `masks` that it names.
    """

    name: str
    title: str
    cite: str
    declare: Any = None
    backward: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    saved: Mapping[str, Any] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    without: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tiled_by: str | None = None
    published: tuple[Published, ...] = ()
    residency: Mapping[str, Any] = field(default_factory=dict)
    execution: Mapping[str, Any] = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    approximates: str = ""
    masks: tuple[str, ...] = ()

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that it answers."""
        found = [name for name, declare in (("forward", self.declare), ("backward", self.backward)) if declare]
        return (*found, "both") if len(found) == 2 else tuple(found)

    def takes(self, direction: str = "forward") -> dict[str, Any]:
        """The options of a direction, with their defaults."""
        return self._taken[direction]

    @cached_property
    def _taken(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for direction in self.directions:
            declares = {"forward": [self.declare], "backward": [self.backward]}.get(
                direction, [self.declare, self.backward]
            )
            named = {name for declare in declares for name in signature(declare).parameters}
            if len(self.directions) == 1:
                named = set(self.options)  # a number need not be named: it stands in the nest as a symbol
            found[direction] = {name: default for name, default in self.options.items() if name in named}
        return found

    @property
    def common(self) -> dict[str, Any]:
        """The options that are none of its own: how the rows of a group are read."""
        return {"packed": False}

    def nest(self, direction: str = "forward", causal: bool = False, **options: Any) -> Nest:
        """The declaration of the forward or backward pass under these options, checked."""
        declare = self.declare if direction == "forward" else self.backward
        chosen = {**self.options, **options, "causal": causal}
        nest: Nest = tuple(declare(**{name: chosen[name] for name in signature(declare).parameters}))
        check(nest)
        return nest
