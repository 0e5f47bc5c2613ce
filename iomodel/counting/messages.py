"""Messages of a schedule of ranks: elements that a rank sends and receives, by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sympy import Expr, Min, Mul, ceiling

from iomodel.common.frozen_dict import FrozenDict
from iomodel.nests.ranks import Schedule, Send, Sharding, Turn, chunk, next_rank, rows
from iomodel.nests.symbols import B, H, H_kv, R, i
from iomodel.nests.tensors import key, query


@dataclass(frozen=True)
class Messages:
    """Messages of rank i of R ranks, in formulas over the alphabet; all of them are exact where each rank has a row.

    Attributes
    ----------
    sent, received : mapping of tensor name to expression
        Elements that leave and reach the rank [elements].
    messages : mapping of tensor name to expression
        Messages that leave the rank [-].
    buffers : mapping of tensor name to expression
        Elements reserved for rows of other ranks; on a ring for the rows at hand and those on their way [elements].
    """

    sent: Mapping[str, Expr]
    received: Mapping[str, Expr]
    messages: Mapping[str, Expr]
    buffers: Mapping[str, Expr]


def messages(schedule: Schedule, sharding: Sharding) -> Messages:
    """Fold the messages of a schedule.

    >>> from iomodel.algorithms._ranks import RING
    >>> messages(RING, "striped").received["K"]
    B*H_kv*d*(N_k - ceiling((N_k - i)/R))
    """
    folded = {send.tensor.name: _of_rank(send, passed, sharding) for send, passed in _sends(schedule)}
    return Messages(*(FrozenDict({name: parts[place] for name, parts in folded.items()}) for place in range(4)))


def _sends(schedule: Schedule) -> Iterator[tuple[Send, bool]]:
    """Iterate over the sends, and whether each is part of a turn."""
    for statement in schedule.body:
        inner = statement.body if isinstance(statement, Turn) else (statement,)
        yield from ((part, isinstance(statement, Turn)) for part in inner if isinstance(part, Send))


def _of_rank(send: Send, passed: bool, sharding: Sharding) -> tuple[Expr, Expr, Expr, Expr]:
    """Count the elements that rank i sends and receives, its messages, and the elements of its buffers."""
    (axis,) = (axis for axis in send.tensor.axes if axis in (query, key))
    widths = [axis.length for axis in send.tensor.axes if axis not in (query, key)]
    heads = H if send.tensor.per == "head" else H_kv
    if send.into is not None:
        heads = ceiling(heads / R)
    each = Mul(B, heads, *widths)
    length, own, others = axis.length, rows(axis.length, sharding), R - 1
    if passed:  # over all turns, all rows but those of the next rank
        largest = own.subs(i, R - 1) if sharding == "zigzag" else chunk(length)
        following = own.subs(i, next_rank())
        return each * (length - following), each * (length - own), others, each * Min(2, others) * largest
    if send.into == "rows":
        return each * (length - own), each * others * own, others, each * others * own
    return each * others * own, each * (length - own), others, each * (length - own)
