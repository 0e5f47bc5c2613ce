"""What an algorithm requires of the numbers of a call (:class:`iomodel.nest.Requirement`), before it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Expr

from iomodel.compiled import Compiled
from iomodel.errors import InputError
from iomodel.nest import Algorithm, Requirement
from iomodel.symbols import BY_NAME, NAME_OF, TILES

TILE_NAMES = frozenset(entry.name for entry in TILES)


def check_numbers(found: Algorithm, numbers: Mapping[str, Any]) -> None:
    """Raise InputError where numbers do not go together; requirements that speak of other numbers are left alone.

    Parameters
    ----------
    found : Algorithm
        Whose requirements they are.
    numbers : mapping of name to int or array
        Fields of the call, options and tiles, and the mask; arrays broadcast, and the error names the first place at
        fault.
    """
    for requirement in found.requires:
        names, holds, _ = _compiled(requirement)
        if not numbers.keys() >= set(names) or any(numbers[name] != value for name, value in requirement.given):
            continue
        if requirement.most is not None and isinstance(given := numbers[requirement.field], int) and given == 1:
            continue  # always allowed, and most often the default: no array is gone through for it
        if all(isinstance(numbers[name], int) for name in names):
            if holds.scalars(*(numbers[name] for name in names))[0] < 0:
                raise _error(found, requirement, numbers, "")
            continue
        slack = np.asarray(holds.arrays(*(numbers[name] for name in names))[0])
        wrong = np.argwhere(slack < 0)
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            at = {name: int(np.broadcast_to(numbers[name], slack.shape)[place]) for name in names}
            raise _error(found, requirement, {**numbers, **at}, f", at index {place}")


def met(found: Algorithm, numbers: Mapping[str, Any]) -> Any:
    """Where numbers go together: a bool, or an array of them where there are arrays among the numbers."""
    where: Any = True
    for requirement in found.requires:
        names, holds, _ = _compiled(requirement)
        if numbers.keys() >= set(names) and all(numbers[name] == value for name, value in requirement.given):
            point = [numbers[name] for name in names]
            scalar = all(isinstance(value, int) for value in point)
            where = where & ((holds.scalars(*point) if scalar else holds.arrays(*point))[0] >= 0)
    return where


def unmet(found: Algorithm, numbers: Mapping[str, Any]) -> str | None:
    """What :func:`check_numbers` would say, None if it would not raise."""
    try:
        check_numbers(found, numbers)
    except InputError as error:
        return str(error)
    return None


def about_tiles(found: Algorithm) -> bool:
    """Whether a requirement speaks of tiles, so that it is checked when they are known."""
    return any(TILE_NAMES & set(_compiled(requirement)[0]) for requirement in found.requires)


@lru_cache(maxsize=256)
def _compiled(requirement: Requirement) -> tuple[tuple[str, ...], Compiled, Compiled | None]:
    names = tuple(sorted(NAME_OF[symbol] for symbol in requirement.holds.free_symbols))
    inputs = [BY_NAME[name] for name in names]
    formulas: list[Expr | None] = [requirement.holds, requirement.most]
    holds, most = (None if formula is None else Compiled([formula], inputs) for formula in formulas)
    assert holds is not None
    return names, holds, most


def _error(found: Algorithm, requirement: Requirement, numbers: Mapping[str, Any], place: str) -> InputError:
    names, _, most = _compiled(requirement)
    told = dict(numbers)
    if most is not None:
        told["most"] = most.scalars(*(numbers[name] for name in names))[0]
    given = numbers[requirement.field]
    if given == found.options.get(requirement.field):
        given = f"{given}, the default,"
    return InputError(f"{requirement.field}: {given} given{place}; allowed: {requirement.allowed.format(**told)}")
