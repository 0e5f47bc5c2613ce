"""Names of the algorithms that a command line may mean."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

from iomodel import algorithms

TAKING = (
    "cost",
    "formula",
    "tiles",
    "check",
    "compare",
    "estimate",
    "trace",
    "diagnose",
    "crossover",
    "plot",
    "audit",
    "bounds",
)
"""Commands with an algorithm for an argument."""
OPERATIONS = ("attention", "linear", "mlp", "cross_entropy", "recurrence")
"""Kinds of workload that options describe."""


def list_algorithms() -> list[str]:
    """List the algorithms of this command line: those that packages announce only where a word may name one.

    A command for a shipped algorithm looks for no installed package.
    """
    if _may_be_announced(sys.argv[1:]):
        return [name for operation in OPERATIONS for name in algorithms.list_algorithms(operation)]
    shipped = algorithms.discovered()
    return [name for operation in OPERATIONS for name in shipped if shipped[name].answers == operation]


def _may_be_announced(words: Sequence[str]) -> bool:
    if not words or words[0] not in TAKING:
        return False
    shipped = algorithms.discovered().keys()
    arguments = [word for before, word in pairwise(words) if not word.startswith("-") and not before.startswith("-")]
    names = [word.partition(":")[0] for word in arguments[words[0] == "plot" :]]
    return "--help" in words or not shipped & {*names} or not shipped >= {*names}
