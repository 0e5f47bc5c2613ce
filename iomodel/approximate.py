"""Which algorithms are not exact, and how a table says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.frozen import FrozenDict
from iomodel.show import escape_markup


def approximations(algorithms: Iterable[str]) -> FrozenDict[str, str]:
    """Of those that are not exact, what they compute in place of attention."""
    return FrozenDict({name: text for name in algorithms if (text := find_algorithm(name).approximates)})


def marked(name: str, approximates: Mapping[str, str]) -> str:
    """A name in a table; a tilde stands before one that is not exact."""
    return f"~ {name}" if name in approximates else name


def with_footnotes(made: Any, approximates: Mapping[str, str]) -> Any:
    """The table, with a line below it for each that is not exact."""
    if approximates:
        made.caption = "\n".join(escape_markup(f"~ {name}: {text}") for name, text in approximates.items())
        made.caption_justify = "left"
    return made
