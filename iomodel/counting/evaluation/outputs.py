"""Single outputs of stored functions, with the lines that they need alone."""

from __future__ import annotations

import ast
from threading import Lock

_PARSING = Lock()
"""CPython counts the depth of a syntax tree in a place that threads share (github.com/python/cpython, issue 106905)."""


def output_of(text: str, places: tuple[int, ...], joined_by: str = "+") -> tuple[str, tuple[int, ...]]:
    """Return the source of some outputs joined to one, and the places of the inputs that it takes.

    Parameters
    ----------
    text : str
        The source of a stored function: assignments of names, and the return of a tuple.
    places : tuple of int
        The outputs.
    joined_by : {"+", "Maximum"}
        A sum, or a call of this name.
    """
    with _PARSING:
        (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    *lines, last = definition.body
    assert isinstance(last, ast.Return)
    assert isinstance(last.value, ast.Tuple)
    wanted = [last.value.elts[place] for place in places]
    needed = {name for part in wanted for name in _names(part)}
    kept: list[ast.stmt] = []
    for line in reversed(lines):
        assert isinstance(line, ast.Assign)
        if _names(line.targets[0]) & needed:
            kept.insert(0, line)
            needed |= _names(line.value)
    parameters = [argument.arg for argument in definition.args.args]
    inputs = tuple(place for place, name in enumerate(parameters) if name in needed)
    parts = [ast.unparse(part) for part in wanted]
    value = f"Maximum({', '.join(parts)})" if joined_by == "Maximum" and len(parts) > 1 else " + ".join(parts)
    body = [*map(ast.unparse, kept), f"return ({value},)"]
    return f"def formula({', '.join(parameters[place] for place in inputs)}):\n    " + "\n    ".join(body), inputs


def _names(expression: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
