"""From what was seen to what is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iomodel.crossings.axes import Axis
from iomodel.crossings.beyond import for_ever
from iomodel.crossings.contenders import Contender
from iomodel.crossings.curves import Asked, Curve
from iomodel.crossings.formula import Sought, crossing_formula
from iomodel.crossings.looking import Range
from iomodel.crossings.result import KEPT, Crossover, Crossovers
from iomodel.crossings.runs import Seen
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.workload import Attention


def answer(
    found: Sequence[Contender],
    curves: Sequence[Curve],
    workload: Attention,
    device: Hardware | None,
    budget: Mapping[str, Any],
    axis: Axis,
    metric: str,
    where: Range,
    seen: Seen,
    whole: bool,
) -> Crossovers:
    """The result, with formulas and what is proven."""
    labels = [one.label for one in found]
    pairs: dict[tuple[int, int], Crossover] = {}
    for i, j in seen.pairs:
        forth, back = pair_of(seen, i, j, labels, where.step), pair_of(seen, j, i, labels, where.step)
        near = forth.lasting or forth.first or back.lasting
        if near == where.start:
            near = None
        sought = crossing_formula(curves[i], curves[j], near or back.first)
        sign = _last_sign(seen, i, j)
        ever = whole and where.step >= 1 and for_ever(curves[i], curves[j], where.limit, sign, where.step)
        for pair, place in ((forth, (i, j)), (back, (j, i))):
            pairs[place] = _with(pair, sought, ever)
    first, last, codes = seen.winners.table
    winners = tuple(
        (int(a), int(z), tuple(label for i, label in enumerate(labels) if code >> i & 1))
        for a, z, code in zip(first[:KEPT], last[:KEPT], codes[:KEPT].tolist(), strict=True)
    )
    final = [i for i in range(len(found)) if int(codes[-1]) >> i & 1]
    ever = bool(final) and all(pairs[i, j].for_ever for i in final for j in range(len(found)) if j != i)
    points = where.points(where.spread())
    values = [curve.at(points) for curve in curves]
    return Crossovers(
        contenders=tuple(found),
        workload=workload,
        hardware=device,
        budget=FrozenDict(budget),
        axis=axis,
        metric=metric,
        start=where.start,
        limit=where.limit,
        step=where.step,
        looked=seen.looked,
        proof=_proof(where, seen, whole, ever, axis),
        winners=winners,
        changes=len(codes) - 1,
        for_ever=ever,
        missing=FrozenDict(
            {
                label: (seen.looked - present, divisor(curve.asked, where))
                for label, present, curve in zip(labels, seen.present, curves, strict=True)
                if present < seen.looked
            }
        ),
        pairs=tuple(pairs[i, j] for i in range(len(found)) for j in range(len(found)) if i != j),
        points=tuple(points.tolist()),
        values=FrozenDict(
            {
                label: tuple(
                    value if here else None for value, here in zip(one.values.tolist(), one.there, strict=True)
                )
                for label, one in zip(labels, values, strict=True)
            }
        ),
    )


def pair_of(seen: Seen, i: int, j: int, labels: Sequence[str], step: int) -> Crossover:
    """What was seen of one against another."""
    first, last, codes = seen.signs[min(i, j), max(i, j)].table
    below = codes == (-1 if i < j else 1)
    here = np.flatnonzero(below)
    equal = codes == 0
    return Crossover(
        challenger=labels[i],
        incumbent=labels[j],
        first=int(first[here[0]]) if len(here) else None,
        lasting=int(first[-1]) if below[-1] else None,
        changes=len(codes) - 1,
        below=tuple((int(a), int(z)) for a, z in zip(first[here[:KEPT]], last[here[:KEPT]], strict=True)),
        equal=int(((last[equal] - first[equal]) // step + 1).sum()),
        for_ever=False,
        formula=None,
        no_formula="",
    )


def divisor(asked: Asked, where: Range) -> int:
    """The largest number that divides every point, of the first million, at which an algorithm answers."""
    points = where.points(np.arange(min(where.count, 10**6)))
    return int(np.gcd.reduce(points[asked.answers(points, asked.contender.tiles)], initial=0)) or 1


def _with(pair: Crossover, sought: Sought, ever: bool) -> Crossover:
    return Crossover(**{**pair.__dict__, "formula": sought.formula, "no_formula": sought.reason, "for_ever": ever})


def _last_sign(seen: Seen, i: int, j: int) -> int:
    return int(seen.signs[i, j].table[2][-1])


def _proof(where: Range, seen: Seen, whole: bool, ever: bool, axis: Axis) -> str:
    """What is proven, in a sentence."""
    letter = axis.symbol
    every = f"every {letter}" if where.step == 1 else f"every {where.step:,}th {letter}"
    span = f"from {where.start:,} to {where.limit:,}"
    if not whole:
        return (
            f"looked at {seen.looked:,} of {where.count:,} points {span}: each change lies between two neighbours, "
            "or where one is said to begin; changes back and forth between two points looked at are not excluded"
        )
    beyond = ", and above for ever: there the gaps are polynomials on residue classes, without a root" if ever else ""
    return f"exact at {every} {span}, each counted{beyond}"
