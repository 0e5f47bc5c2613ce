"""Layout of tables for the width of a terminal: numbers and names are never broken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

if TYPE_CHECKING:
    from iomodel.common.display import Table

LEAST_FOLDED = 12
"""Least width of a column whose cells may be broken anywhere [characters]."""
LONGEST_NUMBER = 48
"""Longest cell of numbers and units, such as an interval, that is not broken [characters]."""
SMALLEST = 10_000
"""Fewest bytes that are shown in a larger unit too [B]."""


def laid_out(table: Table, width: int) -> Iterator[Any]:
    """Yield the parts of a table for a terminal of this width."""
    if table.title:
        yield Text(table.title, style="italic")
    table = _without_empty(table)
    layout = _Layout.of(table, width)
    yield layout.stacked() if layout.widths is None else layout.drawn()
    left = ", ".join(name for place, name in enumerate(layout.names) if place not in layout.shown)
    notes = [*table.notes, *[f"left out at this width: {left}"] * bool(left)]
    if notes:
        yield from (_styled(note, "italic") for note in notes)
        yield ""


def _without_empty(table: Table) -> Table:
    """Leave out the columns of `extra` that are empty in every row."""
    names = [column.removeprefix(">") for column in table.columns]
    kept = [place for place, name in enumerate(names) if name not in table.extra or any(r[place] for r in table.rows)]
    return replace(
        table,
        columns=[table.columns[place] for place in kept],
        rows=[[row[place] for place in kept] for row in table.rows],
        extra=[name for name in table.extra if name in {names[place] for place in kept}],
    )


def _styled(text: str, style: str = "") -> Text:
    return Text(text, style=getattr(text, "style", style))


@dataclass(frozen=True)
class _Layout:
    """The columns of a table that are shown, with their widths; no widths where the columns do not fit."""

    table: Table
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shown: tuple[int, ...]
    widths: tuple[int, ...] | None

    @classmethod
    def of(cls, table: Table, width: int) -> _Layout:
        names = tuple(" ".join(column.removeprefix(">").split()) for column in table.columns)
        rows = tuple(tuple(_with_size(row, names)) for row in table.rows)
        shown = list(range(len(names)))
        least = [_least_width(table, names, rows, place) for place in shown]
        cells = [max(width, _longest(row[place] for row in rows)) for place, width in enumerate(least)]
        extra = [names.index(name) for name in table.extra]

        def space() -> int:  # less the space and the rules around each column
            return width - 3 * len(shown) - 1

        while extra and sum(least[place] for place in shown) > space():
            shown.remove(extra.pop())
        if sum(least[place] for place in shown) > space():
            return cls(table, names, rows, tuple(range(len(names))), None)
        widths = {place: max(cells[place], cell_len(names[place])) for place in shown}
        for limit in (cells, least):  # names of columns wrap first
            while sum(widths.values()) > space():
                wide = [place for place in shown if widths[place] > limit[place]]
                if not wide:
                    break
                widths[max(wide, key=widths.__getitem__)] -= 1
        return cls(table, names, rows, tuple(shown), tuple(widths.values()))

    def drawn(self) -> Any:
        """Return the table with its columns beside each other."""
        drawn = Drawn(box=box.SIMPLE_HEAD)
        assert self.widths is not None
        for place, width in zip(self.shown, self.widths, strict=True):
            right = self.table.columns[place].startswith(">")
            drawn.add_column(
                Text(self.names[place]), justify="right" if right else "left", overflow="fold", width=width
            )
        for row in self.rows:
            drawn.add_row(*(_styled(row[place]) for place in self.shown))
        return drawn

    def stacked(self) -> Any:
        """Return the rows below each other, each with one line for a column."""
        lines: list[Any] = []
        for row in self.rows:
            first, *rest = map(_styled, row)
            named = list(zip(self.names[1:], rest, strict=True))
            if named and named[0][0] == "value":
                first = first.append(": ").append_text(named.pop(0)[1])
            lines.append(Padding(first, (1, 0, 0, 2)))
            for name, cell in named:
                if cell.plain:
                    line = Text(f"{name}: ").append_text(cell) if name not in ("", "unit") else cell
                    lines.append(Padding(line, (0, 0, 0, 4)))
        return Group(*lines, "")


def _least_width(table: Table, names: Sequence[str], rows: Sequence[Sequence[str]], place: int) -> int:
    """Return the width below which a column would break a number, a name or a word."""
    header = _longest(names[place].split())
    right = table.columns[place].startswith(">")
    cells = [row[place] for row in rows]
    numbers = right and all(len(cell) <= LONGEST_NUMBER and ", " not in cell for cell in cells)  # no lists of them
    whole = numbers or names[place] == "unit"
    if whole:
        return max(header, _longest(cells))
    glued = (re.sub(r"(?<=~) |(?<=\d) (?=[^\d\W])", "_", cell) for cell in cells)  # marks to names, units to numbers
    words = _longest(word for cell in glued for word in cell.split())
    return max(header, min(words, LEAST_FOLDED) if table.folded and place else words)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _with_size(row: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a row, bytes in a larger unit beside the exact number or interval."""
    for place, cell in enumerate(row):
        if not (place and names[place] == "unit" and cell == "B"):
            yield cell
            continue
        ends = row[place - 1].replace(",", "").split(" to ")
        known = all(end.isdecimal() for end in ends) and max(map(int, ends)) >= SMALLEST
        yield f"B ({' to '.join(dict.fromkeys(short_bytes(int(end)) for end in ends))})" if known else cell


def short_bytes(count: int) -> str:
    """Write a number of bytes to three digits in the nearest decimal unit.

    >>> short_bytes(2_349_858_816), short_bytes(13_312), short_bytes(999_999)
    ('2.35 GB', '13.3 kB', '1 MB')
    """
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB"):
        if float(f"{value:.3g}") < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
