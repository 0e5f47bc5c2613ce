"""Approximate algorithms, and their marks in tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict


def approximations(algorithms: Iterable[AlgorithmLike]) -> FrozenDict[str, str]:
    """Collect the approximate algorithms by name, each with the operation that it computes in place of attention."""
    return FrozenDict({str(name): text for name in algorithms if (text := find_algorithm(name).approximates)})


def marked(name: str, approximates: Mapping[str, str]) -> str:
    """Format a name for a table, with a tilde before an approximate algorithm."""
    return f"~ {name}" if name in approximates else name


def footnotes(approximates: Mapping[str, str]) -> list[str]:
    """Return a line for each approximate algorithm of a table."""
    return [f"~ {name}: {text}" for name, text in approximates.items()]


def bests(comparison: Any) -> dict[str, str | None]:
    """Return the names of the best algorithms of a comparison, exact and approximate, as plain data."""
    approximate = comparison.best_approximate
    return {"best": comparison.best.algorithm, "best_approximate": approximate and approximate.algorithm}
