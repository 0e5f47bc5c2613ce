"""All algorithms in one table."""

from __future__ import annotations

import re
from typing import Any

from iomodel.algorithms import algorithm, discovered, list_algorithms
from iomodel.approximate import approximations, marked, with_footnotes
from iomodel.nest import Algorithm
from iomodel.show import table


def every_algorithm() -> dict[str, dict[str, Any]]:
    """What each algorithm answers, by name, as plain data: title, directions, options, features it lacks, source, what
    it approximates attention by if it is not exact.

    >>> every_algorithm()["tiled_query"]["directions"]
    ['forward']
    """
    return {name: _plain(found) for name, found in discovered().items()}


def overview() -> Any:
    """Return a table of all algorithms; `packed` is an option of each that is exact; a tilde marks the others."""
    columns = ("name", "title", "directions", "options", "paper")
    made = table(f"{len(list_algorithms())} algorithms", columns, [_row(name) for name in list_algorithms()])
    made.columns[0].no_wrap = True
    return with_footnotes(made, approximations(list_algorithms()))


def _plain(found: Algorithm) -> dict[str, Any]:
    return {
        "title": found.title,
        "directions": list(found.directions),
        "options": {way: {**found.takes(way), **found.common} for way in found.directions},
        "approximates": found.approximates,
        "masks": list(found.masks),
        "without": {way: sorted(features) for way, features in found.without.items()},
        "classes": sorted(found.classes),
        "cite": found.cite,
    }


def _row(name: str) -> tuple[str, ...]:
    found = algorithm(name)
    options = [f"{option}={default}" for option, default in found.options.items()]
    papers = dict.fromkeys(re.findall(r"arXiv:\d{4}\.\d{5}", found.cite))
    return (
        marked(name, approximations([name])),
        found.title,
        ", ".join(found.directions),
        ", ".join(options),
        ", ".join(papers),
    )
