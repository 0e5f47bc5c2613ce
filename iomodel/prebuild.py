"""Derivation of the data that a release carries: the catalogue, compiled formulas, parsed specs, the explorer's page.

    python -m iomodel.prebuild [--page] [NAME ...]

Without names, the formulas are those of all algorithms (:mod:`iomodel.counting.carried`).
"""

from __future__ import annotations

import gc
import os

os.environ.setdefault("SYMPY_CACHE_SIZE", "100000")  # read when sympy is imported, which derives parts anew beyond 1000

from argparse import ArgumentParser
from collections.abc import Sequence

from iomodel.algorithms import algorithm, discovered
from iomodel.common import derived
from iomodel.common.progress import watched
from iomodel.common.yaml_files import read_shipped, spec_names
from iomodel.counting.bounds import compulsory_formulas, counts_of
from iomodel.counting.carried import MASKS, Options, carried
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.requirements import requirements
from iomodel.explorer.built import whole_page
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Derive the data of some algorithms, or of all, and keep them."""
    parser = ArgumentParser(prog="python -m iomodel.prebuild", description="Derive the data that a release carries.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an algorithm (all)")
    parser.add_argument("--page", action="store_true", help="build the page of `iomodel explore` too, in minutes")
    given = parser.parse_args(arguments)
    gc.set_threshold(200_000)  # as `iomodel` does: a fifth of the time is the garbage collector's otherwise
    derived.pending = {}
    algorithms = [algorithm(name) for name in given.names or discovered()]
    for declared in watched(algorithms, len(algorithms), True, "algorithms"):
        requirements(declared)
        for kind, options in carried(declared):
            derive(declared, kind, options)
    for mask in MASKS.values():
        for direction in ("forward", "backward", "both"):
            counts_of(mask, direction, False)
        counts_of(mask, "forward", True)
    for folder in ("hardware", "architectures", "models"):
        for name in spec_names(folder):
            read_shipped(f"{folder}/{name}")
    read_shipped("sources")
    if given.page:
        whole_page(progress=True)
    derived.keep()


if __name__ == "__main__":
    main()
