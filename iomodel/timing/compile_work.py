"""The work of every kernel of an algorithm, folded from its nests and compiled."""

from __future__ import annotations

from typing import Any

from sympy import Expr

from iomodel.counting.compile import compile_formulas
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import FormulaKind
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import OPTIONS, TILES
from iomodel.nests.execution import Execution
from iomodel.timing.fold_work import fold
from iomodel.timing.work_at_point import Demands


def compiled_demands(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], execution: Execution
) -> Demands:
    """Fold the nest of (algorithm, kind, options that shape it), and compile what it asks of each resource."""
    chosen = dict(options)
    view = View(kind.mask, bool(chosen.get("packed")))
    counted: list[Expr] = []
    sized: list[Expr] = []
    kernels = []
    for kernel in declared(algorithm, kind, chosen):
        folded, counts, sizes = fold(kernel, view, execution)
        if not all(count == 0 for count in counts):
            kernels.append(folded)
            counted += counts
            sized += sizes
    used = set().union(*(expr.free_symbols for expr in (*counted, *sized)))
    tiles = tuple(entry.name for entry in TILES if entry.symbol in used)
    numbers = tuple(entry.name for entry in OPTIONS if entry.name in algorithm.takes(kind.direction))
    return Demands(
        tuple(kernels),
        compile_formulas(counted, numbers, tiles, kind.operation),
        compile_formulas(sized, numbers, tiles, kind.operation),
        numbers,
        tiles,
    )
