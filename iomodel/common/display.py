"""Tables for terminals and notebooks from one description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from io import StringIO
from itertools import groupby
from typing import Any, ClassVar, Self

from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.headers import headed, reading
from iomodel.common.results import Record, cells, columns_of
from iomodel.common.tabular import Tabular

ANSWER, LIMIT, WARNING = "bold", "bold cyan", "yellow"
"""Styles of the answer, of what limits it, and of what it assumes."""


class Mark(str):
    """The text of a cell or note, with the style in which a terminal with colours shows it."""

    __slots__ = ("style",)
    style: str

    def __new__(cls, text: str, style: str) -> Mark:
        """Mark a text with a style."""
        marked = super().__new__(cls, text)
        marked.style = style
        return marked


class StyledLine(str):
    """A line of text whose characters have styles of their own in a terminal with colours, by place."""

    __slots__ = ("styles",)
    styles: Mapping[int, str]

    def __new__(cls, text: str, styles: Mapping[int, str]) -> StyledLine:
        """Style some characters of a text."""
        line = super().__new__(cls, text)
        line.styles = styles
        return line


@dataclass(frozen=True)
class Table:
    """Rows under a title; a column whose name begins with ">" is aligned to the right.

    `notes` follow the rows. The columns named in `extra` are left out where the table is wider than the terminal, the
    last of them first; a table that is still too wide lists the columns of each row below each other. Text wraps at
    spaces; where `folded`, anywhere, the first column apart.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    folded: bool = False
    extra: Sequence[str] = ()

    @classmethod
    def of(
        cls, title: str, kind: Any, values: Iterable[Any], notes: Sequence[str] = (), names: Sequence[str] = ()
    ) -> Self:
        """Tabulate values of one class under the columns of its fields, or of the named ones in their order."""
        every = columns_of(kind)
        columns = [(path, part) for name in names for path, part in every if path == name] if names else every
        ranked = sorted((part.extra, part.label.removeprefix(">")) for _, part in columns if part.extra)
        labels = [part.label for _, part in columns]
        rows = [cells(value, columns) for value in values]
        return cls(title, labels, rows, notes, extra=[label for _, label in ranked])

    @classmethod
    def one(cls, title: str, value: Any) -> Self:
        """List the columns of one value below each other, those without a value left out."""
        kind: Any = type(value)
        columns = columns_of(kind)
        texts = zip(columns, cells(value, columns), strict=True)
        return cls(title, ("", ">value"), [(part.label, text) for (_, part), text in texts if text])

    def with_rows(self, rows: Iterable[Sequence[str]]) -> Self:
        """Add rows below the others."""
        return replace(self, rows=[*self.rows, *rows])

    def with_omissions(self, left_out: Mapping[str, Sequence[str]], names: Iterable[str]) -> Self:
        """Add a last column that counts what is left out under the name of each row, if anything is."""
        if not any(left_out.values()):
            return self
        rows = [(*row, count_text(left_out[name])) for row, name in zip(self.rows, names, strict=True)]
        return replace(self, columns=(*self.columns, "left out"), rows=rows, extra=(*self.extra, "left out"))

    def with_names(self, label: str, names: Iterable[str]) -> Self:
        """Add a first column with the name of each row."""
        rows = [(name, *row) for name, row in zip(names, self.rows, strict=True)]
        return replace(self, columns=(label, *self.columns), rows=rows)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Return the parts of the table for a terminal of this width."""
        from iomodel.common.table_layout import laid_out

        yield from laid_out(self, options.max_width)


def sizes_text(sizes: Mapping[str, Any]) -> str:
    """Write tiles and the launch configuration as they are given to a function.

    >>> sizes_text({"block_q": 128, "block_kv": 64})
    'block_q=128, block_kv=64'
    """
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "no tiles"


def microseconds(value: float) -> str:
    """Write a time in us to one decimal.

    >>> microseconds(0.0012345)
    '1,234.5'
    """
    return f"{value * 1e6:,.1f}"


def per(unit: float, digits: int) -> Callable[[float], str]:
    """Return a function that writes a number in a larger unit.

    >>> per(1e9, 1)(12_345_678_901)
    '12.3'
    """
    return lambda value: f"{value / unit:,.{digits}f}"


def interval(ends: Iterable[int]) -> str:
    """Write the least and the most, or the one number that both are.

    >>> interval((1024, 2048)), interval((1024, 1024))
    ('1,024 to 2,048', '1,024')
    """
    return " to ".join(f"{end:,}" for end in dict.fromkeys(ends))


def figure(value: float, digits: int = 4) -> str:
    """Format a number with some significant digits, and with every digit before the decimal point.

    >>> figure(0.0123456), figure(4095.9, digits=3), figure(12_345.6)
    ('0.01235', '4,096', '12,346')
    """
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def percent(share: float, digits: int = 0) -> str:
    """Write a share in percent.

    >>> percent(0.625), percent(0.625, 1)
    ('62 %', '62.5 %')
    """
    return f"{share:.{digits}%}".replace("%", " %")


def assumed(notes: Iterable[str]) -> list[Mark]:
    """Return the assumptions of a result as notes of its table."""
    return [Mark(f"assumed: {note}", WARNING) for note in notes]


def trusted(left_out: Iterable[str], assumptions: Iterable[str]) -> list[Mark]:
    """Return the omissions of a result and its assumptions as notes of its table."""
    return [*(Mark(f"left out: {text}", WARNING) for text in left_out), *assumed(assumptions)]


def shared_notes(word: str, notes: Mapping[str, Sequence[str]]) -> list[Mark]:
    """Return notes about several names, each once: with the names that it holds for, unless it holds for all.

    >>> shared_notes("left out", {"l4": ["reuse in the L2"], "t4": ["reuse in the L2", "tails"]})
    ['left out: reuse in the L2', 'left out for t4: tails']
    """
    lines = []
    for text in dict.fromkeys(text for texts in notes.values() for text in texts):
        names = [name for name, texts in notes.items() if text in texts]
        where = "" if len(names) == len(notes) else f" for {', '.join(names)}"
        lines.append(Mark(f"{word}{where}: {text}", WARNING))
    return lines


def count_text(parts: Sequence[str]) -> str:
    """Count what is left out, as the cell of a table; empty without any.

    >>> count_text(["tails"]), count_text(["tails", "reuse"]), count_text([])
    ('1 part', '2 parts', '')
    """
    return f"{len(parts)} part{'s' if len(parts) > 1 else ''}" if parts else ""


def escape_markup(text: str) -> str:
    """Escape square brackets, which rich would read as markup."""
    from rich.markup import escape as escape_rich

    return escape_rich(text)


def group(parts: Sequence[Table | str]) -> Any:
    """Join tables and lines of text for the terminal."""
    from rich.console import Group

    return Group(*map(_renderable, parts))


def _renderable(part: Table | str) -> Any:
    if not isinstance(part, StyledLine):
        return escape_markup(part) if isinstance(part, str) else part
    from rich.text import Text

    line = Text(part)
    for place, style in part.styles.items():
        line.stylize(style, place, place + 1)
    return line


def as_text(renderable: Any, width: int = 120) -> str:
    """Render plain text, at most `width` characters wide."""
    from rich.console import Console

    stream = StringIO()
    # In Jupyter, rich would display the text and leave the stream empty.
    Console(file=stream, width=width, color_system=None, force_terminal=False, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def as_html(parts: Sequence[Table | str]) -> str:
    """Write tables as HTML, and the lines of text between them as they are."""
    from html import escape

    runs = ((kind, list(run)) for kind, run in groupby(parts, lambda part: isinstance(part, Table)))
    return "".join(
        "".join(map(_table_html, run)) if kind else f"<pre>{escape(chr(10).join(map(str, run)))}</pre>"
        for kind, run in runs
    )


def _table_html(part: Any) -> str:
    """Write a table as HTML."""
    from html import escape

    sides = ["right" if column.startswith(">") else "left" for column in part.columns]

    def row(tag: str, cells: Sequence[str]) -> str:
        aligned = zip(sides, cells, strict=True)
        written = (f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for side, cell in aligned)
        return f"<tr>{''.join(written)}</tr>"

    head = row("th", [column.removeprefix(">") for column in part.columns])
    body = "".join(row("td", cells) for cells in part.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in part.notes)
    return f"<table><caption>{escape(part.title)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>{notes}"


def choice_text(tiles: Mapping[str, Any], options: Mapping[str, Any] = FrozenDict()) -> str:
    """Write a choice in a few words.

    >>> choice_text({"block_q": 192, "block_kv": 96, "warps": 12, "stages": 2}, {"splits": 8})
    '192 x 96, 12 warps, splits=8'
    """
    sizes = " x ".join(str(size) for name, size in tiles.items() if name not in ("warps", "stages"))
    warps = [f"{tiles['warps']} warps"] if "warps" in tiles else []
    return ", ".join([sizes or "no tiles", *warps, *(f"{name}={value}" for name, value in options.items())])


def _scalars(data: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Go through the numbers and texts of plain data."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{path}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{path}{name}", value


LONGEST = 280
"""Characters of a headline."""


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

    def headline(self) -> str:
        """Return the answer in a few words: by default the title of the first table."""
        texts = (part.title if isinstance(part, Table) else part for part in self.tables())
        return next(filter(None, texts), "")

    def __repr__(self) -> str:
        kind, line = type(self).__name__, " ".join(self.headline().split())
        room = LONGEST - len(kind)
        return f"<{kind} {line if len(line) <= room else line[: room - 3] + '...'}>"

    def sketch(self) -> str:
        """Return a small drawing for notebooks as SVG; empty for most results."""
        return ""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the tables in a terminal of IPython, whose cells would show the long `repr` of the fields."""
        printer.text(repr(self) if cycle else str(self))

    def _repr_html_(self) -> str:
        return as_html(self.tables()) + self.sketch()


