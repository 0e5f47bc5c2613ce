"""Parts of generated functions: their inputs, their lines, and single outputs with the lines that they need alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

_PARSING = Lock()
"""CPython counts the depth of a syntax tree in a place that threads share (github.com/python/cpython, issue 106905)."""


class Body(NamedTuple):
    """A generated function: its inputs, its assignments of names, and the values that it returns."""

    names: list[str]
    lines: list[ast.stmt]
    results: list[ast.expr]


def body_of(text: str) -> Body:
    """Parse a generated function."""
    with _PARSING:
        (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    *lines, last = definition.body
    assert isinstance(last, ast.Return)
    assert isinstance(last.value, ast.Tuple)
    return Body([argument.arg for argument in definition.args.args], lines, last.value.elts)


def output_of(text: str, places: Sequence[int], joined_by: str = "+") -> tuple[str, tuple[int, ...]]:
    """Return the text of the function of some outputs joined to one, and the places of the inputs that it takes.

    Parameters
    ----------
    text : str
        A generated function.
    places : sequence of int
        The outputs.
    joined_by : {"+", "Maximum"}
        A sum, or a call of this name.
    """
    names, lines, results = body_of(text)
    wanted = [results[place] for place in places]
    needed = {name for part in wanted for name in _names(part)}
    kept: list[ast.stmt] = []
    for line in reversed(lines):
        assert isinstance(line, ast.Assign)
        if _names(line.targets[0]) & needed:
            kept.insert(0, line)
            needed |= _names(line.value)
    inputs = tuple(place for place, name in enumerate(names) if name in needed)
    parts = [ast.unparse(part) for part in wanted]
    value = (
        parts[0] if len(parts) == 1 else f"Maximum({', '.join(parts)})" if joined_by == "Maximum" else " + ".join(parts)
    )
    body = [*map(ast.unparse, kept), f"return ({value},)"]
    return f"def formula({', '.join(names[place] for place in inputs)}):\n    " + "\n    ".join(body), inputs


def _names(expression: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
