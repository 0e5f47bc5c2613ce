"""The picture and the lists of the page of the accuracy of times."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from IPython.display import Markdown

from benchmarks.accuracy import judged
from iomodel import plots


def published() -> dict[str, list[Any]]:
    """Return the rows of both files, with their predicted times; "" names the calibration rows."""
    return {name: list(judged(f"published{name}.csv")) for name in ("", "_held_out")}


def parity(rows: Mapping[str, Sequence[Any]]) -> Any:
    """Draw every row."""
    every = [row for some in rows.values() for row in some]
    return plots.parity(
        [row.predicted for row in every],
        [row.measured for row in every],
        family=[row.row["implementation"] for row in every],
        held_out=[name == "_held_out" for name, some in rows.items() for _ in some],
        title="Times of attention kernels, predicted and published",
    )


def listed(lines: Iterable[str]) -> Markdown:
    """Show the lines of a report; those outside its tables become the items of a list."""
    return Markdown("\n".join(line if line.startswith("|") or not line else f"- {line.strip()}" for line in lines))
