"""Algorithms of this package: known from a catalogue, and imported when a declaration is needed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from importlib import import_module
from typing import Any

from iomodel.algorithms._front_ends import front_end
from iomodel.algorithms._tiles import shipped_tiles
from iomodel.common import derived
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED, Execution
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Residency

LISTED = (
    *("name", "title", "cite", "answers", "features", "exclusive", "options", "saved", "implied"),
    *("classes", "without", "tiled_by", "approximates", "masks", "as_written", "searched"),
    *("preference", "triton_kernels", "replaces", "paper_share", "untiled"),
)
"""The fields that the catalogue has: those without nests and formulas."""
DECLARED = ("declare", "backward", "published", "requires", "symbols")
"""The fields that are read from the algorithm's own module."""
TILES = ("shared", "phases", "tensor")
"""The fields of a residency that are read from the algorithm's own module."""
LAYOUT = ("shared_axes", "operand_axes", "result_axes", "shrinks", "accumulates")
"""The fields of a residency that the catalogue has in place of `TILES`."""
KERNELS = ("name", "title", "cite", "searched", "aliases", "superseded", "symbols")
"""The fields of an implementation that the catalogue has."""
AXES = ("serial", "spread")
"""The fields of an execution that are read from the algorithm's own module."""


def declared_in(module: str) -> tuple[Algorithm, ...]:
    """Return the algorithms that a module declares."""
    contents = import_module(f"iomodel.algorithms.{module}")
    return tuple(getattr(contents, "ALGORITHMS", None) or (contents.ALGORITHM,))


def sources(module: str) -> list[str]:
    """List the modules of this room that a module follows from: itself, and those that it imports.

    >>> sources("reformer")
    ['algorithms/_streaming.py', 'algorithms/reformer.py']
    """
    followed: dict[str, None] = {}
    to_read = [module]
    while to_read:
        name = to_read.pop()
        file = derived.PACKAGE / "algorithms" / f"{name}.py"
        if name not in followed and file.is_file():
            followed[name] = None
            for found in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(found, ast.ImportFrom) and (found.module or "").startswith("iomodel.algorithms."):
                    to_read.append(str(found.module).removeprefix("iomodel.algorithms."))
    return [f"algorithms/{name}.py" for name in sorted(followed)]


