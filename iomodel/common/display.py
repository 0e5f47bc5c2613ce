"""Tables for terminals and notebooks from one description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from iomodel.common.results import Record


@dataclass(frozen=True)
class Table:
    """Rows under a title; a column whose name begins with ">" is aligned to the right.

    `notes` follow the rows. Where `folded`, long cells take several lines rather than lose letters, the first column
    apart.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    folded: bool = False

    def __rich__(self) -> Any:
        """Return the table of the terminal."""
        from rich import box
        from rich.table import Table as Drawn

        caption = "\n".join(map(escape_markup, self.notes)) or None
        drawn = Drawn(
            title=escape_markup(self.title) or None,
            title_justify="left",
            caption=caption,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
        )
        for place, column in enumerate(self.columns):
            drawn.add_column(
                column.removeprefix(">"),
                justify="right" if column.startswith(">") else "left",
                overflow="fold" if self.folded else "ellipsis",
                no_wrap=self.folded and not place,
            )
        for row in self.rows:
            drawn.add_row(*map(escape_markup, row))
        return drawn


def escape_markup(text: str) -> str:
    """Escape square brackets, which rich would read as markup."""
    from rich.markup import escape as escape_rich

    return escape_rich(text)


def group(parts: Sequence[Table | str]) -> Any:
    """Join tables and lines of text for the terminal."""
    from rich.console import Group

    return Group(*(escape_markup(part) if isinstance(part, str) else part for part in parts))


def as_text(renderable: Any, width: int = 120) -> str:
    """Render plain text, at most `width` characters wide."""
    from rich.console import Console

    stream = StringIO()
    # In Jupyter, rich would display the text and leave the stream empty.
    Console(file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def as_html(renderable: Any) -> str:
    """Wrap the text in a `<pre>` block for notebooks."""
    from html import escape

    return f"<pre>{escape(as_text(renderable))}</pre>"


class Shown(ABC):
    """A value that prints as its tables, in terminals and notebooks."""

    @abstractmethod
    def tables(self) -> Sequence[Table | str]:
        """Return the tables, and the lines of text between them."""

    def rows(self) -> list[Sequence[str]]:
        """Return the rows of all tables, as text."""
        return [row for table in self.tables() if isinstance(table, Table) for row in table.rows]

    def __rich__(self) -> Any:
        """Return the tables and lines of the terminal."""
        return group(self.tables())

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def _repr_html_(self) -> str:
        return as_html(self.__rich__())


class Result(Record, Shown):
    """A result: a dataclass with a plain form that prints as a table."""
