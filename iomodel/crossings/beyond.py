r"""Proof that nothing changes above the limit, for counts that are polynomials with ceilings.

Let all numbers but x be fixed, and every ceiling and floor be one of a line in x with rational slope. With L a common
multiple of the slopes' denominators, each of them grows by the same integer whenever x grows by L; so on every residue
class, x = r + L t, a count is a polynomial in t, of a degree that the formula bounds. By Newton's forward differences
it is :math:`\sum_k \binom{t}{k} \Delta^k`, with the differences taken from deg + 1 points; if all of them are at least
0 and the first is above 0, it is above 0 for every t. That is tried for the gap between two counts on all classes.
"""

from __future__ import annotations

from math import lcm
from typing import Any, NamedTuple

import numpy as np
from sympy import Dummy, Expr, Max, Min, Poly, PolynomialError, Symbol, ceiling, floor

from iomodel.crossings.curves import Curve, Fixed
from iomodel.crossings.metrics import COUNTS
from iomodel.floorsum import FloorSum
from iomodel.masks import Count
from iomodel.symbols import BY_NAME
from iomodel.validation import LARGEST

LARGEST_PERIOD = 1 << 16
"""The longest period for which all classes are looked at."""
_x = Symbol("x", integer=True, positive=True)


class Shape(NamedTuple):
    """How a count grows: a polynomial of this degree on every class of this period."""

    degree: int
    period: int


def shape_of(curve: Curve) -> Shape | None:
    """The shape of a count at fixed tiles, None where the formula does not tell."""
    if not isinstance(curve, Fixed) or curve.asked.axis.memory:
        return None
    asked = curve.asked
    numbers = {**asked.workload.numbers, **asked.contender.options, **asked.contender.tiles}
    for name, default in asked.contender.found.takes(asked.workload.direction).items():
        numbers.setdefault(name, default)
    point: dict[Symbol, Any] = {BY_NAME[name]: value for name, value in numbers.items() if name in BY_NAME}
    point |= {BY_NAME[name]: _x for name in asked.axis.fields}
    exact = getattr(asked.contender.formulas, COUNTS[asked.metric][0])
    if exact.has(FloorSum, Count):
        return None
    shapes = [_shape(exact.subs(point))]
    chosen = {"mask": asked.workload.mask, **numbers}
    shapes += [
        _shape(requirement.holds.subs(point))
        for requirement in asked.contender.found.requires
        if all(chosen[name] == value for name, value in requirement.given)
    ]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    return Shape(max(shape.degree for shape in known), lcm(*(shape.period for shape in known)))


def _shape(expr: Expr) -> Shape | None:
    steps = expr.atoms(ceiling, floor)
    if expr.has(Min, Max) or any(step.args[0].has(ceiling, floor) for step in steps):
        return None
    names = {step: Dummy() for step in steps}
    plain = expr.xreplace(names)
    try:
        slopes = [Poly(step.args[0], _x) for step in steps]
        whole = Poly(plain, _x, *names.values())
    except PolynomialError:
        return None
    if plain.free_symbols - {_x, *names.values()} or any(slope.degree() > 1 for slope in slopes):
        return None
    rational = [slope.coeff_monomial(_x) for slope in slopes]
    if not all(slope.is_Rational for slope in rational):
        return None
    period = lcm(1, *(int(slope.q) for slope in rational))
    return Shape(max(0, int(whole.total_degree())), period) if period <= LARGEST_PERIOD else None


def for_ever(first: Curve, second: Curve, limit: int, sign: int, step: int = 1) -> bool:
    """Whether the gap, first less second, keeps its sign at every integer of the grid above the limit; proven."""
    shapes = shape_of(first), shape_of(second)
    if None in shapes or sign not in (-1, 0, 1):
        return False
    known: list[Shape] = [shape for shape in shapes if shape is not None]
    degree, period = max(shape.degree for shape in known), lcm(*(shape.period for shape in known))
    period = lcm(period, step) // step
    if period > LARGEST_PERIOD:
        return False
    if limit + step * (degree + 1) * period > LARGEST:
        return False
    points = limit + step * np.arange((degree + 1) * period, dtype=np.int64)
    values = [curve.at(points) for curve in (first, second)]
    if not all(one.there.all() for one in values):
        return False
    gap = values[0].values.astype(object) - values[1].values.astype(object)
    differences = gap.reshape(degree + 1, period)
    for order in range(degree + 1):
        leading = differences[0] * (sign or 1)
        strict = leading > 0 if order == 0 else leading >= 0
        if not np.all(strict if sign else leading == 0):
            return False
        differences = differences[1:] - differences[:-1]
    return True
