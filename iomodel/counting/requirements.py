"""Requirements of an algorithm on the numbers of a call (:class:`iomodel.nests.algorithm.Requirement`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.store import obtain, record
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.workloads.workload import Mixed, Shape, Workload


@record
@dataclass(frozen=True)
class CompiledRequirement:
    """A requirement whose formulas are compiled over the numbers that it names."""

    field: str
    allowed: str
    given: tuple[tuple[str, Any], ...]
    names: tuple[str, ...]
    holds: Compiled
    most: Compiled | None


def requirements(declaration: Algorithm) -> tuple[CompiledRequirement, ...]:
    """Return the requirements of an algorithm, compiled."""
    known: tuple[CompiledRequirement, ...] | None = declaration.memo.get(CompiledRequirement)
    if known is None:

        def build() -> tuple[CompiledRequirement, ...]:
            from iomodel.counting.compile import compiled_requirements

            return compiled_requirements(declaration)

        known = declaration.memo[CompiledRequirement] = obtain(declaration.shipped, "requirements", (), build)
    return known


def check_numbers(declaration: Algorithm, numbers: Mapping[str, Any]) -> None:
    """Raise InputError where numbers break a requirement; requirements on numbers that are not given are skipped.

    Parameters
    ----------
    declaration : Algorithm
        The algorithm that declares the requirements.
    numbers : mapping of name to int or array
        Fields of the call, options, tiles and the mask; arrays broadcast, and the error names the first index at
        fault.
    """
    for requirement, point in _applicable(declaration, numbers):
        if requirement.most is not None and isinstance(number := numbers[requirement.field], int) and number == 1:
            continue  # 1 is always allowed and mostly the default: skip the pass over the arrays
        slack = _slack(requirement.holds, point)
        if isinstance(slack, int):
            if slack < 0:
                raise _error(declaration, requirement, numbers, "")
            continue
        wrong = np.argwhere(slack < 0)
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            at = {name: int(np.broadcast_to(value, slack.shape)[place]) for name, value in point.items()}
            raise _error(declaration, requirement, {**numbers, **at}, f", at index {place}")


def met(declaration: Algorithm, numbers: Mapping[str, Any]) -> Any:
    """Return True where numbers meet every requirement: a bool, or an array of bools if any number is an array."""
    where: Any = True
    for requirement, point in _applicable(declaration, numbers):
        where = where & (_slack(requirement.holds, point) >= 0)
    return where


def _slack(holds: Compiled, point: Mapping[str, Any]) -> Any:
    """Evaluate the slack, negative where a requirement is broken: an int, or an array if any number is an array."""
    if all(isinstance(value, int) for value in point.values()):
        return holds.scalars(*point.values())[0]
    return np.asarray(holds.arrays(*point.values())[0])


def _applicable(
    declaration: Algorithm, numbers: Mapping[str, Any]
) -> Iterator[tuple[CompiledRequirement, dict[str, Any]]]:
    """Yield the requirements that apply at these numbers, mask and switches, each with its numbers."""
    for requirement in requirements(declaration):
        named = numbers.keys() >= set(requirement.names)
        if named and all(numbers.get(name, False) == value for name, value in requirement.given):
            yield requirement, {name: numbers[name] for name in requirement.names}


def _error(
    declaration: Algorithm, requirement: CompiledRequirement, numbers: Mapping[str, Any], place: str
) -> InputError:
    named = dict(numbers)
    if requirement.most is not None:
        named["most"] = requirement.most.scalars(*(numbers[name] for name in requirement.names))[0]
    value = numbers[requirement.field]
    if value == declaration.options.get(requirement.field):
        value = f"{value}, the default,"
    return InputError(f"{requirement.field}: {value} given{place}; allowed: {requirement.allowed.format(**named)}")


def check_requirements(
    declaration: Algorithm, workload: Workload, options: Mapping[str, Any], sizes: Mapping[str, int]
) -> None:
    """Raise InputError where options, lengths and tiles break a requirement of the algorithm."""
    if requirements(declaration):
        check_numbers(declaration, {**numbers_of(declaration, workload), **options, **sizes})


def numbers_of(declaration: Algorithm, workload: Workload) -> dict[str, Any]:
    """Return the lengths, the mask and the features of a workload, which the requirements of an algorithm name."""
    numbers: dict[str, Any] = {name: name in workload.features for name in declaration.features}
    if isinstance(workload, Mixed):
        numbers |= {name: max(lengths) for name, lengths in workload.lengths.items()}
    elif isinstance(workload, Shape):
        numbers |= workload.numbers
    numbers["mask"] = getattr(workload, "mask", None)
    return numbers
