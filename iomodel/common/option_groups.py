"""Groups of keywords, documented once for all functions that take them by ``**``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple, TypeVar

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import refuse_unknown

F = TypeVar("F", bound=Callable[..., Any])
ENTRY = re.compile(r"^(\w+) : (.*)\n((?: +.*\n?)+)", re.MULTILINE)
"""An option in a docstring: its name, its type, and its text."""


class Option(NamedTuple):
    """One option.

    `kind` is its type in the words of a docstring, `annotation` its type in the words of a signature.
    """

    name: str
    kind: str
    annotation: str
    doc: str
    default: Any = None


def options_in(group: type, *documented: type, defaults: Mapping[str, Any] = FrozenDict()) -> dict[str, Option]:
    """Return the options of a group by name; some groups document them, by default the group itself."""
    docs: dict[str, tuple[str, str]] = {}
    for one in documented or (group,):
        docs |= {name: (kind, text.strip()) for name, kind, text in ENTRY.findall(cleandoc(one.__doc__ or ""))}
    found = {}
    for name, annotation in group.__annotations__.items():
        kind, text = docs.get(name, ("", ""))  # Python -OO has no docstrings
        found[name] = Option(name, kind, annotation.__forward_arg__, text, defaults.get(name))
    return found


def listing(options: Iterable[Option], *, further: bool = False) -> Callable[[F], F]:
    """List options in the signature and the docstring of a function that takes them by its last parameter.

    The docstring lists them before the entry of that parameter, such as ``**options``, or in its place unless the
    parameter takes `further` ones.
    """

    def listed(function: F) -> F:
        flat = [
            Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.annotation)
            for option in options
        ]
        own = signature(function)
        *first, last = own.parameters.values()
        shown: Any = function
        shown.__signature__ = own.replace(parameters=[*first, *flat, *[last] * further])
        entries = [f"{option.name} : {option.kind}\n    {option.doc}" for option in options]
        entry = f"**{last.name}"
        shown.__doc__ = cleandoc(function.__doc__ or "").replace(entry, "\n".join([*entries, *[entry] * further]), 1)
        return function

    return listed


def check_names(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise UnknownKeywordError if an option is not listed in the signature of a function."""
    refuse_unknown(function.__name__, given, signature(function).parameters)
