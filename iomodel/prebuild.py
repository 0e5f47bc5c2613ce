"""Derivation of the data that a release carries: the catalogue of algorithms, and their compiled formulas.

    python -m iomodel.prebuild [NAME ...]

Without names, of all algorithms (:mod:`iomodel.counting.carried`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

os.environ.setdefault("SYMPY_CACHE_SIZE", "100000")  # read when sympy is imported; the formulas share many parts

from iomodel.algorithms import discovered
from iomodel.common import derived
from iomodel.common.progress import watched
from iomodel.counting.bounds import compulsory_formulas, counts_of
from iomodel.counting.carried import MASKS, Options, carried
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.requirements import requirements
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED
from iomodel.placement.placement import residency_formulas
from iomodel.solving.parts import parts_for
from iomodel.timing.work_at_point import demands


def derive(declared: Algorithm, kind: FormulaKind, options: Options) -> None:
    """Derive every record of formulas of a kind."""
    counted = tally(declared, kind, options)
    demands(declared, kind, options, declared.execution.get(kind.direction, PIPELINED))
    if declared.answers != "attention":
        compulsory_formulas(declared, kind)
    if counted.tiles:
        for unit in ("B", "elements"):
            parts_for(declared, kind, options, counted.numbers, unit)
        for residency in () if kind.features else declared.residency.get(kind.direction, ()):
            residency_formulas(declared, kind, tuple(sorted(options)), residency)


def main(names: Sequence[str]) -> None:
    """Derive the data of some algorithms, or of all, and keep them."""
    derived.pending = {}
    algorithms = [discovered()[name] for name in names or discovered()]
    for declared in watched(algorithms, len(algorithms), True, "algorithms"):
        requirements(declared)
        for kind, options in carried(declared):
            derive(declared, kind, options)
    for mask in MASKS.values():
        for direction in ("forward", "backward", "both"):
            counts_of(mask, direction, False)
        counts_of(mask, "forward", True)
    derived.keep()


if __name__ == "__main__":
    main(sys.argv[1:])
