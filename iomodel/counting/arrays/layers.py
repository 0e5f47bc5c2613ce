"""The fields of many linear layers at once: each a value or an array, checked and broadcast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from iomodel.counting.arrays.integers import as_integers, at_place, common_shape
from iomodel.workloads.linear import Linear

NUMERIC = ("groups", "rows", "in_features", "out_features", "scale_block")
"""The fields that are numbers."""


@dataclass(frozen=True, eq=False)
class Layers:
    """Many linear layers of one kind, as :class:`~iomodel.counting.arrays.calls.Calls` has many attention calls."""

    late: ClassVar[tuple[str, ...]] = ()

    fields: Mapping[str, Any]
    shape: tuple[int, ...]
    first: Linear

    def call(self, place: tuple[int, ...]) -> Linear:
        """The layer at one index."""
        return Linear(**{name: at_place(value, place, self.shape) for name, value in self.fields.items()})

    def number(self, name: str) -> Any:
        """The value of a symbol of a linear layer, by its Python name."""
        return self.fields[name] if name in NUMERIC and name in self.fields else self.first.numbers[name]

    @property
    def numeric(self) -> dict[str, Any]:
        """The fields that are numbers."""
        return {name: value for name, value in self.fields.items() if name in NUMERIC}


def layers(given: Mapping[str, Any], beside: Mapping[str, Any]) -> Layers:
    """The layers with these fields, which broadcast with the arrays `beside`; whatever Linear refuses is refused."""
    fields = {name: value for name, value in given.items() if value is not None}
    fields |= {name: as_integers(name, fields[name]) for name in NUMERIC if name in fields}
    arrays = {name: value for name, value in fields.items() if name in NUMERIC and isinstance(value, np.ndarray)}
    some = {name: int(value.flat[0]) if value.size else 1 for name, value in arrays.items()}
    return Layers(fields, common_shape({**arrays, **beside}), Linear(**{**fields, **some}))
