"""Options of an algorithm: their checks, and the selection of those that shape a formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import (
    OPTIONS,
)


def check_options(
    found: Algorithm, options: Mapping[str, Any], tiled: bool = False, direction: str = "forward"
) -> dict[str, Any]:
    """Check the options of an algorithm and fill in the defaults; errors name the option."""
    allowed, whole = {**found.takes(direction), **found.common}, {}
    for name, value in options.items():
        if name not in allowed:
            raise UnknownNameError(f"option of {found.name}", name, allowed)
        if name in NUMBERS:
            whole[name] = as_integer(name, value)
        elif type(value) is not type(allowed[name]):
            raise InputError(f"{name}: {shown(value)} given; allowed: {type(allowed[name]).__name__}")
    chosen = {**allowed, **options, **whole}
    if found.approximates and chosen.get("packed"):
        raise InputError(f"packed: True given; allowed: False, because {found.name} has no packed rows")
    if direction == "both":
        for name, needed in found.saved.items():
            if options.get(name, needed) != needed:
                raise InputError(
                    f"{name}: {options[name]} given; allowed: {needed}, because the backward pass needs it"
                )
    if tiled and found.tiled_by:
        if options.get(found.tiled_by) is False:
            raise InputError(f"{found.tiled_by}: False given; allowed: True, because {found.name} has tiles here")
        chosen[found.tiled_by] = True
    return chosen


def only_taken(found: Algorithm, direction: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the options that an algorithm takes in a direction."""
    known = {**found.takes(direction), **found.common}
    taken = {name: value for name, value in options.items() if name in known}
    return {**taken, "packed": False} if found.approximates and "packed" in taken else taken


def known_options(algorithms: Iterable[AlgorithmLike], direction: str | None = None) -> dict[str, Any]:
    """Collect the options of all given algorithms with their defaults, in one direction or in any."""
    known: dict[str, Any] = {}
    common: dict[str, Any] = {}
    for name in algorithms:
        declaration = find_algorithm(name)
        known = {**(declaration.options if direction is None else declaration.takes(direction)), **known}
        common |= declaration.common
    return {**known, **common}


NUMBERS = frozenset(entry.name for entry in OPTIONS)
"""Numeric options, which enter a formula as symbols."""


def structural(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the options that shape a formula, sorted by name."""
    return tuple(sorted((name, value) for name, value in options.items() if name not in NUMBERS))
