"""Declarations as numbered lines of plain English."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from iomodel.nests.language import (
    Accumulate,
    Axis,
    Compound,
    Cut,
    Exp,
    Fill,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Random,
    Statement,
    Store,
    Tanh,
    When,
)

ROWS = {"query": ("query", "queries"), "key": ("key", "keys"), "depth": ("column of Q", "columns of Q"),
        "value": ("column of V", "columns of V")}  # fmt: skip
"""An axis in the singular and in the plural."""


WORDS: dict[type, str] = {Lookup: "look up", Store: "store", Fill: "fill"}


class Line(NamedTuple):
    """One line of a declaration: its indentation, its text, and its statement."""

    depth: int
    text: str
    statement: Statement


def rows(axis: Axis, many: bool = True) -> str:
    """Name the rows of an axis.

    >>> from iomodel.nests.tensors import key, query
    >>> rows(key), rows(query, many=False)
    ('keys', 'query')
    """
    single, several = ROWS.get(axis.name, (f"row of {axis.name}", f"rows of {axis.name}"))
    return several if many else single


def lines(kernel: Kernel) -> list[Line]:
    """List the statements of a kernel in order, each with its line.

    >>> from iomodel.algorithms import algorithm
    >>> for line in lines(next(iter(algorithm("tiled_query").nest())))[:3]:
    ...     print("  " * line.depth + line.text)
    for each tile of B_r queries
      keep S on chip
      keep O on chip
    """
    return list(_lines(kernel.body, 0))


def _lines(body: Any, depth: int) -> Iterator[Line]:
    for statement in body:
        text = _text(statement)
        if text:
            yield Line(depth, text, statement)
        if isinstance(statement, Compound):
            yield from _lines(
                statement.body,  # type: ignore[attr-defined]
                depth + bool(text),
            )


def _text(statement: Statement) -> str:
    if isinstance(statement, Loop):
        seen = "visible " if statement.masked else ""
        if statement.tile == 1:
            return f"for each {seen}{rows(statement.axis, many=False)}"
        return f"for each tile of {statement.tile} {seen}{rows(statement.axis)}"
    if isinstance(statement, Live | Idle):
        return f"if the tile sees {'any' if isinstance(statement, Live) else 'no'} {rows(statement.axis, many=False)}"
    if isinstance(statement, When):
        return "if the option is set"
    if isinstance(statement, Cut):
        return "for each piece of the call"
    if isinstance(statement, MatMul):
        m, n, k = (rows(axis) for axis in (statement.m, statement.n, statement.k))
        return f"multiply {m} x {n} over {k}"
    if isinstance(statement, Exp | Tanh | Random):
        word = {Exp: "exponentials", Tanh: "hyperbolic tangents", Random: "random numbers"}[type(statement)]
        return f"{word} of {' x '.join(rows(axis) for axis in statement.axes)}"
    if isinstance(statement, Load):
        later = "" if statement.after_first is None else ", but not for the first"
        return f"load {statement.tensor.name}{later}"
    if isinstance(statement, Accumulate):
        return f"add to {statement.tensor.name} in HBM"
    if isinstance(statement, Hold):
        return f"keep {statement.tensor.name} on chip"
    if isinstance(statement, Lookup | Store | Fill):
        return f"{WORDS[type(statement)]} {statement.tensor.name}"
    return ""  # a mark of a feature that the call lacks
