"""What an algorithm requires of the numbers of a call (:class:`iomodel.nest.Requirement`), before it is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Expr

from iomodel.compiled import Compiled
from iomodel.errors import InputError
from iomodel.nest import Algorithm, Requirement
from iomodel.symbols import BY_NAME, NAME_OF


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
    for requirement, point, holds in _spoken(found, numbers):
        if requirement.most is not None and isinstance(given := numbers[requirement.field], int) and given == 1:
            continue  # always allowed, and most often the default: no array is gone through for it
        slack = _slack(holds, point)
        if isinstance(slack, int):
            if slack < 0:
                raise _error(found, requirement, numbers, "")
            continue
        wrong = np.argwhere(slack < 0)
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            at = {name: int(np.broadcast_to(value, slack.shape)[place]) for name, value in point.items()}
            raise _error(found, requirement, {**numbers, **at}, f", at index {place}")


def met(found: Algorithm, numbers: Mapping[str, Any]) -> Any:
    """Where numbers go together: a bool, or an array of them where there are arrays among the numbers."""
    where: Any = True
    for _, point, holds in _spoken(found, numbers):
        where = where & (_slack(holds, point) >= 0)
    return where


def _slack(holds: Compiled, point: Mapping[str, Any]) -> Any:
    """What must not be negative: an int, or an array where there are arrays among the numbers."""
    if all(isinstance(value, int) for value in point.values()):
        return holds.scalars(*point.values())[0]
    return np.asarray(holds.arrays(*point.values())[0])


def _spoken(found: Algorithm, numbers: Mapping[str, Any]) -> Iterator[tuple[Requirement, dict[str, Any], Compiled]]:
    """The requirements that speak of these numbers alone, as mask and switches are, each with its numbers."""
    for requirement in found.requires:
        names, holds, _ = _compiled(requirement)
        if numbers.keys() >= set(names) and all(numbers[name] == value for name, value in requirement.given):
            yield requirement, {name: numbers[name] for name in names}, holds


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
