"""Docstrings of the fields of a model, for its JSON Schema."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise


def field_docs(model: type) -> dict[str, str]:
    """Map the fields of a class to the docstrings below them, read from its source; none without the source.

    >>> from iomodel.devices.fields import Cache, Compute
    >>> field_docs(Cache), field_docs(Compute)["units"]
    ({}, 'Number of enabled SMs, CUs or cores.')
    """
    try:
        source = ast.parse(inspect.getsource(model)).body[0]
    except (OSError, SyntaxError):
        return {}
    assert isinstance(source, ast.ClassDef)
    docs = {}
    for field, text in pairwise(source.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(doc))):
                docs[name] = inspect.cleandoc(doc)
    return docs
