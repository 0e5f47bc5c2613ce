"""Chains of operators of a PyTorch program that one kernel could run, and the bytes that each step of fusion saves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar

from iomodel.algorithms import replacing
from iomodel.common.results import Record
from iomodel.torch.moved_bytes import distinct_bytes, results_of
from iomodel.torch.operator_call import OperatorCall, TensorArgument
from iomodel.torch.products import PRODUCTS

ROWWISE = ("log_softmax", "softmax", "norm", "mean", "sum", "amax", "max", "min", "logsumexp")
"""Parts of the names of operators that reduce rows, which a kernel of the catalogue joins with their neighbours: the
words of the chains that algorithms declare (:class:`iomodel.nests.algorithm.Algorithm`)."""
PRODUCT, ELEMENTWISE = "product", "elementwise"
"""Further words of chains: a matrix product, and an operator on single elements (`add` is one too)."""


@dataclass(frozen=True)
class Chain(Record):
    """Operators that follow one another, each reading what the one before it made.

    Attributes
    ----------
    operators : tuple of str
        The operators in order.
    unfused_bytes : int
        Each tensor of each operator once [B].
    elementwise_bytes : int
        The same, where elementwise operators that follow one another are one kernel [B].
    fused_bytes : int
        The same, where the whole chain is one kernel [B].
    kernel : str
        The algorithm of the catalogue that runs the chain, empty where there is none.
    next_step : str
        The fusion to try next.
    """

    operators: tuple[str, ...]
    unfused_bytes: int
    elementwise_bytes: int
    fused_bytes: int
    kernel: str
    next_step: str

    columns: ClassVar[tuple[str, ...]] = ("chain", ">unfused [MB]", ">by element [MB]", ">one kernel [MB]", "next step")

    def row(self) -> tuple[str, ...]:
        """Return the cells of the chain in a table."""
        names = [name.removeprefix("aten.") for name in self.operators]
        title = " > ".join(names if len(names) <= 5 else [*names[:3], "...", names[-1]])
        sizes = (self.unfused_bytes, self.elementwise_bytes, self.fused_bytes)
        return title, *(f"{size / 1e6:,.3f}" for size in sizes), self.next_step


def chains(calls: Sequence[OperatorCall]) -> tuple[Chain, ...]:
    """List the chains of a program, the largest saving first.

    A chain goes on where one operator alone reads a tensor that is no result of the program. A product begins a chain,
    and a second one ends it if a softmax is between them, as in attention.
    """
    readers = _readers(calls)
    kinds = [_word(call) for call in calls]
    taken: set[int] = set()
    found = []
    for start in range(len(calls)):
        if start in taken:
            continue
        members, reduces = [start], False
        while (after := _next(calls, readers, members[-1])) is not None and after not in taken:
            reduces |= kinds[members[-1]] == "softmax"
            attends = kinds[start] == PRODUCT and reduces
            if not kinds[after] or (kinds[after] == PRODUCT and not attends):
                break
            members.append(after)
            if kinds[after] == PRODUCT:
                break
        if len(members) > 1:
            taken.update(members)
            found.append(_described([calls[place] for place in members]))
    grouped = dict.fromkeys(found)
    return tuple(sorted(grouped, key=lambda chain: chain.fused_bytes - chain.unfused_bytes))


def _readers(calls: Sequence[OperatorCall]) -> dict[int, list[int]]:
    """Return the places of the calls that read each storage."""
    readers: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        for storage in {tensor.storage for tensor in call.inputs.values() if tensor.storage is not None}:
            readers.setdefault(storage, []).append(place)
    return readers


def _next(calls: Sequence[OperatorCall], readers: dict[int, list[int]], last: int) -> int | None:
    """Return the place of the call that alone reads the result of another, or changes it first."""
    made = results_of(calls[last])
    if not made or made[0].storage is None:
        return None
    places = readers.get(made[0].storage, [])
    later = bisect_right(places, last)
    if later == len(places) or (len(places) - later > 1 and not calls[places[later]].written):
        return None
    return places[later]


def _word(call: OperatorCall) -> str:
    """Name the kind of an operator in a chain; empty for one that a kernel cannot join with its neighbours."""
    if call.operator in PRODUCTS:
        return PRODUCT
    if call.pointwise:
        return "add" if call.operator == "aten.add" else ELEMENTWISE
    return "" if "batch_norm" in call.operator else next((part for part in ROWWISE if part in call.operator), "")


def _described(calls: Sequence[OperatorCall]) -> Chain:
    names = tuple(call.operator for call in calls)
    runs: list[list[OperatorCall]] = [[calls[0]]]
    for before, call in pairwise(calls):
        if before.pointwise and call.pointwise:
            runs[-1].append(call)
        else:
            runs.append([call])
    unfused, by_element, fused = (_moved(each) for each in ([[call] for call in calls], runs, [list(calls)]))
    kernel = _kernel(calls)
    step = f"one kernel, as {kernel}" if kernel else "one kernel"
    if by_element < unfused and (by_element - fused) * 10 < unfused - by_element:
        step = "fuse the elementwise operators"
    return Chain(names, unfused, by_element, fused, kernel, step)


def _kernel(calls: Sequence[OperatorCall]) -> str:
    """Name the algorithm of the catalogue that declares a chain, elementwise operators as one or left out."""
    words = [_word(call) for call in calls]
    kinds = [ELEMENTWISE if word == "add" else word for word in words]
    joined = [kind for kind, _ in groupby(kinds)]
    for chain in (words, joined, [kind for kind in kinds if kind != ELEMENTWISE]):
        known = replacing(" ".join(chain))
        if known is not None:
            return known.name
    return ""


def _moved(kernels: Iterable[Sequence[OperatorCall]]) -> int:
    """Add up the bytes of kernels that keep what they make and read themselves on the chip [B]."""
    total = 0
    for calls in kernels:
        if len(calls) == 1:
            total += sum(distinct_bytes(calls[0]))
            continue
        inside: set[int | None] = set()
        reads: dict[tuple[int | None, int], TensorArgument] = {}
        for call in calls:
            outer = {name: tensor for name, tensor in call.inputs.items() if tensor.storage not in inside}
            reads.update({(tensor.storage, tensor.offset): tensor for tensor in outer.values()})
            inside |= {tensor.storage for tensor in results_of(call)}
        total += sum(tensor.distinct_bytes for tensor in reads.values())
        kept = {tensor.storage: tensor for call in calls for tensor in results_of(call) if tensor.kept}
        last = results_of(calls[-1])
        kept.update({tensor.storage: tensor for tensor in last})
        total += sum(tensor.bytes for tensor in kept.values())
    return total
