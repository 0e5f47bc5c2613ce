"""Fields of many linear layers, as values or arrays, checked and broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.arrays.integers import as_integers, at_place, common_shape
from iomodel.workloads.linear import Linear

NUMERIC = ("groups", "rows", "in_features", "out_features", "scale_block")
"""Numeric fields."""
DEFAULTS = {"batch": 1, "heads": 1, "mask": "full", "direction": "forward"}
"""Defaults of the fields of attention in functions of arrays; the others default to None."""


@dataclass(frozen=True, eq=False)
class Layers:
    """A set of linear layers of one kind, as :class:`~iomodel.counting.arrays.calls.Calls` of attention calls."""

    late: ClassVar[tuple[str, ...]] = ()
    widths: ClassVar[Mapping[str, Any]] = FrozenDict()

    fields: Mapping[str, Any]
    shape: tuple[int, ...]
    first: Linear

    def call(self, place: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Linear:
        """Return the layer at one index of this shape, or of a shape that it broadcasts to."""
        return Linear(**{name: at_place(value, place, shape or self.shape) for name, value in self.fields.items()})

    def number(self, name: str) -> Any:
        """Return the value of a symbol of a linear layer, by Python name."""
        return self.fields[name] if name in NUMERIC and name in self.fields else self.first.numbers[name]

    @property
    def point(self) -> dict[str, Any]:
        """Values of all symbols by Python name, in the order of the alphabet."""
        return {name: self.number(name) for name in self.first.numbers}

    @property
    def numeric(self) -> dict[str, Any]:
        """Numeric fields."""
        return {name: value for name, value in self.fields.items() if name in NUMERIC}


def layers(fields: Mapping[str, Any], beside: Mapping[str, Any]) -> Layers:
    """Build the layers with these fields, which broadcast with the arrays `beside`; raise as Linear does."""
    known = {name: value for name, value in fields.items() if value is not None}
    known |= {name: as_integers(name, known[name]) for name in NUMERIC if name in known}
    arrays = {name: value for name, value in known.items() if name in NUMERIC and isinstance(value, np.ndarray)}
    some = {name: int(value.flat[0]) if value.size else 1 for name, value in arrays.items()}
    return Layers(known, common_shape({**arrays, **beside}), Linear(**{**known, **some}))


def not_default(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields of attention whose values are not their defaults: no linear layer takes them."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and not (isinstance(value, int | str) and value == DEFAULTS.get(name))
    }
