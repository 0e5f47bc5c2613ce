"""Readable tables for terminals and notebooks, from one description."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import Any


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Any:
    """A rich table; a column whose name begins with ">" is aligned to the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=escape_markup(title), title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        made.add_row(*map(escape_markup, row))
    return made


def escape_markup(text: str) -> str:
    """Keep square brackets of a text from being read as markup."""
    from rich.markup import escape as escape_rich

    return escape_rich(text)


def as_text(renderable: Any, width: int = 120) -> str:
    """Plain text, as wide as needed up to `width` characters."""
    from rich.console import Console

    stream = StringIO()
    # In Jupyter rich would display the text, and leave the stream empty.
    Console(file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def as_html(renderable: Any) -> str:
    """The text in a `<pre>` block, for notebooks."""
    return f"<pre>{escape(as_text(renderable))}</pre>"


class Shown:
    """Whatever prints as a table: gives `str`, HTML and JSON from `__rich__` and `to_dict`."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        raise TypeError(f"{type(self).__name__} has no plain form")

    def __rich__(self) -> Any:
        """Return what the terminal shows."""
        raise TypeError(f"{type(self).__name__} has no table")

    def to_json(self, indent: int | None = 2) -> str:
        """Everything as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent)

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def _repr_html_(self) -> str:
        return as_html(self.__rich__())
