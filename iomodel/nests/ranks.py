"""Language for attention whose sequence is divided among ranks: messages and attended keys of a rank.

The grammar::

    schedule  ::= Schedule(name, [statement ...], {mask, sharding: pieces})
    statement ::= Send(tensor)                  the rank's rows of a tensor, to every other rank
                | Send(tensor, into="heads")    of its rows, to every other rank the heads of that rank
                | Send(tensor, into="rows")     of its heads, to every other rank the rows of that rank
                | Attend()                      the pieces of attention, each a call of its own
                | Turn([statement ...])         R times, once for each rank: a `Send` inside passes the rows at hand,
                                                first the rank's own, to the next rank of a ring, except at the last
                                                turn; meanwhile `Attend` takes one piece to the rows at hand

A statement is that of rank i of R, counted from 0. Pieces are those of a kernel's nest
(:class:`iomodel.nests.language.Piece`): a number of calls, with sizes in place of those of the whole call. The rows of
a rank follow from the sharding: "contiguous" chunks of ceiling(N/R) rows; "zigzag", the chunks i and 2 R - 1 - i of
2 R; "striped", the rows i, i + R, i + 2 R, ... What is sent follows by folding over the statements
(:mod:`iomodel.counting.messages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sympy import Expr, Integer, Max, Min, ceiling, floor

from iomodel.errors import InputError
from iomodel.nests.language import Brief, Piece, Tensor
from iomodel.nests.symbols import R, i

Sharding = Literal["contiguous", "zigzag", "striped"]
SHARDINGS: tuple[Sharding, ...] = get_args(Sharding)


@dataclass(frozen=True, repr=False)
class Send(Brief):
    """Send a part of a tensor to other ranks; `into` is what the tensor is divided by afterwards, if it was not."""

    tensor: Tensor
    into: Literal["heads", "rows"] | None = None


@dataclass(frozen=True)
class Attend:
    """Attend with the rank's queries, or with those of its heads."""


@dataclass(frozen=True)
class Turn:
    """Take a turn for each rank: attend to the rows at hand while they are passed on."""

    body: tuple[Send | Attend, ...]


@dataclass(frozen=True)
class RankSchedule:
    """A named division of attention among ranks.

    `pieces` are the calls of rank i by mask and sharding, in the order in which they run; of another mask those under
    "any", if there are any. The first sharding of a mask is its default.
    """

    name: str
    title: str
    cite: str
    body: tuple[Send | Attend | Turn, ...]
    pieces: Mapping[str, Mapping[Sharding, Sequence[Piece]]]

    def pieces_of(self, mask: str, sharding: Sharding | None) -> tuple[Sharding, tuple[Piece, ...]]:
        """Return the sharding, by default that of the mask, and its pieces; raise InputError if there are none."""
        known = self.pieces.get(mask, self.pieces.get("any"))
        if known is None:
            allowed = " or ".join(map(repr, self.pieces))
            raise InputError(f"mask: {mask!r} given; allowed: {allowed}, with {self.name}")
        chosen = next(iter(known)) if sharding is None else sharding
        if chosen not in known:
            allowed = ", ".join(map(repr, known))
            raise InputError(f"sharding: {chosen!r} given; allowed: {allowed}, for mask {mask!r} with {self.name}")
        return chosen, tuple(known[chosen])

    @property
    def any_mask(self) -> bool:
        """True if the pieces have the mask of the call, whatever it is."""
        return self.pieces.keys() == {"any"}

    @property
    def overlaps(self) -> bool:
        """True if ranks attend while they send."""
        return any(isinstance(statement, Turn) for statement in self.body)


def chunk(length: Expr, sharding: Sharding = "contiguous") -> Expr:
    """Count the rows of a full chunk [rows]."""
    return ceiling(length / (2 * R if sharding == "zigzag" else R))


def second_chunk(length: Expr) -> Expr:
    """Count the rows of chunk 2 R - 1 - i, the second of rank i in zigzag, 0 past the end of the sequence [rows]."""
    full = chunk(length, "zigzag")
    return Min(full, Max(Integer(0), length - (2 * R - 1 - i) * full))


def rows(length: Expr, sharding: Sharding) -> Expr:
    """Count the rows of rank i, if every rank has one [rows]."""
    if sharding == "striped":
        return ceiling((length - i) / R)
    if sharding == "zigzag":
        return chunk(length, sharding) + second_chunk(length)
    return Min(chunk(length), length - i * chunk(length))


def next_rank() -> Expr:
    """Return the next rank of the ring, 0 after the last [-]."""
    return i + 1 - R * floor((i + 1) / R)
