"""Fields of many calls without a mask, as values or arrays, checked and broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.arrays.integers import as_integers, at_place, common_shape
from iomodel.errors import InputError
from iomodel.nests.alphabet import SHAPES
from iomodel.workloads.workload import Shape

DEFAULTS = {"batch": 1, "heads": 1, "mask": "full", "direction": "forward"}
"""Defaults of the fields of attention in functions of arrays; the others default to None."""


def numeric_fields(kind: type[Shape]) -> tuple[str, ...]:
    """Return the fields of a kind of workload that are numbers, and symbols of its formulas."""
    return tuple(entry.name for entry in SHAPES[kind.operation] if entry.name in kind.model_fields)


@dataclass(frozen=True, eq=False)
class Layers:
    """A set of calls of one kind without a mask, as :class:`~iomodel.counting.arrays.calls.Calls` of attention calls.

    `derived` holds the numbers that follow from arrays among the fields by default.
    """

    late: ClassVar[tuple[str, ...]] = ()
    widths: ClassVar[Mapping[str, Any]] = FrozenDict()

    fields: Mapping[str, Any]
    shape: tuple[int, ...]
    first: Shape
    derived: Mapping[str, Any] = FrozenDict()

    def call(self, place: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Shape:
        """Return the call at one index of this shape, or of a shape that it broadcasts to."""
        fields = {name: at_place(value, place, shape or self.shape) for name, value in self.fields.items()}
        return type(self.first)(**fields)

    def number(self, name: str) -> Any:
        """Return the value of a symbol of the workload, by Python name."""
        values = {**self.derived, **self.numeric}
        return values[name] if name in values else self.first.numbers[name]

    @property
    def point(self) -> dict[str, Any]:
        """Values of all symbols by Python name, in the order of the alphabet."""
        return {name: self.number(name) for name in self.first.numbers}

    @property
    def numeric(self) -> dict[str, Any]:
        """Numeric fields."""
        names = numeric_fields(type(self.first))
        return {name: value for name, value in self.fields.items() if name in names}


def layers(kind: type[Shape], fields: Mapping[str, Any], beside: Mapping[str, Any]) -> Layers:
    """Build the calls with these fields, which broadcast with the arrays `beside`; raise as their class does."""
    names = numeric_fields(kind)
    known = {name: value for name, value in fields.items() if value is not None}
    known |= {name: as_integers(name, known[name]) for name in names if name in known}
    arrays = {name: value for name, value in known.items() if name in names and isinstance(value, np.ndarray)}
    firsts = {name: int(value.flat[0]) if value.size else 1 for name, value in arrays.items()}
    shape = common_shape({**arrays, **beside})
    derived = _derived(kind, known)
    _check_divisors(kind, {**derived, **known})
    return Layers(known, shape, kind(**{**known, **firsts}), FrozenDict(derived))


def _derived(kind: type[Shape], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays that are the defaults of other fields."""
    complete: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        factory: Any = field.default_factory
        if name not in known and factory is not None and complete.keys():
            complete[name] = factory(complete)
        else:
            complete[name] = known.get(name, field.default)
    return {name: value for name, value in complete.items() if name not in known and isinstance(value, np.ndarray)}


def _check_divisors(kind: type[Shape], values: Mapping[str, Any]) -> None:
    """Raise InputError with the first index where a field does not divide another."""
    for name, of in kind.divisors:
        part, whole = (np.asarray(values.get(field, kind.model_fields[field].default)) for field in (name, of))
        if name not in values or not (part.ndim or whole.ndim):
            continue  # the class checks single values
        rest = np.asarray(whole % np.maximum(part, 1))
        if rest.any():
            place = tuple(int(i) for i in np.argwhere(rest)[0])
            value, number = (int(np.broadcast_to(each, rest.shape)[place]) for each in (part, whole))
            raise InputError(f"{name}: {value} given, at index {place}; allowed: a divisor of {of} = {number}")


def without_defaults(kind: type[Shape], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the fields of attention that this kind of workload lacks and that have their default."""
    return {
        name: value
        for name, value in fields.items()
        if name in kind.model_fields or not (value is None or (name in DEFAULTS and _same(value, DEFAULTS[name])))
    }


def _same(value: Any, default: Any) -> bool:
    return isinstance(value, int | str) and bool(value == default)
