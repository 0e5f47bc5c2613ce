"""The tiles that an algorithm takes, from its compiled formulas: no expression is derived for their names."""

from __future__ import annotations

from typing import Any

from iomodel.algorithms import algorithm
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.kinds import FormulaKind, mask_kind
from iomodel.counting.options import check_options, structural


def tile_names(name: str, mask: Any = "full", direction: str = "forward", **options: Any) -> tuple[str, ...]:
    """The names that `iomodel.expressions` has for the same arguments."""
    found = algorithm(name)
    chosen = check_options(found, options, direction=direction)
    return tally(found, FormulaKind(mask_kind(mask), direction), structural(chosen)).tiles
