"""Compiled formulas that are kept as text, so that a process need not build them with sympy.

A builder makes a frozen record of strings, numbers and compiled formulas from a nest. :func:`obtain` returns the
record of a shipped algorithm from the data of the package (:mod:`iomodel.common.derived`), or builds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from itertools import count
from typing import Any, TypeVar

from iomodel.common import derived
from iomodel.counting.evaluation.compiled import Compiled, StoredFormulas
from iomodel.counting.kinds import FormulaKind

T = TypeVar("T")
RECORDS: dict[str, type] = {}
"""The classes of records by name."""
_built: dict[str, dict[str, Any]] = {}
"""The records that this process is to keep, by name, for each module."""


def record(kind: type[T]) -> type[T]:
    """Declare a frozen dataclass whose instances may be stored."""
    RECORDS[kind.__name__] = kind
    return kind


def obtain(module: str | None, builder: str, key: tuple[Any, ...], build: Callable[[], T]) -> T:
    """Return the stored record of a builder, or build it.

    Parameters
    ----------
    module : str or None
        The shipped algorithm whose formulas are wanted, None for one that is not shipped.
    builder : str
        Name of the builder.
    key : tuple
        The other inputs of the record: strings, numbers, tuples of them, kinds of formula.
    build : callable
        Builds the record with sympy.
    """
    if module is None:
        return build()
    name = f"{builder} {text_of(key)}"
    stored = _table(module)["records"].get(name)
    if stored is not None:
        return decoded(stored, _table(module)["functions"], build)  # type: ignore[no-any-return]
    built = build()
    if derived.pending is not None:
        _built.setdefault(module, {})[name] = built
        derived.pending[_file(module)] = partial(_extended, module)
        derived.modules[_file(module)] = _sources(module)
    return built


@cache
def _sources(module: str) -> list[str]:
    """List the modules of the algorithms that formulas follow from: none for bounds, which are those of all."""
    from iomodel.algorithms import discovered

    own = discovered().get(module)
    return [] if own is None else own.sources


@cache
def _table(module: str) -> dict[str, Any]:
    return derived.read(_file(module)) or {"functions": [], "records": {}}


def _extended(module: str) -> dict[str, Any]:
    """Return the table of an algorithm with the records that this process has built."""
    table = _table.__wrapped__(module)  # another process may have written meanwhile
    functions = {text: place for place, text in enumerate(table["functions"])}
    built = {name: encoded(value, functions) for name, value in _built[module].items()}
    return {"functions": list(functions), "records": table["records"] | built}


def _file(module: str) -> str:
    return f"formulas-{module}"


def text_of(value: Any) -> str:
    """Return a key as text."""
    if isinstance(value, FormulaKind):
        mask = "".join("01"[getattr(value.mask, field.name)] for field in fields(value.mask))
        rest = [getattr(value, field.name) for field in fields(value) if field.name != "mask"]
        return f"{mask} {text_of(tuple(rest))}"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))})"
    return str(value)


def encoded(value: Any, functions: dict[str, int]) -> Any:
    """Return a record as plain data; the texts of its formulas are numbered in `functions`."""
    if isinstance(value, Compiled):
        return ["#", functions.setdefault(value.stored_text, len(functions)), value.outputs]
    if is_dataclass(value):
        parts = [(part, getattr(value, part.name)) for part in fields(value)]
        while parts and parts[-1][0].default is not MISSING and parts[-1][0].default == parts[-1][1]:
            parts.pop()  # most records leave it out
        return [f"!{type(value).__name__}", *(encoded(part, functions) for _, part in parts)]
    return [encoded(part, functions) for part in value] if isinstance(value, tuple) else value


def decoded(stored: Any, functions: list[str], build: Callable[[], Any]) -> Any:
    """Return the record that plain data describe; its formulas are rebuilt on first use as expressions."""

    @cache
    def fresh() -> list[Compiled]:
        return list(formulas_in(build()))

    places = count()

    def inside(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        if value and value[0] == "#":
            place = next(places)
            return StoredFormulas(functions[value[1]], value[2], lambda: fresh()[place])
        if value and isinstance(value[0], str) and value[0].startswith("!"):
            return RECORDS[value[0][1:]](*map(inside, value[1:]))
        return tuple(map(inside, value))

    return inside(stored)


def formulas_in(value: Any) -> Iterator[Compiled]:
    """Return every compiled formula of a record, in the order of its fields."""
    if isinstance(value, Compiled):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from formulas_in(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from formulas_in(getattr(value, field.name))
