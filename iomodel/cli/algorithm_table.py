"""The table of all algorithms."""

from __future__ import annotations

import re
from typing import Any

from iomodel.algorithms import algorithm, list_algorithms
from iomodel.common.display import Table
from iomodel.nests.algorithm import Algorithm
from iomodel.studies.comparison import approximations, footnotes, marked
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.workload_kinds import KINDS


def every_algorithm() -> dict[str, dict[str, Any]]:
    """Describe every algorithm as plain data, keyed by name: title, the workload that it answers, directions, options,
    missing features, source, and the approximation of attention if it is not exact.

    >>> every_algorithm()["tiled_query"]["directions"], every_algorithm()["fused_mlp"]["answers"]
    (['forward'], 'mlp')
    """
    return {name: _plain(algorithm(name)) for name in _names()}


def _names() -> list[str]:
    """List all algorithms, those of attention first."""
    return [name for kind in KINDS for name in list_algorithms(kind)]


def overview() -> Table:
    """Build a table of all algorithms; `packed` is an option of every exact one, a tilde marks the others."""
    columns = ("name", "of", "title", "directions", "options", "paper")
    names = _names()
    rows, notes = [_row(name) for name in names], footnotes(approximations(names))
    beside = ", ".join(list_algorithms(Elementwise.operation))
    notes = [*notes, f"kernels of rows, for cost and estimate with --rows and --channels: {beside}"]
    return Table(f"{len(names)} algorithms", columns, rows, notes, extra=("paper", "of"))


def _plain(entry: Algorithm) -> dict[str, Any]:
    return {
        "title": entry.title,
        "answers": entry.answers,
        "directions": list(entry.directions),
        "options": {direction: {**entry.takes(direction), **entry.common} for direction in entry.directions},
        "approximates": entry.approximates,
        "masks": list(entry.masks),
        "without": {direction: sorted(features) for direction, features in entry.without.items()},
        "classes": sorted(entry.classes),
        "cite": entry.cite,
    }


def _row(name: str) -> tuple[str, ...]:
    entry = algorithm(name)
    options = [f"{option}={default}" for option, default in entry.options.items()]
    papers = dict.fromkeys(re.findall(r"arXiv:\d{4}\.\d{5}", entry.cite))
    return (
        marked(name, approximations([name])),
        entry.answers.replace("_", " "),
        entry.title,
        ", ".join(entry.directions),
        ", ".join(options),
        ", ".join(papers),
    )