class ShippedAlgorithm(Algorithm):
    """An algorithm of the catalogue, whose own module is imported when a nest or a formula of it is needed."""

    def __new__(cls, entry: Mapping[str, Any] | None = None, **declared: Any) -> Any:
        """Return the algorithm of an entry; of fields, as a changed copy has, one that is not shipped."""
        return Algorithm(**declared) if entry is None else object.__new__(cls)

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.__dict__.update(entry)

    @property
    def shipped(self) -> str | None:
        """The module of its stored formulas."""
        return self.name

    @property
    def sources(self) -> list[str]:
        """The modules that its formulas follow from."""
        return sources(self.__dict__["module"])

    @cached_property
    def declaration(self) -> Algorithm:
        """The algorithm as its module declares it."""
        return next(declared for declared in declared_in(self.__dict__["module"]) if declared.name == self.name)

    def declares(self, declaration: Algorithm) -> bool:
        """Check that an algorithm is the declaration of this one."""
        return f"iomodel.algorithms.{self.__dict__['module']}" in sys.modules and self.declaration is declaration

    @cached_property
    def residency(self) -> Mapping[str, Any]:
        """The residencies of each direction."""
        return {
            direction: tuple(ShippedResidency.of(self, direction, place, entry) for place, entry in enumerate(entries))
            for direction, entries in self.__dict__["residencies"].items()
        }

    @cached_property
    def implementations(self) -> tuple[Implementation, ...]:
        """The implementations in order of preference."""
        return tuple(self._implementation(entry) for entry in self.__dict__["kernels"])

    def _implementation(self, entry: Mapping[str, Any]) -> Implementation:
        layouts, executions = self.residency, entry["executions"].items()
        return Implementation(
            **{name: entry[name] for name in KERNELS},
            residency={
                direction: tuple(layouts[direction][place] for place in places)
                for direction, places in entry["places"].items()
            },
            execution={
                direction: ShippedExecution.of(self, direction, execution, entry["name"])
                for direction, execution in executions
            },
            tiles=shipped_tiles(entry["name"], self.name),
            front_end=front_end(entry["name"]),
        )

    @cached_property
    def execution(self) -> Mapping[str, Any]:
        """The execution of each direction."""
        return {
            direction: ShippedExecution.of(self, direction, entry)
            for direction, entry in self.__dict__["executions"].items()
        }

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that the algorithm supports."""
        return tuple(self.__dict__["taken"])

    @cached_property
    def _taken(self) -> dict[str, dict[str, Any]]:
        return {
            direction: {name: self.options[name] for name in names}
            for direction, names in self.__dict__["taken"].items()
        }

    @cached_property
    def _written(self) -> dict[str, tuple[str, ...]]:
        written: dict[str, tuple[str, ...]] = self.__dict__["written_in"]
        return written

    def __reduce__(self) -> Any:
        from iomodel.algorithms import algorithm

        return algorithm, (self.name,)


class ShippedResidency(Residency):
    """A residency of the catalogue; its tiles are read from the declaration when they are needed."""

    def __new__(cls, **declared: Any) -> Any:
        """Return a residency that is not shipped: a changed copy."""
        return Residency(**declared)

    @classmethod
    def of(cls, algorithm: ShippedAlgorithm, direction: str, place: int, entry: Mapping[str, Any]) -> ShippedResidency:
        """Return a residency of an algorithm and its entry in the catalogue."""
        residency: ShippedResidency = object.__new__(cls)
        residency.__dict__.update(entry, algorithm=algorithm, direction=direction, place=place)
        return residency

    @property
    def shipped(self) -> str:
        """The place of the residency in its algorithm."""
        return f"{self.__dict__['direction']} {self.__dict__['place']}"

    @property
    def declaration(self) -> Residency:
        """The residency as the algorithm's module declares it."""
        own = self.__dict__
        declared: Residency = own["algorithm"].declaration.residency[own["direction"]][own["place"]]
        return declared

    def __hash__(self) -> int:
        return hash((self.title, self.cite))

    def __repr__(self) -> str:
        return repr(self.declaration)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ShippedResidency):
            return self.shipped == other.shipped and self.__dict__["algorithm"] is other.__dict__["algorithm"]
        return self.declaration == other

    def __reduce__(self) -> Any:
        own = self.__dict__
        return _residency, (own["algorithm"], own["direction"], own["place"])


def _residency(algorithm: Algorithm, direction: str, place: int) -> Any:
    return algorithm.residency[direction][place]


class ShippedExecution(Execution):
    """An execution of the catalogue; its axes are read from the declaration when they are needed."""

    def __new__(cls, **declared: Any) -> Any:
        """Return an execution that is not shipped: a changed copy."""
        return Execution(**declared)

    @classmethod
    def of(
        cls, algorithm: ShippedAlgorithm, direction: str, entry: Mapping[str, Any], implementation: str = ""
    ) -> Execution:
        """Return the execution of a direction of an algorithm, or of an implementation, and its catalogue entry."""
        facts = {name: value for name, value in entry.items() if name not in ("axes", "own_axes")}
        if not entry["axes"]:
            return Execution(**facts)
        execution: ShippedExecution = object.__new__(cls)
        place = {"algorithm": algorithm, "direction": direction, "implementation": implementation}
        execution.__dict__.update(facts, **place, own_axes=entry["own_axes"])
        return execution

    @property
    def declaration(self) -> Execution:
        """The execution as the algorithm's module declares it."""
        own = self.__dict__
        return _executions(own["algorithm"].declaration, own["implementation"])[own["direction"]]

    def same_axes(self, other: Execution) -> bool:
        """Check two executions for the same axes, without the declaration for the one of the algorithm itself."""
        own = self.__dict__
        if other is own["algorithm"].execution.get(own["direction"], PIPELINED):
            return not own["own_axes"]
        return super().same_axes(other)

    def __hash__(self) -> int:
        return hash((self.cite, self.phases))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ShippedExecution):
            return all(
                self.__dict__[name] == other.__dict__[name] for name in ("algorithm", "implementation", "direction")
            )
        return self.declaration == other

    def __reduce__(self) -> Any:
        return _execution, tuple(self.__dict__[name] for name in ("algorithm", "implementation", "direction"))


