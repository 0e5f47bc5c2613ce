"""A bar on a terminal's stderr for work that takes its time."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

Item = TypeVar("Item")
SHORT = 1.0
"""A run that ends sooner shows no bar [s]."""


def watched(found: Iterable[Item], total: int, wanted: bool, what: str = "chunks") -> Iterator[Item]:
    """The same items, with a bar on a terminal's stderr where they take their time."""
    if not wanted or not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    began = monotonic()
    with Progress(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn(),
                  console=Console(stderr=True), transient=True, disable=False) as bar:  # fmt: skip
        task = bar.add_task(what, total=total, visible=False)
        for item in found:
            bar.update(task, advance=1, visible=monotonic() - began > SHORT)
            yield item
