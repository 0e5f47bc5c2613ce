"""Help pages: the front page by reader, and tables of options in which no name is cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from rich.table import Table


class HelpTable(Table):
    """A table without empty columns; the last column, the meanings, takes the width that the others leave."""

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Return the lines of the table."""
        self.columns = [column for column in self.columns if any(map(str, column.cells))]
        for column in self.columns[:-1]:
            column.no_wrap = True
        self.columns[-1].overflow = "fold"
        return super().__rich_console__(console, options)


MOST = 40
"""Most options that a help page shows without --help-all."""
OWN = "Options of the algorithm"
LATE = (
    *("Tiles", "Features", "Linear layer", "MLP", "Cross-entropy", "Recurrence", OWN),
    *("Adapters", "Speculation", "Prefix cache"),
)
"""Panels whose options a help page shows last, where it has room; those of a named algorithm come first of them."""
NARROW, NAME = 79, 13
"""Columns from which on two commands are beside each other; width of the name of a command."""


def first(parameters: Sequence[Any], *, own: bool) -> list[Any]:
    """Select the parameters that a help page shows first, in their order; `own` for the page of one algorithm."""
    late: Sequence[Any] = sorted(LATE, key=lambda panel: panel != OWN) if own else LATE

    def rank(parameter: Any) -> int:
        panel = getattr(parameter, "rich_help_panel", None)
        return 1 + late.index(panel) if panel in late else 0

    chosen = sorted(parameters, key=rank)[:MOST]
    return [parameter for parameter in parameters if parameter in chosen]


def front_page(about: str, readers: Mapping[str, Mapping[str, str]]) -> str:
    """Write the help page of all commands, what each answers, by reader."""
    width = get_terminal_size().columns
    wide, fill = width >= NARROW, partial(wrap, width=width, break_on_hyphens=False)
    lines = fill("Usage: iomodel COMMAND [ARGUMENT] [OPTIONS]; the options: iomodel COMMAND --help") + fill(about)
    for reader, commands in readers.items():
        cells = [f"  {name:{NAME}}{text}" for name, text in commands.items()]
        rows = zip_longest(cells[::2], cells[1::2], fillvalue="") if wide else ((cell, "") for cell in cells)
        lines += [reader, *(f"{left:{NARROW // 2}}{right}".rstrip() for left, right in rows)]
    lines += fill("Options: --help, --version, --install-completion, --show-completion")
    return "\n".join(lines)


def shown(parameters: Iterable[Any]) -> list[Any]:
    """Copy the parameters for a help page, each switch with one of its two names: --no-name if it is on by default."""
    return [_one_form(parameter) for parameter in parameters]


def _one_form(parameter: Any) -> Any:
    if not parameter.secondary_opts:
        return parameter
    form = copy(parameter)
    if (parameter.help or "").endswith("(on)."):
        form.opts = parameter.secondary_opts
    form.secondary_opts = []
    return form