def _execution(algorithm: Algorithm, implementation: str, direction: str) -> Execution:
    return _executions(algorithm, implementation)[direction]


def _executions(algorithm: Algorithm, implementation: str) -> Mapping[str, Execution]:
    named = (known for known in algorithm.implementations if known.name == implementation)
    return next(named).execution if implementation else algorithm.execution


def _declared(name: str) -> property:
    return property(lambda self: getattr(self.declaration, name))


def _listed(name: str) -> property:
    return property(lambda self: self.__dict__[name])


for _field in DECLARED:
    setattr(ShippedAlgorithm, _field, _declared(_field))
for _field in TILES:
    setattr(ShippedResidency, _field, _declared(_field))
for _field in AXES:
    setattr(ShippedExecution, _field, _declared(_field))
for _field in LAYOUT:
    setattr(ShippedResidency, _field, _listed(_field))


def listed(module: str, algorithm: Algorithm) -> dict[str, Any]:
    """Return the entry of an algorithm in the catalogue."""
    return {
        "module": module,
        **{name: getattr(algorithm, name) for name in LISTED},
        "taken": {direction: tuple(algorithm.takes(direction)) for direction in algorithm.directions},
        "written_in": {direction: algorithm.written(direction) for direction in algorithm.directions},
        "residencies": {direction: tuple(map(_facts, declared)) for direction, declared in algorithm.residency.items()},
        "executions": {direction: _overlap(declared, declared) for direction, declared in algorithm.execution.items()},
        "kernels": tuple(_kernels(algorithm, implementation) for implementation in algorithm.implementations),
    }


def _kernels(algorithm: Algorithm, implementation: Implementation) -> dict[str, Any]:
    return {
        **{name: getattr(implementation, name) for name in KERNELS},
        "places": {
            direction: tuple(algorithm.residency[direction].index(layout) for layout in layouts)
            for direction, layouts in implementation.residency.items()
        },
        "executions": {
            direction: _overlap(execution, algorithm.execution.get(direction, PIPELINED))
            for direction, execution in implementation.execution.items()
        },
    }


def _facts(residency: Residency) -> dict[str, Any]:
    names = [field.name for field in fields(residency) if field.name not in TILES]
    return {name: getattr(residency, name) for name in (*names, *LAYOUT)}


def _overlap(execution: Execution, shared: Execution) -> dict[str, Any]:
    facts = {field.name: getattr(execution, field.name) for field in fields(execution) if field.name not in AXES}
    axes = bool(execution.serial or execution.spread)
    return {**facts, "axes": axes, "own_axes": not execution.same_axes(shared)}


def plain(value: Any) -> Any:
    """Return an entry of the catalogue as plain data.

    >>> plain({"options": ("splits",), "classes": frozenset({"product"})})
    {'options': ['splits'], 'classes': ['!set', 'product']}
    """
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, frozenset):
        return ["!set", *sorted(map(plain, value), key=repr)]
    return list(map(plain, value)) if isinstance(value, tuple) else value


def unplain(value: Any) -> Any:
    """Return the entry of the catalogue that plain data describe.

    >>> unplain({"options": ["splits"], "classes": ["!set", "product"]})
    {'options': ('splits',), 'classes': frozenset({'product'})}
    """
    if isinstance(value, dict):
        return {name: unplain(part) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    parts = tuple(map(unplain, value))
    return frozenset(parts[1:]) if parts[:1] == ("!set",) else parts
