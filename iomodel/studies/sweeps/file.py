"""Plans of sweeps as YAML files: the arguments of `sweep` by name, with ranges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from iomodel.common.validation import as_integer
from iomodel.common.yaml_files import read_user
from iomodel.errors import InputError, IOModelError, SpecError, UnknownNameError, shown
from iomodel.studies.sweeps.fields import LONGEST, is_number, known_fields
from iomodel.studies.sweeps.plan import SweepPlan
from iomodel.studies.sweeps.sweep import planned

ARGUMENTS = ("algorithm", "quantities", "zipped", "solve", "chunk")
"""The keys of a plan beside fields; the destination of the result is no part of it."""
STEPS = ("from", "to", "step", "factor")


def plan_file(path: str | os.PathLike[str]) -> SweepPlan:
    """Read and check the plan in a file; SpecError names the file and the wrong key.

    Parameters
    ----------
    path : str or os.PathLike
        A YAML file whose keys are arguments of :func:`iomodel.sweep`. A number may be a value, a list, or a range as
        ``{from: 1024, to: 131072, factor: 2}`` or ``{from: 16, to: 256, step: 16}``, both ends included.
    """
    arguments, where = read_user(path)
    try:
        solving = arguments.get("solve", False) is True
        allowed = (*ARGUMENTS, *known_fields(solving))
        for key in arguments:
            if key not in (*ARGUMENTS, *known_fields(True), *known_fields(False)):
                raise UnknownNameError("key", key, allowed)
        if "algorithm" not in arguments:
            raise InputError("algorithm: not given, but required")
        return planned(**{key: _values(key, value) for key, value in arguments.items()})
    except IOModelError as error:
        raise SpecError(f"{where}: {error}") from None


def _values(field: str, entry: Any) -> Any:
    """Return the numbers of a range, and any other value unchanged."""
    return numbers(field, entry) if is_number(field) and isinstance(entry, dict) else entry


def numbers(field: str, entry: Mapping[str, Any]) -> Any:
    """Return the numbers of a range with both ends included."""
    for key in entry:
        if key not in STEPS:
            raise UnknownNameError(f"{field}: key", key, STEPS)
    low, high = (as_integer(f"{field}.{end}", _needed(field, entry, end)) for end in ("from", "to"))
    if ("step" in entry) == ("factor" in entry):
        raise InputError(f"{field}: a range with {shown(entry)} given; allowed: exactly one of step and factor")
    if low > high:
        raise InputError(f"{field}: from {low} to {high} given; allowed: from the lesser to the greater")
    if "step" in entry:
        progression = range(low, high + 1, as_integer(f"{field}.step", entry["step"]))
        if len(progression) > LONGEST:
            raise InputError(
                f"{field}: {len(progression):,} values given; allowed: up to {LONGEST:,} along a dimension"
            )
        return progression
    factor = as_integer(f"{field}.factor", entry["factor"], least=2)
    values = [low]
    while (following := values[-1] * factor) <= high:
        values.append(following)
    return values


def _needed(field: str, entry: Mapping[str, Any], key: str) -> Any:
    if key not in entry:
        raise InputError(f"{field}.{key}: not given, but required in a range")
    return entry[key]
