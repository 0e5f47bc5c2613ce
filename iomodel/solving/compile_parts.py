"""The independently tileable parts of an algorithm, compiled from its nest."""

from __future__ import annotations

from typing import Any

from sympy import Integer, Max

from iomodel.counting import folds as counts
from iomodel.counting.bound_call import CutAxis
from iomodel.counting.compile import compile_formulas
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared
from iomodel.counting.folds import elements, hbm_bytes, in_bytes
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.structure import Part, parts
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import SHAPES
from iomodel.nests.symbols import NAME_OF
from iomodel.solving.parts import PartFormulas, Parts

LENGTHS = frozenset(entry.name for shape in SHAPES.values() for entry in shape)


def compiled_parts(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], numbers: tuple[str, ...], unit: str
) -> Parts:
    """Compile the parts of an algorithm."""
    chosen = dict(options)
    view, weight = View(kind.mask, bool(chosen.get("packed"))), (in_bytes if unit == "B" else elements)
    tileable, fixed = parts(declared(algorithm, kind, chosen), kind.mask, view.packed)

    def axes(part: Part) -> tuple[CutAxis, ...]:
        cuts = []
        for symbol, axis in part.axes.items():
            name, packed = NAME_OF.get(axis.length, ""), bool(view.of(part.nest).rows(axis) != axis.length)
            cut = (axis.length, *axis.length.args) if isinstance(axis.length, Max) else (axis.length,)
            formula = None if name in LENGTHS else compile_formulas(cut, numbers, (), kind.operation)
            cuts.append(CutAxis(NAME_OF[symbol], name if formula is None else "", formula, packed))
        return tuple(cuts)

    def compiled(part: Part) -> PartFormulas:
        tiles = (NAME_OF[part.outer], NAME_OF[part.inner])
        occupied = counts.footprint(part.nest, view, weight)
        least_nest = part.only("fixed", "area", "begun")
        bounded = part.only("fixed", "once a tile", "streamed", "area", "begun", "revisited")
        first = hbm_bytes(part.first_visits, view)
        moved = (hbm_bytes(part.nest, view), hbm_bytes(least_nest, view) - first, hbm_bytes(bounded, view) - first)
        every, base, strict = (compile_formulas([size], numbers, tiles, kind.operation) for size in moved)
        least = tuple(NAME_OF[tile] for tile in part.least)
        footprint = compile_formulas([occupied], numbers, (*tiles, *least), kind.operation)
        shape = (part.masked, part.irregular, part.provable, part.prefers_inner)
        return PartFormulas(tiles, axes(part), *shape, least, every, footprint, base, strict, part.serpentine)

    rest = counts.footprint(fixed, view, weight) if fixed else Integer(0)
    return Parts(tuple(map(compiled, tileable)), compile_formulas([rest], numbers, (), kind.operation))
