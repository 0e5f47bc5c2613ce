"""Compiled formulas that ship as generated source, so that a process need not build them with sympy.

A builder makes a frozen record of strings, numbers and compiled formulas from a nest. :func:`obtain` returns the
record of a shipped algorithm from its module in :mod:`iomodel.counting.shipped`, and builds any other. The modules are
written by ``python -m tests.support.shipped_formulas`` and held equal to a fresh build by the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module, resources
from importlib.util import find_spec
from itertools import count
from typing import Any, TypeVar

from iomodel.counting.evaluation.compiled import Compiled, StoredFormulas
from iomodel.counting.kinds import FormulaKind

T = TypeVar("T")
RECORDS: dict[str, type] = {}
"""The classes of records by name."""
recorded: dict[tuple[str, str], Any] | None = None
"""Built records by module and key while shipped formulas are written; None otherwise."""


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
    if recorded is not None:
        fresh = recorded[module, name] = build()
        return fresh
    stored = _table(module).get(name)
    if stored is None:
        return build()
    return decoded(stored, build)  # type: ignore[no-any-return]


def is_stored(module: str | None, builder: str, key: tuple[Any, ...]) -> bool:
    """Check that the record of a builder is shipped.

    >>> is_stored("flash2", "requirements", ()), is_stored("flash2", "requirements", ("other",))
    (True, False)
    """
    return module is not None and f"{builder} {text_of(key)}" in _table(module)


@cache
def _table(module: str) -> dict[str, Any]:
    name = f"iomodel.counting.shipped.{module}"
    return import_module(name).RECORDS if find_spec(name) else {}


def shipped_digest(module: str) -> str | None:
    """Return the digest of the shipped formulas of an algorithm; None where none are shipped."""
    source = resources.files("iomodel.counting.shipped") / f"{module}.py"
    return sha256(source.read_bytes()).hexdigest() if source.is_file() else None


def text_of(value: Any) -> str:
    """Return a key as text."""
    if isinstance(value, FormulaKind):
        mask = "".join("01"[getattr(value.mask, field.name)] for field in fields(value.mask))
        rest = [getattr(value, field.name) for field in fields(value) if field.name != "mask"]
        return f"{mask} {text_of(tuple(rest))}"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))})"
    return str(value)


def decoded(stored: Any, build: Callable[[], Any]) -> Any:
    """Return the record that a stored literal describes; its formulas are rebuilt on first use as expressions."""

    @cache
    def fresh() -> list[Compiled]:
        return list(formulas_in(build()))

    places = count()

    def inside(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        if value and value[0] == "#":
            place = next(places)
            return StoredFormulas(value[1], value[2], lambda: fresh()[place])
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