class Result(Record, Shown, Tabular):
    """A result: a dataclass with a plain form that prints as a table.

    Its plain form begins with its schema and the version that wrote it. A class that is `constructed` by users has no
    such header, and the repr of a dataclass.

    Attributes
    ----------
    assumed : tuple of str
        What the result assumes; of a class without a field for it, what the names of devices left open.
    unread : tuple of str
        Keys that a later release wrote and this one does not know; empty for any other result.
    """

    constructed: ClassVar[bool] = False

    def __init_subclass__(cls, constructed: bool = False, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        own, cls.constructed = vars(cls), constructed
        if not constructed and "__repr__" not in own:
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign] # a dataclass leaves a method of the class alone
        if "to_dict" in own:
            cls.to_dict = headed(own["to_dict"])
        if "from_dict" in own:
            cls.from_dict = classmethod(reading(own["from_dict"].__func__))

    to_dict = headed(Record.to_dict)
    from_dict = classmethod(reading(vars(Record)["from_dict"].__func__))

    def assuming(self, notes: Mapping[str, Sequence[str]]) -> Self:
        """Copy the result with more assumptions, those of each device by its label."""
        stated, every = copy(self), tuple(text for texts in notes.values() for text in texts)
        own = getattr(self, "assumed", ())
        vars(stated)["assumed"] = (
            FrozenDict({name: (*notes.get(name, ()), *texts) for name, texts in own.items()})
            if isinstance(own, Mapping)
            else (*every, *own)
        )
        return stated

    @property
    def _extra(self) -> list[Mark]:
        """The assumptions of a result whose class has no field for them."""
        own: Any = type(self)
        return [] if "assumed" in own.__dataclass_fields__ else assumed(vars(self).get("assumed", ()))

    def __rich__(self) -> Any:
        return group([*self.tables(), *self._extra])

    def _repr_html_(self) -> str:
        return as_html([*self.tables(), *self._extra]) + self.sketch()

    def records(self) -> Any:
        """Return one row: the numbers and texts of the plain data, those of parts under names with a dot."""
        return [dict(_scalars(Record.to_dict(self)))]

    @property
    def unread(self) -> tuple[str, ...]:
        """Keys that a later release wrote and this one does not know."""
        skipped: tuple[str, ...] = vars(self).get("_unread", ())
        return skipped
