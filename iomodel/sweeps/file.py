"""The plan of a sweep as a YAML file: the arguments of `sweep` by name, ranges written out."""

from __future__ import annotations

import os
from typing import Any

from iomodel.errors import InputError, IOModelError, SpecError, UnknownNameError, shown
from iomodel.specfile import read_user
from iomodel.sweep import planned
from iomodel.sweeps.fields import LONGEST, is_number, known_fields
from iomodel.sweeps.plan import Plan
from iomodel.validation import as_integer

ARGUMENTS = ("algorithm", "quantities", "zipped", "solve", "chunk")
"""What a plan holds beside fields; where its result goes is no part of it."""
STEPS = ("from", "to", "step", "factor")


def plan_file(path: str | os.PathLike[str]) -> Plan:
    """The plan that a file holds, checked; SpecError names the file and the key at fault.

    Parameters
    ----------
    path : str or os.PathLike
        A YAML file whose keys are arguments of :func:`iomodel.sweep`. A number may be a value, a list, or a range as
        ``{from: 1024, to: 131072, factor: 2}`` or ``{from: 16, to: 256, step: 16}``, both ends included.
    """
    told, where = read_user(path)
    try:
        solving = told.get("solve", False) is True
        allowed = (*ARGUMENTS, *known_fields(solving))
        for key in told:
            if key not in (*ARGUMENTS, *known_fields(True), *known_fields(False)):
                raise UnknownNameError("key", key, allowed)
        if "algorithm" not in told:
            raise InputError("algorithm: not given, but required")
        return planned(**{key: _values(key, value) for key, value in told.items()})
    except IOModelError as error:
        raise SpecError(f"{where}: {error}") from None


def _values(field: str, told: Any) -> Any:
    """A range as the numbers that it holds; whatever else as it is."""
    if not is_number(field) or not isinstance(told, dict):
        return told
    for key in told:
        if key not in STEPS:
            raise UnknownNameError(f"{field}: key", key, STEPS)
    low, high = (as_integer(f"{field}.{end}", _needed(field, told, end)) for end in ("from", "to"))
    if ("step" in told) == ("factor" in told):
        raise InputError(f"{field}: a range with {shown(told)} given; allowed: exactly one of step and factor")
    if low > high:
        raise InputError(f"{field}: from {low} to {high} given; allowed: from the lesser to the greater")
    if "step" in told:
        found = range(low, high + 1, as_integer(f"{field}.step", told["step"]))
        if len(found) > LONGEST:
            raise InputError(f"{field}: {len(found):,} values given; allowed: up to {LONGEST:,} along a dimension")
        return found
    factor = as_integer(f"{field}.factor", told["factor"], least=2)
    values = [low]
    while (following := values[-1] * factor) <= high:
        values.append(following)
    return values


def _needed(field: str, told: dict[str, Any], key: str) -> Any:
    if key not in told:
        raise InputError(f"{field}.{key}: not given, but required in a range")
    return told[key]
