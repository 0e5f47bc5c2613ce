"""Counts without ceilings: what they are where tiles divide, as polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Any

import numpy as np
from sympy import Expr, Max, Min, Symbol, ceiling, expand, floor, interpolate

from iomodel.crossings.curves import Asked
from iomodel.crossings.metrics import COUNTS
from iomodel.floorsum import FloorSum
from iomodel.masks import Count
from iomodel.symbols import BY_NAME, FOLLOWS, N, N_k, N_q, d, d_v

DEGREE = 3
"""The highest degree that a count may have."""


def letters(asked: Asked, others: Mapping[str, set[int]], mine: str) -> tuple[dict[Symbol, Any], dict[Symbol, Any]]:
    """What stands for each number in the formula, and the value of every letter that stays.

    Widths, lengths, tiles and options stay letters. A tile or option that differs from contender to contender
    (`others`: the values that each has) gets the contender's name, `mine`.
    """
    w, contender = asked.workload, asked.contender
    numbers = {**w.numbers, **contender.found.takes(w.direction), **contender.options}
    point: dict[Symbol, Any] = {
        BY_NAME[name]: value for name, value in numbers.items() if name in BY_NAME and not isinstance(value, bool)
    }
    kept: dict[Symbol, Any] = {}

    def keep(symbol: Symbol, letter: Symbol, value: int) -> None:
        point[symbol] = letter
        kept[letter] = value

    keep(d, d, w.head_dim)
    keep(d_v, d if w.value_dim == w.head_dim else d_v, w.value_dim)
    if w.q_len == w.kv_len or asked.axis.name == "length":
        keep(N_q, N, w.q_len)
        keep(N_k, N, w.q_len)
    else:
        keep(N_q, N_q, w.q_len)
        keep(N_k, N_k, w.kv_len)
    options = {name: value for name, value in numbers.items() if name in others and name not in w.numbers}
    for name, value in {**options, **contender.tiles}.items():
        symbol = BY_NAME[name]
        same = next((letter for letter in kept if name in contender.tiles and _leads(name, letter, kept, value)), None)
        apart = len(others.get(name, set())) > 1
        keep(symbol, same or (Symbol(f"{symbol}^{mine}", positive=True) if apart else symbol), value)
    for name in asked.axis.fields:
        symbol = BY_NAME[name]
        if name == "value_dim" and w.value_dim != w.head_dim:
            continue
        point[symbol] = asked.axis.symbol
        kept.pop(symbol, None)
    kept.pop(asked.axis.symbol, None)
    return point, kept


def _leads(name: str, letter: Symbol, kept: Mapping[Symbol, Any], value: int) -> bool:
    """Whether a letter is that of the tile that this one follows, at the same size."""
    followed = FOLLOWS.get(name)
    return followed is not None and letter == BY_NAME[followed] and kept[letter] == value


def relaxed(asked: Asked, point: Mapping[Symbol, Any], kept: Mapping[Symbol, Any]) -> tuple[Expr | None, int]:
    """The metric as a polynomial, None where it is not one; and from where on, with tiles as numbers, 0 for always."""
    exact = getattr(asked.contender.formulas, COUNTS[asked.metric][0])
    if exact.has(Count):
        return None, 0
    if not exact.has(FloorSum):
        smooth = exact.replace(ceiling, lambda part: part).replace(floor, lambda part: part)
        smooth = smooth.subs(point, simultaneous=True)
        if not smooth.has(Min, Max):
            return expand(smooth), 0
    sides = (asked.workload.numbers[name] for name in ("window_left", "window_right"))
    least = 2 + sum(value for letter, value in kept.items() if letter not in (d, d_v)) + sum(sides)
    return _interpolated(asked, least), least


def _interpolated(asked: Asked, least: int) -> Expr | None:
    """The polynomial through the counts at multiples of the tiles from `least` on, None if there is none.

    There every minimum is decided and every sum of floors is a polynomial; two counts beyond those that it is made
    from, and the first of all, have to lie on it.
    """
    contender, x = asked.contender, asked.axis.symbol
    rows = {"length", "q_len", "kv_len"} & {asked.axis.name}
    step = lcm(*contender.tiles.values(), *(value for value in contender.options.values() if type(value) is int))
    step = step if rows else 1
    first = -(-least // step) * step
    points = np.array([first, *range(8 * first, 8 * first + (DEGREE + 3) * step, step)], dtype=np.int64)
    if not asked.answers(points, contender.tiles).all():
        return None
    counts = [int(count) for count in asked.counted(points, contender.tiles)]
    known = list(zip(points.tolist(), counts, strict=True))
    made = expand(interpolate(known[1 : DEGREE + 2], x))
    return made if all(made.subs(x, at) == count for at, count in known) else None
