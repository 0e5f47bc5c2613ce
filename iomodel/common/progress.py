"""Progress bars on a terminal's stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")
SHORT = 1.0
"""Shorter runs show no bar [s]."""


def watched(items: Iterable[Item], total: int, wanted: bool, unit: str = "chunks") -> Iterator[Item]:
    """Yield the items, with a progress bar on a terminal's stderr for longer runs."""
    if not wanted or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    began = monotonic()
    with Progress(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True, disable=False) as bar:  # fmt: skip
        task = bar.add_task(unit, total=total, visible=False)
        for item in items:
            bar.update(task, advance=1, visible=monotonic() - began > SHORT)
            yield item
