"""An algorithm bound to a workload, with complete options and compiled formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import name_of
from iomodel.common.frozen_dict import FrozenDict
from iomodel.counting.compiled_algorithm import CompiledAlgorithm, Formulas, tally, total
from iomodel.counting.kinds import FormulaKind, check_kind, kind_of
from iomodel.counting.options import check_options, structural
from iomodel.counting.quantities import FIXED_SIZES
from iomodel.counting.requirements import check_requirements
from iomodel.counting.result import Cost
from iomodel.counting.store import record
from iomodel.counting.tiles import tile_sizes
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm, AlgorithmLike
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Mixed, Shape, Workload, as_workload


@lru_cache(maxsize=1024, typed=True)  # True is no 1 here
def _checked(
    declaration: Algorithm, kind: FormulaKind, tiled: bool, *options: Any
) -> tuple[CompiledAlgorithm, dict[str, Any]]:
    """Check and complete options, given as names and values in turn, and look up the compiled formulas."""
    check_kind(declaration, kind)
    named = dict(zip(options[::2], options[1::2], strict=True))
    complete = check_options(declaration, named, tiled, kind.direction, kind.features)
    return tally(declaration, kind, structural(complete)), complete


@record
@dataclass(frozen=True)
class CutAxis:
    """An axis that a tile cuts.

    Attributes
    ----------
    tile : str
        The tile.
    length : str
        The field of the call that holds the length; empty if `formula` gives the length.
    formula : Formulas or None
        The length, if no field of the call holds it; if the tile cuts several axes, the longest one, then each.
    packed : bool
        True if the rows of a group are packed along the axis.
    """

    tile: str
    length: str
    formula: Formulas | None
    packed: bool


def element_size(dtype: str, numbers: Mapping[str, Any]) -> Fraction:
    """Return the size of an element of a kind of dtype, from the numbers of a call [B]."""
    if dtype in FIXED_SIZES:
        return Fraction(FIXED_SIZES[dtype])
    if dtype in ("kv", "weight"):
        return Fraction(numbers[f"{dtype}_size"], 32)
    return Fraction(numbers["element_size" if dtype == "io" else "out_element_size"])


@dataclass(frozen=True)
class BoundCall:
    """One algorithm on one workload, with checked and complete options and with compiled formulas.

    Attributes
    ----------
    compiled : CompiledAlgorithm
        The formulas of the algorithm for this kind of workload.
    options : mapping of str to Any
        Every option, defaults included.
    """

    algorithm: Algorithm
    workload: Workload
    compiled: CompiledAlgorithm
    options: Mapping[str, Any]

    @classmethod
    def bind(
        cls, algorithm: AlgorithmLike, workload: Workload, options: Mapping[str, Any], tiled: bool = True
    ) -> BoundCall:
        """Check the options of an algorithm on a workload, and look up the compiled formulas.

        Raises
        ------
        UnknownNameError, InputError
            An unknown option; a workload that the algorithm does not answer; a broken requirement.
        """
        declaration, kind = find_algorithm(algorithm), kind_of(as_workload(workload))
        if declaration.approximates and isinstance(workload, VarlenAttention):
            raise InputError(
                f"workload: sequences of several lengths given; allowed: an Attention, for {declaration.name}"
            )
        flat = tuple(part for option in options.items() for part in option)
        try:
            known = _checked(declaration, kind, tiled, *flat)
        except TypeError:  # an option of a type that cannot be looked up, which the check names
            known = _checked.__wrapped__(declaration, kind, tiled, *flat)
        check_requirements(declaration, workload, known[1], {})
        return cls(declaration, workload, *known)

    @cached_property
    def kind(self) -> FormulaKind:
        """The kind of formulas of the workload."""
        return kind_of(self.workload)

    @cached_property
    def structure(self) -> tuple[tuple[str, Any], ...]:
        """The options that shape a formula."""
        return structural(self.options)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numeric options, in the order of the inputs of the formulas."""
        return tuple(self.options[name] for name in self.compiled.numbers)

    @property
    def tiles(self) -> tuple[str, ...]:
        """The tiles that the algorithm takes."""
        return self.compiled.tiles

    def sizes(self, tiles: Mapping[str, Any]) -> dict[str, int]:
        """Return a size for each tile that the algorithm takes; raise InputError if they break a requirement."""
        sizes = tile_sizes(self.algorithm.name, self.tiles, tiles)
        check_requirements(self.algorithm, self.workload, self.options, sizes)
        return sizes

    def cost(self, sizes: Mapping[str, int]) -> Cost:
        """Return the exact cost at tiles; raise InputError if they break a requirement of the algorithm."""
        check_requirements(self.algorithm, self.workload, self.options, {name: sizes[name] for name in self.tiles})
        return self.at(sizes)

    def at(self, sizes: Mapping[str, int]) -> Cost:
        """Return the exact cost at tiles that have been checked."""
        tiles = {name: sizes[name] for name in self.tiles}
        point = tuple(tiles.values())
        if isinstance(self.workload, Mixed):
            values = self.compiled.over(self.workload, self.options, point)
        else:
            assert isinstance(self.workload, Shape)
            values = self.compiled.at(self.workload, self.options, point)
        return Cost(
            name_of(self.algorithm),
            self.workload,
            FrozenDict(tiles),
            FrozenDict(self.options),
            FrozenDict(dict(zip(self.compiled.reads, values.reads, strict=True))),
            FrozenDict(dict(zip(self.compiled.writes, values.writes, strict=True))),
            **values.by_name,
        )

    @property
    def element_bytes(self) -> dict[tuple[str, str], Fraction]:
        """Size of an element of each tensor that is read or written, but for one that changes its dtype [B]."""
        numbers, compiled = self.workload.longest.numbers, self.compiled
        keys = [*(("reads", name) for name in compiled.reads), *(("writes", name) for name in compiled.writes)]
        kinds = zip(keys, compiled.quantities.dtypes, strict=True)
        return {key: element_size(dtype, numbers) for key, dtype in kinds if dtype is not None}

    def lengths(self, axis: CutAxis) -> list[int]:
        """Return the lengths that a tile along an axis cuts, longest first [rows]."""
        w = self.workload
        numbers = w.longest.numbers
        rows = numbers["group"] if axis.packed else 1
        many = w.lengths if isinstance(w, Mixed) else {}
        if axis.formula is None:
            longest = numbers[axis.length]
        else:
            longest, *each = (max(1, value) for value in axis.formula.scalars(w.longest, self.numbers, ()))
            if each:
                parts = (axis.formula.scalars(part, self.numbers, ()) for part in w.sequences)
                return sorted({max(1, length) * rows for lengths in parts for length in lengths}, reverse=True)
        return sorted({length * rows for length in many.get(axis.length, [longest])}, reverse=True)

    def total(self, formula: Formulas) -> Callable[[int, int], int]:
        """Return the function of two tiles that sums a formula over the sequences."""
        workload = self.workload
        if isinstance(workload, Shape):
            return self._at(formula, workload)
        if formula.nodes:
            by_sequence = [self._at(formula, sequence) for sequence in workload.sequences]
            return lambda u, v: sum(value_of(u, v) for value_of in by_sequence)
        assert isinstance(workload, Mixed)
        point = workload.columns
        return lambda u, v: total(formula.arrays(point, self.numbers, (u, v))[0])

    def at_longest(self, formula: Formulas, *least: int) -> Callable[[int, int], int]:
        """Return the function of two tiles that evaluates a formula at the longest lengths, others at `least`."""
        return self._at(formula, self.workload.longest, *least)

    def _at(self, formula: Formulas, workload: Shape, *least: int) -> Callable[[int, int], int]:
        if formula.nodes:
            return lambda u, v: formula.scalars(workload, self.numbers, (u, v, *least))[0]
        scalars, point = formula.compiled.scalars, (*workload.point, *self.numbers)
        return lambda u, v: scalars(*point, u, v, *least)[0]

    def totals(self, formula: Formulas) -> Callable[[Any, Any], Any] | None:
        """Return the function that evaluates a formula at many tiles at once; None if the workload allows none."""
        if formula.nodes or not isinstance(self.workload, Shape):
            return None
        point = self.workload.point
        return lambda us, v: formula.arrays(point, self.numbers, (us, v))[0]
