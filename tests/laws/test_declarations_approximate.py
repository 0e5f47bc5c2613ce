"""Every one-step edit of the declaration of an approximation is seen by its reference kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from sympy import Expr, Integer

from iomodel.algorithms import algorithm
from iomodel.counting import folds as counts
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import kind_of
from iomodel.counting.mask_kind import CAUSAL, FULL
from iomodel.nests.language import Exp, Nest
from iomodel.nests.rules import DeclarationError, check
from iomodel.nests.symbols import BY_NAME
from tests.support.approximate_shapes import Calls
from tests.support.edits import Edit, edits
from tests.support.numeric_view import NumericView, Point
from tests.support.strategies import APPROXIMATE, UNGROUPED, Case, Variant, one_in

KINDS = {"full": FULL, "causal": CAUSAL}
WAYS = [(variant, mask) for variant in APPROXIMATE for mask in algorithm(variant.algorithm).masks]
each_way = pytest.mark.parametrize(("variant", "mask"), WAYS, ids=str)
HIDDEN = {"of another width: Hold(O) in add up > Loop(query)"}
"""Seen at no size: the last kernel of nsa holds a row of each branch, less than some other kernel at any width."""
ONE_IN = one_in(10, "nightly")
"""Which share of the edits is judged: all of them at night."""


class Counted(NamedTuple):
    """What the reference kernel counts in a call, and the numbers of the call."""

    case: Case
    view: NumericView
    kernel: Mapping[str, int]


def quantities(nest: Nest, view: NumericView) -> Iterator[tuple[str, Expr]]:
    """Every count of a nest, those first in which most edits show."""
    for side, kinds in (("reads", counts.READS), ("writes", counts.WRITES)):
        moved: dict[str, Expr] = {}
        for tensor, count in counts.moves(nest, view, kinds).items():
            moved[tensor.name] = moved.get(tensor.name, Integer(0)) + count
        for name, count in moved.items():
            yield f"{side} {name}", count
    yield "flops", counts.flops(nest, view)
    yield "exps", counts.function_values(nest, view, Exp)
    yield "footprint", counts.footprint(nest, view)
    yield "footprint_bytes", counts.footprint(nest, view, view.size)
    yield "peak_hbm", counts.peak_hbm(nest, view)
    yield "peak_hbm_bytes", counts.peak_hbm(nest, view, view.size)


@lru_cache(maxsize=64)
def references(name: str, options: tuple[tuple[str, Any], ...], mask: str) -> tuple[Counted, ...]:
    found = []
    for case in Calls(Variant(name, "forward", dict(options))):
        if case.workload.mask != mask:
            continue
        run, w = case.run(), case.workload
        point = {**w.numbers, **case.tiles, **case.options}
        values = {BY_NAME[field]: Integer(n) for field, n in point.items() if field in BY_NAME}
        kernel = {
            **{f"reads {tensor}": count for tensor, count in run.reads.items()},
            **{f"writes {tensor}": count for tensor, count in run.writes.items()},
            "flops": run.flops,
            "exps": run.exps,
            "footprint": run.sram_peak,
            "footprint_bytes": run.sram_bytes(w.element_size, w.kv_element_size),
            "peak_hbm": run.hbm_peak,
            "peak_hbm_bytes": run.hbm_peak_bytes(w.element_size, w.kv_element_size),
        }
        found.append(Counted(case, NumericView(KINDS[mask], point=Point(values)), kernel))
    return tuple(found)


def of(variant: Variant, mask: str) -> tuple[Counted, ...]:
    return references(variant.algorithm, tuple(variant.options.items()), mask)


def nest_of(variant: Variant, mask: str) -> Nest:
    case = next(counted.case for counted in of(variant, mask))
    return declared(algorithm(variant.algorithm), kind_of(case.workload), variant.options)


def differences(nest: Nest, kernels: tuple[Counted, ...]) -> Iterator[str]:
    """Where a nest counts otherwise than the reference kernel does."""
    for case, view, kernel in kernels:
        told = set()
        for name, count in quantities(nest, view):
            told.add(name)
            if count != kernel.get(name, 0):
                yield f"{name}: {count}, counted {kernel.get(name, 0)} in {case}"
        yield from sorted({name for name, count in kernel.items() if count} - told)


def refused(nest: Nest) -> bool:
    try:
        check(nest)
    except DeclarationError:
        return True
    return False


def some(variant: Variant, nest: Nest) -> Iterator[Edit]:
    """The edits to judge, always the same; heads that all have keys of their own are as many as key/value heads."""
    alone = variant.algorithm in UNGROUPED
    judged = (edit for edit in edits(nest) if not (alone and edit.kind in ("once a head", "once a kv_head")))
    return (edit for edit in judged if crc32(str(edit).encode()) % ONE_IN == 0)


@each_way
def test_there_are_shapes_of_many_kinds(variant: Variant, mask: str) -> None:
    lengths = {counted.case.workload.q_len for counted in of(variant, mask)}
    assert len(lengths) >= 2, f"approximate_shapes.py: {variant} has its sizes in {len(lengths)} rows of SIZES"
    assert len(of(variant, mask)) >= 10


@each_way
def test_the_declaration_itself_differs_nowhere(variant: Variant, mask: str) -> None:
    assert list(differences(nest_of(variant, mask), of(variant, mask))) == []


@each_way
def test_every_edit_is_seen(variant: Variant, mask: str) -> None:
    nest, kernels = nest_of(variant, mask), of(variant, mask)
    unseen = [
        str(edit)
        for edit in some(variant, nest)
        if str(edit) not in HIDDEN and not refused(edit.nest) and next(differences(edit.nest, kernels), None) is None
    ]
    assert unseen == []
