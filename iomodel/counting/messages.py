"""Messages of a schedule of ranks: elements that a rank sends and receives, by tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer, Min, Mul, ceiling

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms._ranks import schedule_of
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import PlainData, check_keys, decoded_values
from iomodel.counting.expressions import expressions
from iomodel.counting.quantities import TOTALS
from iomodel.errors import UnknownNameError
from iomodel.nests.ranks import SHARDINGS, RankSchedule, Send, Sharding, Turn, chunk, next_rank, rows
from iomodel.nests.symbols import NAME_OF, B, H, H_kv, R, i
from iomodel.nests.tensors import key, query


@dataclass(frozen=True, repr=False)
class Messages(PlainData):
    """Messages of rank i of R ranks that divide a sequence, as sympy expressions, and the attention between them.

    They are exact, with a ragged last shard too, where each rank has a row.

    Attributes
    ----------
    method, mask, sharding : str
        As asked; the sharding that is the default of the mask.
    sent, received : mapping of tensor name to expression
        Elements that leave and reach the rank [elements].
    messages : mapping of tensor name to expression
        Messages that leave the rank [-].
    buffers : mapping of tensor name to expression
        Elements reserved for rows of other ranks; on a ring for the rows at hand and those on their way [elements].
    """

    method: str
    mask: str
    sharding: Sharding
    sent: Mapping[str, Expr]
    received: Mapping[str, Expr]
    messages: Mapping[str, Expr]
    buffers: Mapping[str, Expr]

    def __repr__(self) -> str:
        return f"<Messages {self.method}, {self.mask}, {self.sharding}>"

    def attention(self, algorithm: AlgorithmLike = "flash2", **options: Any) -> Mapping[str, Expr]:
        """Sum each quantity of an algorithm over the calls of rank i.

        Parameters
        ----------
        algorithm : str or Algorithm
            One of :func:`iomodel.list_algorithms`.
        **options
            As for :func:`iomodel.expressions`.

        Raises
        ------
        UnknownNameError, InputError
            As for :func:`iomodel.expressions`.

        Examples
        --------
        >>> messages("ulysses", "full").attention()["flops"]
        2*B*N_k*N_q*d*ceiling(H/R) + 2*B*N_k*N_q*d_v*ceiling(H/R)
        """
        total: dict[str, Expr] = {}
        schedule = schedule_of(self.method)
        for piece in schedule.pieces_of(self.mask, self.sharding)[1]:
            mask: Any = self.mask if schedule.any_mask else piece.mask
            sizes = {NAME_OF[symbol]: size for symbol, size in piece.sizes.items()}
            counts = expressions(algorithm, mask, **options).subs(sizes)
            for name in (*TOTALS, *SUMMED):
                total[name] = total.get(name, Integer(0)) + piece.times * getattr(counts, name)
        return FrozenDict(total)

    def to_dict(self) -> dict[str, Any]:
        """Return the formulas as text, ready for JSON."""
        texts = {side: {name: str(count) for name, count in getattr(self, side).items()} for side in SIDES}
        return {"method": self.method, "mask": self.mask, "sharding": self.sharding, **texts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Messages:
        """Fold the messages of plain data again; its texts are not read.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        known = decoded_values({"method": str, "mask": str, "sharding": str}, (), data, cls.__name__)
        made = messages(known["method"], known["mask"], known["sharding"])
        check_keys(data, made.to_dict())
        return made

    def __str__(self) -> str:
        return "\n".join(f"{side} {name} = {count}" for side in SIDES for name, count in getattr(self, side).items())


SUMMED = ("hbm_bytes", "flops", "useful_flops", "exps")
"""Quantities that add up over calls, beside the totals of HBM accesses."""
SIDES = ("sent", "received", "messages", "buffers")


@strict
def messages(method: str, mask: str = "full", sharding: Sharding | None = None) -> Messages:
    """Return the messages that one of the ranks of a divided sequence sends and receives, as sympy expressions.

    Parameters
    ----------
    method : {"ring", "all_gather", "ulysses"}
        Ring attention, an all-gather of K and V, or DeepSpeed-Ulysses.
    mask : {"full", "causal"}
        Mask of the call.
    sharding : {"contiguous", "zigzag", "striped"}, optional
        Rows of each rank, by default as for :func:`iomodel.planning.context_parallel`.

    Raises
    ------
    UnknownNameError, InputError
        A name is unknown, or the method does not divide the mask so.

    Examples
    --------
    >>> messages("ring", "causal", "striped").received["K"]
    B*H_kv*d*(N_k - ceiling((N_k - i)/R))
    """
    for field, name, known in (("mask", mask, ("full", "causal")), ("sharding", sharding, SHARDINGS)):
        if (name is not None or field == "mask") and (not isinstance(name, str) or name not in known):
            raise UnknownNameError(field, name, known)
    schedule = schedule_of(method)
    return folded(schedule, mask, schedule.pieces_of(mask, sharding)[0])


def folded(schedule: RankSchedule, mask: str, sharding: Sharding) -> Messages:
    """Fold the messages of a schedule."""
    counts = {send.tensor.name: _of_rank(send, passed, sharding) for send, passed in _sends(schedule)}
    sides = (FrozenDict({name: parts[place] for name, parts in counts.items()}) for place in range(len(SIDES)))
    return Messages(schedule.name, mask, sharding, *sides)


def _sends(schedule: RankSchedule) -> Iterator[tuple[Send, bool]]:
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
