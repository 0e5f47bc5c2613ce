"""Tables of the help pages: no name is cut, and a switch is shown in the form that changes its default."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
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
